"""Photos of a row's size in memory: the middle of each file, resized."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.inputs import Inputs, read_jpegs, save

# Of each size, as many as together are larger than most caches.
COUNTS = {32: 2048, 224: 256, 1024: 16}


def make(size: int, jpegs: list[bytes]) -> npt.NDArray[np.uint8]:
    """uint8[COUNTS[size], size, size, 3]."""
    from PIL import Image

    count = COUNTS[size]
    images = np.empty((count, size, size, 3), np.uint8)
    for i in range(min(count, len(jpegs))):
        photo = Image.open(io.BytesIO(jpegs[i]), formats=("JPEG",)).convert("RGB")
        side = min(photo.size)
        left, top = (photo.width - side) / 2, (photo.height - side) / 2
        box = (left, top, left + side, top + side)
        images[i] = np.asarray(photo.resize((size, size), Image.Resampling.BICUBIC, box=box))
    for i in range(len(jpegs), count):
        images[i] = images[i % len(jpegs)]
    return images


def lay_down(sizes: set[int], tar: Path | None, folder: Path) -> str:
    """A file per size for the worker processes -> a word on where the photos are from."""
    jpegs, origin = read_jpegs(tar)
    for size in sizes:
        np.save(folder / f"{size}.npy", make(size, jpegs))
    save(Inputs(jpegs=jpegs), folder)
    counts = ", ".join(f"{COUNTS[size]} of {size} px" for size in sorted(sizes))
    return f"{counts}: the middle of {origin}"

"""Small data sets with odd files, and ways to pack them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from variegate.jobs.pack import Packed, pack

# Class and name; b/huge.bmp is no image.
KINDS = {
    "a/cmyk.jpg": "CMYK",
    "a/colour.jpg": "RGB",
    "a/gray.jpg": "L",
    "a/same.png": "RGB",
    "a/turned.jpg": "RGB",
    "b/deep.png": "I;16",
    "b/same.png": "RGBA",
    "b/small.jpg": "RGB",
}


def lay_kinds(root: Path, bad: bool = False) -> Path:
    rng = np.random.default_rng(3)
    for number, (name, mode) in enumerate(KINDS.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        size = (20, 24) if "small" in name else (60 + 8 * number, 90 - 4 * number)
        coarse = Image.fromarray(rng.integers(0, 256, (6, 5, 3)).astype(np.uint8)).resize(
            size, Image.Resampling.BICUBIC
        )
        exif = Image.Exif()
        if "turned" in name:
            exif[0x0112] = 6
        if mode == "I;16":
            Image.fromarray(np.asarray(coarse.convert("L")).astype(np.uint16)).save(root / name)
        else:
            coarse.convert(mode).save(root / name, exif=exif.tobytes())
    if bad:
        (root / "a" / "oops.jpg").write_bytes(b"no image at all")
    return root


def packed(source: Any, out: Path, **options: Any) -> Packed:
    return pack(source, out, **{"devices": "cpu:0,cpu:1", "workers": "thread", "threads": 1, **options})

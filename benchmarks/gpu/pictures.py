"""The pixels of W3 and W3r, before each library lays them on the device as it likes them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.inputs import make_images

SQUARE_PICTURES = 512
# Inputs of a run are together this many times the L2, and at least this many batches.
L2_TIMES, LEAST_BATCHES = 4, 2


@dataclass(frozen=True)
class Pictures:
    """Images one after another. ``data``: uint8[bytes]; ``shapes``: int64[N, 3], (height, width, 3)."""

    data: npt.NDArray[np.uint8]
    shapes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shapes)

    def images(self) -> list[npt.NDArray[np.uint8]]:
        """uint8[H, W, 3] of each, views of ``data``."""
        ends = np.cumsum(self.shapes.prod(axis=1))
        parts = np.split(self.data, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def stacked(self) -> npt.NDArray[np.uint8]:
        """uint8[N, H, W, 3], a view; for pictures of one size."""
        if len(np.unique(self.shapes, axis=0)) != 1:
            raise ValueError("stacked: the pictures have several sizes; take images()")
        return self.data.reshape(len(self), *self.shapes[0])

    def planar(self) -> Pictures:
        """The same pictures as (3, height, width)."""
        return pack([image.transpose(2, 0, 1) for image in self.images()])

    def batches(self, batch: int, l2_bytes: int) -> list[Pictures]:
        """Batches to take turns with, so many that none is left in the L2 when its turn comes again.

        Pictures are repeated where there are too few, each time at a place of its own in memory.
        """
        images, made, start = self.images(), list[Pictures](), 0
        while len(made) < LEAST_BATCHES or sum(one.data.nbytes for one in made) < L2_TIMES * l2_bytes:
            made.append(pack([images[i % len(images)] for i in range(start, start + batch)]))
            start += batch
        return made


def pack(images: Sequence[npt.NDArray[np.uint8]]) -> Pictures:
    shapes = np.array([image.shape for image in images], np.int64)
    return Pictures(np.concatenate([image.reshape(-1) for image in images]), shapes)


def square(jpegs: Sequence[bytes], count: int = SQUARE_PICTURES) -> Pictures:
    """224x224 crops: W3."""
    return pack(list(make_images(list(jpegs), count)))


def whole(jpegs: Sequence[bytes]) -> Pictures:
    """The photos at their own sizes, decoded: W3r."""
    from PIL import Image

    return pack([np.asarray(Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB")) for data in jpegs])


def save(pictures: Pictures, folder: Path) -> None:
    """Lay the pictures down for the worker processes."""
    np.save(folder / "data.npy", pictures.data)
    np.save(folder / "shapes.npy", pictures.shapes)


def load(folder: Path) -> Pictures:
    """The inverse of ``save``; the pixels stay in the file until they are asked for."""
    return Pictures(np.load(folder / "data.npy", mmap_mode="r"), np.load(folder / "shapes.npy"))

"""Files that ``variegate pack`` writes next to shards: statistics of the pixels, and an entropy index of the JPEGs.

Statistics are over all pixels as a reader of the shards gets them, each counted alike. Sums are whole numbers, so that
the order in which images were packed changes no digit.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from PIL import Image

from variegate.arrays import UInt8Array
from variegate.data.base import SourceError
from variegate.data.reading import filesystem, named_errors, read_file
from variegate.data.samples import Samples
from variegate.data.sharded import AnySource
from variegate.errors import DecodeError, one_line, short_repr
from variegate.io.location import Location, inside

STATISTICS_NAME = "statistics.json"
INDEX_NAME = "index.vgjpeg"
FORMAT = 1
_MOST_BYTES = 1 << 20
_LEVELS = np.arange(256, dtype=np.int64)
# Sums of integers, and of floats, which are added without rounding.
Exact: TypeAlias = int | Fraction


class DatasetStatistics(NamedTuple):
    """Pixel statistics of a data set, per channel.

    Attributes:
        mean, std: on the scale where white is 1, as ``T.Normalize`` takes them.
        images, pixels: number of images, and of all pixels.
        white: the value of white: 255, 65535, or 1.0 for floats.
        own_mean, own_std: in the images' own numbers, for a ``T.Normalize`` after ``T.ToDtype("float32",
            scale=False)``.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    images: int
    pixels: int
    white: float = 255.0

    @property
    def own_mean(self) -> tuple[float, ...]:
        return tuple(one * self.white for one in self.mean)

    @property
    def own_std(self) -> tuple[float, ...]:
        return tuple(one * self.white for one in self.std)


def sums_of(image: UInt8Array) -> tuple[list[int], list[int]]:
    """uint8[H, W, C], C = 1 or 3 -> the sum of each channel, and of its squares."""
    picture = Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)
    counts = np.array(picture.histogram(), np.int64).reshape(-1, 256)
    return (counts @ _LEVELS).tolist(), (counts @ (_LEVELS * _LEVELS)).tolist()


@dataclass
class PixelSums:
    """Exact sums over many images, which do not overflow."""

    images: int = 0
    pixels: int = 0
    sums: list[Exact] = field(default_factory=list)
    squares: list[Exact] = field(default_factory=list)

    def add(self, pixels: int, sums: Sequence[Exact], squares: Sequence[Exact]) -> None:
        """An image. If gray images are among color images, their sums count in every channel."""
        channels = max(len(self.sums), len(sums))
        self.images += 1
        self.pixels += pixels
        self.sums, self.squares = (
            [a + b for a, b in zip(_widened(total, channels), _widened(more, channels), strict=True)]
            for total, more in ((self.sums, sums), (self.squares, squares))
        )

    def statistics(self, white: float = 255.0) -> DatasetStatistics:
        count = self.pixels
        size = int(white) * count
        mean = tuple(float(Fraction(total, size)) for total in self.sums)
        pairs = zip(self.sums, self.squares, strict=True)
        variance = [Fraction(count * square - total * total, size**2) for total, square in pairs]
        # Squares of floats are rounded.
        std = tuple(math.sqrt(max(float(one), 0.0)) for one in variance)
        return DatasetStatistics(mean, std, self.images, self.pixels, white)


def statistics_bytes(sums: PixelSums) -> bytes:
    """The content of the file."""
    found = sums.statistics()
    metadata = {"format": FORMAT, "images": sums.images, "pixels": sums.pixels, "mean": found.mean, "std": found.std}
    exact = {"sum": sums.sums, "sum_of_squares": sums.squares}
    return (json.dumps(metadata | exact, indent=2) + "\n").encode()


def parse_statistics(data: bytes, place: str) -> DatasetStatistics:
    """Raises SourceError for invalid statistics."""
    try:
        found = json.loads(data)
        mean, std = (tuple(map(_share, found[name])) for name in ("mean", "std"))
        if found["format"] != FORMAT or len(mean) not in (1, 3) or len(std) != len(mean):
            raise ValueError("of another format")
        images = found["images"]
        pixels = found["pixels"]
        if type(images) is not int or type(pixels) is not int or not 0 < images <= pixels:
            raise ValueError(f"got {short_repr(images)} images of {short_repr(pixels)} pixels")
        return DatasetStatistics(mean, std, images, pixels)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        reason = one_line(error)
        raise SourceError(
            f"{place}: no statistics of a data set ({reason}); accepted: what variegate pack writes"
        ) from None


def _share(value: Any) -> float:
    """Mean and deviation of pixels on the 0..1 scale are in this range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"got {short_repr(value)}; accepted: numbers from 0 to 1")
    return abs(float(value))  # -0.0 is 0


def statistics_of(source: AnySource) -> DatasetStatistics | None:
    """The statistics next to the files of a source; None if missing. Raises SourceError for damaged ones."""
    place = beside(source, STATISTICS_NAME)
    if place is None:
        return None
    try:
        data = read_file(place, _MOST_BYTES)
    except DecodeError as error:
        if place.is_url or not os.path.exists(place.address()):
            return None
        raise SourceError(f"{place}: {error.reason}") from None
    return parse_statistics(data, str(place))


def checked_statistics(source: AnySource) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation, for ``T.Normalize("dataset")``. Raises SourceError if missing."""
    found = statistics_of(source)
    if found is None:
        accepted = "what variegate pack wrote, or numbers, as vg.dataset_statistics computes: Normalize(mean, std)"
        missing = f"has no {STATISTICS_NAME} next to it, which Normalize('dataset') asks for"
        raise SourceError(f"{source!r}: {missing}; accepted: {accepted}")
    if min(found.std) <= 0:
        raise SourceError(f"{source!r}: all pixels of a channel are equal, so that Normalize('dataset') divides by 0")
    return found.mean, found.std


def index_beside(source: AnySource) -> Location | None:
    """The entropy index that was packed with the files of a source."""
    place = beside(source, INDEX_NAME)
    if place is None:
        return None
    if not place.is_url:
        return place if os.path.exists(place.address()) else None
    try:
        with named_errors(place):
            fs, path = filesystem(place)
            return place if fs.exists(path) else None
    except SourceError:
        return None


def beside(source: AnySource, name: str) -> Location | None:
    """A name in the folder of the source's files; None without files, or with several folders."""
    if isinstance(source, Samples):
        files = [file.location for file in source.stored_files()]
    else:
        files = getattr(source, "locations", [])
    parts = [Location.parse(file, chain=True).address().partition("::") for file in files]
    folders = {f"{os.path.dirname(outer) or '.'}{chain}{rest}" for outer, chain, rest in parts}
    return None if len(folders) != 1 else Location.of(inside(folders.pop(), name))


def _widened(values: Sequence[Exact], channels: int) -> Sequence[Exact]:
    return values if len(values) == channels else list(values[:1] or [0]) * channels

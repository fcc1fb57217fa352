"""Files that ``variegate pack`` writes next to shards: statistics of the pixels, and an entropy index of the JPEGs.

Statistics are over all pixels as a reader of the shards gets them, each counted alike. Sums are added without rounding,
so that the order in which images were packed changes no digit.
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

from variegate.arrays import ImageArray
from variegate.data.base import SourceError
from variegate.data.reading import filesystem, named_errors, read_file
from variegate.data.samples import Samples
from variegate.data.sharded import AnySource
from variegate.errors import DecodeError, one_line, short_repr
from variegate.io.location import Location, inside
from variegate.program.depth import Depth
from variegate.program.program import MAX_CHANNELS

STATISTICS_NAME = "statistics.json"
INDEX_NAME = "index.vgjpeg"
FORMAT = 1
_MOST_BYTES = 1 << 20
_LEVELS = np.arange(256, dtype=np.int64)
# Sums of integers, and of floats, which are added without rounding.
_Exact: TypeAlias = int | Fraction
# Variance as a share of the mean square, below which it comes from rounded sums of an image's floats.
_ROUNDING = Fraction(1, 1 << 45)
_LARGEST = float(np.finfo(np.float32).max)


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


class ImageSums(NamedTuple):
    """Number of finite pixels of an image; per channel, the sum of their values and of the squares.

    Sums of floats are rounded to float64, and the same on every machine.
    """

    pixels: int
    sums: list[int] | list[float]
    squares: list[int] | list[float]


def sums_of(image: ImageArray) -> ImageSums:
    """Sums of an image [H, W, C], or of several [N, H, W, C]. Pixels with NaN or infinity do not count."""
    channels = image.shape[-1]
    flat = image.reshape(-1, channels)
    if image.dtype == np.uint8 and channels in (1, 3):
        picture = Image.fromarray(flat if channels == 1 else flat[None])
        counts = np.array(picture.histogram(), np.int64).reshape(-1, 256)
        return ImageSums(len(flat), (counts @ _LEVELS).tolist(), (counts @ (_LEVELS * _LEVELS)).tolist())
    is_float = image.dtype.kind == "f"
    if is_float:
        is_finite = np.isfinite(flat).all(axis=1)
        flat = flat if is_finite.all() else flat[is_finite]
    sums = []
    squares = []
    for channel in range(channels):
        values = flat[:, channel].astype(np.float64 if is_float else np.uint64)
        sums.append(values.sum().item())
        squares.append(np.square(values).sum().item())
    return ImageSums(len(flat), sums, squares)


@dataclass
class PixelSums:
    """Exact sums over many images, which do not overflow."""

    images: int = 0
    pixels: int = 0
    sums: list[_Exact] = field(default_factory=list)
    squares: list[_Exact] = field(default_factory=list)

    def accepts(self, channels: int) -> bool:
        """Return whether an image has as many channels as the images before, or is gray, or they are."""
        before = len(self.sums) or channels
        return channels == before or 1 in (channels, before)

    def add(self, image: ImageSums) -> None:
        """Add an image. If gray images are among color images, their sums count in every channel."""
        sums, squares = (list(map(_exact, values)) for values in image[1:])
        channels = max(len(self.sums), len(sums))
        self.images += 1
        self.pixels += image.pixels
        self.sums, self.squares = (
            [a + b for a, b in zip(_widened(total, channels), _widened(more, channels), strict=True)]
            for total, more in ((self.sums, sums), (self.squares, squares))
        )

    def statistics(self, white: float = 255.0) -> DatasetStatistics:
        count = self.pixels
        size = int(white) * count
        mean = tuple(float(Fraction(total, size)) for total in self.sums)
        pairs = zip(self.sums, self.squares, strict=True)
        std = []
        for total, square in pairs:
            variance = count * square - total * total
            is_rounding = variance <= _ROUNDING * count * square
            std.append(0.0 if is_rounding else math.sqrt(Fraction(variance, size**2)))
        return DatasetStatistics(mean, tuple(std), self.images, self.pixels, white)


def statistics_bytes(sums: PixelSums, white: float) -> bytes:
    """The content of the file."""
    found = sums.statistics(white)
    metadata = {"format": FORMAT, "images": sums.images, "pixels": sums.pixels, "white": white}
    exact = {"sum": _in_json(sums.sums), "sum_of_squares": _in_json(sums.squares)}
    return (json.dumps(metadata | {"mean": found.mean, "std": found.std} | exact, indent=2) + "\n").encode()


def parse_statistics(data: bytes, place: str) -> DatasetStatistics:
    """Raises SourceError for invalid statistics."""
    try:
        found = json.loads(data)
        white = found.get("white", Depth.UINT8.white)
        if isinstance(white, bool) or white not in [depth.white for depth in Depth]:
            raise ValueError(f"got white {short_repr(white)}; accepted: 255, 65535 or 1")
        # Floats may be in units of their own.
        most = _LARGEST if white == Depth.FLOAT32.white else 1.0
        least = -_LARGEST if white == Depth.FLOAT32.white else 0.0
        mean = tuple(_number(value, least, most) for value in found["mean"])
        std = tuple(_number(value, 0.0, most) for value in found["std"])
        if found["format"] != FORMAT or not 0 < len(mean) <= MAX_CHANNELS or len(std) != len(mean):
            raise ValueError("of another format")
        images = found["images"]
        pixels = found["pixels"]
        if type(images) is not int or type(pixels) is not int or min(images, pixels) < 1:
            raise ValueError(f"got {short_repr(images)} images of {short_repr(pixels)} pixels")
        return DatasetStatistics(mean, std, images, pixels, float(white))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = one_line(error)
        raise SourceError(
            f"{place}: no statistics of a data set ({reason}); accepted: what variegate pack writes"
        ) from None


def _number(value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValueError(f"got {short_repr(value)}; accepted: numbers from {least:g} to {most:g}")
    return float(value) + 0.0  # -0.0 is 0


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


def _exact(value: float) -> _Exact:
    return value if isinstance(value, int) else Fraction(value)


def _in_json(values: Sequence[_Exact]) -> list[float]:
    """Sums of floats are rounded once."""
    return [value if isinstance(value, int) else float(value) for value in values]


def _widened(values: Sequence[_Exact], channels: int) -> Sequence[_Exact]:
    return values if len(values) == channels else list(values[:1] or [0]) * channels

"""Measure images of more than 8 bits, or of 2 or more than 3 channels: values in their own numbers, and appearance
within the range that they use.

Appearance is measured on a rendering in 8 bits, as a viewer shows such images: the middle 99.8 % of an image's values
reach from black to white. Of 2 or more than 3 channels, these are the values of the channels' mean, in gray: an empty
or constant channel hides no other. Whether an image is dark is then judged among the images of its data set
(``Windows``): in 16 bits, a scanner of 12 bits leaves all images dark, and floats have no white at all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from variegate.apps.check.findings import COLORS, channels_of, floats
from variegate.apps.check.fingerprint import Fingerprint, fingerprint
from variegate.apps.check.pixels import PixelMeasures, measure_pixels
from variegate.arrays import AnyArray, BoolArray, Float64Array, UInt8Array
from variegate.errors import DecodeError

# The share of the values, at either end, that may lie beyond the range of a rendering, such as dead pixels.
_TAIL = 0.001
# Columns of luminance from black to white; those below are lengths on its scale.
_LUMINANCE = ("brightness", "dark_end", "bright_end")
_CONTRAST = "contrast"


class ValueMeasures(NamedTuple):
    """``low``, ``high``: values that 0.1 % of the values are below and above. ``black``, ``white``: the same of the
    rendering's numbers, see ``shown_numbers``. ``not_finite``: share of the pixels with a NaN or infinite value. All
    None for gray and color images of 8 bits."""

    low: float | None = None
    high: float | None = None
    black: float | None = None
    white: float | None = None
    not_finite: float | None = None


def white_of(depth: str) -> float:
    """White of numbers such as "uint12": the largest unsigned integer, 1.0 of others."""
    return float((1 << int(depth.removeprefix("uint"))) - 1) if depth.startswith("uint") else 1.0


def measure_values(values: AnyArray, depth: str) -> tuple[PixelMeasures, ValueMeasures, Fingerprint]:
    """Measure an image [H, W, C] of any numbers, upright. ``depth``: kind and bits of its numbers.

    The luminance of the result is on the scale of the rendering (see ``Windows.applied``); ``mean`` and ``std`` are
    shares of white. ``clipped_low`` and ``clipped_high``: shares of the pixels that have the least and the greatest
    value of the image in all channels. ``pixel_hash`` is of the numbers. Raises DecodeError without a finite value.
    """
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.shape[2] == COLORS and all(np.array_equal(values[:, :, 0], values[:, :, one]) for one in (1, 2)):
        values = values[:, :, :1]
    pixels = values.reshape(-1, values.shape[2])
    with np.errstate(over="ignore"):  # readers get float32
        read = pixels.astype(np.float32) if pixels.dtype == np.float64 else pixels
    is_finite = np.isfinite(read).all(axis=1)
    finite = pixels if is_finite.all() else pixels[is_finite]
    if not len(finite):
        no_channel = not np.isfinite(read).any()
        problem = (
            "all of its pixels are NaN or infinite" if no_channel else "every pixel is NaN or infinite in a channel"
        )
        raise DecodeError("", problem)
    least, greatest = finite.min(), finite.max()
    low, high = _range_of(finite)
    numbers = shown_numbers(values)
    black, white = low, high
    if numbers is not values:
        black, white = _range_of(numbers.reshape(-1, 1)[is_finite])
    full = white_of(depth)
    mean: list[float] = (finite.mean(axis=0, dtype=np.float64) / full).tolist()
    std: list[float] = (finite.std(axis=0, dtype=np.float64) / full).tolist()
    repeats = COLORS if len(mean) == 1 else 1
    shown = rendered(numbers, black, white)
    shown = np.ascontiguousarray(np.broadcast_to(shown, (*shown.shape[:2], COLORS)))
    look = measure_pixels(shown)._replace(
        mean=tuple(mean * repeats),
        std=tuple(std * repeats),
        least=float(least),
        greatest=float(greatest),
        clipped_low=float((finite == least).all(axis=1).mean()),
        clipped_high=float((finite == greatest).all(axis=1).mean()),
    )
    digest = hashlib.sha256(f"{values.shape} {values.dtype.name}\n".encode(), usedforsecurity=False)
    digest.update(np.ascontiguousarray(values).data)
    more = ValueMeasures(low, high, black, white, 1 - len(finite) / len(pixels))
    return look, more, fingerprint(shown)._replace(pixel_hash=digest.digest()[:16])


def _range_of(values: AnyArray) -> tuple[float, float]:
    """The values that 0.1 % of the values are below and above; least and greatest value if these are one."""
    flat = values.reshape(-1)
    tail = int(_TAIL * flat.size)
    ends = np.partition(flat, (tail, flat.size - 1 - tail))
    low, high = float(ends[tail]), float(ends[-1 - tail])
    return (float(flat.min()), float(flat.max())) if low == high else (low, high)


def shown_numbers(values: AnyArray) -> AnyArray:
    """The numbers [H, W, 1 or 3] that a rendering shows: of other numbers of channels, their mean."""
    if values.shape[2] in (1, COLORS):
        return values
    return values.mean(axis=2, dtype=np.float64, keepdims=True)


def clipping_of(table: pa.Table) -> Float64Array:
    """The larger of ``clipped_low`` and ``clipped_high``; NaN for gray and color images of 8 bits."""
    shares = np.fmax(floats(table, "clipped_low"), floats(table, "clipped_high"))
    return np.where(np.isfinite(floats(table, "low")), shares, np.nan)


def rendered(values: AnyArray, low: float, high: float) -> UInt8Array:
    """uint8: ``low`` and less are black, ``high`` and more white, NaN black."""
    shares = np.subtract(values, low, dtype=np.float64) / ((high - low) or 1.0)
    levels: UInt8Array = np.rint(np.clip(np.nan_to_num(shares), 0, 1) * 255).astype(np.uint8)
    return levels


class Looks(NamedTuple):
    """Kind of images that are shown alike: a ``depth`` and a number of ``channels``, 3 for gray and color."""

    depth: str
    channels: int

    def __str__(self) -> str:
        return f"{self.depth} images" if self.channels == COLORS else f"{self.depth} images of {self.channels} channels"


class Windows:
    """For each ``Looks`` among a table's images with ``ValueMeasures``, the values that are black and white in the
    median image: the medians of ``black`` and ``white`` over the train images, or over all images if none of the train
    images looks so."""

    def __init__(self, table: pa.Table) -> None:
        is_train = np.array(table["split"]) == "train"
        self._depths = np.array(table["depth"].to_pylist(), object)
        self._channels = channels_of(table)
        self._low, self._high = (floats(table, name) for name in ("black", "white"))
        self.is_deep: BoolArray = np.isfinite(self._low)
        pairs = zip(self._depths[self.is_deep].tolist(), self._channels[self.is_deep].tolist(), strict=True)
        self.of: dict[Looks, tuple[float, float]] = {}
        for looks in sorted(Looks(*pair) for pair in {*pairs}):
            rows = self.rows_of(looks)
            rows = rows & is_train if (rows & is_train).any() else rows
            low, high = (float(np.median(one[rows])) for one in (self._low, self._high))
            self.of[looks] = low, high

    def notes(self) -> Iterator[str]:
        """A line for each of the windows."""
        for looks, (low, high) in self.of.items():
            is_mean = looks.channels != COLORS
            by = " by the mean of the channels," if is_mean else ""
            reading = f"; pass channels={looks.channels} to a Loader" if is_mean else ""
            values = f"{low:,.6g} (black) to {high:,.6g} (white), as the middle image uses"
            yield f"{looks} are judged and shown{by} from {values}{reading}"

    def rows_of(self, looks: Looks) -> BoolArray:
        return self.is_deep & (self._depths == looks.depth) & (self._channels == looks.channels)

    def shares(self, means: Float64Array, stds: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Means and deviations [rows, channels] on the scale of the windows; those without a window stay unchanged."""
        means, stds = means.copy(), stds.copy()
        for looks, (low, high) in self.of.items():
            rows = self.rows_of(looks)
            scale = white_of(looks.depth) / ((high - low) or 1.0)
            means[rows] = means[rows] * scale - low / ((high - low) or 1.0)
            stds[rows] = stds[rows] * scale
        return means, stds

    def applied(self, table: pa.Table) -> pa.Table:
        """The table with luminance on the scale of the windows, instead of each image's own rendering."""
        black, width = np.zeros(len(table)), np.ones(len(table))
        for looks, (low, high) in self.of.items():
            rows = self.rows_of(looks)
            black[rows], width[rows] = low, (high - low) or 1.0
        own = np.where(self.is_deep, self._high - self._low, 1.0)
        start = np.where(self.is_deep, self._low - black, 0.0)
        for name in (*_LUMINANCE, _CONTRAST):
            values = floats(table, name)
            moved = values * own if name == _CONTRAST else start + values * own
            column = pa.array(np.where(self.is_deep, moved / width, values), pa.float64(), from_pandas=True)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return table

"""Reading of images to train on, statistics of them, and the refusal of operations on 256 levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import ImageArray
from variegate.data.base import Source
from variegate.data.packed import PixelSums, sums_of
from variegate.data.samples import Samples
from variegate.decode.depth import note_once
from variegate.errors import DecodeError
from variegate.jobs.arguments import dicom_of
from variegate.loader.reading import decode_picture
from variegate.options.shared import TrainReadOptions
from variegate.program.depth import Depth, depth_of
from variegate.program.draws.record import record_of
from variegate.program.program import Output
from variegate.transforms import Transform

# Digits of a mean and a deviation.
_DIGITS = 6
_MEASURED = 64


def loader_arguments(options: TrainReadOptions) -> dict[str, Any]:
    """Arguments of a Loader. Raises ValueError."""
    return {"depth": options.depth, "dicom": dicom_of(options)}


def read_settings(options: TrainReadOptions) -> dict[str, Any]:
    """Settings of a run, as JSON."""
    return {"depth": options.depth, "window": options.window, "frame": options.frame}


def reading(source: Source, options: TrainReadOptions) -> AbstractContextManager[None]:
    """Context manager: this thread reads as a Loader with the same options, without notes. Raises ValueError."""
    depth = None if options.depth is None else Depth.named(options.depth)
    is_decoded = isinstance(source, Samples) and source.is_decoded
    return note_once(set(), depth, is_decoded, dicom_of(options))


def read_pixels(source: Source, index: int, options: TrainReadOptions) -> ImageArray:
    """Pixels [H, W, C] of a sample, as a Loader reads them. Raises DecodeError."""
    with reading(source, options):
        data: Any = source.read(index).data
        return decoded(data, str(source.name(index)), options)


def decoded(data: Any, name: str, options: TrainReadOptions) -> ImageArray:
    """Pixels [H, W, C] of a sample's data, within ``reading``. Raises DecodeError."""
    depth = None if options.depth is None else Depth.named(options.depth)
    pixels = decode_picture(data, name, None, depth=depth)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def check_levels(transform: Transform, depth: Depth, epochs: int = 1) -> None:
    """Raise ValueError naming an operation on 256 levels if images have more. ``epochs``: of a schedule."""
    for epoch in range(epochs if depth.is_deep else 0):
        record = record_of(transform, Output(), 3, epoch)
        record.check_levels(depth)
        if not record.uses_epoch:
            return


class Statistics(NamedTuple):
    """Mean and deviation of each channel, as shares of white."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


def measure(images: Iterable[ImageArray]) -> Statistics:
    """Statistics over all pixels [..., C] of uint16 or float32, without NaN and infinities. A channel that never
    changes has deviation 1, so that something is divided by."""
    sums = PixelSums()
    white = 1.0
    for image in images:
        depth = depth_of(image.dtype)
        assert depth is not None
        white = depth.white
        sums.add(sums_of(image))
    if not sums.pixels:
        return Statistics((0.0,), (1.0,))
    found = sums.statistics(white)
    return Statistics(_rounded(found.mean), _rounded([deviation or 1.0 for deviation in found.std]))


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)


def measure_source(source: Samples, channels: int, options: TrainReadOptions) -> Statistics:
    """``measure`` up to 64 images of a source, evenly spread."""
    indices = np.linspace(0, len(source) - 1, min(len(source), _MEASURED)).astype(np.int64).tolist()
    images = []
    for index in indices:
        try:
            pixels = read_pixels(source, index, options)
        except DecodeError:  # is reported when it is loaded
            continue
        if pixels.shape[2] == channels:
            images.append(pixels)
    return measure(images)

"""``dataset_statistics``: mean and standard deviation of all pixels, as a Loader reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from variegate.arrays import AnyArray, ImageArray
from variegate.checks import integer, refused
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.data.packed import DatasetStatistics, Exact, PixelSums, statistics_of, sums_of
from variegate.data.samples import Samples
from variegate.data.sharded import ShardedSource
from variegate.decode import read_image
from variegate.decode.depth import in_depth, note_once
from variegate.decode.dicom import Dicom
from variegate.program.depth import Depth, depth_of
from variegate.program.program import MAX_CHANNELS
from variegate.threads import default_threads, in_order

# Images per task, and tasks begun ahead of their results for each thread.
_SAMPLES_A_TASK = 16
_AHEAD = 2
# Of an image: dtype, the number of pixels, sums of each channel, and of its squares.
_ImageSums = tuple[np.dtype[Any], int, Sequence[Exact], Sequence[Exact]]


def dataset_statistics(
    source: Any,
    *,
    depth: Literal["uint8", "uint16", "float32"] | None = None,
    channels: int | None = None,
    dicom: Dicom | None = None,
    threads: int | None = None,
) -> DatasetStatistics:
    """Return mean and standard deviation of all pixels, for ``T.Normalize`` without a Loader.

    They are read from the file that ``variegate pack`` stored with a data set. Without it, or with ``channels`` or
    ``dicom``, all images are read. Pixels with NaN or infinity do not count.

    Args:
        source: anything that ``vg.open_source`` accepts.
        depth, channels, dicom: of the ``vg.Loader`` that will read the images.
        threads: number of threads; None for one per core.

    Raises:
        ValueError, SourceError: naming the argument; for images of several dtypes or numbers of channels.
        DecodeError: for an unreadable image.
    """
    if depth is not None and depth not in map(str, Depth):
        raise refused("depth", depth, "'uint8', 'uint16', 'float32' or None")
    if channels is not None:
        integer("channels", channels, 1, MAX_CHANNELS)
    if dicom is not None and not isinstance(dicom, Dicom):
        raise refused("dicom", dicom, "a vg.Dicom or None")
    if threads is not None:
        integer("threads", threads, 1)
    wanted = None if depth is None else Depth.named(depth)
    opened = open_source(source)
    stored = statistics_of(opened) if channels is None and dicom is None else None
    if stored is not None:
        return stored if wanted is None else stored._replace(white=wanted.white)
    if isinstance(opened, ShardedSource):
        opened = opened.by_index()
    if not isinstance(opened, Samples):
        raise SourceError(f"source: got {opened!r}; accepted: one data set")
    reading = partial(note_once, set(), wanted, opened.is_decoded, dicom)

    def sums(indices: range) -> list[_ImageSums]:
        with reading():
            return [_sums(_pixels(opened, index, channels, wanted)) for index in indices]

    threads = threads or default_threads()
    starts = range(0, len(opened), _SAMPLES_A_TASK)
    tasks = (partial(sums, range(one, min(one + _SAMPLES_A_TASK, len(opened)))) for one in starts)
    with ThreadPoolExecutor(threads, "variegate-statistics") as pool:
        return _added(chain.from_iterable(in_order(pool, tasks, threads * _AHEAD)), opened)


def _pixels(source: Samples, index: int, channels: int | None, depth: Depth | None) -> ImageArray:
    data = source.read(index).data
    name = str(source.name(index))
    image = data if isinstance(data, np.ndarray) else read_image(bytes(data), name, None, channels)
    return image if depth is None else in_depth(image, depth, name)


def _sums(image: ImageArray) -> _ImageSums:
    if image.dtype == np.uint8 and image.shape[2] in (1, 3):
        return image.dtype, image.shape[0] * image.shape[1], *sums_of(image)
    values: AnyArray = image.reshape(-1, image.shape[2])
    is_float = image.dtype.kind == "f"
    if is_float:
        values = values[np.isfinite(values).all(axis=1)]
    # Contiguous by channel, so that NumPy adds floats in pairs.
    wide = np.array(values.T, np.float64 if is_float else np.uint64, order="C")
    exact = Fraction if is_float else int
    sums, squares = ([exact(one) for one in numbers.sum(axis=1).tolist()] for numbers in (wide, wide * wide))
    return image.dtype, len(values), sums, squares


def _added(images: Iterator[_ImageSums], source: Samples) -> DatasetStatistics:
    found = PixelSums()
    first: np.dtype[Any] | None = None
    for index, (dtype, pixels, sums, squares) in enumerate(images):
        first = first or dtype
        if dtype != first:
            accepted = "images of one dtype, or depth="
            raise SourceError(f"{source.name(index)}: its pixels are {dtype}, and {first} before; accepted: {accepted}")
        channels = len(found.sums) or len(sums)
        if len(sums) != channels and 1 not in (len(sums), channels):
            got = f"it has {len(sums)} channels, and {channels} before"
            raise SourceError(f"{source.name(index)}: {got}; accepted: images of one number of channels")
        found.add(pixels, sums, squares)
    depth = depth_of(first)
    if depth is None or not found.pixels:
        raise SourceError(f"{source!r}: has no pixel with a finite value; accepted: one at least")
    return found.statistics(depth.white)

"""``dataset_statistics``: mean and standard deviation of all pixels, as a Loader reads them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from variegate.arrays import ImageArray
from variegate.checks import integer, refused
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.data.packed import DatasetStatistics, ImageSums, PixelSums, statistics_of, sums_of
from variegate.data.samples import Samples
from variegate.data.sharded import ShardedSource
from variegate.decode import read_image
from variegate.decode.channels import in_channels
from variegate.decode.depth import in_depth, note_once
from variegate.decode.dicom import Dicom
from variegate.program.depth import Depth, depth_of
from variegate.program.program import MAX_CHANNELS
from variegate.threads import default_threads, in_order

# Images per task, and tasks begun ahead of their results for each thread.
_SAMPLES_A_TASK = 16
_AHEAD = 2
# Of an image.
_TypedSums = tuple[np.dtype[Any], ImageSums]


def dataset_statistics(
    source: Any,
    *,
    depth: Literal["uint8", "uint16", "float32"] | None = None,
    channels: int | None = None,
    dicom: Dicom | None = None,
    threads: int | None = None,
) -> DatasetStatistics:
    """Return mean and standard deviation of all pixels, for ``T.Normalize`` without a Loader.

    They are read from the file that ``variegate pack`` stored with a data set. Without it, with ``channels`` or
    ``dicom``, or with a ``depth`` that rounds pixels, all images are read. Pixels with NaN or infinity do not count.

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
    if stored is not None and wanted is None:
        return stored
    if stored is not None and wanted is not None and wanted >= _depth_of(stored):
        return stored._replace(white=wanted.white)
    if isinstance(opened, ShardedSource):
        opened = opened.by_index()
    if not isinstance(opened, Samples):
        raise SourceError(f"source: got {opened!r}; accepted: one data set")
    reading = partial(note_once, set(), wanted, opened.is_decoded, dicom)

    def sums(indices: range) -> list[_TypedSums]:
        with reading():
            images = (_pixels(opened, index, channels, wanted) for index in indices)
            return [(image.dtype, sums_of(image)) for image in images]

    threads = threads or default_threads()
    starts = range(0, len(opened), _SAMPLES_A_TASK)
    tasks = (partial(sums, range(one, min(one + _SAMPLES_A_TASK, len(opened)))) for one in starts)
    with ThreadPoolExecutor(threads, "variegate-statistics") as pool:
        return _added(chain.from_iterable(in_order(pool, tasks, threads * _AHEAD)), opened)


def _pixels(source: Samples, index: int, channels: int | None, depth: Depth | None) -> ImageArray:
    data: Any = source.read(index).data
    name = str(source.name(index))
    is_decoded = isinstance(data, np.ndarray)
    image = in_channels(data, channels, name) if is_decoded else read_image(bytes(data), name, None, channels)
    return image if depth is None else in_depth(image, depth, name)


def _depth_of(stored: DatasetStatistics) -> Depth:
    return next(depth for depth in Depth if depth.white == stored.white)


def _added(images: Iterator[_TypedSums], source: Samples) -> DatasetStatistics:
    found = PixelSums()
    first: np.dtype[Any] | None = None
    for index, (dtype, sums) in enumerate(images):
        first = first or dtype
        if dtype != first:
            accepted = "images of one dtype, or depth="
            raise SourceError(f"{source.name(index)}: its pixels are {dtype}, and {first} before; accepted: {accepted}")
        channels = len(sums.sums)
        if not found.accepts(channels):
            got = f"it has {channels} channels, and {len(found.sums)} before"
            raise SourceError(f"{source.name(index)}: {got}; accepted: images of one number of channels")
        found.add(sums)
    depth = depth_of(first)
    if depth is None or not found.pixels:
        raise SourceError(f"{source!r}: has no pixel with a finite value; accepted: one at least")
    return found.statistics(depth.white)

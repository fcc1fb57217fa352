"""Decode ahead of use, in order, with bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import numpy.typing as npt

from variegate.data.decode import check_side, read_image
from variegate.data.sources.folder import FolderSource
from variegate.errors import DecodeError

Image_HWC = npt.NDArray[np.uint8]


@dataclass
class Batch:
    """Decoded samples, with their ids."""

    ids: list[int] = field(default_factory=list)
    images: list[Image_HWC] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(img_HWC.nbytes for img_HWC in self.images)


def decoded_batches(
    source: FolderSource,
    pool: ThreadPoolExecutor,
    *,
    threads: int,
    batch_size: int,
    batch_bytes: int,
    on_bad: Callable[[int, DecodeError], None],
    stop: Event,
) -> Iterator[Batch]:
    """Batches of at most ``batch_size`` images and about ``batch_bytes``, in the order of the source.

    How far it decodes ahead follows from the largest picture seen so far, so that what waits stays near two batches.
    A file that does not decode goes to ``on_bad``, after the batch before it was handed out; if that raises, so does
    this. Ends early once ``stop`` is set.
    """
    waiting: deque[tuple[int, Future[Image_HWC]]] = deque()
    batch, largest, next_id = Batch(), 0, 0
    try:
        while (next_id < len(source) or waiting) and not stop.is_set():
            ahead = _window(threads, batch_size, batch_bytes, largest)
            while next_id < len(source) and len(waiting) < ahead:
                waiting.append((next_id, pool.submit(_read, source, next_id)))
                next_id += 1
            sample_id, future = waiting.popleft()
            try:
                img_HWC = future.result()
            except DecodeError as error:
                if batch.ids:
                    yield batch
                    batch = Batch()
                on_bad(sample_id, error)
                continue
            largest = max(largest, img_HWC.nbytes)
            batch.ids.append(sample_id)
            batch.images.append(img_HWC)
            if len(batch.ids) == batch_size or batch.nbytes >= batch_bytes:
                yield batch
                batch = Batch()
        if batch.ids and not stop.is_set():
            yield batch
    finally:
        for _, future in waiting:
            future.cancel()


def _read(source: FolderSource, index: int) -> Image_HWC:
    file = source.file(index)
    img_HWC = read_image(file)
    check_side(str(file), *img_HWC.shape[:2])
    return img_HWC


def _window(threads: int, batch_size: int, batch_bytes: int, largest: int) -> int:
    if largest == 0:
        return threads + 1
    return max(threads + 1, min(2 * batch_size, 2 * batch_bytes // largest))

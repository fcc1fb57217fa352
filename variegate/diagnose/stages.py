"""What can be timed: batches of a loader, and what a loader's observer cannot tell apart."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import numpy as np
import numpy.typing as npt
import torch

from variegate.data.decode.gpu import is_installed
from variegate.data.loader import Batch, Loader
from variegate.data.sources.base import Item, StreamSource
from variegate.diagnose.recorder import Step
from variegate.diagnose.views import SourceView, endless, size_of

_READ_AT_ONCE = 256


def read_step(view: SourceView, readers: int) -> Step:
    """``source.read`` and nothing else: in a loader, readers wait for the cores that others use."""
    pool = ThreadPoolExecutor(readers, thread_name_prefix="variegate-read")
    chunk, position = 1 if view.is_remote else 8, 0

    def read(first: int) -> int:
        return sum(size_of(view.read(index)) for index in range(first, first + chunk))

    def step() -> tuple[int, int]:
        nonlocal position
        firsts = range(position, position + max(_READ_AT_ONCE, chunk * readers), chunk)
        position = firsts.stop
        return chunk * len(firsts), sum(pool.map(read, firsts))

    return step


def stream_step(source: StreamSource, batch_size: int) -> Step:
    """One sample after another, as a stream gives them."""
    items = endless(source)

    def step() -> tuple[int, int]:
        good = [one.item for one in (next(items) for _ in range(batch_size)) if isinstance(one.item, Item)]
        return len(good), sum(map(size_of, good))

    return step


def transfer_step(pictures: Sequence[npt.NDArray[np.uint8]], device: str, batch_size: int) -> Step:
    """Decoded pictures of the host to the device, through the loader's pinned memory."""
    from variegate.executors.cuda.host import executor_of, upload_images

    executor = executor_of(device)
    batch = [pictures[place % len(pictures)] for place in range(batch_size)]
    nbytes = sum(image.nbytes for image in batch)

    def step() -> tuple[int, int]:
        upload_images(executor, batch)
        _finish(device)
        return batch_size, nbytes

    return step


@contextmanager
def loader_step(loader: Loader, mean_bytes: float) -> Iterator[Step]:
    """The next batch of a loader, epoch after epoch."""
    batches: Generator[Batch, None, None] = (batch for _ in count() for batch in loader)

    def step() -> tuple[int, int]:
        number = len(next(batches).ids)
        _finish(loader.device)
        return number, round(number * mean_bytes)

    try:
        yield step
    finally:
        batches.close()


def decodes_on_gpu(device: str) -> bool:
    """What a loader's ``decode="auto"`` chooses."""
    return device.startswith("cuda") and is_installed()


def _finish(device: str) -> None:
    """A GPU's work is done when it is done, not when it is queued."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(torch.device(device))

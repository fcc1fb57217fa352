"""What a loader does, stage by stage, each as a step that can be timed: alone, and together with its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter import Augmenter
from variegate.backends.encoded_batch import EncodedBatch
from variegate.backends.ragged_batch import RaggedBatch
from variegate.data.decode.gpu import decoder_of, is_installed
from variegate.data.loader import Batch, Loader
from variegate.data.loader.making import BatchMaker, given_by_labels
from variegate.data.loader.reading import Reader, Rows, Waiting, start_reading
from variegate.data.sources.base import Item, StreamSource
from variegate.diagnose.timing import Step
from variegate.diagnose.views import Held, Part, endless, size_of
from variegate.executors.threads import share_out
from variegate.program.lowering import lower
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]
# Batches of pictures that the augmenting stage takes in turns: enough that none stays in a core's cache.
_PICTURE_BATCHES = 8
_READ_AT_ONCE = 256


class Feed:
    """Rows of one batch after another, read ahead by threads of its own as in the loader."""

    def __init__(self, view: Held | Part, reader: Reader, readers: int) -> None:
        self.view, self._reader, self._next = view, reader, 0
        self._pool = ThreadPoolExecutor(readers, thread_name_prefix="variegate-read")
        self._waiting = self._begin()

    def _begin(self) -> Waiting:
        places = np.array(self.view.places(self._next % self.view.batches), np.int64)
        return start_reading(self._reader, self.view, self._pool, places, np.zeros(len(places), np.bool_), 0)

    def __call__(self) -> tuple[int, Rows]:
        """(number of the batch in its round, its rows)."""
        batch, waiting = self._next % self.view.batches, self._waiting
        self._next += 1
        self._waiting = self._begin()
        rows = waiting()
        assert rows is not None
        return batch, rows

    def nbytes(self, batch: int) -> int:
        return sum(self.view.samples[place].nbytes for place in self.view.places(batch))

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


def read_step(view: Part, readers: int) -> Step:
    """``source.read`` and nothing else."""
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


def decode_step(feed: Feed, augmenter: Augmenter, threads: int) -> Step:
    """Bytes to the pixels that the transform needs, by the code that the loader runs, up to where pixels would be used.

    Sampling and lowering count as augmenting: they are done beforehand.
    """
    decode = _decoder(augmenter, threads)
    programs = [_lowered(augmenter, feed.view, batch) for batch in range(feed.view.batches)]

    def step() -> tuple[int, int]:
        batch, rows = feed()
        if not all(isinstance(data, np.ndarray) for data in rows.data):
            # Decoding at a reduced scale rewrites these.
            program = programs[batch]
            program = program.replace(args=program.args.copy(), in_shape=program.in_shape.copy())
            decode(program, EncodedBatch(rows.data, lambda row: str(rows.name_of(row))))
        return len(rows.data), feed.nbytes(batch)

    return step


def _decoder(augmenter: Augmenter, threads: int) -> Callable[[Program, EncodedBatch], None]:
    if decodes_on_gpu(augmenter.device):
        from variegate.backends.gpu_decode import place_encoded
        from variegate.executors.cuda.host import executor_of

        executor, decoder = executor_of(augmenter.device), decoder_of(augmenter.device, threads)

        def on_gpu(program: Program, batch: EncodedBatch) -> None:
            with executor.current():
                place_encoded(program, batch, executor, threads, decoder)
            _finish(augmenter.device)

        return on_gpu
    copies = augmenter.device.startswith("cuda")

    def on_cores(program: Program, batch: EncodedBatch) -> None:
        load = batch.loader(program)

        def decode(numbers: npt.NDArray[np.int64]) -> None:
            for row in numbers.tolist():
                image = load(row, 0)
                if copies:  # as what is sent to a GPU is: the thread's next load takes the same memory
                    image.copy()

        share_out(decode, program.num_rows, threads)

    return on_cores


def decodes_on_gpu(device: str) -> bool:
    """What a loader's ``decode="auto"`` chooses."""
    return device.startswith("cuda") and is_installed()


def _lowered(augmenter: Augmenter, view: Held | Part, batch: int) -> Program:
    samples = [view.samples[place] for place in view.places(batch)]
    given = given_by_labels([sample.item.label for sample in samples])
    sampled = augmenter.program([s.shape for s in samples], ids=[s.id for s in samples], conditions=given)
    return lower(sampled, augmenter.geometry, measured_once=augmenter.device.startswith("cuda"))


def make_step(feed: Feed, augmenter: Augmenter) -> Step:
    """Bytes to batches, decoded and augmented together."""
    maker = BatchMaker(augmenter, "skip", None, lambda rows, row, epoch: iter(()))

    def step() -> tuple[int, int]:
        batch, rows = feed()
        made = maker.make(rows, 0)
        _finish(augmenter.device)
        return len(made.batch.ids), feed.nbytes(batch)

    return step


def augment_step(pictures: Sequence[Image], labels: Sequence[Any], augmenter: Augmenter, batch_size: int) -> Step:
    """Whole pictures to batches; on a GPU, pictures that are there already."""
    number = len(pictures)
    batches: list[tuple[Any, Any, int]] = []
    for first in range(0, min(max(number, 1), _PICTURE_BATCHES * batch_size), batch_size):
        places = [place % number for place in range(first, first + batch_size)]
        images: Any = [pictures[place] for place in places]
        nbytes = sum(image.nbytes for image in images)
        if augmenter.device.startswith("cuda"):
            images = RaggedBatch.pack(images, augmenter.device)
        batches.append((images, given_by_labels([labels[place] for place in places]), nbytes))
    turn = 0

    def step() -> tuple[int, int]:
        nonlocal turn
        images, given, nbytes = batches[turn % len(batches)]
        # Other numbers every time: other crops and operations, as in an epoch.
        augmenter(images, ids=range(turn * batch_size, (turn + 1) * batch_size), conditions=given)
        turn += 1
        _finish(augmenter.device)
        return batch_size, nbytes

    return step


def transfer_step(pictures: Sequence[Image], device: str, batch_size: int) -> Step:
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


def _finish(device: str) -> None:
    """A GPU's work is done when it is done, not when it is queued."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(torch.device(device))

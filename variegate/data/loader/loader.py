"""``Loader``: batches of augmented images from a source, made ahead of their use."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from variegate.augmenter import Augmenter
from variegate.data.loader.ahead import Ahead
from variegate.data.loader.batch import Batch
from variegate.data.loader.cache import open_cache
from variegate.data.loader.failures import ON_ERROR, Failure, FailureLog
from variegate.data.loader.handover import Handover
from variegate.data.loader.making import BatchMaker, Made
from variegate.data.loader.order import IndexedOrder, StreamOrder
from variegate.data.loader.ranks import find_rank, processes_here
from variegate.data.loader.reading import Reader, Rows
from variegate.data.loader.share import Share
from variegate.data.loader.state import make_state, read_state
from variegate.data.sources.base import Source, StreamSource
from variegate.data.sources.opening import open_source
from variegate.executors.cpu.executor import default_threads
from variegate.transforms.base import Transform
from variegate.transforms.output import Identity

# Threads that wait for a network at the same time, and steps that are being read beyond those being made.
_REMOTE_READERS, _REMOTE_READ_DEPTH, _READ_DEPTH = 32, 4, 1
# A share of a stream is taken of what was seen so far, but of no less than this.
_SEEN_AT_LEAST = 1000


class Loader:
    """Iterates over an epoch's batches: ``for images, labels in loader``.

    Args:
        source: what ``vg.open_source`` takes or gives: a folder, WebDataset shards, Parquet files, arrays with labels,
            any map-style torch Dataset.
        transform: what is done to each image; None for nothing.
        batch_size: samples per batch and rank.
        device, seed, dtype, layout, geometry: as for ``Augmenter``.
        shuffle: a new order in every epoch, a function of (seed, epoch) alone; False keeps the source's.
        drop_last: leave out the samples that do not fill a batch on every rank.
        num_threads: threads that decode and augment. None for the cores of this process, shared among the processes
            that ``torchrun`` started here. Pixels do not depend on it.
        rank, world_size: which part of each step's samples is loaded here. None takes torch.distributed's, else the
            environment's, else everything. All ranks yield the same number of batches; together they yield every
            sample once, but for rows marked in ``Batch.padding``.
        on_error: what an image that cannot be read does: "raise" a DecodeError naming it, "skip" (its batch is one
            shorter), or "replace" (another sample in its place, drawn for its id; marked as padding). ``errors``
            lists them.
        max_errors: with "skip" or "replace", the bad samples that are put up with: a number, or a share of the data
            set (a float). One more raises TooManyErrors.
        decode: who decodes JPEGs: "cpu", "gpu" (nvImageCodec, ``pip install 'variegate[gpu]'``) or "auto": the GPU
            where the device is one and nvImageCodec is installed. Pixels of "gpu" are a level or so beside those of
            "cpu", and as two good reductions differ where a crop is more than twice the output's size; each depends
            on nothing but the file and the crop. What goes into a cache is decoded by the CPU.
        cache: keep decoded pixels for later epochs: "host", "device" (a GPU's memory) or a folder, which serves later
            runs as well. Pictures are then decoded whole.
        cache_bytes: how many bytes of pixels; None for half of what is free. Samples beyond are decoded every time.
        cache_side: reduce the pictures in the cache so that their shorter side has this many pixels.
        prefetch: batches made ahead of the one in use; 0 makes each when it is asked for.
        max_pixels: larger pictures are refused before they are decoded; None for ``MAX_PIXELS`` (179 million).
        shuffle_buffer, shuffle_bytes: samples, and bytes of files, among which a stream is shuffled.

    Raises ValueError, TypeError or SourceError naming the argument, its value and what is accepted.
    """

    def __init__(
        self,
        source: Any,
        transform: Transform | None = None,
        batch_size: int = 64,
        device: str = "auto",
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        num_threads: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        on_error: str = "raise",
        cache: str | os.PathLike[str] | None = None,
        prefetch: int = 2,
        *,
        max_errors: int | float | None = None,
        decode: str = "auto",
        dtype: str | torch.dtype = "float32",
        layout: str = "NCHW",
        geometry: str = "composed",
        cache_bytes: int | None = None,
        cache_side: int | None = None,
        max_pixels: int | None = None,
        shuffle_buffer: int = 4096,
        shuffle_bytes: int = 256 << 20,
    ) -> None:
        for name, value, least in (
            *(("batch_size", batch_size, 1), ("prefetch", prefetch, 0)),
            *(("shuffle_buffer", shuffle_buffer, 1), ("shuffle_bytes", shuffle_bytes, 1)),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name}: got {value!r}; accepted: an integer from {least} on")
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error: got {on_error!r}; accepted: " + ", ".join(map(repr, ON_ERROR)))
        self.batch_size, self.drop_last, self.shuffle, self.prefetch = batch_size, drop_last, shuffle, prefetch
        self.rank, self.world_size = find_rank(rank, world_size)
        if num_threads is None:
            num_threads = max(1, default_threads() // processes_here())
        self.augmenter = Augmenter(
            Identity() if transform is None else transform,
            device,
            seed,
            dtype,
            layout,
            num_threads,
            geometry,
            decode=decode,
        )
        self.num_threads = num_threads
        self.source: Source | StreamSource = _open(source, on_error)
        self._log = FailureLog(max_errors)
        self.cache = open_cache(
            cache,
            max_bytes=cache_bytes,
            side=cache_side,
            device=self.device,
            fingerprint=self.source.fingerprint,
        )
        reader = Reader(self.cache, cache_side, max_pixels)
        self._order: IndexedOrder | StreamOrder
        if isinstance(self.source, Source):
            self._order = IndexedOrder(self.source, reader, self.seed, shuffle)
            self._is_remote = self.source.is_remote
            if not len(self.source):
                raise ValueError("source: has no samples")
        else:
            self._order = StreamOrder(self.source, reader, self.seed, shuffle, shuffle_buffer, shuffle_bytes)
            self._is_remote = True
        self._maker = BatchMaker(self.augmenter, on_error, max_pixels, self._order.substitutes)
        self._handover = Handover(self.device)
        self._batch_pool: ThreadPoolExecutor | None = None
        buffer = None if isinstance(self._order, IndexedOrder) or not shuffle else [shuffle_buffer, shuffle_bytes]
        self._fixed = {
            "seed": self.seed,
            "shuffle": bool(shuffle),
            "source": self.source.fingerprint,
            "samples": self._order.length,
            "buffer": buffer,
        }
        # (epoch, samples done): where the next iteration begins, and what state_dict gives.
        self._next = self._at = (0, 0)

    @property
    def device(self) -> str:
        return self.augmenter.device

    @property
    def seed(self) -> int:
        return self.augmenter.seed

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated over, or that the next iteration begins."""
        return self._at[0]

    @property
    def errors(self) -> list[Failure]:
        """The samples that could not be read, each once, with file, member and reason."""
        return self._log.list()

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. Raises TypeError for a stream, whose length nobody knows."""
        return len(self._share())

    def __iter__(self) -> Iterator[Batch]:
        """Begin an epoch: the one set by ``set_epoch`` or ``load_state_dict``, else the one after the last begun."""
        epoch, done = self._next
        self._at, self._next = self._next, (epoch + 1, 0)
        return self._batches(epoch, done)

    def _batches(self, epoch: int, done: int) -> Iterator[Batch]:
        readers = max(_REMOTE_READERS, self.num_threads) if self._is_remote else self.num_threads
        share = self._share(done) if self._order.length is not None else self._stream_share(done)
        steps, stop_reading = self._order.steps(share, epoch, readers)
        ahead = Ahead(
            steps,
            partial(self._make, epoch),
            depth=self.prefetch,
            read_depth=_REMOTE_READ_DEPTH if self._is_remote else _READ_DEPTH,
            makers=min(2, self.num_threads, max(self.prefetch, 1)),
        )
        try:
            for made in ahead:
                seen = self._order.length or max(made.done, _SEEN_AT_LEAST)
                self._log.add(made.failures, seen)
                self._at = (epoch, made.done)
                yield self._handover.take(made)
            self._at = (epoch + 1, 0)
        finally:
            ahead.close()
            stop_reading()

    def batch(self, step: int, epoch: int | None = None) -> Batch:
        """Batch ``step`` of an epoch (None: the current one), made now, whatever is being iterated over.

        Any thread may call it. Raises IndexError for a step that the epoch does not have, TypeError for a stream.
        """
        share = self._share()
        if not 0 <= step < len(share):
            raise IndexError(f"step: got {step!r}; accepted: 0 to {len(share) - 1}")
        assert isinstance(self._order, IndexedOrder)
        if self._batch_pool is None:
            self._batch_pool = ThreadPoolExecutor(self.num_threads, thread_name_prefix="variegate-read")
        epoch = self.epoch if epoch is None else epoch
        rows = self._order.start(share, epoch, step, self._batch_pool)()
        assert rows is not None
        made = self._make(epoch, rows)
        self._log.add(made.failures, len(self._order.source))
        return self._handover.take(made)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins this epoch; in the middle, if that is where ``load_state_dict`` left it."""
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
            raise ValueError(f"epoch: got {epoch!r}; accepted: an integer from 0 on")
        if self._next[0] != epoch:
            self._next = (epoch, 0)
        self._at = self._next

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, after the batch handed out last: a few numbers and strings, fit for JSON.

        It is the same on every rank, and says nothing about batches, threads or ranks: all may be others afterwards.
        """
        return make_state(*self._at, self._fixed)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration goes on where the state was taken: the remaining samples, with the same pixels.

        Raises ValueError where the data set, the seed or the shuffling are not those of the state.
        """
        self._next = self._at = read_state(state_dict, self._fixed)

    def _make(self, epoch: int, rows: Rows) -> Made:
        make: Callable[[], Made] = partial(self._maker.make, rows, epoch)
        return self._handover.make(make)

    def _share(self, start: int = 0) -> Share:
        length = self._order.length
        if length is None:
            raise TypeError("this source is a stream, whose length is not known; open_source(..., stream=False) counts")
        return Share(self.batch_size, self.rank, self.world_size, self.drop_last, length, start)

    def _stream_share(self, start: int) -> Share:
        return Share(self.batch_size, self.rank, self.world_size, self.drop_last, start=start)


def _open(source: Any, on_error: str) -> Source | StreamSource:
    # What is missing of a damaged shard counts as bad samples, where those are put up with.
    opened = open_source(source, on_error="raise" if on_error == "raise" else "skip")
    if opened is not source:
        for note in opened.notes():
            warnings.warn(f"{source if isinstance(source, (str, os.PathLike)) else 'source'}: {note}", stacklevel=3)
    return opened

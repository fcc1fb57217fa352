"""``Loader``: batches of augmented images from a source, made ahead of their use."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch

from variegate.augmenter import Augmenter, Decode, Dtype, Geometry, Layout
from variegate.checks import integer
from variegate.data.decode import MAX_DECODE_BYTES, MAX_PIXELS, check_limit
from variegate.data.loader.ahead import Ahead
from variegate.data.loader.batch import Batch
from variegate.data.loader.cache import open_cache
from variegate.data.loader.copied import Copied
from variegate.data.loader.epochs import EpochRun, Epochs, Place
from variegate.data.loader.failures import ON_ERROR, Failure, FailureLog
from variegate.data.loader.handover import Handover
from variegate.data.loader.making import BatchMaker, Made
from variegate.data.loader.order import IndexedOrder, StreamOrder
from variegate.data.loader.picking import check_picking, picks_of
from variegate.data.loader.ranks import check_alike, find_rank, processes_here
from variegate.data.loader.reading import Reader, Rows, reader_threads
from variegate.data.loader.share import Share
from variegate.data.loader.state import check_done, make_state, read_state
from variegate.data.sources.arrays import ArraySource
from variegate.data.sources.base import Source, StreamSource
from variegate.data.sources.opening import open_source
from variegate.executors.threads import default_threads
from variegate.outside.addresses import shown, speakable
from variegate.threads import Threads, at_fork, check_running
from variegate.transforms import Transform
from variegate.transforms.output import Identity

# Steps that are being read beyond those being made.
_REMOTE_READ_DEPTH, _READ_DEPTH = 4, 1
# Batches made at the same time, so that threads do not wait for the last rows of one.
_MAKERS = 2
# A share of a stream is taken of what was seen so far, but of no less than this.
_SEEN_AT_LEAST = 1000


class Loader(Copied):
    """Iterates over an epoch's batches: ``for images, labels in loader``.

    Args:
        source: what ``vg.open_source`` takes or gives: a folder, WebDataset shards, Parquet files, arrays with labels,
            any map-style torch Dataset.
        transform: what is done to each image; None for nothing.
        batch_size: samples per batch and rank.
        device, seed, dtype, layout, geometry: as for ``Augmenter``.
        shuffle: a new order in every epoch, a function of (seed, epoch) alone; False keeps the source's, or that of a
            list of indices. None is True, but for a ``sampler`` that gives the order itself.
        drop_last: leave out the samples that do not fill a batch on every rank.
        num_threads: threads that decode and augment. None for the cores of this process, shared among the processes
            that ``torchrun`` started here. Pixels do not depend on it.
        rank, world_size: which part of each step's samples is loaded here. None takes torch.distributed's, else the
            environment's, else everything. All ranks yield the same number of batches; together they yield every
            sample once, but for rows marked in ``Batch.padding``.
        on_error: what an image that cannot be read does: "raise" a DecodeError naming it, "skip" (its batch is one
            shorter), or "replace" (another sample in its place, drawn for its id; marked as padding). ``errors``
            lists them.
        max_errors: with "skip" or "replace", the bad samples that this rank puts up with: a number, or a share (a
            float) of those that it is to read in an epoch. One more raises TooManyErrors.
        decode: who decodes JPEGs: "cpu", "gpu" (nvImageCodec, ``pip install 'variegate[gpu]'``) or "auto": the GPU
            where the device is one and nvImageCodec is installed. Pixels of "gpu" are a level or so beside those of
            "cpu", and as two good reductions differ where a crop is more than twice the output's size; each depends
            on nothing but the file and the crop. What goes into a cache is decoded by the CPU.
        cache: keep decoded pixels for later epochs: "host", "device" (a GPU's memory) or a folder, which serves later
            runs as well. Pictures are then decoded whole.
        cache_bytes: how many bytes of pixels this process keeps; None for half of what is free, divided among the
            processes that ``torchrun`` started here. Samples beyond are decoded every time.
        cache_side: reduce the pictures in the cache so that their shorter side has this many pixels.
        prefetch: batches made ahead of the one in use, at the end of an epoch those of the next; 0 makes each when it
            is asked for.
        max_pixels: larger pictures are refused before they are decoded; None for ``MAX_PIXELS`` (179 million).
        max_decode_bytes: so are those that take more memory to decode; None for ``MAX_DECODE_BYTES`` (1 GB).
        sampler: which samples an epoch has: a sequence of indices (a subset, or with repeats), shuffled as ``shuffle``
            says; a torch ``Sampler`` or anything else with ``__iter__`` and ``__len__``, asked for its indices when an
            epoch begins (after ``set_epoch(epoch)``, where it has that), in its order; or a function epoch -> indices.
        weights: how likely each sample is to be drawn: a number for each sample; a number for each class, or a mapping
            {class name or label: number}, for each sample of that class; or "balanced", every class equally likely.
            Only proportions count. See ``weighted.py`` for how it is drawn.
        num_samples: with weights, the draws of an epoch; None for as many as there are samples.
        shuffle_buffer, shuffle_bytes: samples, and bytes of files, among which a stream is shuffled.

    A copy by pickling is made of the arguments and stands where this loader stands: its next iteration is the one that
    this loader would begin next. So does a loader in a forked child. An iteration stays with its process.

    Raises ValueError, TypeError or SourceError naming the argument, its value and what is accepted.
    """

    def __init__(
        self,
        source: Any,
        transform: Transform | None = None,
        batch_size: int = 64,
        device: str = "auto",
        seed: int = 0,
        shuffle: bool | None = None,
        drop_last: bool = False,
        num_threads: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        on_error: str = "raise",
        cache: str | os.PathLike[str] | None = None,
        prefetch: int = 2,
        *,
        max_errors: int | float | None = None,
        decode: Decode = "auto",
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        geometry: Geometry = "composed",
        cache_bytes: int | None = None,
        cache_side: int | None = None,
        max_pixels: int | None = None,
        max_decode_bytes: int | None = None,
        sampler: Any = None,
        weights: Any = None,
        num_samples: int | None = None,
        shuffle_buffer: int = 4096,
        shuffle_bytes: int = 256 << 20,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name != "self"}
        batch_size, prefetch = integer("batch_size", batch_size, 1), integer("prefetch", prefetch, 0)
        shuffle_buffer = integer("shuffle_buffer", shuffle_buffer, 1)
        shuffle_bytes = integer("shuffle_bytes", shuffle_bytes, 1)
        max_pixels = check_limit("max_pixels", max_pixels, MAX_PIXELS)
        max_decode_bytes = check_limit("max_decode_bytes", max_decode_bytes, MAX_DECODE_BYTES)
        if on_error not in ON_ERROR:
            raise ValueError(f"on_error: got {on_error!r}; accepted: " + ", ".join(map(repr, ON_ERROR)))
        self.batch_size, self.drop_last, self.prefetch = batch_size, drop_last, prefetch
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
        self.shuffle = check_picking(self.source, shuffle, sampler, weights, num_samples)
        ours = {"source": self.source, "rank": self.rank, "world_size": self.world_size}
        self._arguments: dict[str, Any] = {**arguments, **ours}
        if max_errors is not None and on_error == "raise":
            raise ValueError(
                f"max_errors: got {max_errors!r} with on_error='raise'; accepted with on_error='skip' or 'replace'"
            )
        self._log = FailureLog(max_errors)
        self.cache = open_cache(
            cache,
            max_bytes=cache_bytes,
            side=cache_side,
            device=self.device,
            fingerprint=self.source.fingerprint,
            processes=processes_here(),
        )
        is_memory = isinstance(self.source, ArraySource)
        reader = Reader(self.cache, cache_side, max_pixels, is_memory, max_decode_bytes)
        self._order: IndexedOrder | StreamOrder
        if isinstance(self.source, StreamSource):
            limits = {"max_items": shuffle_buffer, "max_bytes": shuffle_bytes, "world_size": self.world_size}
            self._order = StreamOrder(self.source, reader, self.seed, self.shuffle, **limits)
        else:
            how = {"sampler": sampler, "weights": weights, "number": num_samples}
            picks = picks_of(self.source, seed=self.seed, shuffle=self.shuffle, **how)
            self._order = IndexedOrder(self.source, reader, picks, self.seed, self.shuffle)
        self._epochs = Epochs(prefetch, is_early=self._order.is_known)
        self._check_length()
        self._maker = BatchMaker(self.augmenter, on_error, max_pixels, self._order.substitutes, max_decode_bytes)
        self._handover = Handover(self.device)
        # Kept from epoch to epoch: the allocator holds memory for every thread that ever was.
        readers = reader_threads(self._order.is_remote, num_threads)
        makers = min(_MAKERS, num_threads, max(prefetch, 1))
        self._readers = Threads(readers, "variegate-read")
        self._makers = Threads(makers, "variegate-batch")
        self._facts = self._order.facts()  # asked once: a state may be taken at every step
        self._ranks_compared = rank is not None or self.world_size == 1 or not torch.distributed.is_initialized()
        at_fork(self)
        self._own = frozenset((*self.__dict__, "_own"))

    def _construct(self, **arguments: Any) -> None:
        Loader.__init__(self, **arguments)

    def _check_length(self) -> None:
        length = self._length(self.epoch) if self.drop_last else None
        if length is not None and not len(self._share(self.epoch)):
            raise ValueError(
                f"drop_last: {length:,} samples do not fill a batch of {self.batch_size} on {self.world_size} rank(s); "
                "accepted: a smaller batch_size, or drop_last=False"
            )

    def _length(self, epoch: int) -> int | None:
        """Samples of an epoch; None for a stream."""
        return self._order.length(epoch) if isinstance(self._order, IndexedOrder) else None

    @property
    def device(self) -> str:
        return self.augmenter.device

    @property
    def seed(self) -> int:
        return self.augmenter.seed

    @property
    def epoch(self) -> int:
        """The epoch that is being iterated over, or that the next iteration begins."""
        return self._epochs.at[0]

    @property
    def errors(self) -> list[Failure]:
        """The samples that could not be read, each once, with file, member and reason."""
        return self._log.list()

    def __repr__(self) -> str:
        """The call that makes it, with the device, the rank and the threads that were found; the source as it says."""
        made = self.augmenter
        named = {
            "seed": (self.seed, 0),
            "shuffle": (self.shuffle, True),
            "drop_last": (self.drop_last, False),
            "num_threads": (self.num_threads, None),
            "rank": (self.rank, 0),
            "world_size": (self.world_size, 1),
            "prefetch": (self.prefetch, 2),
            "dtype": (str(made.dtype).removeprefix("torch."), "float32"),
            "layout": (made.layout, "NCHW"),
            "geometry": (made.geometry, "composed"),
        }
        given = "".join(f", {name}={value!r}" for name, (value, default) in named.items() if value != default)
        source = " ".join(repr(self.source).split())
        source = source if len(source) <= 200 else f"{source[:160]} ... {source[-20:]}"
        batches = f"batch_size={self.batch_size}, device={self.device!r}"
        return f"Loader({source}, {made.transform!r}, {batches}{given})"

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. Raises TypeError for a stream, whose length nobody knows."""
        return len(self._share(self.epoch))

    def __iter__(self) -> Iterator[Batch]:
        """Begin an epoch: the one set by ``set_epoch`` or ``load_state_dict``, else the one after the last begun."""
        check_running("Loader")
        self.augmenter.check_process()
        run = self._epochs.begin(self._make_run)
        try:
            self._compare_ranks(run.start[0])
        except BaseException:
            run.close()
            raise
        return self._batches(run)

    def _compare_ranks(self, epoch: int) -> None:
        if self._ranks_compared:
            return
        picked = (self._facts.get("weights"), self._facts.get("sampler"), self._digest(epoch))
        order = ", ".join(filter(None, picked))
        facts = f"{self._length(epoch)} samples ({self.source.fingerprint})"
        check_alike(f"{facts} in the order {order}" if order else facts, self.device)
        self._ranks_compared = self._order.is_known

    def _digest(self, epoch: int) -> str | None:
        return self._order.digest(epoch) if isinstance(self._order, IndexedOrder) else None

    def _make_run(self, place: Place) -> EpochRun:
        epoch, done = place
        if isinstance(self._order, IndexedOrder):
            self._order.begin(epoch, is_resumed=done > 0)
            share = self._share(epoch, done)
        else:
            share = self._stream_share(done)
        steps, stop_reading = self._order.steps(share, epoch, self._readers)
        ahead = Ahead(
            steps,
            partial(_make, self._maker, self._handover, epoch),
            self._makers,
            depth=self.prefetch,
            read_depth=_REMOTE_READ_DEPTH if self._order.is_remote else _READ_DEPTH,
        )
        return EpochRun(place, ahead, stop_reading)

    def _batches(self, run: EpochRun) -> Iterator[Batch]:
        try:
            for made in run.ahead:
                self._log.add(made.failures, self._read_by_this_rank(run.start[0], made.done))
                self._epochs.handed_out(run, made.done, self._make_run)
                batch = [self._handover.take(made)]
                del made  # whoever gets the batch must be the only one to keep it
                yield batch.pop()
            self._epochs.finished(run)
        finally:
            run.close()

    def _read_by_this_rank(self, epoch: int, done: int) -> int:
        """How many samples a share of bad ones is taken of."""
        return -(-(self._length(epoch) or max(done, _SEEN_AT_LEAST)) // self.world_size)

    def batch(self, step: int, epoch: int | None = None) -> Batch:
        """Batch ``step`` of an epoch (None: the current one), made now, whatever is being iterated over.

        Any thread may call it. Raises IndexError for a step that the epoch does not have, TypeError for a stream.
        """
        epoch = self.epoch if epoch is None else epoch
        share = self._share(epoch)
        if not 0 <= step < len(share):
            raise IndexError(f"step: got {step!r}; accepted: 0 to {len(share) - 1}")
        assert isinstance(self._order, IndexedOrder)
        rows = self._order.start(share, epoch, step, self._readers)()
        assert rows is not None
        made = _make(self._maker, self._handover, epoch, rows)
        self._log.add(made.failures, self._read_by_this_rank(epoch, made.done))
        return self._handover.take(made)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins this epoch; in the middle, if that is where ``load_state_dict`` left it."""
        epoch = integer("epoch", epoch, 0)
        resumed = self._epochs.next
        self._epochs.go_to(resumed if resumed[0] == epoch else (epoch, 0))

    def state_dict(self) -> dict[str, Any]:
        """Where the iteration stands, after the batch handed out last: a few numbers and strings, fit for JSON.

        It is the same on every rank, and says nothing about batches, threads or ranks: all may be others afterwards.
        """
        return make_state(*self._epochs.at, self._facts, self._digest(self._epochs.at[0]))

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration goes on where the state was taken: the remaining samples, with the same pixels.

        Raises ValueError where the data set, the seed, the shuffling, the weights or the sampler's order are not those
        of the state.
        """
        epoch, done, digest = read_state(state_dict, self._facts)
        if done and isinstance(self._order, IndexedOrder):
            self._order.check(epoch, digest)
            check_done(done, self._order.length(epoch))
        self._epochs.go_to((epoch, done))

    def _share(self, epoch: int, start: int = 0) -> Share:
        length = self._length(epoch)
        if length is None:
            raise TypeError("this source is a stream, whose length is not known; open_source(..., stream=False) counts")
        return Share(self.batch_size, self.rank, self.world_size, self.drop_last, length, start)

    def _stream_share(self, start: int) -> Share:
        return Share(self.batch_size, self.rank, self.world_size, self.drop_last, start=start)


def _make(maker: BatchMaker, handover: Handover, epoch: int, rows: Rows) -> Made:
    """Apart from the loader, so that what is being made for it does not keep one alive that nobody uses any more."""
    return handover.make(partial(maker.make, rows, epoch))


def _open(source: Any, on_error: str) -> Source | StreamSource:
    # What is missing of a damaged shard counts as bad samples, where those are put up with.
    opened = open_source(source, on_error="raise" if on_error == "raise" else "skip")
    if opened is not source:
        for note in opened.notes():
            place = shown(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else "source"
            warnings.warn(speakable(f"{place}: {note}"), stacklevel=3)
    return opened

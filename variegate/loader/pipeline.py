"""The stages of a loader and the threads of each: what turns the steps of an epoch into batches."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from variegate.arrays import Int64Array
from variegate.augmenter.planner import num_partners
from variegate.data.indexing import open_entropy_index
from variegate.data.opening import new_notes, open_source
from variegate.data.packed import checked_statistics
from variegate.data.sharded import AnySource
from variegate.errors import short_repr
from variegate.io.addresses import redact_text, redact_url
from variegate.loader.batch import FailureLog
from variegate.loader.cache import open_cache
from variegate.loader.epochs import EpochRun, MakeBatch
from variegate.loader.making import AnyBatch, BatchMaker, BatchResult, EpochWork
from variegate.loader.mixture import Mixture
from variegate.loader.options import LoaderArguments, LoaderOptions
from variegate.loader.order import EpochOrder, Position
from variegate.loader.picks import check_picking, make_order
from variegate.loader.ranks import BatchShare, Share, check_alike, processes_here
from variegate.loader.reading import PendingRead, Reader, StepPlan, reader_threads
from variegate.loader.stats import StageTimes
from variegate.loader.targets import targets_of, with_asked
from variegate.loader.value_range import warn_of_clipping
from variegate.ops.base import Transform
from variegate.ops.description import wants_statistics, with_statistics
from variegate.ops.output import Identity
from variegate.policies import load_policy
from variegate.program.depth import Depth
from variegate.threads import Threads

# Steps that are being read beyond those being made.
_REMOTE_READ_DEPTH = 4
_READ_DEPTH = 1
# Batches made at the same time, so that threads do not wait for the last rows of one.
_MAKERS = 2
_SEEN_AT_LEAST = 1000


class Pipeline:
    """Stages and threads of a loader, by checked ``options``. Raises what ``Loader`` does."""

    def __init__(self, arguments: LoaderArguments) -> None:
        if isinstance(arguments.source, Transform):
            accepted = "a data set, and the transform after it: vg.Loader(source, transform)"
            raise TypeError(f"source: got the transform {short_repr(arguments.source)}; accepted: {accepted}")
        if isinstance(arguments.transform, (str, os.PathLike)):
            arguments = replace(arguments, transform=load_policy(arguments.transform))
        options = LoaderOptions.check(arguments)
        places = None
        if options.has_workers:
            from variegate.loader import workers  # imported here, as most loaders have none

            places = workers.WorkerPlaces.find(options, arguments.num_threads)
            options = replace(options, device="cpu")
        opened = _open(options)
        self.source = source = with_asked(opened, options.targets)
        self.options = options = replace(options, source=source)
        transform = Identity() if options.transform is None else options.transform
        if isinstance(source, Mixture):
            transform = source.transform_with(transform)
        if options.buckets is not None:
            transform = options.buckets.transform_with(transform)
        if wants_statistics(transform):
            transform = with_statistics(transform, *checked_statistics(source))
        self.augmenter = options.make_augmenter(transform, options.device, options.num_threads)
        if isinstance(source, Mixture) and options.targets is not False:
            source.check_targets()
        self.targets = targets_of(options, source, self.augmenter.transform)
        depth = None if options.depth is None else Depth.named(options.depth)
        warn_of_clipping(self.augmenter.transform, source, depth, options.channels, options.dicom)
        self.shuffle = check_picking(source, options)
        # For a copy in another process: the same source and rank, and whatever else it finds there.
        self.portable = replace(
            arguments, source=source, annotations=None, rank=options.rank, world_size=options.world_size
        )
        self.log = FailureLog(options.max_errors)
        has_cache = places is None or places.are_threads or options.cache is None
        self.cache = open_cache(options, self.augmenter.device, processes_here()) if has_cache else None
        self.index = open_entropy_index(options.index, source)
        reader = Reader(options, self.cache, self.targets is not None)
        number = num_partners(self.augmenter.transform)
        self._has_partners_of_epoch = number > 0 and options.partners == "epoch"
        picks = make_order(source, options, self.shuffle)
        self.order = EpochOrder(source, reader, picks, options, self.shuffle, number)
        if options.drop_last and (length := self.order.length(0)) is not None and not len(self.share(0)):
            got = f"{length:,} samples do not fill a batch of {options.batch_size} on {options.world_size} rank(s)"
            raise ValueError(f"drop_last: {got}; accepted: a smaller batch_size, or drop_last=False")

        order = self.order  # threads must not hold a reference to this object

        def candidates_of(plan: StepPlan, row: int, epoch: int) -> Int64Array:
            return order.candidates(plan, [row], epoch)[0]

        # Whether an epoch's batches may be begun before it does.
        self.is_early = self.order.is_known and options.conditions is None
        is_alone = options.world_size == 1 or not torch.distributed.is_initialized()
        self.ranks_compared = arguments.rank is not None or is_alone
        self._maker = BatchMaker(self.augmenter, options, reader, candidates_of, self.index, self.targets)
        self._workers = None
        if places is not None:
            self._workers = workers.begin(self.options, places, self.targets, self.cache, self._maker, order)
            weakref.finalize(self, self._workers.fleet.close)
        # Kept from epoch to epoch: the allocator holds memory for every thread that ever was.
        self._readers = Threads(reader_threads(self.order.is_remote, options.num_threads), "variegate-read")
        number_of_makers = min(_MAKERS, options.num_threads, max(options.prefetch, 1))
        self.depth = options.prefetch
        if self._workers is not None:
            number_of_makers = self.depth = self._workers.depth
        self._makers = Threads(max(number_of_makers, 1), "variegate-batch")

    def partners(self, index: int, epoch: int) -> list[int]:
        """Ids of the partners with which a sample is mixed in an epoch."""
        if not self._has_partners_of_epoch:
            got = "a loader that mixes nothing, or within its batches alone"
            raise ValueError(f'partners: {got}; accepted: a transform such as MixUp, and partners="epoch"')
        return self.order.partner_ids(index, epoch)

    def share(self, epoch: int, start: int = 0) -> Share | BatchShare:
        """This rank's slice of an epoch. Raises TypeError if a shard has no index yet."""
        length = self.order.count(epoch)
        if length is None:
            raise TypeError(
                f"{self.source!r}: the number of samples is not known before all shards were read; accepted: the next "
                "epoch, or open_source(..., stream=False), which reads them now"
            )
        return self._share(epoch, length, start)

    def _share(self, epoch: int, length: int, start: int) -> Share | BatchShare:
        options = self.options
        bounds = self.order.bounds(epoch)
        if bounds is not None:
            return BatchShare(bounds, options.rank, options.world_size, options.drop_last, start)
        return Share(options.batch_size, options.rank, options.world_size, options.drop_last, length, start)

    def run(self, position: Position) -> EpochRun:
        """The rest of an epoch, nothing of it begun."""
        epoch, done = position
        self.order.begin(epoch, is_resumed=done > 0)
        share = self._share(epoch, self.order.length(epoch) or 0, done)
        times = StageTimes()
        steps, stop_reading, make = self._steps(share, epoch, times)
        read_depth = _REMOTE_READ_DEPTH if self.order.is_remote else _READ_DEPTH
        return EpochRun(
            position,
            steps,
            make,
            self._makers,
            depth=self.depth,
            read_depth=read_depth if self._workers is None else 0,
            stop_reading=stop_reading,
            times=times,
        )

    def _steps(
        self, share: Share | BatchShare, epoch: int, times: StageTimes, **first: int
    ) -> tuple[Iterator[PendingRead], Callable[[], None], MakeBatch]:
        """The steps of an epoch, a function that stops reading, and a function that makes a batch from a step."""
        given = self.options.conditions_of(epoch)
        if self._workers is None:
            rows, stop = self.order.steps(share, epoch, self._readers, times, **first)
            return rows, stop, partial(self._maker.make, work=EpochWork(epoch, times, given))
        plans = self.order.plans(share, epoch, **first)
        return self._workers.steps(plans, epoch, times, given)

    def hand_out(self, result: BatchResult, epoch: int) -> AnyBatch:
        """The batch, for use by the calling thread. Raises TooManyErrors."""
        # If the number of samples is not known, a share is taken of those seen so far, but of no fewer than a minimum.
        rows = self.order.length(epoch)
        samples = -(-rows // self.options.copies) if rows else max(result.done, _SEEN_AT_LEAST)
        self.log.add(result.failures, -(-samples // self.options.world_size))
        return self._maker.hand_over(result)

    def batch(self, step: int, epoch: int) -> AnyBatch:
        """Make a single batch now."""
        share = self.share(epoch)
        if not 0 <= step < len(share):
            raise IndexError(f"step: got {step!r}; accepted: 0 to {len(share) - 1}")
        times = StageTimes()
        steps, _, make = self._steps(share, epoch, times, first=step)
        rows = next(steps)()
        assert rows is not None
        return self.hand_out(make(rows), epoch)

    def compare_ranks(self, epoch: int) -> None:
        """Raises ValueError where the ranks of torch.distributed do not see the same samples in the same order."""
        if self.ranks_compared:
            return
        known = self.order.state_fields
        order = ", ".join(filter(None, (known.get("weights"), known.get("sampler"), self.order.digest(epoch))))
        state_fields = f"{self.order.length(epoch)} samples ({self.source.fingerprint})"
        check_alike(f"{state_fields} in the order {order}" if order else state_fields, self.augmenter.device)
        self.ranks_compared = self.order.is_known


def _open(options: LoaderOptions) -> AnySource:
    source = options.source
    # Missing samples of a damaged shard count as unreadable samples, unless errors are raised.
    on_error = "raise" if options.on_error == "raise" else "skip"
    # Samplers, weights and buckets choose among all samples.
    chooses = (options.sampler, options.weights, options.buckets, options.batch_sampler)
    stream = None if all(argument is None for argument in chooses) else False
    opened: AnySource = open_source(source, stream=stream, on_error=on_error, annotations=options.annotations)
    for note in new_notes(opened, source):
        place = redact_url(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else "source"
        warnings.warn(redact_text(f"{place}: {note}"), stacklevel=7)
    return opened

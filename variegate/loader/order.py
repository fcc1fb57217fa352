"""The order of an epoch's samples: as states describe it, and as its steps are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import count
from threading import Event
from typing import Any

import numpy as np

from variegate.arrays import Int32Array, Int64Array
from variegate.augmenter.planner import check_partners
from variegate.checks import PIXEL_VERSION, check_pixel_version, integer
from variegate.data.base import check_index, digest_of
from variegate.data.sharded import ShardedSource
from variegate.loader.buckets import bucketed
from variegate.loader.options import LoaderOptions
from variegate.loader.picks import Picks, RepeatedOrder
from variegate.loader.ranks import BatchShare, Share
from variegate.loader.reading import Reader, StepPlan, Steps
from variegate.loader.shuffle import Order, OrderPurpose, partner_positions, partners_of
from variegate.loader.stats import StageTimes
from variegate.program import rng
from variegate.threads import at_fork

# Number of candidates tried as a replacement for an unreadable sample: the run fails only if hardly any sample is
# readable.
_SUBSTITUTES = 64
_MOST_ORDERS = 4

# An epoch, and the number of its samples that all ranks together have received.
Position = tuple[int, int]

STATE_VERSION = 1
# Settings that determine an order and are part of states, with the condition on each.
_FACTS = {
    "seed": "seed",
    "shuffle": "shuffle",
    "source": "data set: its files, labels and classes",
    "samples": "data set: its number of samples",
}
# Only there if the loader has such.
_FACTS_OF_PICKS = {
    "weights": "weights, and num_samples if any",
    "sampler": "sampler",
    "copies": "copies",
    "block_shards": "block_shards",
    "batch_sampler": "batch_sampler",
    "buckets": "buckets, batch_size and drop_last",
}


class EpochOrder:
    """The orders of all epochs, as samples are picked.

    ``num_partners``: number of samples with which each sample is mixed. ``state_fields``: settings that determine
    orders, for JSON. ``is_known``: an epoch's order is always the same.
    """

    def __init__(
        self, source: Any, reader: Reader, picks: Picks, options: LoaderOptions, shuffle: bool, num_partners: int
    ) -> None:
        self._source, self._reader, self._picks, self._shuffle = source, reader, picks, shuffle
        self._seed, self._copies, self._num_partners = options.seed, options.copies, num_partners
        self._is_mixed_within_batch = options.partners == "batch"
        self._batch_size, self._drop_last = options.batch_size, options.drop_last
        self._bucket_of = None
        if options.buckets is not None:
            self._bucket_of = options.buckets.bucket_of(source, reader.image_size, options.num_threads)
        self.has_batches = self._bucket_of is not None or options.batch_sampler is not None
        self.is_remote = source.is_remote
        self.is_known = picks.is_known
        self.is_in_blocks = isinstance(source, ShardedSource)
        copies = {"copies": options.copies} if options.copies > 1 else {}
        samples = None if self.is_in_blocks else len(source)
        # Once: a state may be taken at every step.
        self.state_fields = {"seed": options.seed, "shuffle": shuffle, "source": source.fingerprint, "samples": samples}
        self.state_fields |= picks.state_fields | copies
        if self._bucket_of is not None:
            assigned = digest_of(repr(options.buckets), self._bucket_of.tobytes())
            self.state_fields["buckets"] = f"{assigned}-{options.batch_size}-{options.drop_last}"
        # Orders of the latest epochs: epochs being consumed or prepared, and interrupted iterations that may resume.
        self._orders: dict[int, Order] = {}
        at_fork(self)

    def after_fork(self) -> None:
        self._orders = {}  # another thread of the parent may have held their locks

    def length(self, epoch: int) -> int | None:
        """Samples of an epoch; None while they are not known, in blocks of shards."""
        if self.is_in_blocks:
            order = self._orders.get(epoch)
            return None if order is None else order.length
        is_unknown = epoch in self._orders or self.has_batches
        expected = None if is_unknown else self._picks.expected_length()
        return self._order(epoch).length if expected is None else expected * self._copies

    def count(self, epoch: int) -> int | None:
        """The same, where shards with an index that were not opened are counted as well."""
        if not self.is_in_blocks:
            return self.length(epoch)
        samples = self._source.count()
        return None if samples is None else samples * self._copies

    def bounds(self, epoch: int) -> Int64Array | None:
        """Positions at which the batches of an epoch begin, and its end; None if they follow from ``batch_size``."""
        return self._order(epoch).bounds if self.has_batches else None

    def begin(self, epoch: int, is_resumed: bool) -> None:
        """Begin or resume an epoch. An order that is not known beforehand is asked for when its epoch begins."""
        if not self.is_known and not is_resumed:
            self._make_order(epoch)

    def digest(self, epoch: int) -> str | None:
        """Digest of an order that does not follow from ``state_fields``."""
        order = self._orders.get(epoch)
        return None if self.is_known or order is None else order.digest()

    def state(self, position: Position) -> dict[str, Any]:
        """The state, as ``Loader.state_dict`` returns it."""
        epoch, done = position
        state = {"version": STATE_VERSION, "pixels": PIXEL_VERSION, "epoch": epoch, "done": done, **self.state_fields}
        order = self.digest(epoch)
        return state if order is None else {**state, "order": order}

    def position(self, state: Mapping[str, Any]) -> Position:
        """Position of a state. Raises ValueError where it is of another kind, data set or order."""
        if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION:
            got = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            accepted = f"what Loader.state_dict gave, version {STATE_VERSION}"
            raise ValueError(f"state_dict: got version {got!r}; accepted: {accepted}")
        check_pixel_version("state_dict", state.get("pixels"), ValueError, "begin the epoch again without it")
        missing = {"epoch", "done", *_FACTS} - set(state)
        if missing:
            raise ValueError(f"state_dict: {', '.join(sorted(missing))} missing; accepted: what Loader.state_dict gave")
        for name, same in (_FACTS | _FACTS_OF_PICKS).items():
            if state.get(name) != self.state_fields.get(name):
                raise ValueError(
                    f"state_dict: {name} is {state.get(name)!r}, this loader's is {self.state_fields.get(name)!r}; the "
                    f"rest of the epoch would be another one. Make the loader with the same {same}"
                )
        epoch, done = (integer(f"state_dict: {name}", state[name], 0, (1 << 64) - 1) for name in ("epoch", "done"))
        if done:
            self._check_digest(epoch, state.get("order"))
            if (length := self.length(epoch)) is not None and done > length:
                raise ValueError(f"state_dict: done is {done}; accepted: 0 to {length}, the samples of an epoch")
            bounds = self.bounds(epoch)
            if bounds is not None and done not in bounds:
                raise ValueError(f"state_dict: done is {done}, in the middle of a batch; accepted: the end of one")
        return epoch, done

    def _check_digest(self, epoch: int, digest: str | None) -> None:
        if self.is_known:
            return
        self.begin(epoch, is_resumed=False)
        if (found := self.digest(epoch)) != digest:
            raise ValueError(
                f"state_dict: order is {digest!r}, the sampler's for epoch {epoch} is now {found!r}; the rest of the "
                "epoch would be another one. A sampler that draws from torch's global generator (a RandomSampler, say) "
                "does not repeat itself: use one whose set_epoch seeds it, or Loader(weights=...) or a list of "
                "indices, which are ordered by the Loader's seed"
            )

    def plans(self, share: Share | BatchShare, epoch: int, first: int = 0) -> Iterator[StepPlan]:
        """The steps from ``first`` on. In blocks of shards, ``next`` may wait until shards are fetched."""
        order = self._order(epoch)
        for step in count(first):
            if isinstance(share, Share):
                # The length of the epoch, or while that is not known, one beyond this step.
                known = order.known(share.start + (step + 1) * share.taken_at_once)
                last_group, _ = order.groups_of(np.array([known - 1]))
                share = replace(share, length=known, padding_start=int(np.max(last_group)))
            if step >= len(share):
                return
            yield self._plan(order, epoch, share, step)

    def steps(self, share: Share | BatchShare, epoch: int, pool: Executor, times: StageTimes, first: int = 0) -> Steps:
        """The same, each read by all threads of ``pool``."""
        stopped = Event()
        plans = self.plans(share, epoch, first)
        begun = (self._reader.begin(plan, pool, times, stopped.is_set) for plan in plans)
        return begun, stopped.set

    def _plan(self, order: Order, epoch: int, share: Share | BatchShare, step: int) -> StepPlan:
        positions, padding = share.positions(step)
        bucket = order.bucket_at(int(positions[0]))
        partners = None
        if self._num_partners and self._is_mixed_within_batch:
            partners = check_partners("batch", len(positions), self._num_partners)
        elif self._num_partners:
            positions, partners = _with_partners(positions, self._partners(order, epoch, positions))
        indices, copies = order.at(positions)
        return StepPlan(
            ids=self._source.ids(indices),
            padding=padding,
            done=share.done_after(step),
            samples=indices,
            copies=copies,
            partners=partners,
            bucket=bucket,
        )

    def _partners(self, order: Order, epoch: int, positions: Int64Array) -> Int64Array:
        """Places in the epoch's order that each sample is mixed with, [N, K]: by its own place in a shuffled order,
        so that they depend on nothing but the seed, the epoch, the sample and its copy; in blocks of shards, within
        its block and by its place there."""
        starts, lengths = order.groups_of(positions)
        if self._shuffle or self.is_in_blocks:
            return partner_positions(positions, lengths, self._num_partners, starts)
        return partners_of(positions, lengths, self._seed, epoch, self._num_partners, order.purpose, self._copies)

    def partner_ids(self, index: int, epoch: int) -> list[int]:
        """Ids of the partners with which a sample is mixed. Raises ValueError where an epoch is not every sample
        once."""
        order = self._order(epoch)
        if not order.is_every:
            others = "blocks of shards" if self.is_in_blocks else "a sampler, weights or buckets"
            got = "copies" if isinstance(order, RepeatedOrder) else others
            raise ValueError(f"partners: this loader has {got}; accepted: a loader of every sample once, by index")
        check_index(index, len(self._source))
        indices = partners_of(np.array([index]), len(self._source), self._seed, epoch, self._num_partners)[0]
        return [int(sample_id) for sample_id in self._source.ids(indices)]

    def candidates(self, plan: StepPlan, rows: Sequence[int], epoch: int) -> Int64Array:
        """Samples that may replace each of the rows, int64[N, K].

        Candidates are drawn for the row's id from the epoch's samples or its block of shards, so that they do not
        depend on the batch.
        """
        order = self._order(epoch)
        key = rng.stream_key(self._seed, epoch, int(OrderPurpose.SUBSTITUTES), rng.SHUFFLE_DOMAIN)
        words = rng.sample_words(plan.ids[list(rows)], key, _SUBSTITUTES).astype(np.uint64)
        numbers = (words[..., 0] << np.uint64(32)) | words[..., 1]
        order, starts, lengths = order.replacements(plan.samples[list(rows)])
        positions = np.reshape(starts, (-1, 1)) + (numbers % np.reshape(lengths, (-1, 1)).astype(np.uint64)).astype(
            np.int64
        )
        if order.is_every:
            return positions
        return order.at(positions.reshape(-1))[0].reshape(positions.shape)

    def _order(self, epoch: int) -> Order:
        return self._orders.get(epoch) or self._make_order(epoch)

    def _make_order(self, epoch: int) -> Order:
        once = self._picks.order_of(epoch)
        order = once if self._copies == 1 else RepeatedOrder(once, self._copies)
        if self._bucket_of is not None:
            shuffle = (self._seed, epoch) if self._shuffle else None
            order = bucketed(order, self._bucket_of, self._batch_size, self._drop_last, shuffle)
        self._orders.pop(epoch, None)
        self._orders[epoch] = order
        for old in list(self._orders)[:-_MOST_ORDERS]:
            self._orders.pop(old, None)
        return order


def _with_partners(positions: Int64Array, partners: Int64Array) -> tuple[Int64Array, Int32Array]:
    """-> (the positions, followed by positions of partners that are not among them; the index of each partner)."""
    every = np.concatenate([positions, np.setdiff1d(partners, positions)])
    order = np.argsort(every, kind="stable")
    places = order[np.searchsorted(every[order], partners)]
    return every, places.astype(np.int32)

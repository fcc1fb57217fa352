"""Orders of an epoch's samples and their copies, by the arguments ``shuffle``, ``sampler``, ``weights``, ``copies``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from torch.utils.data import BatchSampler
from torch.utils.data.distributed import DistributedSampler

from variegate.arrays import Int64Array, UInt32Array
from variegate.checks import as_integer, integer
from variegate.data.base import digest_of
from variegate.data.sharded import AnySource, ShardedSource
from variegate.loader.blocks import BlockOrder
from variegate.loader.buckets import BatchedOrder
from variegate.loader.mixture import Mixture, MixtureOrders
from variegate.loader.options import LoaderOptions
from variegate.loader.shuffle import Order, OrderPurpose, Permutation
from variegate.loader.weights import DrawnOrder, groups_of
from variegate.threads import Threads

Indices = Int64Array
Copies = UInt32Array

# Draws are counted in float64, which holds whole numbers and their fractions up to here.
_MOST_DRAWS = 1 << 40
_FETCHING_THREADS = 8

_ACCEPTED_BATCHES = (
    "lists of indices, an object with __iter__ and __len__ such as a torch BatchSampler, a function epoch -> lists of "
    "indices, or None"
)
_ACCEPTED = (
    "a sequence or array of indices, an object with __iter__ and __len__ such as a torch Sampler, a function epoch -> "
    "indices, or None"
)


class ListedOrder(Order):
    """``indices``: None for every sample once (``is_every``); copies count by place."""

    length: int

    def __init__(self, indices: Indices | None, length: int) -> None:
        self.length = length
        self.is_every = indices is None
        self.purpose = OrderPurpose.SAMPLES if self.is_every else OrderPurpose.DRAWS
        self._indices = indices
        self._permutation: Permutation | None = None
        self._copies = None if indices is None else _count(indices)

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        indices = positions if self._permutation is None else self._permutation(positions)
        copies = np.zeros(len(indices), np.uint32) if self._copies is None else self._copies[indices]
        return indices if self._indices is None else self._indices[indices], copies

    def permuted(self, permutation: Permutation) -> ListedOrder:
        """The same samples, read in another order."""
        again = copy(self)
        again._permutation = permutation
        return again

    def digest(self) -> str | None:
        return None if self._indices is None else digest_of(self._indices.tobytes())


class RepeatedOrder(Order):
    """Another order with each of its positions ``times`` times, one after another."""

    def __init__(self, order: Order, times: int) -> None:
        self.once = order
        self.times = times
        self.purpose = order.purpose

    @property
    def length(self) -> int | None:  # type: ignore[override]
        return None if self.once.length is None else self.once.length * self.times

    def at(self, positions: Indices) -> tuple[Indices, Copies]:
        places, again = np.divmod(positions, self.times)
        indices, copies = self.once.at(places)
        return indices, (copies * np.uint32(self.times) + again).astype(np.uint32)

    def known(self, end: int) -> int:
        return self.once.known(-(-end // self.times)) * self.times

    def groups_of(self, positions: Indices) -> tuple[Any, Any]:
        starts, lengths = self.once.groups_of(positions // self.times)
        return starts * self.times, lengths * self.times

    def replacements(self, indices: Indices) -> tuple[Order, Any, Any]:
        # Other code counts all positions, so that the drawn numbers match the repeated order.
        return self.once.replacements(indices) if isinstance(self.once, BlockOrder) else super().replacements(indices)

    def digest(self) -> str | None:
        return self.once.digest()


def _count(indices: Indices) -> Copies | None:
    """Number of times each index came before in the list; None where none comes twice."""
    order = np.argsort(indices, kind="stable")
    in_order = indices[order]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    if is_first.all():
        return None
    places = np.arange(len(indices))
    begins = np.maximum.accumulate(np.where(is_first, places, 0))
    copies = np.empty(len(indices), np.uint32)
    copies[order] = places - begins
    return copies


@dataclass(frozen=True)
class Picks:
    """The orders of all epochs; ``expected_length``: of any, None if not known; the rest as ``EpochOrder``."""

    order_of: Callable[[int], Order]
    expected_length: Callable[[], int | None]
    state_fields: dict[str, Any]
    is_known: bool = True


def check_picking(source: AnySource, options: LoaderOptions) -> bool:
    """True if the order is shuffled. Raises ValueError for arguments that do not go together."""
    shuffle, sampler, weights, number = options.shuffle, options.sampler, options.weights, options.num_samples
    problem = None
    if options.batch_sampler is not None:
        _check_batch_sampler(source, options)
        return False
    is_mixed = isinstance(source, Mixture)
    given = [one for one in ("sampler", "weights", "num_samples") if getattr(options, one) is not None]
    if is_mixed and given:
        problem = f"{given[0]}: got it with a Mixture, which says what is drawn; accepted: None, or vg.Mixture's own"
    elif sampler is not None and weights is not None:
        problem = "sampler, weights: got both; accepted: one of them, as each says which samples an epoch has"
    elif number is not None and weights is None:
        problem = f"num_samples: got {number!r} without weights; accepted with weights"
    elif (weights is not None or is_mixed) and shuffle is not None and not shuffle:
        problem = "shuffle: got False with weights; accepted: True, as what is drawn has no order to keep"
    if problem:
        raise ValueError(problem)
    if sampler is None or _is_listed(sampler):
        return shuffle is None or bool(shuffle)
    if shuffle:
        raise ValueError(
            f"shuffle: got True with a sampler ({type(sampler).__name__}) that gives the order itself; accepted: leave "
            "shuffle out, or give the indices as a list"
        )
    return False


def _check_batch_sampler(source: AnySource, options: LoaderOptions) -> None:
    """Raise TypeError for another type, ValueError for arguments that do not go with it."""
    others = ("buckets", "sampler", "weights", "num_samples", "shuffle")
    given = [other for other in others if getattr(options, other)] + ["copies"] * (options.copies > 1)
    if isinstance(source, Mixture):
        given.append("a Mixture")
    if given:
        raise ValueError(
            f"batch_sampler: got it with {given[0]}; accepted: alone, as it says which samples batches have"
        )
    inner = getattr(options.batch_sampler, "sampler", None)
    if _takes_a_share(options.batch_sampler) or _takes_a_share(inner):
        raise ValueError(
            "batch_sampler: got one that takes one rank's share; the Loader does that itself (rank, world_size). "
            "Accepted: the batches of all ranks, the same on every rank"
        )
    kind = type(options.batch_sampler).__name__
    is_iterable = hasattr(options.batch_sampler, "__iter__") and hasattr(options.batch_sampler, "__len__")
    if isinstance(options.batch_sampler, (str, bytes, Mapping)) or not (is_iterable or callable(options.batch_sampler)):
        raise TypeError(f"batch_sampler: got {kind}; accepted: {_ACCEPTED_BATCHES}")


def make_order(source: AnySource, options: LoaderOptions, shuffle: bool) -> Picks:
    """The order for options that ``check_picking`` accepted. Raises ValueError for no samples, a wrong sampler or
    weights."""
    if isinstance(source, ShardedSource):
        blocks: dict[str, Any] = {"block_shards": options.block_shards}
        pool = Threads(_FETCHING_THREADS, "variegate-fetch")
        return Picks(partial(BlockOrder, source, options, shuffle, pool), lambda: None, blocks)
    samples, seed, sampler, number = len(source), options.seed, options.sampler, options.num_samples
    if not samples:
        raise ValueError("source: has no samples")
    if isinstance(source, Mixture):
        orders = MixtureOrders(source, seed)
        return Picks(orders.order_of, lambda: None, {"weights": orders.digest()})
    if options.weights is not None:
        draws = samples if number is None else integer("num_samples", number, 1)
        if draws > _MOST_DRAWS:
            raise ValueError(f"num_samples: got {draws:,}; accepted: 1 to {_MOST_DRAWS:,}")
        groups = groups_of(options.weights, source)
        state_fields = {"weights": f"{groups.digest()}-{draws}"}
        return Picks(partial(DrawnOrder, groups, draws, seed), lambda: draws, state_fields)
    if options.batch_sampler is not None:
        state_fields = {"batch_sampler": "asked in each epoch"}
        return Picks(partial(_ask_batches, options.batch_sampler, samples), lambda: None, state_fields, False)
    if sampler is not None and not _is_listed(sampler):
        state_fields = {"sampler": "asked in each epoch"}
        is_function = not hasattr(sampler, "__iter__")
        return Picks(
            partial(_ask, sampler, samples), lambda: None if is_function else len(sampler), state_fields, False
        )
    indices = None if sampler is None else _check_indices("sampler", sampler, samples)
    order = ListedOrder(indices, samples if indices is None else len(indices))

    def order_of(epoch: int) -> ListedOrder:
        return order.permuted(Permutation(order.length, seed, epoch, order.purpose)) if shuffle else order

    digest = order.digest()
    return Picks(order_of, lambda: order.length, {} if digest is None else {"sampler": digest})


def _ask(sampler: Any, samples: int, epoch: int) -> ListedOrder:
    """The order that a sampler, or a function of the epoch, gives when an epoch begins; perhaps never again."""
    name, indices = _of_epoch("sampler", sampler, epoch)
    checked = _check_indices(name, indices, samples)
    return ListedOrder(checked, len(checked))


def _ask_batches(sampler: Any, samples: int, epoch: int) -> BatchedOrder:
    """The same of a sampler that gives batches."""
    name, given = _of_epoch("batch_sampler", sampler, epoch)
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: gave {type(given).__name__}; accepted: lists of indices")
    batches = [_check_indices(f"{name}: batch {number}", indices, samples) for number, indices in enumerate(given)]
    if not batches:
        raise ValueError(f"{name}: gave no batch; accepted: at least one")
    indices = np.concatenate(batches)
    bounds = np.cumsum([0, *map(len, batches)])
    positions = np.split(np.arange(len(indices)), bounds[1:-1])
    return BatchedOrder(ListedOrder(indices, len(indices)), positions)


def _of_epoch(name: str, sampler: Any, epoch: int) -> tuple[str, Any]:
    """-> (name for messages, the sampler's or function's indices for an epoch)."""
    if not hasattr(sampler, "__iter__"):
        return f"{name}({epoch})", sampler(epoch)
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    return name, sampler


def _takes_a_share(sampler: Any) -> bool:
    """True for a sampler that gives one rank's samples."""
    return isinstance(sampler, DistributedSampler) or (hasattr(sampler, "num_replicas") and hasattr(sampler, "rank"))


def _is_listed(sampler: Any) -> bool:
    """Indices that are there already; else each epoch is asked for its own. Raises TypeError or ValueError."""
    kind = type(sampler).__name__
    if _takes_a_share(sampler):
        raise ValueError(
            f"sampler: got {kind}, which takes one rank's share; the Loader does that itself (rank, world_size). "
            "Accepted: the order of all samples, the same on every rank"
        )
    if isinstance(sampler, BatchSampler):
        accepted = "one index after another (batch_size), or batch_sampler=..."
        raise ValueError(f"sampler: got {kind}, which yields batches; accepted: {accepted}")
    is_other = isinstance(sampler, (str, bytes, Mapping, set, frozenset))
    if not is_other and (isinstance(sampler, Sequence) or hasattr(sampler, "__array__")):
        return True
    has_order = hasattr(sampler, "__iter__") and hasattr(sampler, "__len__")
    if is_other or not (has_order or callable(sampler)):
        lacks = "" if has_order or not hasattr(sampler, "__iter__") else " (its length is not known)"
        raise TypeError(f"sampler: got {kind}{lacks}; accepted: {_ACCEPTED}")
    return False


def _check_indices(name: str, given: Any, samples: int) -> Indices:
    """int64[N], N > 0, each from 0 to ``samples`` - 1. Raises TypeError or ValueError naming the first that is not."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise TypeError(f"{name}: gave {type(given).__name__}; accepted: indices")
    values: Any = given if hasattr(given, "__array__") else list(given)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # of different kinds or lengths
        array = np.empty(len(values), object)
    if array.ndim != 1:
        raise ValueError(f"{name}: got shape {array.shape}; accepted: one index after another, not batches of them")
    if not len(array):
        raise ValueError(f"{name}: gave no index; accepted: at least one")
    if array.dtype.kind == "b":
        raise TypeError(f"{name}: got True and False; accepted: indices, such as np.flatnonzero(mask)")
    numbers = array
    if array.dtype.kind not in "iu":  # integers of other kinds, such as tensors of one number; or no integers
        found = map(as_integer, values)
        numbers = np.array([-1 if number is None else number for number in found])
    outside = (numbers < 0) | (numbers >= samples)
    if outside.any():
        first = int(outside.argmax())
        got = np.asarray(values[first]).tolist()
        raise ValueError(f"{name}[{first}]: got {got!r}; accepted: integers from 0 to {samples - 1}")
    return numbers.astype(np.int64)

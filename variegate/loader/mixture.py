"""Sources mixed by weight: ``Mixture``, and the order of an epoch of one, without a count of each sample before.

The sources of positions 0, 1, 2, ... are a sequence in which each source has occurred as often as its weight says,
wherever it is cut. Of n positions the first source has its share, rounded down from a random start; of the remaining
positions the second source has its share, and so forth. Every ``_BLOCK`` positions are permuted, so that neither ranks
nor batches meet a rhythm. The draws of a source are numbered as they come, through all epochs: draw j of a source of n
samples is place ``j % n`` of the permutation of pass ``j // n``. The samples before a position therefore follow from
the weights of the epochs so far.
"""

from __future__ import annotations

import math
import os
import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from variegate.arrays import Int64Array, UInt32Array, UInt64Array
from variegate.checks import as_numbers, did_you_mean, integer, refused
from variegate.data.base import (
    Item,
    SampleRef,
    SourceError,
    digest_of,
)
from variegate.data.labels import NO_LABEL
from variegate.data.opening import new_notes, open_source
from variegate.data.samples import Samples, Store, no_labels
from variegate.io.addresses import redact_text
from variegate.loader.shuffle import Order, OrderPurpose, permute_within, random_words
from variegate.policies import MultiView, load_policy
from variegate.transforms import Compose, Cond, Transform

Indices = Int64Array

_BLOCK = 64
# Of the weights' proportions; products with positions stay within int64.
_BITS = 26
_MOST_SAMPLES = 1 << 36
_STOPS = ("first_exhausted", "all_exhausted")


class EpochWeights(NamedTuple):
    """Weights of all sources, from the beginning of ``epoch`` on."""

    epoch: int
    weights: tuple[float, ...]


class Mixture(Samples):
    """Samples of several sources in proportion to weights, for ``vg.Loader(mixture, transform)``.

    Each source is visited in a random order without repetition until all of its samples were used, also across epochs,
    and then in another order. Batches tell the source of each row (``Batch.source``).

    Args:
        sources: names with their sources: anything that ``vg.open_source`` accepts. All shards are indexed now.
        weights: probability of each source, in any unit: one number per source, or a mapping {name: number}. None means
            the number of its samples. A schedule is a mapping {epoch: weights} with an entry for epoch 0.
        transforms: transforms of samples of some sources, by name, applied before the Loader's transform.
        stop: end of an epoch: "first_exhausted" when all samples of one source were used in it, "all_exhausted" when
            all samples of every source were, or a number of samples.

    Labels index the united ``classes`` if sources name their classes: the same name is the same class. If no source
    names classes, labels are unchanged. Ids are positions in the concatenation of all sources. ``T.Cond("source",
    {name: transform})`` chooses a transform by source within any other.

    Raises:
        ValueError, TypeError, SourceError: naming the argument, its value and accepted values.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        weights: Any = None,
        transforms: Mapping[str, Any] | None = None,
        *,
        stop: Literal["first_exhausted", "all_exhausted"] | int = "first_exhausted",
    ) -> None:
        if not isinstance(sources, Mapping) or not sources or not all(isinstance(name, str) for name in sources):
            raise TypeError(f"sources: got {type(sources).__name__}; accepted: a dict {{name: source}}, not empty")
        self.names = tuple(sources)
        self.sources = tuple(_open(name, source) for name, source in sources.items())
        self.sizes = tuple(map(len, self.sources))
        self.starts = np.cumsum([0, *self.sizes])
        self.schedule = _schedule(self.sizes if weights is None else weights, self.names)
        self.transforms = _transforms(transforms or {}, self.names)
        if isinstance(stop, str):
            if stop not in _STOPS:
                raise refused("stop", stop, f"{', '.join(map(repr, _STOPS))} or a number{did_you_mean(stop, _STOPS)}")
            self.stop: int | str = stop
        else:
            self.stop = integer("stop", stop, 1, _MOST_SAMPLES)
        self._open_store()

    def _open_store(self) -> None:
        """Build one table of samples from ``sources``."""
        store = _MixtureStore(self)
        super().__init__(
            place=", ".join(self.names),
            size=int(self.starts[-1]),
            store=store,
            classes=store.classes,
            label=no_labels,
            is_remote=any(source.is_remote for source in self.sources),
            is_decoded=all(source.is_decoded for source in self.sources),
            has_targets=any(source.has_targets for source in self.sources),
            has_edges=any(source.has_edges for source in self.sources),
            has_image_labels=any(source.has_image_labels for source in self.sources),
        )

    def check_targets(self) -> None:
        """Raise SourceError if targets are not of one kind in all sources."""
        for name in ("has_targets", "has_image_labels", "has_edges"):
            found = [getattr(source, name) for source in self.sources]
            if len(set(found)) > 1:
                raise SourceError(
                    f"sources: {name} is {', '.join(map(str, found))} of {', '.join(self.names)}; accepted: targets in "
                    "all of them, of one kind, or in none, or targets=False"
                )

    def source_of(self, ids: UInt64Array) -> Indices:
        """The numbers of the samples' sources, int64[N], in the order of ``names``."""
        return np.searchsorted(self.starts, ids.astype(np.int64), "right") - 1

    def transform_with(self, transform: Transform) -> Transform:
        """Run the Loader's transform after the transforms of single sources."""
        if self.transforms and isinstance(transform, MultiView):
            got = "transforms of sources with several views"
            raise ValueError(f"transforms: got {got}; accepted: T.Cond('source', ...) in the transforms of views")
        return Compose([Cond("source", self.transforms), transform]) if self.transforms else transform

    def with_targets(self, *written: Any) -> Mixture:
        made = copy(self)
        made.sources = tuple(source.with_targets(*written) for source in self.sources)
        made._open_store()
        return made


class _MixtureStore(Store):
    """Rows of several Samples, one after another, with the labels of all classes."""

    def __init__(self, mixture: Mixture) -> None:
        self._names = mixture.names
        self._sources = mixture.sources
        self._starts = mixture.starts
        self._stop = mixture.stop
        self.classes, self._tables = _unite(dict(zip(self._names, self._sources, strict=True)))

    def digest(self, samples: Samples) -> str:
        """Digest of the names, the sources and the end of an epoch, without weights and transforms."""
        named = zip(self._names, self._sources, strict=True)
        return digest_of(str(self._stop), *(f"\0{name}\0{source.fingerprint}" for name, source in named))

    def read(self, samples: Samples, row: int) -> Item:
        number, place = self._place(row)
        item = self._sources[number].read(place)
        if not self.classes:
            return item
        if isinstance(item.label, (int, np.integer)):
            item = item._replace(label=int(self._united(number, np.asarray(item.label))))
        labels = None if item.targets is None else np.asarray(item.targets.get("labels", ()))
        if labels is not None and labels.dtype.kind in "iu":
            united = self._united(number, labels)
            item = item._replace(targets={**cast("dict[str, Any]", item.targets), "labels": united})
        return item

    def _united(self, number: int, labels: Indices) -> Indices:
        """A source's ``labels`` among all classes. Raises ValueError for one outside the classes that it names."""
        table = self._tables[number]
        if (outside := (labels < NO_LABEL) | (labels > len(table) - 2)).any():
            label = labels[outside].item(0)
            name = self._names[number]
            last = len(table) - 2
            accepted = f"0 to {last}, for its classes, or {NO_LABEL} for none"
            raise ValueError(f"sources[{name!r}]: a sample has the label {label}; accepted: {accepted}")
        return table[labels]

    def name(self, row: int) -> SampleRef:
        number, place = self._place(row)
        file, member = self._sources[number].name(place)
        return SampleRef(file, None if member is None else f"{member} of {self._names[number]}")

    def notes(self) -> list[str]:
        named = zip(self._names, self._sources, strict=True)
        return [f"{name}: {note}" for name, source in named for note in source.notes()]

    def _place(self, row: int) -> tuple[int, int]:
        number = int(np.searchsorted(self._starts, row, "right")) - 1
        return number, int(row - self._starts[number])


def _open(name: str, given: Any) -> Samples:
    source = open_source(given, stream=False)
    if isinstance(source, Mixture):
        raise SourceError(f"sources[{name!r}]: got a mixture; accepted: anything else that vg.open_source accepts")
    if not len(source):
        raise SourceError(f"sources[{name!r}]: has no samples")
    for note in new_notes(source, given):
        warnings.warn(redact_text(f"sources[{name!r}]: {note}"), stacklevel=5)
    return source


def _unite(sources: dict[str, Samples]) -> tuple[tuple[str, ...], list[Indices]]:
    """All classes, and of each source its labels' places in them, that of NO_LABEL last."""
    classes = tuple(dict.fromkeys(name for source in sources.values() for name in source.classes))
    if unnamed := [name for name, source in sources.items() if classes and not source.classes]:
        raise SourceError(
            f"sources[{unnamed[0]!r}]: names no classes, and others do, such as {classes[0]!r}; accepted: names in all "
            "of them (open_source(..., classes=[...]), or an attribute `classes` of a data set), or in none"
        )
    places = {name: number for number, name in enumerate(classes)}
    return classes, [np.array([*map(places.__getitem__, each.classes), NO_LABEL]) for each in sources.values()]


def _transforms(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Transform]:
    made = {}
    for name, transform in given.items():
        _check_name("transforms", name, names)
        found = load_policy(transform) if isinstance(transform, (str, os.PathLike)) else transform
        if not isinstance(found, (Transform, list, tuple)) or isinstance(found, MultiView):
            raise TypeError(f"transforms[{name!r}]: got {found!r}; accepted: a transform of one image, or a list")
        made[name] = found if isinstance(found, Transform) else Compose(found)
    return made


def _check_name(argument: str, name: Any, names: Sequence[str]) -> None:
    if name not in names:
        accepted = ", ".join(map(repr, names))
        raise ValueError(f"{argument}: got {name!r}; accepted: the sources {accepted}{did_you_mean(name, names)}")


def _schedule(given: Any, names: Sequence[str]) -> tuple[EpochWeights, ...]:
    """The weights of the epochs, in order. ``given``: weights, or a mapping of epochs to weights."""
    if not isinstance(given, Mapping) or all(isinstance(key, str) for key in given):
        given = {0: given}
    schedule = sorted(_epoch_weights(epoch, weights, names) for epoch, weights in given.items())
    if schedule[0].epoch:
        raise ValueError("weights: none for epoch 0; accepted: a mapping {0: weights, later epochs: weights}")
    return tuple(schedule)


def _epoch_weights(epoch: Any, given: Any, names: Sequence[str]) -> EpochWeights:
    """Raises ValueError."""
    epoch = integer("weights: epoch", epoch, 0)
    values: Any = given
    if isinstance(given, Mapping):
        for name in given:
            _check_name("weights", name, names)
        if absent := [name for name in names if name not in given]:
            accepted = "one for each source, 0 for none of its samples"
            raise ValueError(f"weights: none for {absent[0]!r}; accepted: {accepted}")
        values = [given[name] for name in names]
    numbers = as_numbers(values)
    if numbers is None or len(numbers) != len(names) or min(numbers) < 0 or not 0 < sum(numbers) < math.inf:
        accepted = f"{len(names)} numbers from 0 on, not all of them 0: one for each of {', '.join(map(repr, names))}"
        raise refused("weights", given, accepted)
    return EpochWeights(epoch, tuple(map(float, numbers)))


class MixedOrder(Order):
    """The order of an epoch. ``drawn``: draws of each source in the epochs before."""

    length: int

    def __init__(
        self, mixture: Mixture, epoch_weights: EpochWeights, seed: int, epoch: int, drawn: Sequence[int]
    ) -> None:
        self._seed = seed
        self._epoch = epoch
        self._sizes = np.array(mixture.sizes)
        self._starts = mixture.starts
        passes, places = zip(*map(divmod, drawn, mixture.sizes), strict=True)
        # A number of 32 bits keys a pass.
        self._passes = np.array([number % (1 << 31) for number in passes])
        self._places = np.array(places)
        weights = self._weights = epoch_weights.weights
        words = random_words(0, len(weights), seed, epoch_weights.epoch, OrderPurpose.SOURCES)[:, 0]
        self._phases = (words >> (32 - _BITS)).tolist()
        self._ratios = []
        one = 1 << _BITS
        for number, weight in enumerate(weights):
            later = sum(weights[number + 1 :])
            ratio = max(round(weight / (weight + later) * one), 1) if weight else 0
            self._ratios.append(min(ratio, one - 1) if later else ratio)
        self.length = mixture.stop if isinstance(mixture.stop, int) else self._find_end(mixture.stop)
        self.taken = np.array(self._counts(self.length), np.int64)  # draws of each source in this epoch

    def at(self, positions: Indices) -> tuple[Indices, UInt32Array]:
        sources, draws_before = self._sources(positions)
        draws = draws_before[np.arange(len(sources)), sources]
        sizes = self._sizes[sources]
        rounds, places = np.divmod(self._places[sources] + draws, sizes)
        passes = (self._passes[sources] + rounds) * len(self._sizes) + sources
        members = permute_within(places, sizes, passes, self._seed, 0, OrderPurpose.PASSES)
        return self._starts[sources] + members, rounds.astype(np.uint32)

    def _find_end(self, stop: str) -> int:
        """Position at which the first source, or the last, is used up. Raises ValueError if it is too far away."""
        ends = [
            bisect_left(range(_MOST_SAMPLES), size, key=lambda first: self._counts(first)[source])
            for source, size in enumerate(self._sizes.tolist())
            if self._weights[source]
        ]
        end = min(ends) if stop == "first_exhausted" else max(ends)
        if end >= _MOST_SAMPLES:
            got = f"{stop!r}, which by the weights {self._weights} takes more than {_MOST_SAMPLES:,} samples"
            raise ValueError(f"stop: got {got}; accepted: a number of samples")
        return end

    def _counts(self, first: Any) -> list[Any]:
        """Draws of each source among the ``first`` positions before any is permuted: numbers, or arrays of them."""
        found = []
        for ratio, phase in zip(self._ratios, self._phases, strict=True):
            taken = first * ratio + phase >> _BITS
            found.append(taken)
            first = first - taken
        return found

    def _sources(self, positions: Indices) -> tuple[Indices, Indices]:
        """-> the source at each position, int64[N]; draws of each source before it, int64[N, K]."""
        blocks, block_of = np.unique(positions // _BLOCK, return_inverse=True)
        lengths = np.minimum(self.length - blocks * _BLOCK, _BLOCK).repeat(_BLOCK)
        places = np.minimum(np.tile(np.arange(_BLOCK), len(blocks)), lengths - 1)
        keys = self._seed, self._epoch, OrderPurpose.BLOCKS
        permuted = permute_within(places, lengths, blocks.repeat(_BLOCK), *keys).reshape(-1, _BLOCK)
        counts = np.stack(self._counts(blocks[:, None] * _BLOCK + np.arange(_BLOCK + 1)), -1)
        is_drawn = np.take_along_axis(np.diff(counts, axis=1), permuted[..., None], 1)
        until = counts[:, :1] + is_drawn.cumsum(1) - is_drawn
        at = block_of, positions % _BLOCK
        return is_drawn[at].argmax(-1), until[at]


class MixtureOrders:
    """The orders of all epochs of a mixture. Raises ValueError if an epoch would not end."""

    def __init__(self, mixture: Mixture, seed: int) -> None:
        self._mixture = mixture
        self._seed = seed
        for weights in mixture.schedule:
            self._order(weights.epoch)

    def digest(self) -> str:
        """Digest of the weights of all epochs."""
        return digest_of(repr([tuple(weights) for weights in self._mixture.schedule]))

    def order_of(self, epoch: int) -> MixedOrder:
        drawn = [0] * len(self._mixture.sizes)
        changes = {weights.epoch for weights in self._mixture.schedule if weights.epoch < epoch}
        # From one change to the next, all epochs draw the same numbers.
        for first, end in pairwise(sorted({epoch, *changes})):
            taken = self._order(first).taken
            if self._mixture.stop == "all_exhausted":  # an epoch uses whole passes, and begins with new ones
                taken = -(-taken // self._mixture.sizes) * self._mixture.sizes
            drawn = [before + (end - first) * number for before, number in zip(drawn, taken.tolist(), strict=True)]
        return self._order(epoch, drawn)

    def _order(self, epoch: int, drawn: Sequence[int] | None = None) -> MixedOrder:
        epoch_weights = max(weights for weights in self._mixture.schedule if weights.epoch <= epoch)
        return MixedOrder(self._mixture, epoch_weights, self._seed, epoch, drawn or [0] * len(self._mixture.sizes))

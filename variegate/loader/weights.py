"""Weighted sampling: the same draws for any number of ranks, without a list of them.

Samples of one class (or of one weight) form a group. The number of an epoch's draws from each group is decided by
systematic sampling of the groups in a random order (Madow 1949, doi:10.1214/aoms/1177729988; random orders: Hartley and
Rao 1962, doi:10.1214/aoms/1177704564). Their expected numbers are laid end to end, and every whole number from a random
start on is a draw. Draw j of a group of n goes to place ``j % n`` of a random permutation of its samples, as copy ``j
// n``. So a group gets its expected number of draws rounded up or down, and so does every sample of it, without bias:
the mean over epochs is exact. Independent draws would have the same mean, but skip a third of the samples in an epoch
even if all weights are equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Float64Array, Int64Array, UInt32Array
from variegate.checks import as_integer, number
from variegate.data.base import digest_of
from variegate.data.labels import NO_LABEL
from variegate.data.samples import Samples
from variegate.loader.shuffle import Order, OrderPurpose, Permutation, permute_within, random_words

_ACCEPTED = "one number for each sample or each class, a mapping {class: weight}, or None"
_NUMBERS = "finite numbers from 0 on, not all of them 0"


class Groups:
    """Group of each sample, int[N] from 0 on, and weight of each group, float64[G]: 0 or more, any sum."""

    def __init__(self, group_of: Int64Array, mass: Float64Array) -> None:
        self.mass = mass
        self.members = np.argsort(group_of, kind="stable")
        self.sizes = np.bincount(group_of, minlength=len(mass)).astype(np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def digest(self) -> str:
        return digest_of(self.members.tobytes(), self.sizes.tobytes(), self.mass.tobytes())


class DrawnOrder(Order):
    """The order of an epoch of ``length`` draws."""

    def __init__(self, groups: Groups, length: int, seed: int, epoch: int) -> None:
        self.length, self._groups, self._seed, self._epoch = length, groups, seed, epoch
        number = len(groups.mass)
        self._order = Permutation(number, seed, epoch, OrderPurpose.GROUPS)(np.arange(number))
        reached = np.cumsum(groups.mass[self._order])
        # Multiplied before it is divided: with whole numbers for weights both are exact.
        expected = reached * length / reached[-1]
        word = int(random_words(0, 1, seed, epoch, OrderPurpose.START)[0, 0])
        # End of each group among the draws 0..length-1.
        self._ends = np.ceil(expected - (word + 0.5) * 2.0**-32).astype(np.int64).clip(0, length)
        self._shuffled = Permutation(length, seed, epoch, OrderPurpose.DRAWS)

    def at(self, positions: Int64Array) -> tuple[Int64Array, UInt32Array]:
        draws = self._shuffled(positions)
        places = np.searchsorted(self._ends, draws, "right")
        begins = np.where(places > 0, self._ends[places - 1], 0)
        groups = self._order[places]
        sizes = self._groups.sizes[groups]
        rounds, within = np.divmod(draws - begins, sizes)
        members = permute_within(within, sizes, groups, self._seed, self._epoch)
        return self._groups.members[self._groups.starts[groups] + members], rounds.astype(np.uint32)


def groups_of(weights: Any, source: Samples) -> Groups:
    """Raises ValueError or TypeError naming the weight, or the class, that is not accepted."""
    if isinstance(weights, str):
        if weights != "balanced":
            raise ValueError(f"weights: got {weights!r}; accepted: 'balanced', {_ACCEPTED}")
        labels = _labels(source, is_complete=True)
        _, group_of = np.unique(labels, return_inverse=True)
        return Groups(group_of.reshape(-1), np.ones(int(group_of.max()) + 1))
    if isinstance(weights, Mapping):
        return _by_class(weights, _labels(source), source)
    numbers = _numbers(weights)
    classes = len(source.classes) or _number_of_classes(_known_labels(source))
    if len(numbers) == len(source) == classes and not np.array_equal(_known_labels(source), np.arange(classes)):
        raise ValueError(
            f"weights: got {len(numbers):,} numbers for {len(source):,} samples of {classes:,} classes, one each of "
            "either; accepted here: {class: weight}"
        )
    if len(numbers) == len(source):
        # Samples of equal weight share a group, and within it only their order takes memory.
        values, group_of, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        return _checked(group_of.reshape(-1), values, counts)
    if len(numbers) == classes:
        labels = _labels(source, is_complete=True)
        return _by_class(dict(enumerate(numbers.tolist())), labels, source)
    of_classes = "" if classes is None else f", {classes:,} (one for each class)"
    raise ValueError(
        f"weights: got {len(numbers):,} numbers; accepted: {len(source):,} (one for each sample){of_classes}, a "
        "mapping {class: weight}, or 'balanced'"
    )


def _numbers(weights: Any) -> Float64Array:
    try:
        array = np.asarray(weights)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"weights: got {type(weights).__name__} ({error}); accepted: {_ACCEPTED}") from error
    if array.dtype.kind not in "biuf" or array.ndim != 1:
        got = type(weights).__name__ if array.ndim == 0 else f"{array.dtype} of shape {array.shape}"
        raise TypeError(f"weights: got {got}; accepted: {_ACCEPTED}, or 'balanced'")
    numbers = array.astype(np.float64)
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(f"weights[{first}]: got {numbers[first]}; accepted: {_NUMBERS}")
    return numbers


def _by_class(weights: Mapping[Any, Any], labels: Int64Array, source: Samples) -> Groups:
    by_label: dict[int, float] = {}
    for key, value in weights.items():
        label = _label_of(key, source.classes)
        weight = number(f"weights[{key!r}]", value, 0, accepted=_NUMBERS)
        if label in by_label:
            raise ValueError(f"weights[{key!r}]: class {label} is there twice; accepted: each class once")
        by_label[label] = float(weight)
    present, group_of, counts = np.unique(labels, return_inverse=True, return_counts=True)
    for label, count in zip(present.tolist(), counts.tolist(), strict=True):
        if label not in by_label:
            named = f" ({source.classes[label]!r})" if 0 <= label < len(source.classes) else ""
            what = f"samples without a label ({NO_LABEL})" if label == NO_LABEL else f"class {label}{named}"
            raise ValueError(
                f"weights: none for {what}, of which there are {count:,} samples; accepted: a weight for every "
                "class, 0 to leave one out"
            )
    values = np.array([by_label[label] for label in present.tolist()])
    return _checked(group_of.reshape(-1), values, counts)


def _checked(group_of: Int64Array, values: Float64Array, counts: Int64Array) -> Groups:
    with np.errstate(over="ignore"):
        groups = Groups(group_of, values * counts)
        total = groups.mass.sum()
    if total == 0:
        raise ValueError(f"weights: all samples have weight 0; accepted: {_NUMBERS}")
    if not np.isfinite(total):
        raise ValueError("weights: their sum is infinite; accepted: smaller numbers, as only proportions count")
    return groups


def _label_of(key: Any, classes: Sequence[str]) -> int:
    if isinstance(key, str):
        if key not in classes:
            names = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
            accepted = names or "labels, as classes have no names here"
            raise ValueError(f"weights: got class {key!r}; accepted: {accepted}")
        return classes.index(key)
    label = as_integer(key)
    if label is None:
        raise ValueError(f"weights: got {key!r} for a class; accepted: its name or its label (an integer)")
    if classes and not NO_LABEL <= label < len(classes):
        accepted = f"0 to {len(classes) - 1}, or {NO_LABEL} for samples without a label"
        raise ValueError(f"weights: got class {key!r}; accepted: {accepted}")
    return label


def _labels(source: Samples, is_complete: bool = False) -> Int64Array:
    """The class of every sample, without reading one; ``is_complete``: each has one."""
    labels = _known_labels(source)
    if labels is None:
        raise ValueError(
            f"weights: {source!r} does not tell the classes of its samples without reading them (a method "
            "labels(indices)); accepted: one number for each sample"
        )
    if labels.dtype.kind not in "iub" or labels.ndim != 1:
        raise ValueError(
            f"weights: labels are {labels.dtype}{list(labels.shape)}, which are no classes; accepted: one number for "
            "each sample"
        )
    labels = labels.astype(np.int64)
    unlabelled = np.flatnonzero(labels == NO_LABEL)
    if is_complete and len(unlabelled):
        raise ValueError(
            f"weights: {len(unlabelled):,} samples have no label, the first is {source.name(int(unlabelled[0]))}; "
            f"accepted: labels for all, or a mapping with {{{NO_LABEL}: 0}} to leave these out"
        )
    return labels


def _known_labels(source: Samples) -> Any:
    found = source.labels(np.arange(len(source), dtype=np.int64))
    return None if found is None else np.asarray(found)


def _number_of_classes(labels: AnyArray | None) -> int | None:
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu" or labels.max() < 0:
        return None
    return int(labels.max()) + 1

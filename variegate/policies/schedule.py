"""Schedules of Population Based Augmentation: which policy in which epochs (Ho et al. 2019, arXiv 1905.05393)."""

from __future__ import annotations

import bisect
import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from variegate.checks import did_you_mean, integer, number, one_of
from variegate.errors import PolicyError
from variegate.policies.custom_space import CustomSpace, magnitudes
from variegate.policies.spaces import DATA, SPACES, Space, space

FORMAT = "variegate-schedule/1"
KEYS = ("format", "source", "space", "fill", "operations", "epochs", "segments")
Rounding = Literal["cumulative", "reference"]
ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)
PUBLISHED_SCHEDULES = ("pba-cifar10", "pba-svhn")
COPIES = 2

Tuple3 = tuple[str, float, int]


@dataclass(frozen=True)
class Segment:
    """One ``policy`` for ``epochs`` epochs: tuples of (operation, probability 0..1, magnitude 0..9)."""

    epochs: int
    policy: tuple[Tuple3, ...]


@dataclass(frozen=True)
class Schedule:
    """Policies by epoch: ``segments`` one after another.

    ``space`` is the magnitude space, by name or with operations of your own, ``source`` the origin of the schedule.
    ``fill`` is the color of emptied pixels that a search trained with, (red, green, blue) from 0 to 255; None for the
    magnitude space's own.
    """

    segments: tuple[Segment, ...]
    space: str | CustomSpace = "pba"
    source: str = ""
    fill: tuple[int, int, int] | None = None

    @property
    def epochs(self) -> int:
        return sum(segment.epochs for segment in self.segments)

    @property
    def has_base_augment(self) -> bool:
        """True if crop, flip and cutout are part of the schedule, so that a training adds none of its own."""
        return isinstance(self.space, CustomSpace) and bool(self.space.base_augment_names)

    def segment_at(self, epoch: int) -> int:
        """Return the index of the segment of ``epoch`` (from 0); after the end, the last."""
        ends = list(itertools.accumulate(segment.epochs for segment in self.segments))
        return min(bisect.bisect_right(ends, epoch), len(ends) - 1)

    def is_idle_at(self, epoch: int) -> bool:
        """Return True if the policy of ``epoch`` does nothing, as in a search's first epochs."""
        return all(probability == 0 for _, probability, _ in self.segments[self.segment_at(epoch)].policy)

    def scaled(self, epochs: int, rounding: Rounding = "cumulative") -> Schedule:
        """Scale the schedule to a training of ``epochs`` epochs.

        ``rounding``: "cumulative" moves every boundary to the nearest whole epoch, so that none is off by more than
        half an epoch. "reference" is arcelien/pba's method: each policy gets ``int(n * epochs / self.epochs)`` epochs,
        in floating point. The last one gets the rest, which can be many times its share in a short training. Both drop
        policies of no epoch.

        Raises ValueError for less than one epoch and for another name.
        """
        epochs = integer("epochs", epochs, 1)
        one_of("rounding", rounding, ROUNDINGS)
        old = self.epochs
        if rounding == "reference":
            factor = epochs / old
            lengths = [int(segment.epochs * factor) for segment in self.segments]
            lengths[-1] += epochs - sum(lengths)
        else:
            ends = itertools.accumulate(segment.epochs for segment in self.segments)
            # The nearest integer, in integers: half an epoch goes to the policy before.
            bounds = [0, *((2 * end * epochs + old) // (2 * old) for end in ends)]
            lengths = [end - start for start, end in itertools.pairwise(bounds)]
        kept = [replace(s, epochs=n) for s, n in zip(self.segments, lengths, strict=True) if n > 0]
        return replace(self, segments=tuple(kept))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON format "variegate-schedule/1"."""
        return {
            "format": FORMAT,
            "source": self.source,
            "space": self.space if isinstance(self.space, str) else self.space.to_dict(),
            **({} if self.fill is None else {"fill": list(self.fill)}),
            "operations": list(dict.fromkeys(op for segment in self.segments for op, _, _ in segment.policy)),
            "epochs": self.epochs,
            "segments": [{"epochs": s.epochs, "policy": [list(t) for t in s.policy]} for s in self.segments],
        }


def schedule_from_dict(described: Mapping[str, Any], where: str = "schedule") -> Schedule:
    """The inverse of ``Schedule.to_dict``. Raises PolicyError with the path to the first bad key."""
    if described.get("format") != FORMAT:
        raise PolicyError(f"{where}.format", described.get("format"), repr(FORMAT))
    if unknown := set(described) - set(KEYS):
        raise PolicyError(f"{where}.{min(unknown)}", described[min(unknown)], ", ".join(KEYS))
    name = described.get("space", "pba")
    if isinstance(name, Mapping):
        name = CustomSpace.from_dict(name, f"{where}.space")
    elif not isinstance(name, str) or name not in SPACES:
        accepted = f"one of {', '.join(SPACES)}, or an object with operations{did_you_mean(name, SPACES)}"
        raise PolicyError(f"{where}.space", name, accepted)
    segments = described.get("segments")
    if not isinstance(segments, (list, tuple)) or not segments:
        raise PolicyError(f"{where}.segments", segments, 'a list of at least one {"epochs": n, "policy": [...]}')
    schedule = Schedule(
        segments=tuple(_segment(s, f"{where}.segments[{i}]", name) for i, s in enumerate(segments)),
        space=name,
        source=str(described.get("source", "")),
        fill=fill_from(described.get("fill"), f"{where}.fill"),
    )
    if described.get("epochs", schedule.epochs) != schedule.epochs:
        raise PolicyError(f"{where}.epochs", described["epochs"], f"{schedule.epochs}, the sum over the segments")
    return schedule


def fill_from(value: Any, where: str = "fill") -> tuple[int, int, int] | None:
    """A color as JSON has it, or None. Raises PolicyError."""
    if value is None:
        return None
    is_list = isinstance(value, (list, tuple)) and len(value) == 3
    if not is_list or not all(type(level) is int and 0 <= level <= 255 for level in value):
        raise PolicyError(where, value, "three integers from 0 to 255 (red, green, blue), or none at all")
    return value[0], value[1], value[2]


def _segment(described: Any, where: str, own: str | CustomSpace) -> Segment:
    if not isinstance(described, Mapping):
        raise PolicyError(where, described, 'an object {"epochs": n, "policy": [...]}')
    epochs, policy = described.get("epochs"), described.get("policy")
    epochs = integer(f"{where}.epochs", epochs, 1, accepted="a positive integer", error=PolicyError)
    if not isinstance(policy, (list, tuple)):
        raise PolicyError(f"{where}.policy", policy, "a list of [operation, probability, magnitude]")
    found = tuple(_tuple(t, f"{where}.policy[{i}]", magnitudes(own)) for i, t in enumerate(policy))
    names = [op for op, _, _ in found]
    twice = [op for op in (own.base_augment_names if isinstance(own, CustomSpace) else ()) if names.count(op) > 1]
    if twice:
        raise PolicyError(f"{where}.policy", f"{twice[0]} twice", "crop, flip and cutout once each")
    return Segment(epochs, found)


def _tuple(described: Any, where: str, known: Space) -> Tuple3:
    if not isinstance(described, (list, tuple)) or len(described) != 3:
        raise PolicyError(where, described, "[operation, probability, magnitude]")
    op, p, magnitude = described
    if not isinstance(op, str) or op not in known.rules:
        raise PolicyError(f"{where}[0]", op, f"an operation of the space {known.name}: {', '.join(known.rules)}")
    probability = number(f"{where}[1]", p, 0, 1, accepted="a probability from 0 to 1", error=PolicyError)
    return op, float(probability), integer(f"{where}[2]", magnitude, 0, known.bins - 1, error=PolicyError)


@functools.cache
def published_schedule(name: str) -> Schedule:
    """A schedule of ``PUBLISHED_SCHEDULES``: the results of the paper's searches on CIFAR-10 (200 epochs) and SVHN
    (160)."""
    return schedule_from_dict(json.loads((DATA / f"{name}.json").read_text(encoding="utf-8")), name)


def policy_from_numbers(numbers: Sequence[int], operations: Sequence[str] | None = None) -> tuple[Tuple3, ...]:
    """Two integers per tuple, a probability 0..10 and a magnitude -> a policy.

    ``operations``: that of each tuple; None: the reference's 15, twice, and so 60 integers.
    """
    operations = list(space("pba").default) * COPIES if operations is None else operations
    if len(numbers) != 2 * len(operations):
        raise ValueError(f"policy_from_numbers: {len(numbers)} numbers; accepted: {2 * len(operations)}")
    pairs = zip(operations, numbers[0::2], numbers[1::2], strict=True)
    return tuple((op, probability / 10, magnitude) for op, probability, magnitude in pairs)

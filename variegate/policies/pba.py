"""Applying a schedule of Population Based Augmentation to images (Ho et al. 2019, arXiv 1905.05393, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from variegate.checks import one_of
from variegate.errors import PolicyError
from variegate.ops.arguments import BLACK, ArgumentError, Fill, InterpolationName, checks
from variegate.ops.base import set_field
from variegate.policies.augmentation import entries_of
from variegate.policies.emptied import PairStep, ReferencePairs
from variegate.policies.schedule import PUBLISHED_SCHEDULES, Schedule, published_schedule, schedule_from_dict
from variegate.policies.spaces import SPACES, space
from variegate.policies.table import Index, OperationTable, Policy
from variegate.program import rng
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# How many operations an image gets at most: 0, 1 or 2 (the reference also lists 3, with probability 0).
COUNT_PROBABILITIES = (0.2, 0.3, 0.5)
_COUNT_EDGES = np.cumsum(COUNT_PROBABILITIES)[:-1]
_MOST = len(COUNT_PROBABILITIES) - 1


@dataclass(frozen=True)
class PBA(Policy):
    """A schedule of policies; the epoch of the batch chooses the policy, past the end the last one.

    ``schedule``: "pba-cifar10", "pba-svhn", a ``Schedule``, or its dict (the JSON format "variegate-schedule/1"). An
    image gets a count of 0, 1 or 2 with probabilities 0.2, 0.3 and 0.5; the policy's tuples are walked in random order,
    each fires with its own probability, until the count is used up. ``space`` overrides the schedule's magnitude space:
    "pba" is in pixels of 32-pixel images, "pba-relative" the same in fractions of the image. ``fill``: None is the
    schedule's own, the mean of the images that it was searched on; where it has none, as the published ones, the
    reference's (125, 122, 113), CIFAR-10's mean.

    ``emptied``: what becomes of pixels that a geometric operation or a cutout empties. "filled": they get the fill at
    once, and an operation that follows sees it as any other colour. "reference": as arcelien/pba has it, where they are
    black until the policy is done, and then get the mean, unless Invert, Equalize, AutoContrast, Posterize or Solarize
    came after; see ``emptied.py``. The two differ in 49 of the 225 pairs of operations, those of a geometric operation
    with one of the nine on colours and those of Cutout with Brightness, Color, Contrast and Sharpness, by 10 levels on
    average there. "reference" wants nearest interpolation and the reference's 15 operations. The reference fills the
    mean as a float, (125.31, 122.95, 113.87), 0 once normalised; bytes are up to 0.95 levels below, or 0.015 below 0.

    Raises ArgumentError for arguments out of range, PolicyError for a bad schedule. Paper: arXiv 1905.05393.
    """

    schedule: str | Schedule | Mapping[str, Any] = "pba-cifar10"
    space: str | None = None
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    emptied: Literal["filled", "reference"] = "filled"
    _checks = checks(
        space=partial(one_of, choices=(None, *SPACES)), emptied=partial(one_of, choices=("filled", "reference"))
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        schedule = self.schedule
        if isinstance(schedule, Mapping):
            try:
                schedule = schedule_from_dict(schedule)
            except PolicyError as error:
                raise ArgumentError(self, error.where, error.got, error.accepted) from error
            set_field(self, "schedule", schedule)
        is_published = isinstance(schedule, str) and schedule in PUBLISHED_SCHEDULES
        if not isinstance(schedule, Schedule) and not is_published:
            names = ", ".join(map(repr, PUBLISHED_SCHEDULES))
            raise ArgumentError(self, "schedule", schedule, f"{names}, or a schedule's dict")
        if self.emptied == "reference":
            others = [entry.name for entry in self._table.entries if entry.name not in space("pba").default]
            if others or self.interpolation != "nearest":
                why = f"with {others[0]} in the schedule" if others else f"with interpolation={self.interpolation!r}"
                raise ArgumentError(self, "emptied", "reference", f"'filled' {why}")
        set_field(self, "num_slots", self._draw_slots + self._table.num_slots * _MOST)

    def to_dict(self) -> dict[str, Any]:
        described = super().to_dict()
        if isinstance(self.schedule, Schedule):
            described["schedule"] = self.schedule.to_dict()
        return described

    @computed_once
    def resolved(self) -> Schedule:
        """The schedule itself, also where it was given by name."""
        return self.schedule if isinstance(self.schedule, Schedule) else published_schedule(str(self.schedule))

    @computed_once
    def _longest(self) -> int:
        return max(1, *(len(segment.policy) for segment in self.resolved.segments))

    @property
    def _draw_slots(self) -> int:
        """A number per tuple, one for the count and one for the signs, four to a slot."""
        return -(-(self._longest + 2) // 4)

    @computed_once
    def _table(self) -> OperationTable:
        source = space(self.space or self.resolved.space)
        names = dict.fromkeys(op for segment in self.resolved.segments for op, _, _ in segment.policy)
        entries = entries_of(self, "schedule", list(names) or [source.default[0]], source)
        return self._table_of(entries, self.resolved.fill or source.fill)

    @computed_once
    def _pairs(self) -> ReferencePairs:
        return ReferencePairs(self._table, OperationTable(self._table.entries, self.interpolation, BLACK))

    @computed_once
    def _policies(self) -> list[tuple[Index, Floats, Floats]]:
        """Per segment and [tuple]: its operation, its probability, and [tuple, 2] its argument with either sign."""
        position = {entry.name: i for i, entry in enumerate(self._table.entries)}
        bins = space(self.space or self.resolved.space).bins
        grid = self._table.grid(range(bins)).reshape(len(position), 2, bins)
        policies = []
        for segment in self.resolved.segments:
            index = np.array([position[op] for op, _, _ in segment.policy], np.intp)
            probability = np.array([p for _, p, _ in segment.policy], np.float64)
            level = np.array([magnitude for _, _, magnitude in segment.policy], np.intp)
            policies.append((index, probability, grid[index, :, level]))
        return policies

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        index, probability, parameter = self._policies[self.resolved.segment_at(sampling.epoch)]
        # A tuple that fires can only come from those with a probability; most of a young policy has none.
        possible = np.flatnonzero(probability)
        if len(possible) == 0 or len(rows) == 0:
            return
        words = sampling.words(rows, slot, self._draw_slots).reshape(len(rows), -1)
        count = np.searchsorted(_COUNT_EDGES, rng.to_unit(words[:, self._longest]), side="right")
        signs = words[:, self._longest + 1]
        # A tuple fires where u < p. Of those that fire, u / p is uniform and independent of the firing, so that it can
        # serve as their place in the shuffled list: the first ``count`` are those with the smallest.
        place = rng.to_unit(words[:, possible]) / probability[possible]
        steps = []
        for step in range(_MOST):
            first = np.argmin(place, axis=1)
            found = place[np.arange(len(rows)), first] < 1.0
            fires = np.flatnonzero(found & (step < count))
            chosen = possible[first[fires]]
            negative = (signs[fires] >> np.uint32(31 - step)) & 1
            own = slot + self._draw_slots + step * self._table.num_slots
            if self.emptied == "filled":
                self._table.emit(sampling, rows[fires], index[chosen], parameter[chosen, negative], own)
            else:
                steps.append(PairStep(np.full(len(rows), -1), np.zeros(len(rows)), own))
                steps[step].entry[fires], steps[step].parameter[fires] = index[chosen], parameter[chosen, negative]
            place[np.arange(len(rows)), first] = np.inf
        if steps:
            self._pairs.emit(sampling, rows, *steps)

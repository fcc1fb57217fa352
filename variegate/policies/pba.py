"""Applying a schedule of Population Based Augmentation to images (Ho et al. 2019, arXiv 1905.05393, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from variegate.errors import PolicyError
from variegate.ops.arguments import ArgumentError, Fill, InterpolationName
from variegate.ops.base import set_field
from variegate.ops.crop import add_shift
from variegate.ops.schema import OneOf
from variegate.policies.augmentation import entries_of
from variegate.policies.custom_space import CustomSpace, magnitudes
from variegate.policies.schedule import PUBLISHED_SCHEDULES, Schedule, Tuple3, published_schedule, schedule_from_dict
from variegate.policies.spaces import SPACES, Rule, Space
from variegate.policies.table import Entry, Index, OperationTable, Policy, emission_of, emit_cutout
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import minimum
from variegate.program.ops import Op
from variegate.program.sampling import Floats
from variegate.threads import computed_once

# Largest number of operations per image: 0, 1 or 2 (the reference also lists 3, with probability 0).
COUNT_PROBABILITIES = (0.2, 0.3, 0.5)
_COUNT_EDGES = np.cumsum(COUNT_PROBABILITIES)[:-1]
_MOST = len(COUNT_PROBABILITIES) - 1
# Crop, flip and cutout: whether they are applied, and where the crop and the cutout are.
_BASE_AUGMENT_SLOTS = 3
_NOTHING = Entry("Identity", emission_of("Identity"), Rule())


@dataclass(frozen=True)
class PBA(Policy):
    """Apply a schedule of policies, one per epoch (Population Based Augmentation, Ho et al. 2019, arXiv:1905.05393).

    Each image gets a count of 0, 1 or 2 with probabilities 0.2, 0.3 and 0.5. The policy's operations are tried in
    random order, each with its own probability, until the count is used up. After the schedule's end, its last policy
    applies. Crop, flip and cutout of a schedule (``Schedule.has_base_augment``) do not count: crop and flip come first,
    cutout last, each with its own probability.

    Args:
        schedule: "pba-cifar10", "pba-svhn", a ``Schedule``, or its dict (the JSON format "variegate-schedule/1").
        space: overrides the schedule's named magnitude space: "pba" is in pixels of 32-pixel images, "pba-relative" the
            same as fractions of the image.
        fill: None is the schedule's own, the mean of the images that it was searched on. The published schedules have
            none and get the reference's (125, 122, 113), CIFAR-10's mean.

    Pixels that a geometric operation or a cutout empties get the fill immediately, and later operations change it as
    any other color. In arcelien/pba, they are black until the policy is done, which changes 3 to 4 % of the pixels.

    Raises PolicyError for an invalid schedule.
    """

    schedule: str | Schedule | Mapping[str, Any] = "pba-cifar10"
    space: Annotated[str, OneOf(SPACES)] | None = None
    interpolation: InterpolationName = "nearest"
    fill: Fill | None = None

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
        if self.space is not None and isinstance(self.resolved.space, CustomSpace):
            raise ArgumentError(self, "space", self.space, "None, as the schedule has operations of its own")
        set_field(self, "num_slots", self._first_base_augment + _BASE_AUGMENT_SLOTS * bool(self._base_augment))

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
    def _space(self) -> Space:
        return magnitudes(self.space or self.resolved.space)

    @computed_once
    def _base_augment(self) -> tuple[str, ...]:
        """Names of the steps around the operations that are drawn."""
        return self.resolved.space.base_augment_names if isinstance(self.resolved.space, CustomSpace) else ()

    @computed_once
    def _counted(self) -> list[list[Tuple3]]:
        """The tuples of each segment without those."""
        return [
            [one for one in segment.policy if one[0] not in self._base_augment] for segment in self.resolved.segments
        ]

    @computed_once
    def _longest(self) -> int:
        return max(1, *map(len, self._counted))

    @property
    def _draw_slots(self) -> int:
        """A number per tuple, one for the count and one for the signs, four to a slot."""
        return -(-(self._longest + 2) // 4)

    @computed_once
    def _table(self) -> OperationTable:
        names = dict.fromkeys(op for policy in self._counted for op, _, _ in policy)
        entries = entries_of(self, "schedule", list(names), self._space)
        return self._table_of(entries or [_NOTHING], self.resolved.fill or self._space.fill)

    @computed_once
    def _policies(self) -> list[tuple[Index, Floats, Floats]]:
        """Per segment and [tuple]: its operation, its probability, and [tuple, 2] its argument with either sign."""
        position = {entry.name: i for i, entry in enumerate(self._table.entries)}
        bins = self._space.bins
        grid = self._table.grid(range(bins)).reshape(len(position), 2, bins)
        policies = []
        for policy in self._counted:
            index = np.array([position[op] for op, _, _ in policy], np.intp)
            probability = np.array([p for _, p, _ in policy], np.float64)
            level = np.array([magnitude for _, _, magnitude in policy], np.intp)
            policies.append((index, probability, grid[index, :, level]))
        return policies

    @property
    def _first_base_augment(self) -> int:
        """The first slot of crop, flip and cutout."""
        return self._draw_slots + self._table.num_slots * _MOST

    @computed_once
    def _base_augment_steps(self) -> list[dict[str, tuple[float, float]]]:
        """Probability and strength of each enabled step of Crop, Flip and Cutout, per segment."""
        rules = self._space.rules
        return [
            {op: (p, rules[op].argument(float(m))) for op, p, m in segment.policy if op in self._base_augment and p > 0}
            for segment in self.resolved.segments
        ]

    def draw(self, image: DrawContext, slot: int) -> None:
        if not self._base_augment:
            self._draw_counted(image, slot)
            return
        steps, first = self._base_augment_steps[self.resolved.segment_at(image.epoch)], slot + self._first_base_augment
        if "Crop" in steps:
            probability, share = steps["Crop"]
            if chosen := image.by_chance(probability, first):
                add_shift(chosen, share, first + 1)
        if "Flip" in steps and (chosen := image.by_chance(steps["Flip"][0] / 2, first, 1)):
            chosen.add(Op.HFLIP)
        self._draw_counted(image, slot)
        if "Cutout" in steps:
            probability, share = steps["Cutout"]
            if chosen := image.by_chance(probability, first, 2):
                emit_cutout(chosen, share * minimum(image.height, image.width), first + 2, self._table.fill)

    def _draw_counted(self, image: DrawContext, slot: int) -> None:
        index, probability, parameter = self._policies[self.resolved.segment_at(image.epoch)]
        # Only tuples with a probability can fire; most tuples of a young policy have none.
        possible = np.flatnonzero(probability)
        if len(possible) == 0:
            return
        count = image.search(_COUNT_EDGES, image.uniform(slot, self._longest))
        signs = image.word(slot, self._longest + 1)
        # A tuple fires where u < p. For tuples that fire, u / p is uniform and independent of the firing, so it serves
        # as their position in the shuffled list: the first ``count`` are the tuples with the smallest.
        places = [image.uniform(slot, i) / probability[i] for i in possible.tolist()]
        order = image.argsort(places)
        for step in range(min(_MOST, len(possible))):
            place = image.choose(order[step], places)
            if fires := image.where((place < 1.0) & (step < count)):
                chosen = image.lookup(possible, order[step])
                negative = signs // 2.0 ** (31 - step) % 2
                own = slot + self._draw_slots + step * self._table.num_slots
                argument = image.lookup(parameter, 2 * chosen + negative)
                self._table.add(fires, image.lookup(index, chosen), argument, own)

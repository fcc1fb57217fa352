"""Applying a schedule of Population Based Augmentation to images (Ho et al. 2019, arXiv 1905.05393, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.checks import one_of
from variegate.errors import PolicyError
from variegate.ops.arguments import BLACK, ArgumentError, Fill, InterpolationName, checks
from variegate.ops.base import set_field
from variegate.ops.crop import emit_shifts
from variegate.ops.erase import emit_rectangles
from variegate.policies.augmentation import entries_of
from variegate.policies.own import OwnSpace, magnitudes
from variegate.policies.schedule import PUBLISHED_SCHEDULES, Schedule, Tuple3, published_schedule, schedule_from_dict
from variegate.policies.spaces import SPACES, Rule, Space, space
from variegate.policies.table import Entry, Index, OperationTable, Policy, emission_of, emit_cutout
from variegate.program import rng
from variegate.program.lowering.maps import geometry_to_maps
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.places import ONE
from variegate.program.program import Output
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# How many operations an image gets at most: 0, 1 or 2 (the reference also lists 3, with probability 0).
COUNT_PROBABILITIES = (0.2, 0.3, 0.5)
_COUNT_EDGES = np.cumsum(COUNT_PROBABILITIES)[:-1]
_MOST = len(COUNT_PROBABILITIES) - 1
# Crop, flip and cutout: whether they are applied, and where the crop and the cutout are.
_SLOTS_AROUND = 3
_NOTHING = Entry("Identity", emission_of("Identity"), Rule())


class Emptiness(IntEnum):
    """Effect of an operation on empty pixels."""

    NONE = 0
    MOVES = 1  # empties; what is empty stays so, and moves
    CUTS = 2
    OPAQUE = 3  # makes of an empty pixel what it makes of its colour
    EACH = 4  # of every pixel by itself; what is empty stays so
    SEES = 5  # what is empty stays so, but has a part in the others


_BY_KIND = {
    Kind.GEOMETRY: Emptiness.MOVES,
    Kind.VALUE: Emptiness.EACH,
    Kind.STATISTIC: Emptiness.SEES,
    Kind.NEIGHBOURHOOD: Emptiness.SEES,
}


def emptiness_of(entry: Entry) -> Emptiness:
    """Of an operation of PBA."""
    if entry.emission.is_opaque:
        return Emptiness.OPAQUE
    # A cutout is the one that emits rectangles of its own.
    return Emptiness.CUTS if entry.emission.emitter else _BY_KIND[SPECS[entry.emission.opcode].kind]


class PairStep(NamedTuple):
    """Operation (-1: none) and argument of every row; the operation's own chances come from ``slot`` on."""

    entry: Index
    parameter: Floats
    slot: int


@dataclass(frozen=True)
class ReferencePairs:
    """Pairs of operations as arcelien/pba applies them; ``table`` fills with the mean, ``black`` with black.

    Its images are RGBA. What a geometric operation or a cutout empties is transparent, and whatever is transparent in
    the end becomes the data set's mean. Until then such pixels are black (those of a cutout have the mean's colour):
    the mean that Contrast takes and Sharpness's neighbourhoods see that, and operations that are opaque (Invert,
    Equalize) drop the transparency, so that inverted black stays in the picture. Images have no fourth channel
    here; a pair is emitted so that the same pixels come out.
    """

    table: OperationTable
    black: OperationTable

    def emit(self, sampling: Sampling, rows: Rows, first: PairStep, second: PairStep) -> None:
        """Append both operations to each of ``rows``; there is no second where there is no first."""
        kinds = np.array([*map(emptiness_of, self.table.entries), Emptiness.NONE])
        one, two = kinds[first.entry], kinds[second.entry]
        is_emptied = (one == Emptiness.MOVES) | (one == Emptiness.CUTS)
        # Filled with the mean after an operation on every pixel by itself, which then does not meet it.
        swapped = is_emptied & (two == Emptiness.EACH)
        shown = (one == Emptiness.MOVES) & ((two == Emptiness.OPAQUE) | (two == Emptiness.SEES))
        filled_again = is_emptied & (two == Emptiness.SEES)

        def emit(table: OperationTable, chosen: npt.NDArray[np.bool_], step: PairStep) -> None:
            at = np.flatnonzero(chosen)
            if len(at):
                table.emit(sampling, rows[at], step.entry[at], step.parameter[at], step.slot)

        emit(self.table, swapped, second)
        emit(self.black, shown, first)
        emit(self.table, (first.entry >= 0) & ~shown, first)
        emit(self.table, (second.entry >= 0) & ~swapped, second)
        emit(self.table, filled_again & (one == Emptiness.CUTS), first)  # the same place: it has the same slot
        self._fill(sampling, rows, np.flatnonzero(filled_again & (one == Emptiness.MOVES)), first)

    def _fill(self, sampling: Sampling, rows: Rows, at: Index, step: PairStep) -> None:
        """Give the mean to what the geometric operations of ``step`` have emptied."""
        if len(at) == 0:
            return
        rows = rows[at]
        shapes = np.column_stack([sampling.size[rows], sampling.shape[rows, 2]]).astype(np.int32)
        alone = Sampling(shapes, np.zeros(len(rows), np.uint64), rng.stream_key(0, 0), 0)
        self.table.emit(alone, np.arange(len(rows)), step.entry[at], step.parameter[at], 0)
        maps = geometry_to_maps(alone.finish(Output()))
        assert maps.window is not None
        found, owner = [], []
        for i, (height, width) in enumerate(shapes[:, :2].tolist()):
            rectangles = _outside(maps.opcode[i, 0], maps.args[i, 0], maps.window[i, 0], height, width)
            found.append(rectangles)
            owner.append(np.full(len(rectangles), i))
        emit_rectangles(
            sampling, rows, np.concatenate(found), np.concatenate(owner), self.table.fill, "Fill of emptied pixels"
        )


def _outside(
    opcode: np.int16, args: Floats, window: npt.NDArray[np.int32], height: int, width: int
) -> npt.NDArray[np.int64]:
    """int[2 height, 4]: what lies left and right of the pixels that a nearest affine map fills, line by line."""
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    a, b, c, d, e, f = args[:6]
    if opcode == Op.MAP_FIXED:
        u, v = (a * x + b * y + c) // ONE, (d * x + e * y + f) // ONE
    else:  # coordinates beyond 16.16, of images of ten thousands of pixels
        u, v = (np.floor(p * (x + 0.5) + q * (y + 0.5) + r) for p, q, r in ((a, b, c), (d, e, f)))
    top, left, bottom, right = window
    inside = (u >= left) & (u < right) & (v >= top) & (v < bottom)
    first = np.where(inside.any(axis=1), inside.argmax(axis=1), width)
    last = np.maximum(width - inside[:, ::-1].argmax(axis=1), first)
    line, one, none = np.arange(height), np.ones(height, np.int64), np.zeros(height, np.int64)
    before, after = (line, none, one, first), (line, last, one, width - last)
    return np.concatenate([np.column_stack(before), np.column_stack(after)]).astype(np.int64)


@dataclass(frozen=True)
class PBA(Policy):
    """Apply a schedule of policies, one per epoch (Population Based Augmentation, Ho et al. 2019, arXiv:1905.05393).

    Each image gets a count of 0, 1 or 2 with probabilities 0.2, 0.3 and 0.5. The policy's operations are tried in
    random order, each with its own probability, until the count is used up. After the schedule's end, its last policy
    applies. Crop, flip and cutout of a whole schedule (``Schedule.is_whole``) do not count: crop and flip come first,
    cutout last, each with its own probability.

    Args:
        schedule: "pba-cifar10", "pba-svhn", a ``Schedule``, or its dict (the JSON format "variegate-schedule/1").
        space: overrides the schedule's magnitude space, if that is one by name: "pba" is in pixels of 32-pixel images,
            "pba-relative" the same as fractions of the image.
        fill: None is the schedule's own, the mean of the images that it was searched on. The published schedules have
            none and get the reference's (125, 122, 113), CIFAR-10's mean.
        emptied: treatment of pixels that a geometric operation or a cutout empties. "filled": they get the fill
            immediately, and later operations change it as any other color. "reference": as in arcelien/pba, they are
            black until the policy is done and then get the mean, unless Invert, Equalize, AutoContrast, Posterize or
            Solarize followed (``ReferencePairs``). "reference" requires nearest interpolation and the reference's 15
            operations.

    The two treatments differ in 49 of the 225 pairs of operations, by 10 levels on average there: a geometric operation
    with one of the nine on colors, and Cutout with Brightness, Color, Contrast or Sharpness. The reference fills the
    mean as a float, (125.31, 122.95, 113.87), 0 once normalized; bytes are up to 0.95 levels below, or 0.015 below 0.

    Raises PolicyError for an invalid schedule.
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
        if self.space is not None and isinstance(self.resolved.space, OwnSpace):
            raise ArgumentError(self, "space", self.space, "None, as the schedule has operations of its own")
        if self.emptied == "reference":
            others = [entry.name for entry in self._table.entries if entry.name not in space("pba").default]
            others += self._around
            if others or self.interpolation != "nearest":
                why = f"with {others[0]} in the schedule" if others else f"with interpolation={self.interpolation!r}"
                raise ArgumentError(self, "emptied", "reference", f"'filled' {why}")
        set_field(self, "num_slots", self._first_around + _SLOTS_AROUND * bool(self._around))

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
    def _around(self) -> tuple[str, ...]:
        """Names of the steps around the operations that are drawn."""
        return self.resolved.space.names_around if isinstance(self.resolved.space, OwnSpace) else ()

    @computed_once
    def _counted(self) -> list[list[Tuple3]]:
        """The tuples of each segment without those."""
        return [[one for one in segment.policy if one[0] not in self._around] for segment in self.resolved.segments]

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
    def _pairs(self) -> ReferencePairs:
        return ReferencePairs(self._table, OperationTable(self._table.entries, self.interpolation, BLACK))

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
    def _first_around(self) -> int:
        """The first slot of crop, flip and cutout."""
        return self._draw_slots + self._table.num_slots * _MOST

    @computed_once
    def _steps_around(self) -> list[dict[str, tuple[float, float]]]:
        """Per segment, probability and strength of Crop, Flip and Cutout, of those that are on."""
        rules = self._space.rules
        return [
            {op: (p, float(rules[op].parameters(m))) for op, p, m in segment.policy if op in self._around and p > 0}
            for segment in self.resolved.segments
        ]

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if not self._around:
            return self._sample_drawn(sampling, rows, slot)
        steps, first = self._steps_around[self.resolved.segment_at(sampling.epoch)], slot + self._first_around
        unit = sampling.uniform(rows, first)
        if "Crop" in steps:
            probability, share = steps["Crop"]
            emit_shifts(sampling, rows[unit[:, 0] < probability], share, first + 1)
        if "Flip" in steps:
            sampling.emit(rows[unit[:, 1] < steps["Flip"][0] / 2], Op.HFLIP)
        self._sample_drawn(sampling, rows, slot)
        if "Cutout" in steps:
            probability, share = steps["Cutout"]
            chosen = rows[unit[:, 2] < probability]
            emit_cutout(sampling, chosen, share * sampling.size[chosen].min(axis=1), first + 2, self._table.fill)
        return None

    def _sample_drawn(self, sampling: Sampling, rows: Rows, slot: int) -> None:
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

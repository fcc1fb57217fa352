"""A policy whose magnitude is given with every image, by whoever knows how much each can take (``train --adapt``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from variegate.checks import integer
from variegate.ops.arguments import MAX_BINS, MAX_STEPS, ArgumentError, Fill, InterpolationName, checks, optional
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Said
from variegate.policies.augmentation import check_operations
from variegate.policies.table import Index, OperationTable, Policy
from variegate.policies.uniform import SPACE, RandAugment, SpaceName, table_of_space
from variegate.program.one_image import Images
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

# Of the values that are given with a batch.
MAGNITUDE = "magnitude"


@dataclass(frozen=True)
class AdaptiveRandAugment(Policy):
    """``RandAugment`` at a magnitude that is given with each image: ``conditions={"magnitude": magnitudes}``, numbers
    from 0 to 1 of every operation's range, rounded to the nearest of ``num_magnitude_bins``.

    An image is a function of (seed, epoch, id, magnitude). At b / (``num_magnitude_bins`` - 1) it is the very one that
    ``RandAugment(num_ops, b)`` makes; at 0 only the operations that have no magnitude change it, AutoContrast and
    Equalize. The other arguments are those of ``RandAugment``. One operation, at magnitudes by the confidence of a
    model, is EntAugment (arXiv 2409.06290).

    Raises ArgumentError for arguments out of range, and while sampling where no magnitude from 0 to 1 is given.
    """

    num_ops: int = 2
    num_magnitude_bins: int = 31
    interpolation: InterpolationName = "nearest"
    fill: Fill = None
    operations: Sequence[str | Transform | type[Transform]] | None = None
    space: SpaceName = "torchvision"
    _checks = checks(
        num_ops=partial(integer, low=0, high=MAX_STEPS),
        num_magnitude_bins=partial(integer, low=2, high=MAX_BINS),
        operations=optional(check_operations),
        space=SPACE,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        set_field(self, "num_slots", self.num_ops * (1 + self._table.num_slots))

    @computed_once
    def _table(self) -> OperationTable:
        return table_of_space(self, "randaugment")

    @computed_once
    def _grid(self) -> Floats:
        return self._table.grid(range(self.num_magnitude_bins))

    def draw(self, images: Images, slot: int) -> None:
        table, grid = self._table, self._grid
        (level,) = images.numbers(self._levels(images.sampling, images.rows)[:, None])
        for step in range(slot, slot + self.num_slots, 1 + table.num_slots):
            # One draw chooses both operation and sign.
            variant = images.whole(images.unit(step) * len(grid))
            table.add(images, variant >> 1, grid[variant, level], step + 1)

    def _levels(self, sampling: Sampling, rows: Rows) -> Index:
        """The bin of each row."""
        accepted = 'conditions={"magnitude": magnitudes}, one number from 0 to 1 per image'
        if MAGNITUDE not in sampling.given:
            raise ArgumentError(self, MAGNITUDE, Said("none given with this batch"), accepted)
        given = np.asarray(sampling.given[MAGNITUDE])
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            got = Said(f"an array of {given.dtype} with shape {given.shape}")
            raise ArgumentError(self, MAGNITUDE, got, accepted)
        magnitude = given[sampling.source[rows]].astype(np.float64)
        if not (is_good := (magnitude >= 0) & (magnitude <= 1)).all():
            raise ArgumentError(self, MAGNITUDE, Said(f"{magnitude[~is_good][0]:g}"), accepted)
        return np.rint(magnitude * (self.num_magnitude_bins - 1)).astype(np.intp)


def at_given_magnitude(policy: Transform) -> tuple[Transform, float | None]:
    """The policy with every ``RandAugment`` of it at given magnitudes -> that, and the magnitude of the first that is
    replaced; None where there is none. What holds an ``AdaptiveRandAugment`` already stays as it is."""
    starts: list[float] = []
    changed: Transform = _replaced(policy, starts)
    return changed, starts[0] if starts else None


def _replaced(value: Any, starts: list[float]) -> Any:
    """A transform, or what an argument of one is. Magnitudes that were there are appended to ``starts``."""
    if type(value) is RandAugment:
        starts.append(value.magnitude / (value.num_magnitude_bins - 1))
        return AdaptiveRandAugment(**{one.name: getattr(value, one.name) for one in fields(AdaptiveRandAugment)})
    before, made = len(starts), value
    if isinstance(value, Mapping):
        made = {key: _replaced(one, starts) for key, one in value.items()}
    elif isinstance(value, (list, tuple)):
        made = [_replaced(one, starts) for one in value]
    elif isinstance(value, Transform):
        named = {one.name: getattr(value, one.name) for one in fields(value) if one.init}  # type: ignore[arg-type]
        arguments = {name: _replaced(one, starts) for name, one in named.items()}
        if len(starts) > before:
            made = type(value)(**arguments)
    return made if len(starts) > before else value


def needs_magnitude(transform: Any) -> bool:
    """Whether there is an ``AdaptiveRandAugment`` in it."""
    if isinstance(transform, AdaptiveRandAugment):
        return True
    if isinstance(transform, Mapping):
        return any(map(needs_magnitude, transform.values()))
    if isinstance(transform, (list, tuple)):
        return any(map(needs_magnitude, transform))
    if not isinstance(transform, Transform):
        return False
    return any(needs_magnitude(getattr(transform, one.name)) for one in fields(transform))  # type: ignore[arg-type]


def refuse_given_magnitude(transform: Any, argument: str, accepted: str) -> None:
    """Raises ValueError for what needs magnitudes where nobody gives any."""
    if needs_magnitude(transform):
        got = "an AdaptiveRandAugment, whose magnitude is given with each image"
        raise ValueError(f"{argument}: got {got}; accepted here: {accepted}")

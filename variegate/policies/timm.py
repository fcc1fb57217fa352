"""RandAugment as timm defines it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, integer, number, one_of, refused
from variegate.ops.arguments import (
    FLAG,
    INTERPOLATIONS,
    MAX_STEPS,
    PROBABILITY,
    ArgumentError,
    Fill,
    InterpolationName,
    checks,
)
from variegate.ops.base import set_field
from variegate.policies.augmentation import entries_of
from variegate.policies.spaces import DATA, Rule, space
from variegate.policies.table import Index, OperationTable, Policy
from variegate.program import rng
from variegate.program.ops import Interpolation
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once

AnyInterpolation = InterpolationName | Literal["random"]


def check_deviation(name: str, value: Any, *, error: Refusal = refused) -> float:
    """A standard deviation, or infinity for "uniform", as timm writes it."""
    return float(value) if isinstance(value, float) and value == np.inf else _finite(name, value, error=error)


_finite = partial(number, low=0, high=1e6)


def check_any_interpolation(name: str, value: Any, *, error: Refusal = refused) -> str:
    """An interpolation's name, or "random": bilinear or bicubic, drawn for every operation."""
    return one_of(name, getattr(value, "value", value), ("random", *INTERPOLATIONS), error=error)


def noisy(level: npt.ArrayLike, deviation: float, words: npt.NDArray[np.uint32], most: float) -> Floats:
    """``level`` with Gaussian noise of ``deviation``, within 0 .. ``most``; infinity: uniform from 0 to ``level``.

    Draws from ``words[R, 4]``.
    """
    level = np.asarray(level, np.float64)
    if np.isinf(deviation):
        level = level * rng.to_unit(words)[:, 0]
    elif deviation > 0:
        level = level + deviation * rng.to_normal(words)[:, 0]
    return np.asarray(np.clip(np.broadcast_to(level, len(words)), 0.0, most))


def drawn_interpolation(unit: Floats) -> npt.NDArray[np.int16]:
    """Bicubic where ``unit[R]`` is below a half, else bilinear."""
    return np.where(unit < 0.5, Interpolation.BICUBIC, Interpolation.BILINEAR).astype(np.int16)


# timm's own boundary: a standard deviation above it means "uniform from 0 to the magnitude".
UNIFORM_ABOVE = 100.0


@functools.cache
def operation_sets() -> dict[str, dict[str, Any]]:
    """timm's named sets of operations: a list is drawn with replacement, weights without."""
    return dict(json.loads((DATA / "timm_sets.json").read_text(encoding="utf-8"))["sets"])


@dataclass(frozen=True)
class TimmRandAugment(Policy):
    """``num_ops`` operations one after another, each applied with probability ``p``, on timm's scale of 0 to 10.

    ``magnitude`` gets Gaussian noise of standard deviation ``magnitude_std`` per operation (over 100: uniform from 0 to
    ``magnitude``) and is clipped to 0 .. ``magnitude_max``. ``increasing`` takes the set in which every operation grows
    stronger with the magnitude. ``operations``: "default" (15, with replacement), "weights", "3a", "3aw" or "w0" (those
    with weights: without replacement). ``translate_pct``: the translation at level 10 as a fraction of the size.
    ``interpolation``: "random" (bilinear or bicubic per operation) or a fixed one. ``fill``: timm passes the mean of
    the data set, here 128 unless given.

    Posterize reaches 0 bits where noise pushes the level to 10 (increasing) or below 2.5 (plain): that is an all-zero
    image, as in the Pillow versions that timm was written for; Pillow 13 raises an error there.

    Raises ArgumentError for arguments out of range. Source: huggingface/pytorch-image-models timm/data/auto_augment.py.
    """

    magnitude: float = 10
    num_ops: int = 2
    p: float = 0.5
    magnitude_std: float = 0.0
    magnitude_max: float = 10
    increasing: bool = False
    operations: str = "default"
    translate_pct: float = 0.45
    interpolation: AnyInterpolation = "random"
    fill: Fill = None
    _checks = checks(
        magnitude=partial(number, low=0, high=1e6),
        p=PROBABILITY,
        magnitude_std=check_deviation,
        magnitude_max=partial(number, low=0, high=1e6),
        increasing=FLAG,
        operations=partial(one_of, choices=tuple(operation_sets())),
        translate_pct=partial(number, low=0, high=10),
        interpolation=check_any_interpolation,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        most = len(self._names) if self._weights is not None else MAX_STEPS
        set_field(self, "num_ops", integer("num_ops", self.num_ops, 0, most, error=partial(ArgumentError, self)))
        set_field(self, "num_slots", self._choice_slots + self.num_ops * self._step_slots)

    @property
    def _names(self) -> list[str]:
        return list(operation_sets()[self.operations]["operations"])

    @computed_once
    def _weights(self) -> Floats | None:
        chosen = operation_sets()[self.operations]["operations"]
        return np.array(list(chosen.values()), np.float64) if isinstance(chosen, dict) else None

    @property
    def _choice_slots(self) -> int:
        """A draw without replacement needs a number per operation."""
        return 0 if self._weights is None else -(-len(self._names) // 4)

    @property
    def _step_slots(self) -> int:
        # One for the operation, its chance, sign and interpolation, one for the noise.
        return 2 + self._table.num_slots

    @computed_once
    def _table(self) -> OperationTable:
        default = "timm-increasing" if self.increasing else "timm"
        source = space(operation_sets()[self.operations].get("space", default))
        entries = entries_of(self, "operations", self._names, source)
        scaled = [
            replace(entry, parameters=replace(entry.parameters, high=self.translate_pct))  # type: ignore[type-var]
            if entry.name.startswith("Translate")
            else entry
            for entry in entries
        ]
        return self._table_of(scaled, source.fill)

    @computed_once
    def _rules(self) -> Rule:
        return Rule.stack([entry.parameters for entry in self._table.entries])  # type: ignore[misc]

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        ordered = self._ordered(sampling, rows, slot) if self._weights is not None else None
        for step in range(self.num_ops):
            first = slot + self._choice_slots + step * self._step_slots
            draw = sampling.uniform(rows, first)
            if ordered is None:
                index = (draw[:, 0] * len(self._names)).astype(np.intp)
            else:
                index = ordered[:, step]
            fires = np.flatnonzero(draw[:, 1] < self.p)
            level = self._levels(sampling, rows[fires], first + 1)
            parameter = self._rules.take(index[fires]).parameters(level, draw[fires, 2] < 0.5)
            interpolation = drawn_interpolation(draw[fires, 3]) if self.interpolation == "random" else None
            self._table.emit(sampling, rows[fires], index[fires], parameter, first + 2, interpolation)

    def _levels(self, sampling: Sampling, rows: Rows, slot: int) -> Floats:
        deviation = np.inf if self.magnitude_std > UNIFORM_ABOVE else self.magnitude_std
        return noisy(self.magnitude, deviation, sampling.words(rows, slot)[:, 0], self.magnitude_max)

    def _ordered(self, sampling: Sampling, rows: Rows, slot: int) -> Index:
        """A weighted draw without replacement: the operations in the order of exponential clocks of their rates."""
        words = sampling.words(rows, slot, self._choice_slots).reshape(len(rows), -1)[:, : len(self._names)]
        with np.errstate(divide="ignore"):
            clocks = -np.log(rng.to_unit(words) + 2.0**-33) / self._weights
        return np.argsort(clocks, axis=1, kind="stable")[:, : self.num_ops]

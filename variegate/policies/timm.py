"""RandAugment as timm defines it: strings such as ``rand-m9-mstd0.5-inc1``."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from variegate.checks import Refusal, integer, number, one_of, refused
from variegate.errors import PolicyError
from variegate.policies.augmentation import entries_of
from variegate.policies.spaces import DATA, Rule, space
from variegate.policies.table import Index, OperationTable, Policy
from variegate.program import rng
from variegate.program.ops import Interpolation
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.threads import computed_once
from variegate.transforms.arguments import (
    FLAG,
    INTERPOLATIONS,
    MAX_STEPS,
    PROBABILITY,
    ArgumentError,
    Fill,
    InterpolationName,
    checks,
)
from variegate.transforms.base import set_field

# timm's own boundary: a standard deviation above it means "uniform from 0 to the magnitude".
UNIFORM_ABOVE = 100.0


@functools.cache
def operation_sets() -> dict[str, dict[str, Any]]:
    """timm's named sets of operations: a list is drawn with replacement, weights without."""
    return dict(json.loads((DATA / "timm_sets.json").read_text(encoding="utf-8"))["sets"])


def _deviation(name: str, value: Any, *, error: Refusal = refused) -> float:
    if isinstance(value, float) and value == np.inf:  # as timm writes "uniform"
        return value
    return number(name, value, 0, 1e6, error=error)


def _interpolation(name: str, value: Any, *, error: Refusal = refused) -> str:
    return one_of(name, getattr(value, "value", value), ("random", *INTERPOLATIONS), error=error)


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
    interpolation: InterpolationName | Literal["random"] = "random"
    fill: Fill = None
    _checks = checks(
        magnitude=partial(number, low=0, high=1e6),
        p=PROBABILITY,
        magnitude_std=_deviation,
        magnitude_max=partial(number, low=0, high=1e6),
        increasing=FLAG,
        operations=partial(one_of, choices=tuple(operation_sets())),
        translate_pct=partial(number, low=0, high=10),
        interpolation=_interpolation,
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
            interpolation = None
            if self.interpolation == "random":
                bicubic = draw[fires, 3] < 0.5
                interpolation = np.where(bicubic, Interpolation.BICUBIC, Interpolation.BILINEAR).astype(np.int16)
            self._table.emit(sampling, rows[fires], index[fires], parameter, first + 2, interpolation)

    def _levels(self, sampling: Sampling, rows: Rows, slot: int) -> Floats:
        if self.magnitude_std > UNIFORM_ABOVE:
            level = self.magnitude * sampling.uniform(rows, slot)[:, 0]
        elif self.magnitude_std > 0:
            noise = rng.to_normal(sampling.words(rows, slot)[:, 0])[:, 0]
            level = self.magnitude + self.magnitude_std * noise
        else:
            level = np.full(len(rows), float(self.magnitude))
        return np.clip(level, 0.0, self.magnitude_max)

    def _ordered(self, sampling: Sampling, rows: Rows, slot: int) -> Index:
        """A weighted draw without replacement: the operations in the order of exponential clocks of their rates."""
        words = sampling.words(rows, slot, self._choice_slots).reshape(len(rows), -1)[:, : len(self._names)]
        with np.errstate(divide="ignore"):
            clocks = -np.log(rng.to_unit(words) + 2.0**-33) / self._weights
        return np.argsort(clocks, axis=1, kind="stable")[:, : self.num_ops]


_KEYS = {
    "m": ("magnitude", float),
    "n": ("num_ops", int),
    "p": ("p", float),
    "mstd": ("magnitude_std", float),
    "mmax": ("magnitude_max", float),
}
_ACCEPTED = (
    "rand followed by -m<magnitude>, -n<operations>, -p<probability>, -mstd<deviation>, -mmax<magnitude>, -inc1, "
    "-t<set or translate fraction>, -w0; for example rand-m9-mstd0.5-inc1"
)


def parse_timm(text: str, where: str | None = None, **arguments: Any) -> TimmRandAugment:
    """``rand-m9-n2-p0.5-mstd0.5-mmax10-inc1-tweights`` -> TimmRandAugment; what is left out has timm's default.

    ``arguments`` (``fill``, ``interpolation``, ...) are passed on. ``-t`` names a set of operations ("weights", "3a",
    "3aw") or, as a number, gives ``translate_pct``; ``-w0`` is the older weighted set. Raises PolicyError for anything
    else, with the section of the string; ``inc0`` too, which timm itself reads as ``inc1``.
    """
    where = where or f"{text!r}"
    sections = text.split("-")
    if sections[0] != "rand":
        raise PolicyError(where, sections[0], _ACCEPTED)
    for section in sections[1:]:
        key, value = _section(section, where)
        if key in arguments:
            raise PolicyError(where, section, f"{key} once; it was set before. {_ACCEPTED}")
        arguments[key] = value
    try:
        return TimmRandAugment(**arguments)
    except ValueError as error:
        raise PolicyError(where, text, str(error)) from error


def _section(section: str, where: str) -> tuple[str, Any]:
    if section in ("inc1", "inc"):
        return "increasing", True
    if section == "inc0":
        raise PolicyError(where, section, "inc1, or nothing: timm itself reads inc0 as inc1")
    if section == "w0":
        return "operations", "w0"
    if section.startswith("t"):
        name = section[1:]
        if name in operation_sets():
            return "operations", name
        if re.fullmatch(r"[\d.]+", name):
            return "translate_pct", _number(section, name, float, where)
        raise PolicyError(where, section, f"t followed by {', '.join(operation_sets())}, or by a fraction of the size")
    match = re.fullmatch(r"([a-z]+)([\d.einf+]+)", section)
    if match is None or match[1] not in _KEYS:
        raise PolicyError(where, section, _ACCEPTED)
    argument, kind = _KEYS[match[1]]
    return argument, _number(section, match[2], kind, where)


def _number(section: str, text: str, kind: type, where: str) -> Any:
    try:
        number = kind(text)
    except ValueError as error:
        raise PolicyError(
            where, section, f"a whole number after n; {_ACCEPTED}" if kind is int else _ACCEPTED
        ) from error
    # 9.0 is written 9, so that the description reads like the string.
    return int(number) if number == int(min(number, 1e9)) else number

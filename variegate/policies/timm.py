"""RandAugment and AugMix as timm defines them, and the strings that name timm's policies."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from variegate.checks import integer
from variegate.errors import PolicyError
from variegate.ops.arguments import MAX_STEPS, ArgumentError, Fill, Probability
from variegate.ops.base import Transform, set_field
from variegate.ops.schema import OneOf, Range
from variegate.policies.augmentation import entries_of
from variegate.policies.augmix import ChainMixture
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.spaces import DATA, Deviation, noisy, space
from variegate.policies.table import AnyInterpolation, OperationTable, Policy
from variegate.policies.uniform import ThreeAugment
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, floor, log
from variegate.program.sampling import Floats
from variegate.threads import computed_once

# timm's own boundary: a standard deviation above it means "uniform from 0 to the magnitude".
UNIFORM_ABOVE = 100.0


@functools.cache
def operation_sets() -> dict[str, dict[str, Any]]:
    """timm's named sets of operations: a list is drawn with replacement, weights without."""
    return dict(json.loads((DATA / "timm_sets.json").read_text(encoding="utf-8"))["sets"])


@dataclass(frozen=True)
class TimmRandAugment(Policy):
    """Apply ``num_ops`` operations in sequence, each with probability ``p``, on timm's scale of 0 to 10.

    Args:
        magnitude: mean magnitude of an operation.
        magnitude_std: standard deviation of Gaussian noise per operation (over 100: uniform from 0 to ``magnitude``).
        magnitude_max: magnitudes are clipped to 0 .. ``magnitude_max``.
        increasing: use the set in which every operation grows stronger with the magnitude.
        operations: "default" (15, with replacement), or with weights and without replacement: "weights", "3a", "3aw" or
            "w0".
        translate_pct: translation at level 10 as a fraction of the size.
        interpolation: "random" (bilinear or bicubic per operation) or a fixed one.
        fill: None for 128; timm passes the mean of the data set.

    Posterize keeps 1 bit at level 10 (increasing) and below 2.5 (plain), where timm asks for 0 bits: with Pillow 13 an
    error, with earlier versions a black image. Source:
    huggingface/pytorch-image-models timm/data/auto_augment.py.
    """

    magnitude: Annotated[float, Range(0, 1e6)] = 10
    num_ops: int = 2
    p: Probability = 0.5
    magnitude_std: Deviation = 0.0
    magnitude_max: Annotated[float, Range(0, 1e6)] = 10
    increasing: bool = False
    operations: Annotated[str, OneOf(tuple(operation_sets()))] = "default"
    translate_pct: Annotated[float, Range(0.0, 10.0)] = 0.45
    interpolation: AnyInterpolation = "random"
    fill: Fill | None = None

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
        return _scaled_table(self, self._names, operation_sets()[self.operations].get("space", default))

    def draw(self, image: DrawContext, slot: int) -> None:
        ordered = None if self._weights is None else self._ordered(image, slot)
        deviation = math.inf if self.magnitude_std > UNIFORM_ABOVE else self.magnitude_std
        for step in range(self.num_ops):
            first = slot + self._choice_slots + step * self._step_slots
            index = floor(image.uniform(first) * len(self._names)) if ordered is None else ordered[step]
            if fires := image.by_chance(self.p, first, 1):
                level = noisy(fires, self.magnitude, deviation, first + 1, self.magnitude_max)
                argument = self._table.argument(fires, index, level, fires.uniform(first, 2) < 0.5)
                self._table.add(fires, index, argument, first + 2, self._drawn(fires.uniform(first, 3)))

    def _ordered(self, image: DrawContext, slot: int) -> list[Number]:
        """A weighted draw without replacement: the operations in the order of exponential clocks of their rates."""
        assert self._weights is not None
        clocks = [
            -log(image.uniform(slot, i) + 2.0**-33) / rate if rate > 0 else math.inf
            for i, rate in enumerate(self._weights.tolist())
        ]
        return image.argsort(clocks)


def _scaled_table(policy: Any, names: Sequence[str], space_name: str) -> OperationTable:
    """Table of timm's operations ``names``, with translations that end at the policy's ``translate_pct``."""
    source = space(space_name)
    table: OperationTable = policy._table_of(
        [
            replace(entry, rule=replace(entry.rule, high=policy.translate_pct))
            if entry.name.startswith("Translate")
            else entry
            for entry in entries_of(policy, "operations", names, source)
        ],
        source.fill,
    )
    return table


# timm's thirteen: the paper's operations and the enhancements, in the set that grows stronger with the magnitude.
_NAMES = (
    "AutoContrast",
    "Color",
    "Contrast",
    "Brightness",
    "Sharpness",
    "Equalize",
    "Rotate",
    "Posterize",
    "Solarize",
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
)


@dataclass(frozen=True)
class TimmAugMix(ChainMixture):
    """Blend the image with ``mixture_width`` chains of operations, on timm's scale of 0 to 10.

    Args:
        magnitude: magnitudes are uniform from 0 to this, or with a finite ``magnitude_std`` normal about it, within 0
            to 10.
        mixture_width: number of chains, each applied to the same image.
        chain_depth: operations per chain, each drawn uniformly from thirteen; -1 for one to three, uniform.
        alpha: the mixture's weight is Beta(``alpha``, ``alpha``); chains share it by Dirichlet(``alpha``, ...).
        magnitude_std: standard deviation of noise on the magnitude.
        translate_pct: translation at level 10 as a fraction of the size.
        interpolation: "random" (bilinear or bicubic per operation) or a fixed one.
        fill: None for 128; timm passes the mean of the data set.

    The sum is truncated to uint8 once, where timm also truncates the mixture: up to one level lower. Only flips, crops,
    pads, erasing and Normalize may follow. Source: huggingface/pytorch-image-models timm/data/auto_augment.py.
    """

    magnitude: Annotated[float, Range(0.0, 10.0)] = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    magnitude_std: Deviation = math.inf
    translate_pct: Annotated[float, Range(0.0, 10.0)] = 0.3
    interpolation: AnyInterpolation = "random"
    fill: Fill | None = None
    # The operation, its sign and its interpolation; its level.
    _step_slots = 2

    @computed_once
    def _table(self) -> OperationTable:
        return _scaled_table(self, _NAMES, "timm-increasing")

    def draw_step(self, image: DrawContext, slot: int) -> None:
        index = floor(image.uniform(slot) * len(_NAMES))
        level = noisy(image, self.magnitude, self.magnitude_std, slot + 1, 10.0)
        argument = self._table.argument(image, index, level, image.uniform(slot, 1) < 0.5)
        self._table.add(image, index, argument, slot + self._step_slots, self._drawn(image.uniform(slot, 2)))


# timm's AutoAugment policies: the published table and the space that make them. "v0" alone is TensorFlow's.
_TABLES: dict[str, tuple[Any, str]] = {
    "original": ("imagenet", "timm-original"),
    "originalr": ("imagenet", "timm-research"),
    "v0": ("v0", "timm"),
    "v0r": ("v0", "timm-research"),
    "3a": ([[["Solarize", 1, 5]], [["Desaturate", 1, 10]], [["GaussianBlurRand", 1, 10]]], "timm"),
}


def _auto_augment(name: str, **arguments: Any) -> Transform:
    if name == "3a" and not arguments:
        return ThreeAugment()
    policy, space = _TABLES[name]
    return AutoAugment(policy, **{"interpolation": "random", "space": space, **arguments})


# By a string's first section: the policy, accepted values, and keys followed by a number.
_NUMBERS: dict[str, tuple[str, type]] = {"m": ("magnitude", float), "mstd": ("magnitude_std", float)}
_RAND = {"n": ("num_ops", int), "p": ("p", float), "mmax": ("magnitude_max", float), "t": ("translate_pct", float)}
_AUGMIX = {"w": ("mixture_width", int), "d": ("chain_depth", int), "a": ("alpha", float)}
_KINDS: dict[str, tuple[Callable[..., Transform], str, dict[str, tuple[str, type]]]] = {
    "rand": (
        TimmRandAugment,
        "rand followed by -m<magnitude>, -n<operations>, -p<probability>, -mstd<deviation>, -mmax<magnitude>, "
        "-inc1, -t<set or translate fraction>, -w0; for example rand-m9-mstd0.5-inc1",
        _NUMBERS | _RAND,
    ),
    "augmix": (
        TimmAugMix,
        "augmix followed by -m<magnitude>, -w<width>, -d<depth>, -a<alpha>, -b<0 or 1>, -mstd<deviation>; "
        "for example augmix-m5-w4-d2",
        _NUMBERS | _AUGMIX,
    ),
}
_OF_TABLES = f"{', '.join(_TABLES)} followed by -mstd<deviation> or nothing; for example original-mstd0.5"
_KINDS |= {name: (partial(_auto_augment, name), _OF_TABLES, {"mstd": _NUMBERS["mstd"]}) for name in _TABLES}
# By kind, sections without a number and their argument; and refused sections, with accepted values.
_WORDS: dict[str, dict[str, tuple[str, Any]]] = {
    "rand": {
        **dict.fromkeys(("inc1", "inc"), ("increasing", True)),
        **{"w0": ("operations", "w0"), **{f"t{name}": ("operations", name) for name in operation_sets()}},
    }
}
_REFUSED = {
    ("rand", r"inc0"): "inc1, or nothing: older versions of timm read inc0 as inc1",
    ("rand", r"t(?![\d.]+\Z)[^-]*"): f"t followed by {', '.join(operation_sets())}, or by a fraction of the size",
    ("augmix", r"d0?"): "d followed by 1 or more, or no d: one to three at random",
}
EXAMPLES = "rand-m9-mstd0.5-inc1, augmix-m5-w4-d2 or original-mstd0.5"


def is_timm(text: str) -> bool:
    """True if ``text`` begins as one of timm's strings."""
    return text.split("-")[0] in _KINDS


def parse_timm(text: str, where: str | None = None, **arguments: Any) -> Transform:
    """Parse timm's policy string; missing sections have timm's defaults.

    - ``rand-m9-n2-p0.5-mstd0.5-mmax10-inc1-tweights``: TimmRandAugment. ``-t`` names a set of operations ("weights",
      "3a", "3aw") or, as a number, gives ``translate_pct``; ``-w0`` is the older weighted set.
    - ``augmix-m3-w3-d2-a1-mstd0.5``: TimmAugMix. ``-b1`` blends chain by chain in timm, with the same weights, and
      truncates as often: up to a level for each chain.
    - ``original``, ``originalr``, ``v0``, ``v0r``, with ``-mstd0.5`` or not: AutoAugment in timm's magnitudes, with
      timm's interpolation. ``3a``: ThreeAugment, and with ``-mstd`` AutoAugment.

    ``arguments`` (``fill``, ``interpolation``, ...) are passed on. Raises PolicyError for anything else, with the
    section of the string; ``inc0`` too, which older versions of timm read as ``inc1``.
    """
    where = where or f"{text!r}"
    first, *sections = text.split("-")
    if first not in _KINDS:
        raise PolicyError(where, first, _KINDS["rand"][1])
    make, accepted, _ = _KINDS[first]
    for section in sections:
        if first == "augmix" and section in ("b0", "b1"):
            continue
        key, value = _argument(first, section, where)
        if key in arguments:
            raise PolicyError(where, section, f"{key} once; it was set before. {accepted}")
        arguments[key] = value
    try:
        return make(**arguments)
    except ValueError as error:
        raise PolicyError(where, text, str(error)) from error


def _argument(kind: str, section: str, where: str) -> tuple[str, Any]:
    if (word := _WORDS.get(kind, {}).get(section)) is not None:
        return word
    for (of, pattern), instead in _REFUSED.items():
        if of == kind and re.fullmatch(pattern, section):
            raise PolicyError(where, section, instead)
    _, accepted, keys = _KINDS[kind]
    match = re.fullmatch(r"([a-z]+)([\d.einf+]+)", section)
    if match is None or match[1] not in keys:
        raise PolicyError(where, section, accepted)
    argument, number_type = keys[match[1]]
    try:
        number = number_type(match[2])
    except ValueError as error:
        whole = f"a whole number after {match[1]}; {accepted}"
        raise PolicyError(where, section, whole if number_type is int else accepted) from error
    # 9.0 is written 9, so that the description reads like the string.
    return argument, int(number) if number == int(min(number, 1e9)) else number

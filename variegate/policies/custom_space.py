"""Magnitude spaces of chosen operations with crop, flip and cutout: the operations that a search draws from."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from variegate.checks import did_you_mean, number, one_of
from variegate.errors import PolicyError
from variegate.ops.arguments import MAX_ENTRIES, ArgumentError
from variegate.ops.base import Transform
from variegate.ops.custom import CustomOp
from variegate.ops.description import from_dict
from variegate.ops.magnitude import MagnitudeOp, WithProbability
from variegate.policies.augmentation import Augmentation, default_augmentation, entry_of, has_magnitude
from variegate.policies.spaces import SPACES, Rule, Space, space
from variegate.policies.table import EMISSIONS, Emission
from variegate.program.ops import Op
from variegate.threads import computed_once

# Crop and flip come before the operations that an image draws, cutout after them.
BASE_AUGMENT = ("Crop", "Flip", "Cutout")
FORMS = "Name, Name:low..high or Name:low..high:signed; a custom operation is module:Class"
_TEXT = re.compile(r"(?P<name>[\w.]+(:[^\W\d]\w*)?)(:(?P<low>[^:]+)\.\.(?P<high>[^:]+?)(?P<signed>:signed)?)?")
_KEYS = ("base", "operations", "crop", "flip", "cutout")


@dataclass(frozen=True)
class CustomSpace:
    """A magnitude space of chosen operations.

    Args:
        base: the magnitude space that defines levels and names.
        operations: names of ``base`` and Augmentations. Text such as "Rotate:0..45:signed", classes and transforms
            become Augmentations.
        crop: largest padding of a random crop, as a share of the shorter side from 0 to 1; 0 for no crop.
        flip: whether images are mirrored, half of them at probability 1.
        cutout: largest side of a cutout, as a share of the shorter side from 0 to 1; 0 for no cutout.

    An image may get Crop, Flip and Cutout besides the operations that it draws. In a policy, each has a probability and
    a magnitude of its own.

    Raises PolicyError.
    """

    base: str = "pba-relative"
    operations: tuple[Any, ...] = ()
    crop: float = 0.0
    flip: bool = False
    cutout: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.base, str) or self.base not in SPACES:
            raise PolicyError("space", self.base, f"one of {', '.join(SPACES)}{did_you_mean(self.base, SPACES)}")
        for name in ("crop", "cutout"):
            share = number(name, getattr(self, name), 0, 1, error=PolicyError)
            object.__setattr__(self, name, float(share))
        one_of("flip", self.flip, (True, False), error=PolicyError)
        if not isinstance(self.operations, (list, tuple)) or len(self.operations) > MAX_ENTRIES:
            raise PolicyError("operations", self.operations, "a list of operations")
        taken = set(self.base_augment_names)
        operations = []
        for i, given in enumerate(self.operations):
            operation = known_operation(given, space(self.base), f"operations[{i}]")
            name = name_of(operation)
            if name in taken:
                accepted = "each name once; crop, flip and cutout have their own arguments"
                raise PolicyError(f"operations[{i}]", name, accepted)
            taken.add(name)
            operations.append(operation)
        object.__setattr__(self, "operations", tuple(operations))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the operations that are drawn, as in the tuples of a policy."""
        return tuple(map(name_of, self.operations))

    @property
    def base_augment_names(self) -> tuple[str, ...]:
        """Names of the enabled steps among Crop, Flip and Cutout."""
        is_on = (self.crop > 0, self.flip, self.cutout > 0)
        return tuple(name for name, on in zip(BASE_AUGMENT, is_on, strict=True) if on)

    @computed_once
    def resolved(self) -> Space:
        """The same as a ``Space``, with Crop, Flip and Cutout."""
        base = space(self.base)
        last = float(base.bins - 1)
        emissions: dict[str, Any] = {}
        rules: dict[str, Any] = {}
        for i, operation in enumerate(self.operations):
            # The last level of an Augmentation is the end of its range.
            full = last if isinstance(operation, Augmentation) else None
            entry = entry_of(self, f"operations[{i}]", operation, base, full)
            emissions[entry.name], rules[entry.name] = entry.emission, entry.rule
        shares = {"Crop": self.crop, "Flip": 0.0, "Cutout": self.cutout}
        for name in self.base_augment_names:
            emissions[name], rules[name] = Emission(Op.NOP), Rule(0.0, shares[name], last)
        return replace(base, ops=emissions, rules=rules, default=self.names)

    def to_dict(self) -> dict[str, Any]:
        described: dict[str, Any] = {"base": self.base, "operations": list(map(describe_operation, self.operations))}
        around = {"crop": self.crop, "flip": self.flip, "cutout": self.cutout}
        return described | {name: value for name, value in around.items() if value}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any], where: str = "space") -> CustomSpace:
        """Raises PolicyError with the path to the first bad key, also for custom operations that are not imported."""
        if unknown := set(described) - set(_KEYS):
            raise PolicyError(f"{where}.{min(unknown, key=str)}", sorted(map(str, unknown)), ", ".join(_KEYS))
        operations = operations_from(described.get("operations", ()), f"{where}.operations")
        try:
            return cls(**{**described, "operations": operations})
        except PolicyError as error:
            raise PolicyError(f"{where}.{error.where}", error.got, error.accepted) from error


def magnitudes(named: str | CustomSpace) -> Space:
    """The magnitude space of a name, or of chosen operations."""
    return space(named) if isinstance(named, str) else named.resolved


def name_of(operation: str | Augmentation) -> str:
    return operation if isinstance(operation, str) else operation.name


def describe_operation(operation: str | Augmentation) -> Any:
    """Fit for JSON."""
    return operation if isinstance(operation, str) else operation.to_dict()


def operations_from(described: Any, where: str) -> tuple[Any, ...]:
    """Parse operations: names unchanged, Augmentations from their descriptions. Raises PolicyError."""
    if not isinstance(described, (list, tuple)):
        raise PolicyError(where, described, f"a list of names and Augmentations: {FORMS}")
    operations = []
    for i, one in enumerate(described):
        # Within a description that is being read, Augmentations are made already.
        is_ready = isinstance(one, (str, Augmentation))
        operations.append(one if is_ready else from_dict(one, f"{where}[{i}]"))
    return tuple(operations)


def known_operation(given: Any, base: Space, where: str = "operations") -> str | Augmentation:
    """A name of ``base``, or an Augmentation: of text, of a class, or of a transform that takes a magnitude.

    Raises PolicyError.
    """
    if isinstance(given, Augmentation):
        return given
    if isinstance(given, str):
        return parse_operation(given, base, where)
    cls = given if isinstance(given, type) else type(given)
    if not issubclass(cls, Transform):
        raise PolicyError(where, given, "a name, an Augmentation, or the class or an instance of an operation")
    if isinstance(given, type) and not issubclass(cls, CustomOp):
        return parse_operation(cls.__name__, base, where)
    try:
        return Augmentation(cls.__name__, given)
    except ArgumentError as error:
        raise PolicyError(where, given, error.accepted) from error


def parse_operation(text: str, base: Space, where: str = "operations") -> str | Augmentation:
    """Parse "Rotate", "Rotate:0..45", "Rotate:0..45:signed" or "pkg.ops:Scanlines:0..1", whose module is imported.

    A name without a range is that of ``base``, else it has the range that its class declares. Raises PolicyError.
    """
    match = _TEXT.fullmatch(text)
    try:
        ends = None if match is None or match["low"] is None else (float(match["low"]), float(match["high"]))
    except ValueError:
        match = None
    if match is None or not all(map(math.isfinite, ends or ())):
        raise PolicyError(where, text, FORMS)
    signed = match["signed"] is not None
    try:
        name = _known_name(match["name"], text, base, where)
        cls = Transform.registry.get(name)
        if cls is not None and issubclass(cls, CustomOp):
            return _custom_operation(cls, ends, signed)
        if ends is None:
            if name in base.rules:
                return name
            default = default_augmentation(name)
            if default is None:
                raise PolicyError(where, text, f"{name}:low..high, as {name} has no range of its own")
            return default
        if not has_magnitude(name):
            raise PolicyError(where, text, f"{name} without a range, as it has no magnitude")
        return Augmentation(name, name, ends, signed=signed)
    except ArgumentError as error:
        raise PolicyError(where, text, error.accepted) from error


def _known_name(named: str, text: str, base: Space, where: str) -> str:
    """The name of a class, or of an operation of ``base``, by its name or as module:Class. Raises PolicyError."""
    module, _, name = named.rpartition(":")
    if module:
        cls = Transform.registry.get(name)
        if cls is None or cls.__module__ != module or not (issubclass(cls, CustomOp) or name in _catalogue()):
            accepted = f"transforms of one number that {module} declares"
            if module not in sys.modules:
                accepted = f"operations of imported modules; import {module} first (commands: --import)"
            raise PolicyError(where, named, accepted)
        return name
    known = {each.casefold(): each for each in (*_catalogue(), *base.rules)}
    found = known.get(name.casefold())
    if found is None:
        names = sorted(known.values())
        raise PolicyError(where, text, f"{FORMS}; names: {', '.join(names)}{did_you_mean(name, names)}")
    return found


def _custom_operation(cls: type[CustomOp], ends: tuple[float, float] | None, signed: bool) -> Augmentation:
    if ends is None:
        return Augmentation(cls.__name__, cls())
    cls((min(ends), max(ends)))  # refuses arguments outside of the domain
    return Augmentation(cls.__name__, cls(), ends, signed=signed)


def _catalogue() -> list[str]:
    """Names that are accepted besides the base's."""
    classes = Transform.registry.items()
    numbered = [
        name for name, cls in classes if cls._typical_range is not None or issubclass(cls, (MagnitudeOp, CustomOp))
    ]
    plain = [name for name, cls in classes if issubclass(cls, WithProbability) and cls._value_name is None]
    return list(dict.fromkeys([*EMISSIONS, *numbered, *plain]))

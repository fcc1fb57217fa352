"""What a transform is: a frozen record of arguments that, for a batch, draws its chances and emits instructions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from variegate.errors import PolicyError, shown
from variegate.program.sampling import Rows, Sampling
from variegate.transforms.calling import call
from variegate.transforms.limits import LARGEST, MAX_LENGTH, check_keys, check_tree

if TYPE_CHECKING:
    import torch

T = TypeVar("T", bound="Transform")


class Transform:
    """Base of every transform. Subclasses are frozen dataclasses; their fields are the public arguments.

    ``num_slots`` is how many random blocks (of four 32-bit words) the transform and its children own; ``sample`` gets
    the index of its first. Slots are fixed by the shape of the transform tree alone, so that a draw never depends on
    what other samples of the batch do.
    """

    registry: ClassVar[dict[str, type[Transform]]] = {}
    num_slots: int = 0
    # Of the tree that this is the root of: how many transforms, and how many within one another.
    _tree_size: int = 1
    # The transform of this tree that decides about the format in which all images of a batch leave, if one does; and
    # what to do where that would be by chance.
    _format_setter: Transform | None = None
    _format_advice: ClassVar[str] = ""
    _tree_depth: int = 1
    # Arguments that descriptions hold even at their default, because that default was another one once.
    _always_described: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Before the dataclass decorator, which would write one of its own that lists every argument.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]
        if not abstract and not cls.__name__.startswith("_"):
            Transform.registry[cls.__name__] = cls

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        """Draw and emit for ``rows`` (indices into the batch) using slots ``slot .. slot + num_slots - 1``."""
        raise NotImplementedError(f"{type(self).__name__} does not define sample()")

    def __call__(self, image: Any, *others: Any) -> torch.Tensor:
        """Augment one image, as torchvision's transforms are called: ``ImageFolder(root, transform=t)``.

        Args:
            image: a PIL image of any mode, a uint8 array [H, W, 3], [H, W, 1] or [H, W], a uint8 tensor [C, H, W] or
                [H, W], or the bytes of an image file. PIL images in gray keep one channel.

        Returns:
            A tensor [C, H, W] on the CPU: float32 if the transform normalises, else uint8.

        Its random numbers are those of seed 0, epoch 0 and the next place of a running count, which all transforms of
        a process share. In a worker of a DataLoader the count begins at a place of that worker's own, so that workers
        do not repeat one another nor an epoch. ``vg.as_transform`` takes a seed, an epoch and ids; for a batch
        ``vg.Augmenter`` and ``vg.Collate`` are several times faster.

        Raises TypeError or ValueError naming what it got and what is accepted.
        """
        if others:
            raise TypeError(
                f"{type(self).__name__}: got {1 + len(others)} inputs; accepted: one image. Masks and labels are "
                "not augmented along with it"
            )
        return call(self, image)

    def __repr__(self) -> str:
        """The call that makes it, without the arguments that have their default."""
        arguments = []
        is_positional = True
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name, None)
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            is_positional = is_positional and required
            if field.init and (required or not _is_default(field, value)):
                shown_as = _shown_argument(value)
                arguments.append(shown_as if is_positional else f"{field.name}={shown_as}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_alone"}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able description: ``{"type": name, argument: value, ...}``; defaults are left out."""
        described: dict[str, Any] = {"type": type(self).__name__}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not field.init or (_is_default(field, value) and field.name not in self._always_described):
                continue
            described[field.name] = _plain(value)
        return described


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    return field.default is not dataclasses.MISSING and type(value) is type(field.default) and value == field.default


def _shown_argument(value: Any) -> str:
    """Lists of transforms as they were written."""
    if isinstance(value, tuple) and value and all(isinstance(each, Transform) for each in value):
        return f"[{', '.join(map(repr, value))}]"
    return repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Transform):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def from_dict(described: Any, where: str = "transform") -> Transform:
    """The inverse of ``Transform.to_dict``.

    Raises PolicyError with the path to the first bad key; also for a description without end, or one that is larger
    than any policy (see ``variegate/transforms/limits.py``).
    """
    check_tree(described, where)
    return _from_dict(described, where)


def _from_dict(described: Any, where: str) -> Transform:
    if not isinstance(described, Mapping):
        raise PolicyError(where, described, 'an object with a "type", such as {"type": "RandomHorizontalFlip"}')
    check_keys(described, where)
    name = described.get("type")
    cls = Transform.registry.get(name) if isinstance(name, str) else None
    if cls is None:
        raise PolicyError(f"{where}.type", name, "one of " + ", ".join(sorted(Transform.registry)))
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for key, value in described.items():
        if key == "type":
            continue
        if key not in fields:
            raise PolicyError(f"{where}.{key}", value, f"arguments of {name}: {', '.join(fields) or 'none'}")
        arguments[key] = _revive(value, f"{where}.{key}")
    try:
        return cls(**arguments)
    except PolicyError:
        raise
    except ArgumentError as error:
        raise PolicyError(f"{where}.{error.argument}", error.got, error.accepted) from error
    except TypeError as error:
        missing = [
            f.name
            for f in fields.values()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in arguments
        ]
        if missing:
            raise PolicyError(f"{where}.{missing[0]}", None, f"a value: {name} requires it") from error
        raise PolicyError(where, dict(described), str(error)) from error


def _revive(value: Any, where: str) -> Any:
    if isinstance(value, Mapping) and "type" in value:
        return _from_dict(value, where)
    if isinstance(value, list):
        return tuple(_revive(item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(value, Mapping):
        return {k: _revive(v, f"{where}.{k}") for k, v in value.items()}
    return value


class ArgumentError(ValueError):
    """A transform argument out of range; ``from_dict`` turns it into a PolicyError with the path."""

    def __init__(self, owner: object, argument: str, got: object, accepted: str) -> None:
        self.argument, self.got, self.accepted = argument, got, accepted
        super().__init__(f"{type(owner).__name__}: {argument}={shown(got)}; accepted: {accepted}")


# -- argument checks shared by all transforms --------------------------------------------------------------------


def set_field(owner: object, name: str, value: Any) -> None:
    """Store a normalised argument on a frozen dataclass, from its ``__post_init__``."""
    object.__setattr__(owner, name, value)


def is_number(value: object, integral: bool = False) -> bool:
    """A finite int or float (an int only if ``integral``); bools are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int if integral else (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


def within(low: float, high: float) -> tuple[float, float]:
    """The ends of a range of arguments; where it says infinity, the largest that arithmetic of pixels holds."""
    return max(low, -LARGEST), min(high, LARGEST)


def check_number(owner: object, argument: str, low: float, high: float) -> None:
    """The argument is a number within [low, high], else ArgumentError."""
    value = getattr(owner, argument)
    low, high = within(low, high)
    if not is_number(value) or not low <= value <= high:
        raise ArgumentError(owner, argument, value, f"a number from {low:g} to {high:g}")


def check_probability(owner: object, argument: str = "p") -> None:
    check_number(owner, argument, 0.0, 1.0)


def check_flag(owner: object, argument: str) -> None:
    check_choice(owner, argument, (True, False))


def check_choice(owner: object, argument: str, accepted: Sequence[object]) -> None:
    value = getattr(owner, argument)
    if not any(value is choice or (isinstance(value, type(choice)) and value == choice) for choice in accepted):
        raise ArgumentError(owner, argument, value, "one of " + ", ".join(map(repr, accepted)))


def as_range(owner: object, argument: str, low: float, high: float) -> None:
    """Normalise ``x`` to ``(x, x)`` and check that a pair is ordered and within [low, high]."""
    value = getattr(owner, argument)
    low, high = within(low, high)
    pair = (value, value) if is_number(value) else value
    ok = (
        isinstance(pair, (list, tuple))
        and len(pair) == 2
        and all(map(is_number, pair))
        and low <= pair[0] <= pair[1] <= high
    )
    if not ok:
        raise ArgumentError(owner, argument, value, f"a number, or a pair low <= high, from {low:g} to {high:g}")
    set_field(owner, argument, (pair[0], pair[1]))


def as_size(owner: object, argument: str) -> None:
    """Normalise an int or a (height, width) pair to a pair of positive ints."""
    value = getattr(owner, argument)
    pair = (value, value) if isinstance(value, int) and not isinstance(value, bool) else value
    ok = (
        isinstance(pair, (list, tuple))
        and len(pair) in (1, 2)
        and all(isinstance(v, int) and not isinstance(v, bool) and 0 < v <= MAX_LENGTH for v in pair)
    )
    if not ok:
        accepted = f"a positive integer or a (height, width) pair of them, up to {MAX_LENGTH:,}"
        raise ArgumentError(owner, argument, value, accepted)
    set_field(owner, argument, (pair[0], pair[-1]))


def as_fill(owner: object, argument: str = "fill") -> None:
    """Normalise a grey level, an RGB triple or None (0) to an RGB triple of ints 0..255."""
    value = getattr(owner, argument)
    if value is None:
        value = 0
    triple = (value,) * 3 if is_number(value) else value
    if isinstance(triple, (list, tuple)) and len(triple) == 1:
        triple = tuple(triple) * 3
    ok = isinstance(triple, (list, tuple)) and len(triple) == 3 and all(is_number(v) and 0 <= v <= 255 for v in triple)
    if not ok:
        raise ArgumentError(owner, argument, value, "a level 0..255 or three of them (red, green, blue)")
    set_field(owner, argument, tuple(int(v) for v in triple))


INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def as_interpolation(owner: object, argument: str = "interpolation") -> None:
    """Accept a name, or torchvision's InterpolationMode (by its ``value``), and store the name."""
    value = getattr(owner, argument)
    name = getattr(value, "value", value)
    if not isinstance(name, str) or name not in INTERPOLATIONS:
        raise ArgumentError(owner, argument, value, "one of " + ", ".join(map(repr, INTERPOLATIONS)))
    set_field(owner, argument, name)

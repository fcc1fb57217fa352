"""Limits and types of arguments of operations, which take all forms that torchvision takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

from variegate.checks import Refusal, as_integer, as_number, as_numbers, refused
from variegate.errors import short_repr
from variegate.ops.schema import LARGEST, Argument, Converted, MagnitudeRange, OneOf, Range
from variegate.program.program import MAX_CHANNELS

# -- how much one transform may ask for: what costs time or memory has an end, named where it is passed ------------

# Of transforms within one another. Sampling and descriptions call themselves for each.
MAX_DEPTH = 32
# Of transforms in one tree: a choice by label among a thousand classes, with ten operations each.
MAX_TRANSFORMS = 10_000
# Blocks of random numbers of one image, 16 bytes each: a mebibyte.
MAX_SLOTS = 65_536
# Operations one after another in a policy, where no published one has more than eight.
MAX_STEPS = 64
# Strengths of a policy: more than a byte has levels cannot be told apart.
MAX_BINS = 1024
# Of a list of operations or of sub-policies.
MAX_ENTRIES = 4096
# Sides and borders that arguments may name. What is longer than a program can address is refused when it is sampled.
MAX_LENGTH = 1 << 20
# Taps of a blur along one axis: three deviations of 170 pixels to each side.
MAX_KERNEL = 1023
# Rectangles in one image.
MAX_RECTANGLES = 65_536


class ArgumentError(ValueError):
    """Raised for a transform argument out of range; ``from_dict`` turns it into a PolicyError with the path.

    The message names the ``owner``, a transform. ``argument``, ``got`` and ``accepted`` are attributes: the argument's
    name, its value, and what is accepted.
    """

    def __init__(self, owner: object, argument: str, got: object, accepted: str) -> None:
        self.argument, self.got, self.accepted = argument, got, accepted
        whose = "" if owner is None else f"{type(owner).__name__}: "
        super().__init__(f"{whose}{argument}={short_repr(got)}; accepted: {accepted}")


# -- types and names ---------------------------------------------------------------------------------------------

Pair = Sequence[float]
# A constant, or a pair (low, high) to draw from.
Number = float | Pair
Integers = int | Sequence[int]
RgbColor = tuple[int, ...]
Edges = Literal["image", "crop"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]

BLACK: RgbColor = (0, 0, 0)
INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
FILTERS = (*INTERPOLATIONS, "box", "hamming", "lanczos")


class InterpolationMode(Enum):
    """Names of interpolations as in torchvision, for pipelines that use them; the plain strings mean the same."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class AutoAugmentPolicy(Enum):
    """Names of AutoAugment policies as in torchvision; the plain strings mean the same."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# By Pillow's codes, PIL.Image.Resampling. On images that Pillow holds, torchvision's "nearest-exact" is "nearest".
_BY_CODE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


def two_integers(value: Any, high: int, step: int = 1) -> tuple[int, int] | None:
    """Two from 1 to ``high``, 1 and multiples of ``step`` after it; one stands for both."""
    single = as_integer(value)
    both = as_numbers(value, whole=True) if single is None else (single,)
    if both is None or len(both) not in (1, 2) or not all(one in range(1, high + 1, step) for one in both):
        return None
    return both[0], both[-1]


def several_integers(value: Any, counts: Sequence[int], low: int, high: int) -> int | tuple[int, ...] | None:
    """One from ``low`` to ``high``, or as many as one of ``counts`` says."""
    single = as_integer(value)
    numbers = as_numbers(value, whole=True) if single is None else (single,)
    if numbers is None or len(numbers) not in counts or not all(low <= number <= high for number in numbers):
        return None
    return numbers if single is None else single


def several_numbers(value: Any, most: int, low: float = -LARGEST) -> float | tuple[float, ...] | None:
    """One from ``low`` on, or up to ``most`` of them."""
    single = as_number(value)
    numbers = as_numbers(value) if single is None else (single,)
    if numbers is None or not 0 < len(numbers) <= most or not all(low <= number <= LARGEST for number in numbers):
        return None
    return numbers if single is None else single


def padding_sides(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """left, top, right, bottom of torchvision's ways to write a padding."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    return left, top, right, bottom


def for_images(value: Any) -> Any:
    """Of torchvision's values by kinds of input, ``{tv_tensors.Image: 3, "others": 0}``, the one that images get."""
    if not isinstance(value, Mapping):
        return value
    kinds = {key if isinstance(key, str) else getattr(key, "__name__", str(key)): each for key, each in value.items()}
    return next((kinds[kind] for kind in ("Image", "Tensor", "others") if kind in kinds), None)


class FillColor(Argument):
    """A level for all channels, one for each, or None for 0; or torchvision's dict of them by kinds of input.

    Fractions are dropped, as torchvision does, and levels beyond 0..255 are black or white, as Pillow has it.
    """

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> Any:
        if type(value) is not tuple and isinstance(value, Mapping):
            if any(level for kind, level in value.items() if getattr(kind, "__name__", kind) == "Mask"):
                raise error(name, value, "0 for Mask: vg.Targets(mask_fill=) is what masks are filled with")
            value = for_images(value)
        return super().check(name, value, error=error)

    def convert(self, value: Any) -> Any:
        if type(value) is int and 0 <= value <= 255:
            return value, value, value
        levels = several_numbers(0 if value is None else value, MAX_CHANNELS)
        if levels is None:
            return None
        channels = levels if isinstance(levels, tuple) else (levels,)
        return tuple(min(max(int(level), 0), 255) for level in (channels * 3 if len(channels) == 1 else channels))

    def describe(self) -> str:
        return "a level (0..255), or one for each channel: three of them (red, green, blue)"


def _interpolation(value: Any, choices: Sequence[str]) -> Any:
    """The name of a torchvision InterpolationMode or of Pillow's code."""
    plain = getattr(value, "value", value)
    code = as_integer(plain)
    if code is not None and 0 <= code < len(_BY_CODE) and _BY_CODE[code] in choices:
        return _BY_CODE[code]
    return "nearest" if isinstance(plain, str) and plain == "nearest-exact" else plain


def interpolations(*choices: str) -> OneOf:
    """One of ``choices``, also as a torchvision InterpolationMode or Pillow's code."""
    return OneOf(choices, read=partial(_interpolation, choices=choices))


def axes(low: float = -LARGEST, high: float = LARGEST) -> Converted:
    """A number for both axes, or a list of one; or two, along x and along y."""

    def convert(value: Any) -> Any:
        single = as_number(value)
        both = as_numbers(value) if single is None else (single,)
        if both is None or len(both) not in (1, 2) or not all(low <= v <= high for v in both):
            return None
        return both if single is None else single

    return Converted(convert, f"a number from {low:g} to {high:g}, or a pair (x, y) of them")


def two_numbers(value: Any, low: float = -LARGEST, high: float = LARGEST) -> tuple[Any, ...] | None:
    """Two from ``low`` to ``high``, such as x and y."""
    both = as_numbers(value)
    return both if both is not None and len(both) == 2 and all(low <= each <= high for each in both) else None


PROBABILITY = Range(0.0, 1.0).of_type(float)
Probability = Annotated[float, PROBABILITY]
Finite = Annotated[float, Range()]
Length = Annotated[int, Range(1, MAX_LENGTH)]
ShareRange = Annotated[Number, Range(0.0, 1.0)]
AnyMagnitude = Annotated[Number, MagnitudeRange()]
ShareMagnitude = Annotated[Number, MagnitudeRange(0.0, 1.0)]
# Areas and other numbers that are not below 0, and factors.
AreaRange = Annotated[Pair, Range(0.0)]
FactorRange = Annotated[Pair, Range(1 / LARGEST)]
Fill = Annotated[float | Sequence[float] | Mapping[Any, float | Sequence[float] | None] | None, FillColor()]
InterpolationName = Annotated[Literal["nearest", "bilinear", "bicubic"], interpolations(*INTERPOLATIONS)]
FilterName = Annotated[Literal["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"], interpolations(*FILTERS)]
Center = Annotated[Pair, Converted(two_numbers, "a pair (x, y) in pixels from the top left")]
SIZES = f"a positive integer or a (height, width) pair of them, up to {MAX_LENGTH:,}"
# Height and width.
Size = Annotated[
    int | Sequence[int],
    Converted(
        partial(two_integers, high=MAX_LENGTH),
        SIZES,
    ),
]
# One, two or four borders, see ``padding_sides``; negative ones cut off.
Padding = Annotated[
    int | Sequence[int],
    Converted(
        partial(several_integers, counts=(1, 2, 4), low=-MAX_LENGTH, high=MAX_LENGTH),
        f"an integer, or two or four of them, up to {MAX_LENGTH:,}",
    ),
]

"""Checks of arguments of operations, in all forms that torchvision takes: a value in, its one form out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Literal, get_args

from variegate.checks import Number as Scalar
from variegate.checks import Refusal, as_integer, as_number, as_numbers, number, one_of, pair, refused
from variegate.errors import shown
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
# Numbers that have no other end. In single precision products of two of them are finite still.
LARGEST = 1e9
# Taps of a blur along one axis: three deviations of 170 pixels to each side.
MAX_KERNEL = 1023
# Rectangles in one image.
MAX_RECTANGLES = 65_536

# -- types and names ---------------------------------------------------------------------------------------------

Pair = Sequence[float]
Number = float | Pair
Fill = float | Sequence[float] | Mapping[Any, float | Sequence[float] | None] | None
Size = int | Sequence[int]
Colour = tuple[int, ...]
InterpolationName = Literal["nearest", "bilinear", "bicubic"]
FilterName = Literal["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]
Edges = Literal["image", "crop"]
PaddingMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
Check = Callable[..., Any]

BLACK: Colour = (0, 0, 0)
INTERPOLATIONS: tuple[InterpolationName, ...] = get_args(InterpolationName)
FILTERS: tuple[FilterName, ...] = get_args(FilterName)


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
_BY_CODE: tuple[FilterName, ...] = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


# -- checks ------------------------------------------------------------------------------------------------------


class ArgumentError(ValueError):
    """Raised for a transform argument out of range; ``from_dict`` turns it into a PolicyError with the path.

    The message names the ``owner``, a transform. ``argument``, ``got`` and ``accepted`` are attributes: the argument's
    name, its value, and what is accepted.
    """

    def __init__(self, owner: object, argument: str, got: object, accepted: str) -> None:
        self.argument, self.got, self.accepted = argument, got, accepted
        whose = "" if owner is None else f"{type(owner).__name__}: "
        super().__init__(f"{whose}{argument}={shown(got)}; accepted: {accepted}")


def checks(**of: Check) -> Mapping[str, Check]:
    """The checks of a class's arguments, by their names."""
    return of


def optional(check: Check) -> Check:
    """None, or what ``check`` accepts."""

    def checked(name: str, value: Any, *, error: Refusal = refused) -> Any:
        return None if value is None else check(name, value, error=error)

    return checked


def two_integers(
    name: str, value: Any, high: int, *, accepted: str, step: int = 1, error: Refusal = refused
) -> tuple[int, int]:
    """Two from 1 to ``high``, 1 and multiples of ``step`` after it; one stands for both."""
    single = as_integer(value)
    both = as_numbers(value, whole=True) if single is None else (single,)
    if both is None or len(both) not in (1, 2) or not all(one in range(1, high + 1, step) for one in both):
        raise error(name, value, accepted)
    return both[0], both[-1]


# Height and width.
check_size = partial(
    two_integers,
    high=MAX_LENGTH,
    accepted=f"a positive integer or a (height, width) pair of them, up to {MAX_LENGTH:,}",
)


def check_padding(name: str, value: Any, *, error: Refusal = refused) -> int | tuple[int, ...]:
    """One, two or four borders, see ``padding_sides``; negative ones cut off."""
    single = as_integer(value)
    sides = as_numbers(value, whole=True) if single is None else (single,)
    if sides is None or len(sides) not in (1, 2, 4) or not all(abs(side) <= MAX_LENGTH for side in sides):
        raise error(name, value, f"an integer, or two or four of them, up to {MAX_LENGTH:,}")
    return sides if single is None else single


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


def check_colour(name: str, value: Any, *, error: Refusal = refused) -> Colour:
    """A level for all channels, one for each, or None for 0; or torchvision's dict of them by kinds of input.
    Fractions are dropped, as torchvision does, and levels beyond 0..255 are black or white, as Pillow has it."""
    if type(value) is int and 0 <= value <= 255:
        return value, value, value
    if isinstance(value, Mapping):
        if any(level for kind, level in value.items() if getattr(kind, "__name__", kind) == "Mask"):
            raise error(name, value, "0 for Mask: vg.Targets(mask_fill=) is what masks are filled with")
        value = for_images(value)
    single = 0 if value is None else as_number(value)
    levels = as_numbers(value) if single is None else (single,)
    fits = levels is not None and 0 < len(levels) <= MAX_CHANNELS and all(abs(level) <= LARGEST for level in levels)
    if levels is None or not fits:
        raise error(name, value, "a level (0..255), or one for each channel: three of them (red, green, blue)")
    return tuple(min(max(int(level), 0), 255) for level in (levels * 3 if len(levels) == 1 else levels))


def check_interpolation(name: str, value: Any, *, error: Refusal = refused) -> InterpolationName:
    """Of a map: a name, torchvision's InterpolationMode or Pillow's code."""
    if type(value) is str and value in INTERPOLATIONS:
        return value
    return one_of(name, _interpolation(value, INTERPOLATIONS), INTERPOLATIONS, error=error)


def check_filter(name: str, value: Any, *, error: Refusal = refused) -> FilterName:
    """Of a resize: the same, of all that Pillow has."""
    return one_of(name, _interpolation(value, FILTERS), FILTERS, error=error)


def _interpolation(value: Any, choices: Sequence[str]) -> Any:
    plain = getattr(value, "value", value)
    code = as_integer(plain)
    if code is not None and 0 <= code < len(_BY_CODE) and _BY_CODE[code] in choices:
        return _BY_CODE[code]
    return "nearest" if isinstance(plain, str) and plain == "nearest-exact" else plain


def angles(name: str, value: Any, *, pairs: int = 1, error: Refusal = refused) -> tuple[Scalar, ...]:
    """A range of degrees, or up to ``pairs`` of them; d >= 0 stands for (-d, d)."""
    single = as_number(value)
    ends = as_numbers(value) or () if single is None else (-single, single)
    in_order = all(-LARGEST <= low <= high <= LARGEST for low, high in zip(ends[::2], ends[1::2], strict=False))
    if len(ends) not in (2, 2 * pairs) or not in_order:
        more = ", or two such pairs" if pairs > 1 else ""
        raise error(name, value, f"a number >= 0, or a pair (low, high){more}")
    return ends


def one_or_two(name: str, value: Any, *, low: float = -LARGEST, high: float = LARGEST, error: Refusal = refused) -> Any:
    """A number for both axes, or a list of one; or two, along x and along y."""
    single = as_number(value)
    both = as_numbers(value) if single is None else (single,)
    if both is None or len(both) not in (1, 2) or not all(low <= v <= high for v in both):
        raise error(name, value, f"a number from {low:g} to {high:g}, or a pair (x, y) of them")
    return single if single is not None else both


def about_zero(name: str, value: Any, *, limit: float, error: Refusal = refused) -> Pair:
    """A range; d >= 0 stands for (-d, d)."""
    single = as_number(value)
    ends = as_numbers(value) if single is None else (-single, single)
    if ends is None or len(ends) != 2 or not -limit <= ends[0] <= ends[1] <= limit:
        raise error(name, value, f"a number from 0 to {limit:g}, or a pair (low, high) from {-limit:g} to {limit:g}")
    return ends[0], ends[1]


PROBABILITY = partial(number, low=0.0, high=1.0)
FLAG = partial(one_of, choices=(True, False))
PADDING_MODE = partial(one_of, choices=get_args(PaddingMode))
CENTER = optional(
    partial(pair, low=-LARGEST, high=LARGEST, accepted="None, or a pair (x, y) in pixels from the top left")
)
AREA_PAIR = partial(
    pair, low=0.0, high=LARGEST, ordered=True, accepted=f"a pair (low, high) of numbers from 0 to {LARGEST:g}"
)
POSITIVE_PAIR = partial(
    pair,
    low=1 / LARGEST,
    high=LARGEST,
    ordered=True,
    accepted=f"a pair (low, high) of numbers above 0, up to {LARGEST:g}",
)

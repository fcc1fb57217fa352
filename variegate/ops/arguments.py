"""Limits and types of transform arguments. All forms that torchvision accepts are accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

from variegate.checks import Refusal, as_integer, as_number, as_numbers, refused
from variegate.errors import short_repr
from variegate.ops.schema import LARGEST, Argument, Converted, MagnitudeRange, OneOf, Range
from variegate.program.program import MAX_CHANNELS

# -- limits that bound time and memory of one transform; error messages name them ----------------------------------

# Nesting depth of transforms. Sampling and descriptions recurse once per level.
MAX_DEPTH = 32
# Transforms in one tree: enough to choose by label among a thousand classes, with ten operations each.
MAX_TRANSFORMS = 10_000
# Blocks of random numbers per image, 16 bytes each: 1 MiB.
MAX_SLOTS = 65_536
# Operations that a policy applies in sequence. No published policy has more than eight.
MAX_STEPS = 64
# Magnitude bins of a policy. Bins beyond 256 are hardly distinguishable in uint8 images.
MAX_BINS = 1024
# Entries of a list of operations or sub-policies.
MAX_ENTRIES = 4096
# Side or border in pixels, as an argument. Sampling refuses images that exceed ``MAX_SIDE`` of a program.
MAX_LENGTH = 1 << 20
# Taps of a blur along one axis: three standard deviations of 170 pixels to each side.
MAX_KERNEL = 1023
# Rectangles per image.
MAX_RECTANGLES = 65_536


class ArgumentError(ValueError):
    """Raised for a transform argument out of range; ``from_dict`` turns it into a PolicyError with the path.

    The message names the ``owner``, a transform. Attributes are ``argument``, the argument's name, ``got``, its value,
    and ``accepted``, a description of accepted values.
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
    """Interpolations under torchvision's names. The strings are equivalent."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


class AutoAugmentPolicy(Enum):
    """AutoAugment policies under torchvision's names. The strings are equivalent."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Indexed by Pillow's codes, PIL.Image.Resampling. For PIL images, torchvision's "nearest-exact" equals "nearest".
_BY_CODE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")


def two_integers(value: Any, high: int, step: int = 1) -> tuple[int, int] | None:
    """Parse two integers from 1 to ``high`` in steps of ``step``, or one to repeat. Returns None if invalid."""
    single = as_integer(value)
    both = as_numbers(value, whole=True) if single is None else (single,)
    if both is None or len(both) not in (1, 2) or not all(one in range(1, high + 1, step) for one in both):
        return None
    return both[0], both[-1]


def several_integers(value: Any, counts: Sequence[int], low: int, high: int) -> int | tuple[int, ...] | None:
    """Parse one integer from ``low`` to ``high``, or a list whose length is in ``counts``. None if invalid."""
    single = as_integer(value)
    numbers = as_numbers(value, whole=True) if single is None else (single,)
    if numbers is None or len(numbers) not in counts or not all(low <= number <= high for number in numbers):
        return None
    return numbers if single is None else single


def several_numbers(value: Any, most: int, low: float = -LARGEST) -> float | tuple[float, ...] | None:
    """Parse one number of at least ``low``, or a list of up to ``most``. None if invalid."""
    single = as_number(value)
    numbers = as_numbers(value) if single is None else (single,)
    if numbers is None or not 0 < len(numbers) <= most or not all(low <= number <= LARGEST for number in numbers):
        return None
    return numbers if single is None else single


def padding_sides(padding: int | Sequence[int]) -> tuple[int, int, int, int]:
    """Convert torchvision's forms of a padding to left, top, right, bottom."""
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    left, top, right, bottom = sides * (4 // len(sides))
    return left, top, right, bottom


def for_images(value: Any) -> Any:
    """Select the value for images from torchvision's dict by input type, ``{tv_tensors.Image: 3, "others": 0}``."""
    if not isinstance(value, Mapping):
        return value
    kinds = {key if isinstance(key, str) else getattr(key, "__name__", str(key)): each for key, each in value.items()}
    return next((kinds[kind] for kind in ("Image", "Tensor", "others") if kind in kinds), None)


class FillColor(Argument):
    """A value for all channels, a value per channel, or None for 0; or torchvision's dict by input type.

    Fractions are truncated, as by torchvision, and values are clipped to 0..255, as by Pillow.
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
    """Return the name of a torchvision InterpolationMode or of Pillow's code."""
    plain = getattr(value, "value", value)
    code = as_integer(plain)
    if code is not None and 0 <= code < len(_BY_CODE) and _BY_CODE[code] in choices:
        return _BY_CODE[code]
    return "nearest" if isinstance(plain, str) and plain == "nearest-exact" else plain


def interpolations(*choices: str) -> OneOf:
    """Return an argument that accepts ``choices``, also as a torchvision InterpolationMode or Pillow's code."""
    return OneOf(choices, read=partial(_interpolation, choices=choices))


def axes(low: float = -LARGEST, high: float = LARGEST) -> Converted:
    """Return an argument that accepts a number for both axes, also as a list, or a pair for x and y."""

    def convert(value: Any) -> Any:
        single = as_number(value)
        both = as_numbers(value) if single is None else (single,)
        if both is None or len(both) not in (1, 2) or not all(low <= v <= high for v in both):
            return None
        return both if single is None else single

    return Converted(convert, f"a number from {low:g} to {high:g}, or a pair (x, y) of them")


def two_numbers(value: Any, low: float = -LARGEST, high: float = LARGEST) -> tuple[Any, ...] | None:
    """Parse two numbers from ``low`` to ``high``, such as x and y. None if invalid."""
    both = as_numbers(value)
    return both if both is not None and len(both) == 2 and all(low <= each <= high for each in both) else None


PROBABILITY = Range(0.0, 1.0).of_type(float)
Probability = Annotated[float, PROBABILITY]
Finite = Annotated[float, Range()]
Length = Annotated[int, Range(1, MAX_LENGTH)]
ShareRange = Annotated[Number, Range(0.0, 1.0)]
AnyMagnitude = Annotated[Number, MagnitudeRange()]
ShareMagnitude = Annotated[Number, MagnitudeRange(0.0, 1.0)]
# Ranges of numbers from 0, such as areas, and of factors.
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
# One, two or four borders, see ``padding_sides``. Negative borders crop.
Padding = Annotated[
    int | Sequence[int],
    Converted(
        partial(several_integers, counts=(1, 2, 4), low=-MAX_LENGTH, high=MAX_LENGTH),
        f"an integer, or two or four of them, up to {MAX_LENGTH:,}",
    ),
]

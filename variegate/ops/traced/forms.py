"""Transforms that ``variegate.transforms.functional`` stands for: at one number per row, or without chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from variegate.ops.arguments import LARGEST, ArgumentError
from variegate.ops.base import Transform
from variegate.ops.color import (
    AutoContrast,
    Brightness,
    ChannelPermutation,
    Color,
    Contrast,
    Equalize,
    Gamma,
    Hue,
    Invert,
    Posterize,
    Solarize,
    SolarizeAdd,
)
from variegate.ops.crop import CenterCrop, Pad
from variegate.ops.filters import JPEG, GaussianBlur, GaussianNoise, Sharpness
from variegate.ops.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.output import Grayscale, Normalize
from variegate.ops.resize import Resize
from variegate.program.sampling import Floats

Arguments = Mapping[str, Any]
_MAP = ("interpolation", "fill")

# function: its class, the argument that is the class's number, and the arguments that have the same names in both.
AT_NUMBER: dict[str, tuple[type[MagnitudeOp], str, tuple[str, ...]]] = {
    "rotate": (Rotate, "angle", _MAP),
    "shear_x": (ShearX, "shear", _MAP),
    "shear_y": (ShearY, "shear", _MAP),
    "translate_x": (TranslateX, "pixels", _MAP),
    "translate_y": (TranslateY, "pixels", _MAP),
    "adjust_brightness": (Brightness, "brightness_factor", ()),
    "adjust_contrast": (Contrast, "contrast_factor", ()),
    "adjust_saturation": (Color, "saturation_factor", ()),
    "adjust_hue": (Hue, "hue_factor", ()),
    "adjust_gamma": (Gamma, "gamma", ("gain",)),
    "adjust_sharpness": (Sharpness, "sharpness_factor", ()),
    "posterize": (Posterize, "bits", ()),
    "jpeg": (JPEG, "quality", ()),
    "solarize": (Solarize, "threshold", ()),
    "solarize_add": (SolarizeAdd, "addition", ("threshold",)),
    "gaussian_blur": (GaussianBlur, "sigma", ("kernel_size",)),
    "gaussian_noise": (GaussianNoise, "sigma", ("mean", "clip")),
}
# What keeps a function from its form: arguments that differ from these.
_ONLY_AT: dict[str, dict[str, Any]] = {"rotate": {"expand": False, "center": None}}

_GRAY = lambda num_output_channels: Grayscale(num_output_channels)  # noqa: E731
PLAIN: dict[str, Callable[..., Transform]] = {
    "invert": Invert,
    "autocontrast": AutoContrast,
    "equalize": Equalize,
    "rgb_to_grayscale": _GRAY,
    "grayscale": _GRAY,
    "to_grayscale": _GRAY,
    "permute_channels": lambda permutation: ChannelPermutation(permutation),
    "pad": Pad,
    "center_crop": lambda output_size: CenterCrop(output_size),
    "resize": Resize,
    "normalize": lambda mean, std: Normalize(mean, std),
}


def number_form(
    function: str, arguments: Arguments, given: frozenset[str], changing: frozenset[str]
) -> tuple[MagnitudeOp, str] | None:
    """The operation of ``function`` and the argument that is its number; ``changing``: arguments that differ by row."""
    only_at = _ONLY_AT.get(function, {})
    if function not in AT_NUMBER or any(arguments[name] != value for name, value in only_at.items()):
        return None
    operation, number, same = AT_NUMBER[function]
    value = arguments[number]
    if (
        given - {number, *same, *only_at}
        or changing - {number}
        or not (number in changing or isinstance(value, (int, float)))
    ):
        return None
    low = operation._bounds[0]
    at = {operation._number: max(low, 1.0) if np.isfinite(low) and not operation._integral else 1}
    if operation is Hue:
        at = {operation._number: 0.0}
    return operation(**at, **{name: arguments[name] for name in same}), number


def check_numbers(operation: type[MagnitudeOp], argument: str, values: Floats, owner: object) -> None:
    """Raises ArgumentError for the first that the operation does not take."""
    low, high = max(operation._bounds[0], -LARGEST), min(operation._bounds[1], LARGEST)
    fits = (values >= low) & (values <= high)
    if operation._integral:
        fits &= values == np.floor(values)
    if not fits.all():
        wrong = values[~fits][0].item()

        def refused(name: str, got: object, accepted: str) -> Exception:
            return ArgumentError(owner, name, got, accepted)

        operation.check_number(argument, wrong, error=refused)
        raise refused(argument, wrong, f"numbers from {low:g} to {high:g}")  # what only whole numbers are refused for

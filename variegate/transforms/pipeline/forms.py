"""How functions of ``variegate.transforms.functional`` are said as transforms, with a number for every row of a batch.

A form is found by the function's name: an operation of one number, which goes through ``emit_magnitude`` as the
magnitudes of policies do; a transform without chance; or instructions that are written here. What has no form is asked
row by row (``by_row.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling
from variegate.transforms.arguments import BLACK, LARGEST, MAX_LENGTH, ArgumentError, check_colour
from variegate.transforms.base import Transform
from variegate.transforms.color import (
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
from variegate.transforms.crop import CenterCrop, Pad
from variegate.transforms.erase import emit_rectangles
from variegate.transforms.filters import GaussianBlur, GaussianNoise, Sharpness
from variegate.transforms.geometry import Rotate, ShearX, ShearY, TranslateX, TranslateY
from variegate.transforms.magnitude import MagnitudeOp
from variegate.transforms.output import Grayscale, Normalize
from variegate.transforms.resize import Resize

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


def number_form(function: str, arguments: Arguments, changing: frozenset[str]) -> tuple[MagnitudeOp, str] | None:
    """The operation of ``function`` at some number, and the name of the argument which that number is."""
    if function not in AT_NUMBER or any(arguments[k] != v for k, v in _ONLY_AT.get(function, {}).items()):
        return None
    operation, number, same = AT_NUMBER[function]
    value = arguments[number]
    if changing - {number} or not (number in changing or isinstance(value, (int, float))):
        return None
    low = operation._bounds[0]
    at = {operation._number: max(low, 1.0) if np.isfinite(low) and not operation._integral else 1}
    if operation is Hue:
        at = {operation._number: 0.0}
    return operation(**at, **{name: arguments[name] for name in same}), number


def check_numbers(operation: type[MagnitudeOp], argument: str, values: Floats, owner: object) -> None:
    """Raises ArgumentError for the first that the operation does not take."""
    low, high = (np.clip(end, -LARGEST, LARGEST) for end in operation._bounds)
    fits = (values >= low) & (values <= high)
    if operation._integral:
        fits &= values == np.floor(values)
    if not fits.all():
        wrong = values[~fits][0].item()

        def refused(name: str, got: object, accepted: str) -> Exception:
            return ArgumentError(owner, name, got, accepted)

        operation.check_number(argument, wrong, error=refused)
        raise refused(argument, wrong, f"numbers from {low:g} to {high:g}")  # what only whole numbers are refused for


# -- instructions ------------------------------------------------------------------------------------------------


def _flip(op: Op) -> Callable[..., None]:
    return lambda owner, sampling, rows, arguments: sampling.emit(rows, op)


def _erase(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> None:
    whole = [_whole(owner, sampling, rows, name, arguments[name], name in "hw") for name in "ijhw"]
    colour = check_colour("v", arguments["v"])
    emit_rectangles(sampling, rows, np.stack(whole, axis=1), np.arange(len(rows)), colour, "Erase")


def _crop(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> None:
    names = ("top", "left", "height", "width")
    whole = [_whole(owner, sampling, rows, n, arguments[n], n in names[2:], n in names[:2]) for n in names]
    size = np.stack(whole[2:], axis=1).astype(np.int32)
    changed = (sampling.size[rows] != size).any(axis=1) | (whole[0] != 0) | (whole[1] != 0)
    args = [values[changed] for values in whole]
    sampling.emit(rows[changed], Op.CROP, *args, fill=BLACK, size=size[changed])


def _whole(
    owner: object, sampling: Sampling, rows: Rows, name: str, value: Any, least: int, is_signed: bool = False
) -> npt.NDArray[np.int64]:
    values = np.broadcast_to(np.asarray(value), len(rows))
    low = -MAX_LENGTH if is_signed else int(least)
    fits = (values >= low) & (values <= MAX_LENGTH) & (values == np.floor(values))
    if not fits.all():
        raise ArgumentError(owner, name, values[~fits][0].item(), f"whole numbers from {low} to {MAX_LENGTH:,}")
    return values.astype(np.int64)


# function: what emits it, given the values of its arguments for ``rows``.
WRITTEN: dict[str, Callable[[object, Sampling, Rows, Arguments], None]] = {
    "horizontal_flip": _flip(Op.HFLIP),
    "hflip": _flip(Op.HFLIP),
    "vertical_flip": _flip(Op.VFLIP),
    "vflip": _flip(Op.VFLIP),
    "erase": _erase,
    "crop": _crop,
}

"""Functions of several numbers as instructions of all rows; False where the arguments are not covered here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.ops.arguments import (
    BLACK,
    LARGEST,
    MAX_LENGTH,
    PADDING_MODE,
    ArgumentError,
    check_colour,
    check_filter,
    check_interpolation,
    check_size,
)
from variegate.ops.erase import emit_rectangles
from variegate.ops.magnitude import BORDER_FLAGS, INTERPOLATION_FLAGS
from variegate.program.ops import Op
from variegate.program.sampling import Floats, Rows, Sampling

Arguments = Mapping[str, Any]
Written = Callable[[object, Sampling, Rows, Arguments], bool]


def _flip(op: Op) -> Written:
    def flip(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
        sampling.emit(rows, op)
        return True

    return flip


def _erase(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    if not isinstance(arguments["v"], (int, float, tuple)):
        return False
    whole = [_whole(owner, rows, name, arguments[name], 1 if name in "hw" else 0) for name in "ijhw"]
    rectangles = np.stack(whole, axis=1)
    emit_rectangles(sampling, rows, rectangles, np.arange(len(rows)), check_colour("v", arguments["v"]), "Erase")
    return True


def _crop(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    names = ("top", "left", "height", "width")
    box = [_whole(owner, rows, n, arguments[n], 1 if n in names[2:] else -MAX_LENGTH) for n in names]
    size = np.stack(box[2:], axis=1).astype(np.int32)
    changed = (sampling.size[rows] != size).any(axis=1) | (box[0] != 0) | (box[1] != 0)
    sampling.emit(rows[changed], Op.CROP, *(side[changed] for side in box), fill=BLACK, size=size[changed])
    return True


def _affine(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    size = sampling.size[rows, ::-1].astype(np.float64)
    shear = arguments["shear"] if isinstance(arguments["shear"], (tuple, list)) else (arguments["shear"], 0.0)
    shear = (shear[0], shear[0]) if len(shear) == 1 else shear
    center = size * 0.5 if arguments["center"] is None else np.array(arguments["center"], np.float64)
    matrix = inverse_affine(
        center,
        _finite(owner, rows, "angle", arguments["angle"]),
        _pairs(owner, rows, "translate", arguments["translate"]),
        _finite(owner, rows, "scale", arguments["scale"], 1 / LARGEST),
        _pairs(owner, rows, "shear", shear),
    )
    _emit_map(sampling, rows, Op.AFFINE, matrix, arguments)
    return True


def _rotate(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    expand, about = arguments["expand"], arguments["center"]
    if not isinstance(expand, bool) or not (about is None or all(isinstance(side, (int, float)) for side in about)):
        return False
    angle = _finite(owner, rows, "angle", arguments["angle"])
    center = None if about is None else (float(about[0]), float(about[1]))
    size = rotated_size(sampling.size[rows], angle, center) if expand else None
    others = np.broadcast_to([*(center or (np.nan, np.nan)), float(expand)], (len(rows), 3))
    _emit_map(sampling, rows, Op.ROTATE, np.column_stack([angle, others]), arguments, size)
    return True


def _resized_crop(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    size, antialias = arguments["size"], arguments["antialias"]
    if not isinstance(size, (tuple, list)) or len(size) != 2 or not isinstance(size[0], int) or antialias is not True:
        return False
    top, left, height, width = (_finite(owner, rows, n, arguments[n]) for n in ("top", "left", "height", "width"))
    least = np.minimum(np.minimum(top, left), np.minimum(height, width))
    is_within = np.stack([top + height, left + width], axis=1) <= sampling.size[rows]
    if (least < 0).any() or (height == 0).any() or (width == 0).any() or not is_within.all():
        return False
    wanted = np.array(check_size("size", size), np.int32)
    interpolation = check_interpolation("interpolation", arguments["interpolation"])
    emit_resized_crop(sampling, rows, (top, left, height, width), wanted, interpolation)
    return True


def _perspective(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    given, corners = arguments["coefficients"], [arguments[name] for name in ("startpoints", "endpoints")]
    if isinstance(given, (tuple, list)) and len(given) == 8 and corners == [None, None]:
        matrix = np.stack([_finite(owner, rows, "coefficients", entry) for entry in given], axis=1)
    elif given is None and all(isinstance(points, (tuple, list)) and len(points) == 4 for points in corners):
        start, end = ([tuple(_pairs(owner, rows, "corners", xy).T) for xy in points] for points in corners)
        matrix, is_valid = perspective_coefficients(start, end)
        if not is_valid.all():
            return False
    else:
        return False
    _emit_map(sampling, rows, Op.PERSPECTIVE, matrix, arguments)
    return True


def _pad(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    padding = arguments["padding"]
    if not isinstance(padding, (tuple, list)) or len(padding) != 4:
        return False
    left, top, right, bottom = (_whole(owner, rows, "padding", side, -MAX_LENGTH).astype(np.int32) for side in padding)
    mode = PADDING_MODE("padding_mode", arguments["padding_mode"])
    before, after = np.stack([top, left], axis=1), np.stack([bottom, right], axis=1)
    emit_pad(sampling, rows, before, after, check_colour("fill", arguments["fill"]), mode)
    return True


def _resize(owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    size = arguments["size"]
    is_pair = isinstance(size, (tuple, list)) and len(size) == 2
    if not is_pair or arguments["max_size"] is not None or arguments["antialias"] is not True:
        return False
    wanted = np.stack([_whole(owner, rows, "size", side, 1) for side in size], axis=1).astype(np.int32)
    emit_resize(sampling, rows, wanted, check_filter("interpolation", arguments["interpolation"]))
    return True


def _emit_map(sampling: Sampling, rows: Rows, op: Op, matrix: Floats, arguments: Arguments, size: Any = None) -> None:
    flags = INTERPOLATION_FLAGS[check_interpolation("interpolation", arguments["interpolation"])]
    flags |= BORDER_FLAGS[PADDING_MODE("padding_mode", arguments["padding_mode"])]
    sampling.emit(rows, op, *matrix.T, flags=flags, fill=check_colour("fill", arguments["fill"]), size=size)


# -- numbers of rows ---------------------------------------------------------------------------------------------


def _whole(owner: object, rows: Rows, name: str, value: Any, low: int) -> npt.NDArray[np.int64]:
    accepted = f"whole numbers from {low:,} to {MAX_LENGTH:,}"
    values = _numbers(owner, rows, name, value, accepted)
    fits = (values >= low) & (values <= MAX_LENGTH) & (values == np.floor(values))
    if not fits.all():
        raise ArgumentError(owner, name, values[~fits][0].item(), accepted)
    return values.astype(np.int64)


def _finite(owner: object, rows: Rows, name: str, value: Any, low: float = -LARGEST) -> Floats:
    accepted = f"numbers from {low:g} to {LARGEST:g}"
    values = _numbers(owner, rows, name, value, accepted)
    fits = (values >= low) & (values <= LARGEST)
    if not fits.all():
        raise ArgumentError(owner, name, values[~fits][0].item(), accepted)
    return values.astype(np.float64)


def _numbers(owner: object, rows: Rows, name: str, value: Any, accepted: str) -> npt.NDArray[Any]:
    """One for each row, whatever a policy file has there."""
    try:
        values = np.broadcast_to(np.asarray(value), len(rows))
    except ValueError:
        values = np.empty(0, object)
    if values.dtype.kind not in "iuf":
        raise ArgumentError(owner, name, value, accepted)
    return values


def _pairs(owner: object, rows: Rows, name: str, value: Any) -> Floats:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ArgumentError(owner, name, value, "a pair of numbers (x, y)")
    return np.stack([_finite(owner, rows, name, entry) for entry in value], axis=1)


_WRITTEN: dict[str, tuple[Written, set[str]]] = {
    "horizontal_flip": (_flip(Op.HFLIP), set()),
    "hflip": (_flip(Op.HFLIP), set()),
    "vertical_flip": (_flip(Op.VFLIP), set()),
    "vflip": (_flip(Op.VFLIP), set()),
    "erase": (_erase, {"i", "j", "h", "w", "v"}),
    "crop": (_crop, {"top", "left", "height", "width"}),
    "rotate": (_rotate, {"angle", "interpolation", "expand", "center", "fill", "padding_mode"}),
    "resized_crop": (_resized_crop, {"top", "left", "height", "width", "size", "interpolation", "antialias"}),
    "perspective": (
        _perspective,
        {"startpoints", "endpoints", "interpolation", "fill", "coefficients", "padding_mode"},
    ),
    "pad": (_pad, {"padding", "fill", "padding_mode"}),
    "resize": (_resize, {"size", "interpolation", "max_size", "antialias"}),
    "affine": (
        _affine,
        {"angle", "translate", "scale", "shear", "interpolation", "fill", "center", "padding_mode"},
    ),
}


def write(function: str, owner: object, sampling: Sampling, rows: Rows, arguments: Arguments) -> bool:
    """Emit ``function`` for ``rows``; False where it is not written here, at such arguments."""
    written, names = _WRITTEN.get(function, (None, set()))
    return written is not None and set(arguments) == names and written(owner, sampling, rows, arguments)

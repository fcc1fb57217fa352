"""Maps that keep the image's size (rotate may expand it); names and arguments of torchvision.transforms.v2.functional.

Every function takes ``img``, a uint8 array [H, W, C] with C = 1 or 3 or [H, W] (or a torch tensor of such a shape), and
``device`` ("cpu" or "reference"). ``interpolation`` is "nearest", "bilinear" or "bicubic" and ``fill`` the level, or
the three levels, of pixels that come from outside; x runs right, y down, in pixels. Meaning: Pillow's Image.transform.
A ValueError names an argument out of range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.program.ops import Op
from variegate.transforms.functional.arguments import Fill, colour, interpolation, number, pair, refused
from variegate.transforms.functional.single import Img, Single, run_one
from variegate.transforms.matrices import inverse_affine, perspective_coefficients, rotated_size

_CENTER = "None for the middle of the image, or (x, y) in pixels from its top-left corner"


def horizontal_flip(img: Img, device: str = "cpu") -> Img:
    """Mirror left-right."""
    return run_one(img, device, Op.HFLIP)


def vertical_flip(img: Img, device: str = "cpu") -> Img:
    """Mirror top-bottom."""
    return run_one(img, device, Op.VFLIP)


def rotate(
    img: Img,
    angle: float,
    interpolation: Any = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = 0,
    device: str = "cpu",
) -> Img:
    """Turn counter-clockwise by ``angle`` degrees about ``center`` (x, y).

    ``expand`` grows the canvas to hold the turned image; it assumes that the centre is the middle, as Pillow does.
    Pillow's Image.rotate, exact for whole half turns, and for quarter turns of square images or with ``expand``.
    """
    single = Single(img)
    turn, about = number("angle", angle), None if center is None else pair("center", center, _CENTER)
    size = None
    if expand:
        height, width = rotated_size([(single.height, single.width)], [turn], about)[0].tolist()
        size = (height, width)
    x, y = about if about is not None else (math.nan, math.nan)
    flags, levels = _interpolation(interpolation), colour("fill", fill)
    return single.emit(Op.ROTATE, turn, x, y, float(bool(expand)), flags=flags, fill=levels, size=size).run(device)


def affine(
    img: Img,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: Any = "nearest",
    fill: Fill = 0,
    center: Sequence[float] | None = None,
    device: str = "cpu",
) -> Img:
    """Shear (degrees; one number: along x), scale, turn clockwise by ``angle`` degrees about ``center``, then move.

    ``translate`` (x, y) in pixels; ``scale`` more than 0. Angles and matrix as torchvision's ``affine``.
    """
    single = Single(img)
    shears: Any = shear if hasattr(shear, "__len__") else (shear, 0.0)
    shears = (shears[0], shears[0]) if len(shears) == 1 else shears
    if number("scale", scale) <= 0:
        raise refused("scale", scale, "a number greater than 0")
    matrix = inverse_affine(
        [(single.width * 0.5, single.height * 0.5) if center is None else pair("center", center, _CENTER)],
        [number("angle", angle)],
        [pair("translate", translate, "(x, y) in pixels")],
        [float(scale)],
        [pair("shear", shears, "degrees along x, or (x, y) degrees")],
    )[0]
    return single.emit(Op.AFFINE, *matrix.tolist(), flags=_interpolation(interpolation), fill=colour("fill", fill)).run(
        device
    )


def perspective(
    img: Img,
    startpoints: Sequence[Sequence[float]] | None,
    endpoints: Sequence[Sequence[float]] | None,
    interpolation: Any = "bilinear",
    fill: Fill = 0,
    coefficients: Sequence[float] | None = None,
    device: str = "cpu",
) -> Img:
    """Move four corners ``startpoints`` to ``endpoints`` ((x, y) each: top-left, top-right, bottom-right, bottom-left).

    ``coefficients``, eight numbers output -> input as Pillow's PERSPECTIVE has them, may stand in for the points.
    """
    if coefficients is not None:
        if startpoints is not None or endpoints is not None:
            raise refused("coefficients", coefficients, "None where startpoints and endpoints are given")
        if len(coefficients) != 8:
            raise refused("coefficients", coefficients, "eight numbers a..h")
        values = [number("coefficients", v) for v in coefficients]
    else:
        solved, exists = perspective_coefficients(
            [_corners("startpoints", startpoints)], [_corners("endpoints", endpoints)]
        )
        if not exists[0]:
            raise refused("endpoints", endpoints, "corners, as startpoints are, of which no three are in line")
        values = solved[0].tolist()
    return run_one(img, device, Op.PERSPECTIVE, *values, flags=_interpolation(interpolation), fill=colour("fill", fill))


def shear_x(img: Img, shear: float, interpolation: Any = "nearest", fill: Fill = 0, device: str = "cpu") -> Img:
    """Row y reads from ``shear * y`` pixels further right, from the top-left corner (AutoAugment's ShearX)."""
    return _one_number(img, Op.SHEAR_X, number("shear", shear), interpolation, fill, device)


def shear_y(img: Img, shear: float, interpolation: Any = "nearest", fill: Fill = 0, device: str = "cpu") -> Img:
    """Column x reads from ``shear * x`` pixels further down, from the top-left corner (AutoAugment's ShearY)."""
    return _one_number(img, Op.SHEAR_Y, number("shear", shear), interpolation, fill, device)


def translate_x(img: Img, pixels: float, interpolation: Any = "nearest", fill: Fill = 0, device: str = "cpu") -> Img:
    """Move the content ``pixels`` to the right."""
    return _one_number(img, Op.TRANSLATE_X, number("pixels", pixels), interpolation, fill, device)


def translate_y(img: Img, pixels: float, interpolation: Any = "nearest", fill: Fill = 0, device: str = "cpu") -> Img:
    """Move the content ``pixels`` down."""
    return _one_number(img, Op.TRANSLATE_Y, number("pixels", pixels), interpolation, fill, device)


_interpolation = interpolation  # the argument of that name hides the function


def _one_number(img: Img, op: Op, value: float, interpolation: Any, fill: Fill, device: str) -> Img:
    return run_one(img, device, op, value, flags=_interpolation(interpolation), fill=colour("fill", fill))


def _corners(argument: str, points: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    accepted = "four corners (x, y): top-left, top-right, bottom-right, bottom-left"
    try:
        corners = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise refused(argument, points, accepted) from None
    if corners.shape != (4, 2) or not np.isfinite(corners).all():
        raise refused(argument, points, accepted)
    return corners

"""Flips, affine maps, borders, crops and resizes; names and arguments of torchvision.transforms.v2.functional.

Common arguments are described in ``variegate.transforms.functional``. Meaning: Pillow's Image.transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np

from variegate import transforms as T
from variegate.checks import as_number, as_numbers
from variegate.ops.arguments import (
    BLACK,
    MAX_LENGTH,
    Center,
    Edges,
    Fill,
    FilterName,
    Finite,
    InterpolationName,
    Length,
    PaddingMode,
    Size,
    two_numbers,
)
from variegate.ops.crop import add_crop
from variegate.ops.deform import ElasticFlow, flow_of
from variegate.ops.matrices import inverse_affine_of, perspective_coefficients, rotated_size
from variegate.ops.resize import SideOrSize, add_resized_crop, crops_first, cut_out, resized_size
from variegate.ops.schema import LARGEST, Converted, Range
from variegate.program.ops import Op
from variegate.transforms.functional.declared import checked
from variegate.transforms.functional.single import Img, Single, refused, run, run_map, shape_of

Offset = Annotated[int, Range(-MAX_LENGTH, MAX_LENGTH)]


def _shears(value: Any) -> tuple[float, float] | None:
    """Degrees along x and y; a number is along x, and a list of one along both."""
    single, numbers = as_number(value), as_numbers(value) or ()
    return (single, 0.0) if single is not None else two_numbers(numbers * 2 if len(numbers) == 1 else numbers)


def _coefficients(value: Any) -> tuple[float, ...] | None:
    numbers = as_numbers(value)
    return numbers if numbers is not None and len(numbers) == 8 else None


@checked
def rotate(
    img: Img,
    angle: Finite,
    interpolation: InterpolationName = "nearest",
    expand: bool = False,
    center: Center | None = None,
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Rotate counter-clockwise by ``angle`` degrees about ``center`` (x, y), None for the center of the image.

    ``expand`` enlarges the canvas to hold the rotated image; it assumes the default center, as Pillow does. Equal to
    Pillow's Image.rotate; exact for half turns, and for quarter turns of square images or with ``expand``.
    """
    height, width, _ = shape_of(img)
    size = rotated_size(height, width, angle, center) if expand else None
    args = (angle, *(center or (math.nan, math.nan)), float(expand))
    return run_map(img, device, Op.ROTATE, args, interpolation, fill, padding_mode, size)


@checked
def affine(
    img: Img,
    angle: Finite,
    translate: Annotated[Sequence[float], Converted(two_numbers, "(x, y) in pixels")],
    scale: Annotated[float, Range(1 / LARGEST)],
    shear: Annotated[float | Sequence[float], Converted(_shears, "degrees along x, or (x, y) degrees")],
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    center: Center | None = None,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shear, scale, rotate clockwise by ``angle`` degrees about ``center``, then translate.

    ``translate``: (x, y) in pixels. ``scale``: above 0. ``shear``: degrees along x, or (x, y). ``center``: (x, y), None
    for the center of the image. Angles and matrix are as in torchvision's ``affine``.
    """
    height, width, _ = shape_of(img)
    about = (width * 0.5, height * 0.5) if center is None else center
    matrix = inverse_affine_of(about, angle, translate, scale, shear)  # type: ignore[arg-type]
    return run_map(img, device, Op.AFFINE, matrix, interpolation, fill, padding_mode)


@checked
def perspective(
    img: Img,
    startpoints: Sequence[Sequence[float]] | None,
    endpoints: Sequence[Sequence[float]] | None,
    interpolation: InterpolationName = "bilinear",
    fill: Fill = 0,
    coefficients: Annotated[Sequence[float], Converted(_coefficients, "eight numbers a..h")] | None = None,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Map four corners ``startpoints`` to ``endpoints``: (x, y) of top-left, top-right, bottom-right, bottom-left.

    ``coefficients``, eight numbers output -> input as in Pillow's PERSPECTIVE, replace the points.
    """
    if coefficients is not None:
        if startpoints is not None or endpoints is not None:
            raise refused("coefficients", coefficients, "None where startpoints and endpoints are given")
        values = coefficients
    else:
        start, end = _corners("startpoints", startpoints), _corners("endpoints", endpoints)
        solved, is_valid = perspective_coefficients(start.tolist(), end.tolist())
        if not is_valid:
            raise refused("endpoints", endpoints, "corners, as startpoints are, of which no three are in line")
        values = tuple(solved)
    shape_of(img)
    return run_map(img, device, Op.PERSPECTIVE, values, interpolation, fill, padding_mode)


@checked
def elastic(
    img: Img,
    displacement: Any,
    interpolation: InterpolationName = "bilinear",
    fill: Fill | None = None,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Displace each pixel by ``displacement``, float [1, H, W, 2] or [H, W, 2], as torchvision's ``elastic``.

    Output pixels show the image at their own place plus the displacement along x and y, in halves of the sides. It is
    stored to 2**-12 pixels, or to 2**-15 of its greatest value. Pixels from outside are ``fill``. Along the border,
    bilinear values are blended as by torchvision, with the weight w of the image: w image with ``fill`` None (black),
    else w (w image) + (1 - w) fill.
    """
    height, width, _ = shape_of(img)
    shape = tuple(getattr(displacement, "shape", None) or np.shape(displacement))
    accepted = f"float [1, {height}, {width}, 2] in halves of the sides, finite"
    if shape not in ((1, height, width, 2), (height, width, 2)):
        raise refused("displacement.shape", shape, accepted)
    halves = np.asarray(displacement.detach().cpu() if hasattr(displacement, "detach") else displacement)
    flow = flow_of(halves.reshape(height, width, 2) * np.array([width / 2, height / 2], np.float32))
    if flow is None:
        raise refused("displacement", displacement, accepted)
    warp = partial(
        T.OpticalFlowWarp if fill is None else ElasticFlow,
        flow,
        interpolation=interpolation,
        fill=fill,
        padding_mode=padding_mode,
    )
    return run(img, device, warp)


def _corners(argument: str, points: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    accepted = "four corners (x, y): top-left, top-right, bottom-right, bottom-left"
    try:
        corners = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise refused(argument, points, accepted) from None
    if corners.shape != (4, 2) or not np.isfinite(corners).all():
        raise refused(argument, points, accepted)
    return corners


def crop(img: Img, top: int, left: int, height: int, width: int, device: str = "cpu") -> Img:
    """Crop ``height`` x ``width`` pixels from (``top``, ``left``); black outside of the image."""
    single = Single(img)
    _cut(single, top, left, height, width)
    return single.run(device)


@checked
def five_crop(img: Img, size: Size, device: str = "cpu") -> tuple[Img, ...]:
    """Crop the four corners and the center, ``size`` each: top left, top right, bottom left, ...

    Raises ValueError for a smaller image.
    """
    height, width = size  # type: ignore[misc]
    down, right = shape_of(img)[0] - height, shape_of(img)[1] - width
    if down < 0 or right < 0:
        raise refused("size", size, f"at most the image's {shape_of(img)[:2]} (height, width)")
    corners = [crop(img, y, x, height, width, device) for y in (0, down) for x in (0, right)]
    return *corners, run(img, device, lambda: T.CenterCrop(size))


@checked
def ten_crop(img: Img, size: Size, vertical_flip: bool = False, device: str = "cpu") -> tuple[Img, ...]:
    """Apply ``five_crop`` to the image and to its mirror image: left-right, or with ``vertical_flip`` top-bottom."""
    mirrored = Single(img).emit(Op.VFLIP if vertical_flip else Op.HFLIP)
    return *five_crop(img, size, device), *five_crop(mirrored.run(device), size, device)


@checked
def resized_crop(
    img: Img,
    top: float,
    left: float,
    height: float,
    width: float,
    size: SideOrSize,
    interpolation: FilterName = "bilinear",
    antialias: bool | None = True,
    device: str = "cpu",
    edges: Edges = "image",
) -> Img:
    """Resample a box to ``size`` in one step, as Pillow's ``Image.resize(size, box=...)``.

    The box is ``top``, ``left``, ``height`` and ``width`` in pixels, fractions allowed. ``size`` as for ``resize``.
    With ``edges="image"``, the filter uses the image's pixels beyond the box's edges. With "crop", for whole pixels, it
    does not, as in torchvision, which crops first. A box that exceeds the image is cropped first, with black outside.
    """
    box = as_numbers((top, left, height, width))
    if box is None or min(box[2:]) <= 0 or max(map(abs, box)) > MAX_LENGTH:
        given = (top, left, height, width)
        raise refused("top, left, height, width", given, "a box in pixels, its height and width greater than 0")
    if edges == "crop" and any(value != int(value) for value in box):
        raise refused("edges", edges, '"image" for a box with fractions of pixels')
    sides: Any = size
    if isinstance(sides, int):
        sides = resized_size(box[2], box[3], sides, None)
    single = Single(img)
    if box[0] < 0 or box[1] < 0 or box[0] + box[2] > single.height or box[1] + box[3] > single.width:
        _cut(single, *box)
        box = (0, 0, *box[2:])
    if crops_first(interpolation, edges) and all(value == int(value) for value in box):
        box = tuple(cut_out(single.sampling, tuple(map(int, box))))
    add_resized_crop(single.sampling, box, sides, interpolation)
    return single.run(device)


@checked
def _cut(single: Single[Img], top: Offset, left: Offset, height: Length, width: Length) -> None:
    add_crop(single.sampling, top, left, (height, width), BLACK)

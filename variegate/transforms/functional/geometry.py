"""Flips, affine maps, borders, crops and resizes; names and arguments of torchvision.transforms.v2.functional.

Common arguments are described in ``variegate.transforms.functional``. Meaning: Pillow's Image.transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.checks import as_number, as_numbers, integer, number, pair
from variegate.ops.arguments import (
    BLACK,
    CENTER,
    FLAG,
    LARGEST,
    MAX_LENGTH,
    Edges,
    Fill,
    FilterName,
    InterpolationName,
    PaddingMode,
    Size,
    check_size,
)
from variegate.ops.crop import add_crop
from variegate.ops.deform import ElasticFlow, flow_of
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.matrices import inverse_affine_of, perspective_coefficients, rotated_size
from variegate.ops.resize import EDGES, add_resized_crop, crops_first, cut_out, resized_size
from variegate.program.ops import Op
from variegate.transforms.functional.single import Img, Single, declared, refused, run, run_map, run_step, shape_of


def horizontal_flip(img: Img, device: str = "cpu") -> Img:
    """Mirror left-right."""
    return run_step(img, device, Op.HFLIP)


def vertical_flip(img: Img, device: str = "cpu") -> Img:
    """Mirror top-bottom."""
    return run_step(img, device, Op.VFLIP)


def rotate(
    img: Img,
    angle: float,
    interpolation: InterpolationName = "nearest",
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Rotate counter-clockwise by ``angle`` degrees about ``center`` (x, y), None for the center of the image.

    ``expand`` enlarges the canvas to hold the rotated image; it assumes the default center, as Pillow does. Equal to
    Pillow's Image.rotate; exact for half turns, and for quarter turns of square images or with ``expand``.
    """
    turn = number("angle", angle, -LARGEST, LARGEST, error=refused)
    about = CENTER("center", center, error=refused)
    height, width, _ = shape_of(img)
    size = rotated_size(height, width, turn, about) if expand else None
    args = (turn, *(about or (math.nan, math.nan)), float(bool(expand)))
    return run_map(img, device, Op.ROTATE, args, interpolation, fill, padding_mode, size)


def affine(
    img: Img,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: float | Sequence[float],
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    center: Sequence[float] | None = None,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shear, scale, rotate clockwise by ``angle`` degrees about ``center``, then translate.

    ``translate``: (x, y) in pixels. ``scale``: above 0. ``shear``: degrees along x, or (x, y). ``center``: (x, y), None
    for the center of the image. Angles and matrix are those of torchvision's ``affine``.
    """
    height, width, _ = shape_of(img)
    factor = number("scale", scale, error=refused)
    if factor <= 0:
        raise refused("scale", scale, "a number greater than 0")
    slant, shears = as_number(shear), as_numbers(shear)
    both: Any = (slant, 0.0) if slant is not None else shears * 2 if shears and len(shears) == 1 else shear
    about = CENTER("center", center, error=refused)
    matrix = inverse_affine_of(
        (width * 0.5, height * 0.5) if about is None else about,
        number("angle", angle, error=refused),
        pair("translate", translate, accepted="(x, y) in pixels", error=refused),
        factor,
        pair("shear", both, accepted="degrees along x, or (x, y) degrees", error=refused),
    )
    return run_map(img, device, Op.AFFINE, matrix, interpolation, fill, padding_mode)


def perspective(
    img: Img,
    startpoints: Sequence[Sequence[float]] | None,
    endpoints: Sequence[Sequence[float]] | None,
    interpolation: InterpolationName = "bilinear",
    fill: Fill = 0,
    coefficients: Sequence[float] | None = None,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Map four corners ``startpoints`` to ``endpoints``: (x, y) of top-left, top-right, bottom-right, bottom-left.

    ``coefficients``, eight numbers output -> input as in Pillow's PERSPECTIVE, replace the points.
    """
    if coefficients is not None:
        if startpoints is not None or endpoints is not None:
            raise refused("coefficients", coefficients, "None where startpoints and endpoints are given")
        values = as_numbers(coefficients)
        if values is None or len(values) != 8:
            raise refused("coefficients", coefficients, "eight numbers a..h")
    else:
        start, end = _corners("startpoints", startpoints), _corners("endpoints", endpoints)
        solved, is_valid = perspective_coefficients(start.tolist(), end.tolist())
        if not is_valid:
            raise refused("endpoints", endpoints, "corners, as startpoints are, of which no three are in line")
        values = tuple(solved)
    shape_of(img)
    return run_map(img, device, Op.PERSPECTIVE, values, interpolation, fill, padding_mode)


def shear_x(
    img: Img,
    shear: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shift row y left by ``shear * y`` pixels (AutoAugment's ShearX)."""
    return _run_map_at(img, device, T.ShearX, "shear", shear, interpolation, fill, padding_mode)


def shear_y(
    img: Img,
    shear: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shift column x up by ``shear * x`` pixels (AutoAugment's ShearY)."""
    return _run_map_at(img, device, T.ShearY, "shear", shear, interpolation, fill, padding_mode)


def translate_x(
    img: Img,
    pixels: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Move the content right by ``pixels``."""
    return _run_map_at(img, device, T.TranslateX, "pixels", pixels, interpolation, fill, padding_mode)


def translate_y(
    img: Img,
    pixels: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Move the content down by ``pixels``."""
    return _run_map_at(img, device, T.TranslateY, "pixels", pixels, interpolation, fill, padding_mode)


def elastic(
    img: Img,
    displacement: Any,
    interpolation: InterpolationName = "bilinear",
    fill: Fill = None,
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


def _run_map_at(
    img: Img,
    device: str,
    operation: type[MagnitudeOp],
    name: str,
    value: object,
    interpolation: InterpolationName,
    fill: Fill,
    padding_mode: PaddingMode,
) -> Img:
    number = operation.check_number(name, value, error=refused)
    return run_map(img, device, operation._op, (number,), interpolation, fill, padding_mode)


def _corners(argument: str, points: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    accepted = "four corners (x, y): top-left, top-right, bottom-right, bottom-left"
    try:
        corners = np.asarray(points, np.float64)
    except (TypeError, ValueError):
        raise refused(argument, points, accepted) from None
    if corners.shape != (4, 2) or not np.isfinite(corners).all():
        raise refused(argument, points, accepted)
    return corners


def pad(
    img: Img, padding: int | Sequence[int], fill: Fill = 0, padding_mode: PaddingMode = "constant", device: str = "cpu"
) -> Img:
    """Add borders of ``padding`` pixels: one number, (x, y) or (left, top, right, bottom); negative ones crop.

    ``padding_mode``: "constant" (``fill``), "edge", "reflect", "symmetric" or "wrap", as NumPy's ``pad``.
    """
    return run(img, device, lambda: T.Pad(padding, fill, padding_mode))


def crop(img: Img, top: int, left: int, height: int, width: int, device: str = "cpu") -> Img:
    """Crop ``height`` x ``width`` pixels from (``top``, ``left``); black outside of the image."""
    single = Single(img)
    _cut(single, top, left, height, width)
    return single.run(device)


def center_crop(img: Img, output_size: Size, device: str = "cpu") -> Img:
    """Crop the central ``output_size`` (height, width) pixels; smaller images are padded with black."""
    return run(img, device, lambda: T.CenterCrop(output_size), size="output_size")


def five_crop(img: Img, size: Size, device: str = "cpu") -> tuple[Img, ...]:
    """Crop the four corners and the center, ``size`` each: top left, top right, bottom left, ...

    Raises ValueError for a smaller image.
    """
    height, width = check_size("size", size, error=refused)
    down, right = shape_of(img)[0] - height, shape_of(img)[1] - width
    if down < 0 or right < 0:
        raise refused("size", size, f"at most the image's {shape_of(img)[:2]} (height, width)")
    corners = [crop(img, y, x, height, width, device) for y in (0, down) for x in (0, right)]
    return *corners, center_crop(img, (height, width), device)


def ten_crop(img: Img, size: Size, vertical_flip: bool = False, device: str = "cpu") -> tuple[Img, ...]:
    """Apply ``five_crop`` to the image and to its mirror image: left-right, or with ``vertical_flip`` top-bottom."""
    mirrored = Single(img).emit(Op.VFLIP if FLAG("vertical_flip", vertical_flip, error=refused) else Op.HFLIP)
    return *five_crop(img, size, device), *five_crop(mirrored.run(device), size, device)


def resize(
    img: Img,
    size: Size | None,
    interpolation: FilterName = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
    device: str = "cpu",
) -> Img:
    """Resize to ``size`` (height, width), as Pillow's Image.resize.

    One integer is the length of the shorter side, keeping the aspect ratio; ``max_size`` limits the longer side. With
    ``size`` None, the longer side becomes ``max_size``.
    """
    return run(img, device, lambda: T.Resize(size, interpolation, max_size, antialias))


def resized_crop(
    img: Img,
    top: float,
    left: float,
    height: float,
    width: float,
    size: Size,
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
    wanted = declared(lambda: T.Resize(size, interpolation, antialias=antialias))
    edges = EDGES("edges", edges, error=refused)
    box = as_numbers((top, left, height, width))
    if box is None or min(box[2:]) <= 0 or max(map(abs, box)) > MAX_LENGTH:
        given = (top, left, height, width)
        raise refused("top, left, height, width", given, "a box in pixels, its height and width greater than 0")
    if edges == "crop" and any(value != int(value) for value in box):
        raise refused("edges", edges, '"image" for a box with fractions of pixels')
    sides: Any = wanted.size
    if isinstance(sides, int):
        sides = resized_size(box[2], box[3], sides, None)
    single = Single(img)
    if box[0] < 0 or box[1] < 0 or box[0] + box[2] > single.height or box[1] + box[3] > single.width:
        _cut(single, *box)
        box = (0, 0, *box[2:])
    if crops_first(wanted.interpolation, edges) and all(value == int(value) for value in box):
        box = tuple(cut_out(single.sampling, tuple(map(int, box))))
    add_resized_crop(single.sampling, box, sides, wanted.interpolation)
    return single.run(device)


def _cut(single: Single[Img], top: float, left: float, height: float, width: float) -> None:
    size = [integer(n, v, 1, MAX_LENGTH, error=refused) for n, v in (("height", height), ("width", width))]
    corner = (("top", top), ("left", left))
    origin = [integer(n, v, -MAX_LENGTH, MAX_LENGTH, error=refused) for n, v in corner]
    add_crop(single.sampling, origin[0], origin[1], (size[0], size[1]), BLACK)

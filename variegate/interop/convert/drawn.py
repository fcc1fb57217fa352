"""Transforms of other libraries whose arguments need arithmetic on an image's size or on drawn numbers: pipelines.

Arguments of conversions for Albumentations have its names; ``warp`` is the interpolation and border of a map.
Descriptions name them, as ``variegate.interop.convert.drawn:crop``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from variegate.pipelines import coin, normal, pipeline, randint, uniform
from variegate.transforms import functional as F

Ends = Sequence[float]
Axes = Mapping[str, Any]


def _integer(ends: Sequence[int]) -> int:
    """An integer from the first to the last, both included."""
    return randint(ends[0], ends[1] + 1)


# -- Albumentations' crops and borders -------------------------------------------------------------------------------


@pipeline
def crop(image: Any, x_min: int = 0, y_min: int = 0, x_max: int = 1024, y_max: int = 1024) -> Any:
    return F.crop(image, y_min, x_min, y_max - y_min, x_max - x_min)


@pipeline
def crop_from_borders(
    image: Any, crop_top: float = 0.1, crop_left: float = 0.1, crop_bottom: float = 0.1, crop_right: float = 0.1
) -> Any:
    """Shares of height and width that may be cut off."""

    def draw(side: int, before: float, after: float) -> tuple[int, int]:
        start = _integer((0, int(side * before)))
        end = _integer((max(start + 1, int(side * (1 - after))), side))
        return start, end - start

    top, height = draw(image.height, crop_top, crop_bottom)
    left, width = draw(image.width, crop_left, crop_right)
    return F.crop(image, top, left, height, width)


@pipeline
def crop_and_pad(
    image: Any,
    px: Any = None,
    percent: Any = None,
    sample_independently: bool = True,
    keep_size: bool = True,
    interpolation: Any = "bilinear",
    fill: Any = 0,
    padding_mode: Any = "constant",
) -> Any:
    """Borders at the top, right, bottom and left, in pixels or as shares of the sides; negative ones are cut off."""
    limits = percent if px is None else px
    is_per_side = isinstance(limits, Sequence) and len(limits) == 4

    def draw(ends: Any) -> Any:
        low, high = ends if isinstance(ends, Sequence) else (ends, ends)
        if px is None:
            return uniform(low, high)
        return randint(low, high) if low < high else low

    if is_per_side or sample_independently:
        borders = [draw(ends) for ends in (limits if is_per_side else (limits,) * 4)]
    else:
        borders = [draw(limits)] * 4
    if px is None:
        sides = (image.height, image.width, image.height, image.width)
        borders = [int(side * share) for side, share in zip(sides, borders, strict=True)]
    top, right, bottom, left = map(int, borders)
    padded = F.pad(image, (left, top, right, bottom), fill, padding_mode)
    return F.resize(padded, (image.height, image.width), interpolation) if keep_size else padded


@pipeline
def pad_if_needed(
    image: Any,
    min_height: int | None = 1024,
    min_width: int | None = 1024,
    pad_height_divisor: int | None = None,
    pad_width_divisor: int | None = None,
    position: str = "center",
    fill: Any = 0,
    padding_mode: Any = "constant",
) -> Any:
    def draw(side: int, smallest: int | None, divisor: int | None, first: str) -> tuple[int, int]:
        """Borders before and after a side."""
        missing = -side % divisor if divisor else max(0, (smallest or 0) - side)
        if position == "random":
            before = _integer((0, missing))
        elif position == "center":
            before = missing // 2
        else:
            before = 0 if first in position else missing
        return before, missing - before

    top, bottom = draw(image.height, min_height, pad_height_divisor, "top")
    left, right = draw(image.width, min_width, pad_width_divisor, "left")
    return F.pad(image, (left, top, right, bottom), fill, padding_mode)


@pipeline
def band(image: Any, is_column: bool = True, lengths: Sequence[int] = (0, 10)) -> Any:
    """Erase adjacent columns or rows."""
    side = image.width if is_column else image.height
    length = min(_integer(lengths), side)
    start = _integer((0, side - length))
    if length < 1:
        return image
    if is_column:
        return F.erase(image, 0, start, image.height, length)
    return F.erase(image, start, 0, length, image.width)


# -- Albumentations' resizes and maps --------------------------------------------------------------------------------


@pipeline
def random_scale(image: Any, scale_range: Ends = (-0.1, 0.1), interpolation: Any = "bilinear") -> Any:
    factor = 1 + uniform(*scale_range)
    return F.resize(image, (int(image.height * factor), int(image.width * factor)), interpolation)


@pipeline
def sized_crop(
    image: Any,
    min_max_height: Sequence[int] = (1, 1),
    w2h_ratio: float = 1.0,
    size: Sequence[int] = (1, 1),
    interpolation: Any = "bilinear",
) -> Any:
    drawn = _integer(min_max_height)
    height = min(drawn, image.height)
    width = min(int(drawn * w2h_ratio), image.width)
    top = _integer((0, image.height - height))
    left = _integer((0, image.width - width))
    return F.resized_crop(image, top, left, height, width, size, interpolation)


@pipeline
def affine(
    image: Any,
    rotate: Ends = (0.0, 0.0),
    scale: Axes | None = None,
    shear: Axes | None = None,
    translate_percent: Axes | None = None,
    translate_px: Axes | None = None,
    keep_ratio: bool = False,
    warp: Any = None,
) -> Any:
    """The inverse of shear x rotation x scale. All but ``rotate`` have a range, or a number, for each of x and y."""
    x_scale = _draw_axis(scale, "x", 1.0)
    y_scale = x_scale if keep_ratio else _draw_axis(scale, "y", 1.0)
    turn = math.radians(uniform(*rotate))
    p = math.tan(math.radians(_draw_axis(shear, "x", 0.0)))
    q = math.tan(math.radians(_draw_axis(shear, "y", 0.0)))
    determinant = 1 - p * q  # of the shears, which are both negative there
    x_moved, y_moved = (
        side / 2 + int(side * _draw_axis(translate_percent, axis, 0.0)) + _draw_shift(translate_px, axis)
        for side, axis in ((image.width, "x"), (image.height, "y"))
    )

    def line(a: float, b: float, factor: float, side: int) -> tuple[float, float, float]:
        """A line of the inverse, which maps the moved center to the center of the side."""
        a = a / (determinant * factor)
        b = b / (determinant * factor)
        return a, b, side / 2 - (a * x_moved + b * y_moved)

    cos, sin = math.cos(turn), math.sin(turn)
    x = line(cos - q * sin, p * cos - sin, x_scale, image.width)
    y = line(sin + q * cos, p * sin + cos, y_scale, image.height)
    return F.perspective(image, None, None, coefficients=[*x, *y, 0, 0], **(warp or {}))


def _axis(ranges: Any, axis: str, default: float) -> tuple[Any, Any]:
    """The range of an axis, of {"x": ..., "y": ...}, of one range for both, or of a number."""
    ends = ranges.get(axis) if isinstance(ranges, Mapping) else ranges
    if ends is None:
        return default, default
    return tuple(ends) if isinstance(ends, Sequence) else (ends, ends)


def _draw_axis(ranges: Any, axis: str, default: float) -> float:
    return uniform(*_axis(ranges, axis, default))


def _draw_shift(ranges: Any, axis: str) -> int:
    low, high = _axis(ranges, axis, 0)
    return _integer((int(low), int(high)))


@pipeline
def safe_rotate(
    image: Any,
    angle_range: Ends = (-90, 90),
    warp: Any = None,
) -> Any:
    """A rotation that shows the whole image, shrunk to the image's size."""
    width, height = image.width, image.height
    turn = math.radians(uniform(*angle_range))
    cos, sin = math.cos(turn), math.sin(turn)
    x_factor = int(height * abs(sin) + width * abs(cos)) / width
    y_factor = int(height * abs(cos) + width * abs(sin)) / height

    def line(a: float, b: float, side: int) -> tuple[float, float, float]:
        a = a * x_factor
        b = b * y_factor
        center = a * (width / 2 + 0.5) + b * (height / 2 + 0.5)
        return a, b, side / 2 - center

    coefficients = [*line(cos, -sin, width), *line(sin, cos, height), 0, 0]
    return F.perspective(image, None, None, coefficients=coefficients, **(warp or {}))


@pipeline
def perspective(
    image: Any,
    scale: Ends = (0.05, 0.1),
    warp: Any = None,
) -> Any:
    """Corners move inwards by the magnitude of normal numbers; the quadrangle between them becomes the image."""
    width, height = image.width, image.height
    deviation = uniform(*scale)

    def corner(is_right: bool, is_bottom: bool) -> tuple[float, float]:
        x, y = (abs(normal(0, deviation)) % 0.32 for _ in "xy")
        return width * (1 - x if is_right else x), height * (1 - y if is_bottom else y)

    corners = [corner(False, False), corner(True, False), corner(True, True), corner(False, True)]
    top_left, top_right, bottom_right, bottom_left = corners
    # As large as the longer edges are, and then as the image was: more than fills it.
    right = width * width / int(max(math.dist(top_left, top_right), math.dist(bottom_left, bottom_right)))
    bottom = height * height / int(max(math.dist(top_left, bottom_left), math.dist(top_right, bottom_right)))
    # Corners of pixels have whole numbers here, their centers there.
    start = [(x + 0.5, y + 0.5) for x, y in corners]
    end = [(0.5, 0.5), (right + 0.5, 0.5), (right + 0.5, bottom + 0.5), (0.5, bottom + 0.5)]
    return F.perspective(image, start, end, **(warp or {}))


# -- Albumentations' pixels ------------------------------------------------------------------------------------------


@pipeline
def linear(image: Any, contrast_range: Ends = (-0.2, 0.2), brightness_range: Ends = (-0.2, 0.2)) -> Any:
    """c x + b, b a share of 255: darkened before and brightened after the factor, so that nothing is cut off in
    between."""
    factor = 1 + uniform(*contrast_range)
    added = uniform(*brightness_range) * 255
    before = max(-255, round(min(0, added) / max(factor, 1e-3)))
    image = F.solarize_add(image, before, 256)
    image = F.adjust_brightness(image, factor)
    return F.solarize_add(image, round(max(0, added)), 256)


@pipeline
def linear_of_mean(image: Any, contrast_range: Ends = (-0.2, 0.2), brightness_range: Ends = (-0.2, 0.2)) -> Any:
    """c x + b mean, which is (b + c) times a contrast of c / (b + c). Values clipped by the library would be at the end
    of the range."""
    factor = 1 + uniform(*contrast_range)
    total = max(factor + uniform(*brightness_range), 1e-3)
    image = F.adjust_brightness(image, min(total, 1))
    image = F.adjust_contrast(image, factor / total)
    return F.adjust_brightness(image, max(total, 1))


@pipeline
def sharpen(image: Any, alpha_range: Ends = (0.2, 0.5), lightness_range: Ends = (0.5, 1.0)) -> Any:
    """A Laplacian of strength alpha: a Sharpness after a Brightness of its weights."""
    share = uniform(*alpha_range)
    light = uniform(*lightness_range)
    total = share * (light - 1) + 1
    image = F.adjust_brightness(image, total)
    return F.adjust_sharpness(image, (share * (light + 12) + 1) / max(total, 1e-3))


# -- timm ------------------------------------------------------------------------------------------------------------


@pipeline
def resize_keep_ratio(
    image: Any,
    size: Sequence[int] = (224, 224),
    interpolation: Any = "bilinear",
    scale: Ends | None = None,
    aspect: Ends | None = None,
    is_inside: bool = False,
) -> Any:
    """The whole image, as large as fills ``size``, or as fits inside it. By half a chance each, its area is divided by
    one of ``scale``, and its sides are by an aspect that is log-uniform in ``aspect``."""
    ratios = (image.height / size[0], image.width / size[1])
    ratio = max(ratios) if is_inside else min(ratios)
    zoom = stretch = 1.0
    if scale and aspect:
        zoom = 1.0 / math.sqrt(uniform(*scale) if coin() else 1.0)
        stretch = math.exp(uniform(*(math.log(end) / 2 for end in aspect)) if coin() else 0.0)
    resized = (round(image.height * (zoom / stretch) / ratio), round(image.width * (zoom * stretch) / ratio))
    return F.resize(image, resized, interpolation)


@pipeline
def center_crop_or_pad(
    image: Any, size: Sequence[int] = (224, 224), fill: Any = 0, padding_mode: Any = "constant"
) -> Any:
    """The central part; smaller images are padded to it."""
    rows, columns = (max(0, side - given) for side, given in zip(size, (image.height, image.width), strict=True))
    sides = (columns // 2, rows // 2, columns - columns // 2, rows - rows // 2)
    return F.center_crop(F.pad(image, sides, fill, padding_mode), size)

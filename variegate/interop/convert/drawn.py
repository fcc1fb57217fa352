"""Transforms of other libraries whose arguments need arithmetic: pipelines, of the arguments that converters read.

Descriptions name them, as ``variegate.interop.convert.drawn:crop``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from variegate.interop.convert.report import Place
from variegate.ops.base import Transform
from variegate.pipelines import Pipeline, coin, normal, pipeline, randint, uniform
from variegate.transforms import functional as F

Ends = Sequence[float]


def build(place: Place, of: Pipeline, **constants: Any) -> Transform:
    """The pipeline with these constants. Raises ConversionError for numbers that its functions do not take."""
    return place.build(Pipeline, function=of.function, constants=constants)


def _integer(low: int, high: int) -> int:
    """An integer from ``low`` to ``high``, both included."""
    return randint(low, high + 1)


# -- Albumentations' crops and borders -------------------------------------------------------------------------------


@pipeline
def crop(image: Any, top: int = 0, left: int = 0, height: int = 1024, width: int = 1024) -> Any:
    return F.crop(image, top, left, height, width)


@pipeline
def crop_from_borders(image: Any, starts: Ends = (0.1, 0.1), ends: Ends = (0.1, 0.1)) -> Any:
    """``starts``, ``ends``: shares of height and width that may be cut off."""

    def draw(side: int, start: float, end: float) -> tuple[int, int]:
        first = _integer(0, int(side * start))
        last = _integer(max(first + 1, int(side * (1 - end))), side)
        return first, last - first

    top, height = draw(image.height, starts[0], ends[0])
    left, width = draw(image.width, starts[1], ends[1])
    return F.crop(image, top, left, height, width)


@pipeline
def crop_and_pad(
    image: Any,
    limits: Sequence[Ends] = (),
    is_drawn_once: bool = False,
    are_pixels: bool = True,
    keep_size: bool = True,
    interpolation: str = "bilinear",
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """Borders at the top, right, bottom and left, whose ``limits`` are ranges; negative ones are cut off."""

    def draw(low: float, high: float) -> float:
        if not are_pixels:
            return uniform(low, high)
        return randint(low, high) if low < high else low  # type: ignore[arg-type]

    drawn = [draw(*limits[0])] * 4 if is_drawn_once else [draw(*ends) for ends in limits]
    if not are_pixels:
        sides = (image.height, image.width, image.height, image.width)
        drawn = [int(side * share) for side, share in zip(sides, drawn, strict=True)]
    top, right, bottom, left = map(int, drawn)
    padded = F.pad(image, (left, top, right, bottom), fill, padding_mode)  # type: ignore[arg-type]
    return F.resize(padded, (image.height, image.width), interpolation) if keep_size else padded  # type: ignore[arg-type]


@pipeline
def pad_if_needed(
    image: Any,
    least: Sequence[int | None] = (1024, 1024),
    divisors: Sequence[int | None] = (None, None),
    position: str = "center",
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """To the ``least`` height and width, or to multiples of ``divisors``."""

    def draw(side: int, smallest: int | None, divisor: int | None, first: str) -> tuple[int, int]:
        """Borders before and after a side."""
        missing = max(0, (smallest or 0) - side) if divisor is None else -side % divisor
        before = 0 if first in position else missing
        if position == "random":
            before = _integer(0, missing)
        if position == "center":
            before = missing // 2
        return before, missing - before

    top, bottom = draw(image.height, least[0], divisors[0], "top")
    left, right = draw(image.width, least[1], divisors[1], "left")
    return F.pad(image, (left, top, right, bottom), fill, padding_mode)  # type: ignore[arg-type]


@pipeline
def band(image: Any, is_column: bool = True, lengths: Sequence[int] = (0, 10)) -> Any:
    """Erase columns or rows side by side."""
    side = image.width if is_column else image.height
    length = min(_integer(lengths[0], lengths[1]), side)
    start = _integer(0, side - length)
    if length < 1:
        return image
    if is_column:
        return F.erase(image, 0, start, image.height, length)
    return F.erase(image, start, 0, length, image.width)


# -- resizes ---------------------------------------------------------------------------------------------------------


@pipeline
def random_scale(image: Any, factors: Ends = (0.9, 1.1), interpolation: str = "bilinear") -> Any:
    factor = uniform(*factors)
    return F.resize(image, (int(image.height * factor), int(image.width * factor)), interpolation)  # type: ignore[arg-type]


@pipeline
def sized_crop(
    image: Any,
    heights: Sequence[int] = (1, 1),
    size: Sequence[int] = (1, 1),
    aspect: float = 1.0,
    interpolation: str = "bilinear",
) -> Any:
    drawn = _integer(heights[0], heights[1])
    height = min(drawn, image.height)
    width = min(int(drawn * aspect), image.width)
    top = _integer(0, image.height - height)
    left = _integer(0, image.width - width)
    return F.resized_crop(image, top, left, height, width, size, interpolation)  # type: ignore[arg-type]


# -- maps of coordinates ---------------------------------------------------------------------------------------------


def _map(image: Any, x: Sequence[float], y: Sequence[float], **warp: Any) -> Any:
    """An affine map: the output at (x, y) shows the input at (a x + b y + c, d x + e y + f)."""
    return F.perspective(image, None, None, coefficients=[*x, *y, 0, 0], **warp)


@pipeline
def affine(
    image: Any,
    degrees: Ends = (0.0, 0.0),
    scales: Sequence[Ends] = ((1.0, 1.0),),
    shears: Sequence[Ends] = ((0.0, 0.0), (0.0, 0.0)),
    shares: Sequence[Ends] = ((0.0, 0.0), (0.0, 0.0)),
    pixels: Sequence[Ends] = ((0.0, 0.0), (0.0, 0.0)),
    interpolation: str = "bilinear",
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """The inverse of shear x rotation x scale. All but ``degrees`` have a range for x and for y; one of ``scales`` is a
    factor for both. Shifts are ``shares`` of the sides and ``pixels``."""
    width = image.width
    height = image.height
    drawn_scales = [uniform(*ends) for ends in scales]
    turn = math.radians(uniform(*degrees))
    cos = math.cos(turn)
    sin = math.sin(turn)
    p, q = (math.tan(math.radians(uniform(*ends))) for ends in shears)
    determinant = 1 - p * q  # of the shears, both of which are negative there

    def moved(side: int, share: Ends, shift: Ends) -> float:
        return side / 2 + int(side * uniform(*share)) + _integer(int(shift[0]), int(shift[1]))

    x_middle = moved(width, shares[0], pixels[0])
    y_middle = moved(height, shares[1], pixels[1])

    def line(a: float, b: float, factor: float, side: int) -> tuple[float, float, float]:
        """A line of the inverse, which takes the moved middle to the middle of the side."""
        a = a / (determinant * factor)
        b = b / (determinant * factor)
        return a, b, side / 2 - (a * x_middle + b * y_middle)

    x = line(cos - q * sin, p * cos - sin, drawn_scales[0], width)
    y = line(sin + q * cos, p * sin + cos, drawn_scales[-1], height)
    return _map(image, x, y, interpolation=interpolation, fill=fill, padding_mode=padding_mode)


@pipeline
def safe_rotate(
    image: Any,
    degrees: Ends = (-90, 90),
    interpolation: str = "bilinear",
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """A rotation that shows the whole image, shrunk to the image's size."""
    width = image.width
    height = image.height
    turn = math.radians(uniform(*degrees))
    cos = math.cos(turn)
    sin = math.sin(turn)
    x_factor = int(height * abs(sin) + width * abs(cos)) / width
    y_factor = int(height * abs(cos) + width * abs(sin)) / height

    def line(a: float, b: float, side: int) -> tuple[float, float, float]:
        a = a * x_factor
        b = b * y_factor
        # Where the middle of a pixel becomes that of the image.
        middle = a * (width / 2 + 0.5) + b * (height / 2 + 0.5)
        return a, b, side / 2 - middle

    x = line(cos, -sin, width)
    y = line(sin, cos, height)
    return _map(image, x, y, interpolation=interpolation, fill=fill, padding_mode=padding_mode)


@pipeline
def perspective(
    image: Any,
    scales: Ends = (0.05, 0.1),
    interpolation: str = "bilinear",
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """Corners move inwards by the magnitude of normal numbers; the quadrangle between them is drawn out."""
    width = image.width
    height = image.height
    scale = uniform(*scales)

    def inwards() -> float:
        return abs(normal(0, scale)) % 0.32

    top_left = (width * inwards(), height * inwards())
    top_right = (width * (1 - inwards()), height * inwards())
    bottom_right = (width * (1 - inwards()), height * (1 - inwards()))
    bottom_left = (width * inwards(), height * (1 - inwards()))
    # As large as the longer edges are, and then as the image was: more than fills it.
    right = width * width / int(max(math.dist(top_left, top_right), math.dist(bottom_left, bottom_right)))
    bottom = height * height / int(max(math.dist(top_left, bottom_left), math.dist(top_right, bottom_right)))
    # Corners of pixels have whole numbers here, their centers there.
    start = [(x + 0.5, y + 0.5) for x, y in (top_left, top_right, bottom_right, bottom_left)]
    end = [(0.5, 0.5), (right + 0.5, 0.5), (right + 0.5, bottom + 0.5), (0.5, bottom + 0.5)]
    return F.perspective(image, start, end, interpolation, fill, padding_mode=padding_mode)  # type: ignore[arg-type]


# -- pixels ----------------------------------------------------------------------------------------------------------


@pipeline
def linear(image: Any, factors: Ends = (0.8, 1.2), shares: Ends = (-0.2, 0.2)) -> Any:
    """c x + b, b a share of 255: darkened before and brightened after the factor, so that nothing is cut off in
    between."""
    factor = uniform(*factors)
    added = uniform(*shares) * 255
    before = max(-255, round(min(0, added) / max(factor, 1e-3)))
    image = F.solarize_add(image, before, 256)
    image = F.adjust_brightness(image, factor)
    return F.solarize_add(image, round(max(0, added)), 256)


@pipeline
def linear_of_mean(image: Any, factors: Ends = (0.8, 1.2), shares: Ends = (-0.2, 0.2)) -> Any:
    """c x + b mean, which is (b + c) times a contrast of c / (b + c). What is cut off in between would be at the
    end."""
    factor = uniform(*factors)
    share = uniform(*shares)
    total = max(factor + share, 1e-3)
    image = F.adjust_brightness(image, min(total, 1))
    image = F.adjust_contrast(image, factor / total)
    return F.adjust_brightness(image, max(total, 1))


@pipeline
def sharpen(image: Any, alpha: Ends = (0.2, 0.5), lightness: Ends = (0.5, 1.0)) -> Any:
    share = uniform(*alpha)
    light = uniform(*lightness)
    total = share * (light - 1) + 1
    image = F.adjust_brightness(image, total)
    return F.adjust_sharpness(image, (share * (light + 12) + 1) / max(total, 1e-3))


# -- timm ------------------------------------------------------------------------------------------------------------


@pipeline
def keep_ratio(
    image: Any,
    frame: Sequence[int] = (224, 224),
    kind: str = "bilinear",
    scale: Ends | None = None,
    aspect: Ends | None = None,
    inside: bool = False,
) -> Any:
    """The whole image, as large as fills ``frame``, or as fits ``inside`` it. By half a chance each, its area is
    divided by one of ``scale``, and its sides are by an aspect that is log-uniform in ``aspect``."""
    ratios = (image.height / frame[0], image.width / frame[1])
    ratio = max(ratios) if inside else min(ratios)
    zoom = by = 1.0
    if scale and aspect:
        zoom = 1.0 / math.sqrt(uniform(*scale) if coin() else 1.0)
        by = math.exp(uniform(*(math.log(end) / 2 for end in aspect)) if coin() else 0.0)
    size = (round(image.height * (zoom / by) / ratio), round(image.width * (zoom * by) / ratio))
    return F.resize(image, size, kind)  # type: ignore[arg-type]


@pipeline
def cut_or_padded(
    image: Any,
    size: Sequence[int] = (224, 224),
    by_chance: bool = False,
    fill: Any = 0,
    padding_mode: str = "constant",
) -> Any:
    """The central part of ``size``, or one of any place; smaller images are padded to it."""

    def place(side: int, wanted: int) -> tuple[int, int, int]:
        """The start of the crop, and the borders before and after."""
        spare = max(0, side - wanted)
        missing = max(0, wanted - side)
        if by_chance:
            before = _integer(0, missing)
            start = _integer(0, spare)
        else:
            before = missing // 2
            start = round(spare / 2)
        return start, before, missing - before

    y, top, bottom = place(image.height, size[0])
    x, left, right = place(image.width, size[1])
    image = F.pad(image, (left, top, right, bottom), fill, padding_mode)  # type: ignore[arg-type]
    return F.crop(image, y, x, size[0], size[1])

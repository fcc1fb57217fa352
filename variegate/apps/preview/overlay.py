"""Overlay of an image's targets: masks, boxes, key points and names, from the bottom up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from variegate.apps.preview.text import NEUTRAL, RGB, ink_on, shorten
from variegate.arrays import AnyArray, BoolArray, Float64Array

# Opacity of a mask's color: within it, and at its edge.
_WITHIN = 0.36
_AT_EDGE = 0.95
# Mask pixels for one of the picture that are looked at, along each axis.
_SAMPLES = 3
_HALO = (0, 0, 0, 120)
_SMOOTH = 4
# Shorter sides of pictures, in pixels, that have room for names and for lines of two pixels.
_ROOM_FOR_NAMES = 72
_ROOM_FOR_LINES = 140
# With more boxes than this lines are thin.
_MANY = 24
# Names that take more of the picture than this are left to the sheet's key.
_MOST_COVERED = 0.2
_NAME_SIZES = (11, 18)
_NAME_PADDING = 3
_HIDDEN = 1


@dataclass(frozen=True)
class ShownMask:
    """A mask [H, W]. ``names``: of its numbers, None for those without a class; other numbers are not drawn."""

    mask_HW: AnyArray
    names: Mapping[int, str | None]


@dataclass(frozen=True)
class Points:
    """Key points [P, 3], x, y and visibility (2 seen, 1 hidden, 0 not there), of a class, or None. ``bones``: pairs of
    points with a line between."""

    places: Float64Array
    name: str | None = None
    bones: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class TargetOverlay:
    """Targets of one image, in pixels from the top left corner. ``boxes``: [M, 4], left, top, right, bottom, or None
    where the data have none; ``names``: the class of each."""

    boxes: Float64Array | None = None
    names: Sequence[str] = ()
    areas: Sequence[ShownMask] = ()
    points: Sequence[Points] = field(default_factory=list)

    def classes(self) -> list[str]:
        """The names of everything, each once."""
        every = [*self.names, *(points.name for points in self.points)]
        every += [name for area in self.areas for name in area.names.values()]
        return [name for name in dict.fromkeys(every) if name is not None]


def draw_overlay(
    picture: Image.Image, overlay: TargetOverlay, size: tuple[int, int], colors: Mapping[str, RGB]
) -> None:
    """Draw on an RGB picture that shows an image of ``size`` (height, width), enlarged or reduced. Lines, points and
    text have sizes by the picture's, not the image's."""
    scale = np.array([picture.width / size[1], picture.height / size[0]])
    _paint_areas(picture, overlay.areas, colors)
    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    boxes = _shown_boxes(overlay, scale, picture.size)
    _draw_boxes(layer, boxes, overlay.names, colors)
    if overlay.points:
        _draw_points(layer, overlay.points, scale, colors)
    if min(picture.size) >= _ROOM_FOR_NAMES:
        _write_names(layer, boxes, overlay.names, colors)
    picture.paste(layer, (0, 0), layer)


def _color(name: str | None, colors: Mapping[str, RGB]) -> RGB:
    return NEUTRAL if name is None else colors.get(name, NEUTRAL)


# -- masks -------------------------------------------------------------------------------------------------------


def _paint_areas(picture: Image.Image, areas: Sequence[ShownMask], colors: Mapping[str, RGB]) -> None:
    for area in areas:
        few = _few(area.mask_HW, picture.size)
        # Small ones over large ones, which they may be part of.
        values, counts = np.unique(few, return_counts=True)
        for value in values[np.argsort(-counts, kind="stable")].tolist():
            if int(value) in area.names:
                _paint(picture, few == value, _color(area.names[int(value)], colors))


def _few(mask_HW: AnyArray, size: tuple[int, int]) -> AnyArray:
    """Fewer pixels of a mask that is much larger than the picture, at places as far apart."""
    height, width = mask_HW.shape
    rows = _SAMPLES * size[1]
    columns = _SAMPLES * size[0]
    if height <= rows or width <= columns:
        return mask_HW
    ys, xs = ((2 * np.arange(n) + 1) * side // (2 * n) for n, side in ((rows, height), (columns, width)))
    return np.asarray(mask_HW[np.ix_(ys, xs)])


def _paint(picture: Image.Image, inside: BoolArray, color: RGB) -> None:
    """Translucent within, a line along the edge. ``inside``: bool [h, w], which the picture shows in its own size."""
    is_enlarged = inside.shape[0] <= picture.height and inside.shape[1] <= picture.width
    resample = Image.Resampling.NEAREST if is_enlarged else Image.Resampling.BOX
    mask = Image.fromarray(inside.astype(np.uint8) * 255).resize(picture.size, resample)
    cover = np.asarray(mask, np.float32) / 255.0
    solid = cover >= 0.5
    around = np.pad(solid, 1, mode="edge")
    is_edge = solid & ~(around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:])
    share = np.where(is_edge, _AT_EDGE, cover * _WITHIN)[..., None]
    mixed = np.asarray(picture, np.float32) * (1.0 - share) + np.array(color, np.float32) * share
    picture.paste(Image.fromarray(np.rint(mixed).astype(np.uint8)))


# -- boxes -------------------------------------------------------------------------------------------------------


def _shown_boxes(overlay: TargetOverlay, scale: Float64Array, size: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Left, top, right, bottom of the boxes' first and last pixels on the picture."""
    if overlay.boxes is None:
        return []
    most = np.tile(np.array(size) - 1, 2)
    edges = np.rint(overlay.boxes * np.tile(scale, 2)).astype(int)
    edges[:, :2] = np.clip(edges[:, :2], 0, most[:2])
    edges[:, 2:] = np.clip(np.maximum(edges[:, 2:] - 1, edges[:, :2]), 0, most[2:])
    return [tuple(box) for box in edges.tolist()]


def _draw_boxes(
    layer: Image.Image, boxes: list[tuple[int, int, int, int]], names: Sequence[str], colors: Mapping[str, RGB]
) -> None:
    draw = ImageDraw.Draw(layer)
    side = min(layer.size)
    width = max(2, round(side / 300)) if side >= _ROOM_FOR_LINES and len(boxes) <= _MANY else 1
    # Large ones first, so that no small one is hidden.
    order = sorted(range(len(boxes)), key=lambda n: -_area(boxes[n]))
    for n in order if len(boxes) <= _MANY else ():
        left, top, right, bottom = boxes[n]
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_HALO)
    for n in order:
        draw.rectangle(boxes[n], outline=_color(names[n], colors), width=width)


def _area(box: tuple[int, int, int, int]) -> int:
    return (box[2] - box[0] + 1) * (box[3] - box[1] + 1)


def _write_names(
    layer: Image.Image, boxes: list[tuple[int, int, int, int]], names: Sequence[str], colors: Mapping[str, RGB]
) -> None:
    """Write the name next to each box if no other name is there; the sheet's key has all names."""
    size = int(np.clip(min(layer.size) / 50, *_NAME_SIZES))
    draw = ImageDraw.Draw(layer)
    font = ImageFont.load_default(size)
    taken: list[tuple[int, int, int, int]] = []
    height = size + _NAME_PADDING
    texts = [shorten(name, font, 0.55 * layer.width) for name in names]
    widths = [round(font.getlength(text)) + 2 * _NAME_PADDING for text in texts]
    if sum(widths) * height > _MOST_COVERED * layer.width * layer.height:
        return
    for n in sorted(range(len(boxes)), key=lambda n: _area(boxes[n])):
        left, top, right, bottom = boxes[n]
        text = texts[n]
        width = widths[n]
        # Above, below, or within, from the left or from the right.
        corners = [
            (x, y)
            for y in (top - height, bottom + 1, top, bottom - height + 1)
            for x in (left, right - width + 1)
            if x >= 0 and y >= 0 and x + width <= layer.width and y + height <= layer.height
        ]
        places = [(x, y, x + width - 1, y + height - 1) for x, y in corners]
        free = next((place for place in places if not any(_overlap(place, other) for other in taken)), None)
        if not text or free is None:
            continue
        taken.append(free)
        color = _color(names[n], colors)
        draw.rectangle(free, (*color, 235))
        draw.text((free[0] + _NAME_PADDING, free[1] + height / 2), text, ink_on(color), font, anchor="lm")


def _overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


# -- key points --------------------------------------------------------------------------------------------------


def _draw_points(layer: Image.Image, every: Sequence[Points], scale: Float64Array, colors: Mapping[str, RGB]) -> None:
    """Draw visible points filled, hidden points hollow, and lines between existing points."""
    large = Image.new("RGBA", (layer.width * _SMOOTH, layer.height * _SMOOTH), (0, 0, 0, 0))
    draw = ImageDraw.Draw(large)
    radius = max(1.5, min(layer.size) ** 0.5 / 5.0)
    for points in every:
        color = (*_color(points.name, colors), 255)
        places = points.places[:, :2] * scale * _SMOOTH
        there = points.places[:, 2] > 0
        bones = [places[[a, b]].ravel().tolist() for a, b in points.bones if there[a] and there[b]]
        for fill, width in ((_HALO, 0.5 * radius + 2.0), (color, 0.5 * radius)):
            for bone in bones:
                draw.line(bone, fill, round(width * _SMOOTH))
        for place, visibility in zip(places[there].tolist(), points.places[there, 2].tolist(), strict=True):
            rings = [(radius + 1.2, _HALO), (radius + 0.6, (255, 255, 255, 255)), (radius - 0.2, color)]
            if visibility <= _HIDDEN:
                rings.append((radius * 0.55, (0, 0, 0, 0)))
            for ring, fill in rings:
                draw.circle(place, ring * _SMOOTH, fill)
    layer.alpha_composite(large.resize(layer.size, Image.Resampling.BOX))

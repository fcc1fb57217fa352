"""Objects of all images of a data set in a few arrays, made of the rows that readers yield."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from variegate.data.annotated.outlines import NO_OUTLINE, Area, Rings, Shape, ShapeColumns, Shapes, masks_of
from variegate.data.base import SourceError, summarize_names
from variegate.errors import DecodeError, one_line
from variegate.io.amounts import pluralize
from variegate.targets.box_formats import edges_of

# In masks of classes, pixels of objects that have only a box.
IGNORED_VALUE = 255
# Errors of values that are not as a reader expects them.
ROW_ERRORS = (KeyError, TypeError, ValueError, OverflowError)
# Boxes that reach beyond their image by less are clipped silently: pixels, and fractions of a side.
_SLACK = 0.01
_FRACTION_SLACK = 1e-4
_UNOUTLINED = {
    "fill": "their boxes are filled",
    "ignore": f"their boxes have the value {IGNORED_VALUE}",
    "background": "they are background",
}


class ObjectRow(NamedTuple):
    """An object as a reader yields it.

    ``box``: four numbers, in the box format of the data set. ``points``: float32 [K, 3], x, y and visibility of its key
    points. ``is_ignored``: COCO's ``iscrowd`` and VOC's ``difficult``.
    """

    image: int
    label: int
    box: Sequence[float]
    points: Float32Array | None = None
    shape: Shape | None = None
    is_ignored: bool = False


@dataclass
class AnnotationErrors:
    """Counts of invalid and changed objects. The first invalid object is an error unless ``on_error`` is "skip"."""

    on_error: str
    invalid: int = 0
    first: str = ""
    clipped: int = 0
    zero_area: int = 0
    ignored: int = 0
    short_polygons: int = 0

    def add(self, where: str, what: str) -> None:
        """Raises SourceError unless invalid objects are skipped."""
        if self.on_error != "skip":
            raise SourceError(f'{where}: {what}; on_error="skip" leaves such objects out')
        self.first = self.first or f"{where}: {what}"
        self.invalid += 1

    def notes(self, ignored: str) -> list[str]:
        """``ignored``: the data set's word for objects that do not count."""
        lines = {
            f"skipped {pluralize(self.invalid, 'invalid object')} (the first: {self.first})": self.invalid,
            f"skipped {pluralize(self.zero_area, 'object')} without area": self.zero_area,
            f'skipped {pluralize(self.ignored, f"{ignored} object")}; "ignored": True keeps them': self.ignored,
            f"skipped {pluralize(self.short_polygons, 'polygon')} of fewer than three points": self.short_polygons,
            f"clipped {pluralize(self.clipped, 'box')} to the image": self.clipped,
        }
        return [line for line, count in lines.items() if count]


def skip_missing(
    missing: Sequence[str], count: int, what: str, on_error: str, where: str, advice: str = ""
) -> list[str]:
    """Return a note on the ``missing`` of ``count`` images, if any. Raises SourceError unless these are to be skipped
    and others remain."""
    if not missing:
        return []
    line = f"{len(missing):,} of {pluralize(count, 'image')} {what}: {summarize_names(missing)}"
    if on_error != "skip" or len(missing) == count:
        raise SourceError(f"{where}: {line}{advice}")
    return [f"skipped {line}"]


def reason_of(error: Exception) -> str:
    """The message of an error of ``ROW_ERRORS``."""
    if isinstance(error, KeyError):
        return f"no {error}"
    return error.reason if isinstance(error, DecodeError) else one_line(error)


@dataclass(frozen=True, eq=False)
class Objects:
    """Image i has objects ``starts[i]:starts[i + 1]``.

    ``boxes``: float32 [M, 4], edges x1, y1, x2, y2. ``sizes``: int32 [I, 2], heights and widths of the images by the
    annotations, 0 if unknown. ``keypoints``: float32 [M, K, 3] with visibility. ``is_normalized``: coordinates are
    fractions of the image's width and height. ``ignored``: bool [M]. ``keys``: the keys of the objects' entries.
    """

    starts: Int64Array
    boxes: Float32Array
    labels: Int64Array
    sizes: Int32Array
    keypoints: Float32Array | None
    shapes: Shapes | None
    is_normalized: bool = False
    ignored: BoolArray | None = None
    keys: AnyArray | None = None

    def targets(
        self, image: int, size: tuple[int, int] | None, mask: str | None, unoutlined: str = "fill"
    ) -> dict[str, Any]:
        """Targets of an image, in pixels, as new arrays.

        ``size``: height and width, None if nothing depends on them; ``mask``, ``unoutlined``: as the options. Raises
        ValueError for shapes that do not fit the image.
        """
        some = slice(int(self.starts[image]), int(self.starts[image + 1]))
        scale = (float(size[1]), float(size[0])) if self.is_normalized and size is not None else (1.0, 1.0)
        targets: dict[str, Any] = {
            "boxes": self.boxes[some] * np.array(scale * 2, np.float32),
            "labels": self.labels[some].copy(),
        }
        if self.keypoints is not None:
            targets["keypoints"] = self.keypoints[some] * np.array([*scale, 1.0], np.float32)
        if mask is not None and size is not None:
            masks, areas = masks_of(self.shapes, range(some.start, some.stop), size, scale)
            is_unoutlined = self.metadata(image)["outline"] == NO_OUTLINE
            if unoutlined != "background":
                for k in np.flatnonzero(is_unoutlined).tolist():
                    areas[k] = _area_of(targets["boxes"][k])
                    masks[k][areas[k]] = True
            if mask == "each":
                return targets | {"masks": masks.view(np.uint8)}
            values = targets["labels"] + 1 if mask == "classes" else np.arange(1, len(masks) + 1)
            if unoutlined == "ignore":
                values = np.where(is_unoutlined, IGNORED_VALUE, values)
            targets["mask"] = _merge(masks, areas, values, is_unoutlined)
        return targets

    def metadata(self, image: int) -> dict[str, AnyArray]:
        """Properties of the image's objects: ``ignored``, bool [M], and ``outline``, int64 [M], one of
        ``shapes.OUTLINES``."""
        some = range(int(self.starts[image]), int(self.starts[image + 1]))
        ignored = np.zeros(len(some), np.bool_) if self.ignored is None else self.ignored[some.start : some.stop]
        kinds = [NO_OUTLINE if self.shapes is None else self.shapes.kind(k) for k in some]
        return {"ignored": ignored, "outline": np.array(kinds, np.int64)}

    def notes_on_masks(self, mask: str | None, unoutlined: str, num_classes: int) -> list[str]:
        """A note on objects without an outline, if masks are read. Raises SourceError for more classes than fit below
        the ignored value."""
        count = len(self.labels)
        without = count - (0 if self.shapes is None else self.shapes.num_outlines)
        if mask is None or not without:
            return []
        if unoutlined == "ignore" and num_classes >= IGNORED_VALUE:
            got = f"got 'ignore' with {num_classes:,} classes"
            raise SourceError(f"annotations: unoutlined: {got}; accepted: up to {IGNORED_VALUE - 1} classes")
        others = ", ".join(repr(name) for name in _UNOUTLINED if name != unoutlined)
        line = f"without an outline: {without:,} of {pluralize(count, 'object')}; in masks {_UNOUTLINED[unoutlined]}"
        return [f'{line} ("unoutlined": {others} for others)']

    def of_images(self, chosen: BoolArray) -> Objects:
        """The objects of the images where ``chosen``, bool [I], is True."""
        counts = np.diff(self.starts)
        starts = np.append(0, np.cumsum(counts[chosen]))
        return self.take(np.flatnonzero(np.repeat(chosen, counts)), starts, self.sizes[chosen])

    def where(self, is_kept: BoolArray) -> Objects:
        """Some of the objects; ``is_kept``: bool [M]."""
        starts = np.append(0, np.cumsum(is_kept))[self.starts]
        return self.take(np.flatnonzero(is_kept), starts, self.sizes)

    def take(self, order: Int64Array, starts: Int64Array, sizes: Int32Array) -> Objects:
        """Some objects in another order, of other images."""
        names = ("boxes", "labels", "keypoints", "shapes", "ignored", "keys")
        columns = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {name: None if column is None else column[order] for name, column in columns.items()}
        return replace(self, starts=starts, sizes=sizes, **taken)

    def digest(self) -> bytes:
        """Digest of all fields except ``ignored`` and ``keys``."""
        digest = hashlib.sha256(b"normalised" if self.is_normalized else b"pixels")
        for column in (self.starts, self.boxes, self.labels, self.sizes, self.keypoints):
            if column is not None:
                digest.update(f"{column.dtype.str}{column.shape}".encode() + np.ascontiguousarray(column).tobytes())
        for part in [] if self.shapes is None else self.shapes.parts():
            digest.update(part)
        return digest.digest()


def _area_of(box: Float32Array) -> Area:
    """Rows and columns whose pixels have their centers in a box."""
    left, top, right, bottom = np.ceil(box.astype(np.float64) - 0.5).astype(np.int64).tolist()
    return slice(top, bottom), slice(left, right)


def _merge(masks: BoolArray, areas: Sequence[Area], values: Int64Array, is_unoutlined: BoolArray) -> AnyArray:
    """Draw one mask [H, W] with each object's value: small objects on top of large ones, and outlines on top of boxes,
    so that none is hidden."""
    merged = np.zeros(masks.shape[1:], np.uint8 if values.max(initial=0) <= 255 else np.int32)
    negative_sizes = np.array([-np.count_nonzero(masks[k][area]) for k, area in enumerate(areas)], np.int64)
    for k in np.lexsort((negative_sizes, ~is_unoutlined)).tolist():
        merged[areas[k]][masks[k][areas[k]]] = values[k]
    return merged


_NUMBER_BITS = 32


def number_entries(files: Iterable[Sequence[Any] | Exception | None]) -> Iterator[tuple[int, Any]]:
    """The entries of files that belong to an image each, as (key, entry); see ``split_key``.

    Empty entries and None, an image without a file, are skipped. A file that could not be read is its error, with the
    number 0.
    """
    for image, file in enumerate(files):
        first = image << _NUMBER_BITS
        if isinstance(file, Exception):
            yield first, file
        else:
            yield from ((first | number, entry) for number, entry in enumerate(file or (), 1) if entry)


def split_key(key: int) -> tuple[int, int]:
    """The image and the number of an entry, counted from 1."""
    return divmod(key, 1 << _NUMBER_BITS)


def objects_from_rows(
    entries: Iterable[tuple[int, Any]],
    read: Callable[[int, Any], ObjectRow | None],
    sizes: Int32Array,
    errors: AnnotationErrors,
    *,
    name_of: Callable[[int], str],
    box_format: str = "xyxy",
    box_name: str = "the box",
    scale: tuple[float, float] | None = None,
    num_points: int = 0,
    is_normalized: bool = False,
    has_keys: bool = False,
) -> Objects:
    """Check the objects of a data set, clip their boxes, sort them by image; invalid ones are counted or an error.

    Args:
        entries: (key, entry) of each object, in any order, or (key, error) for an unreadable entry. Entries
            are not kept.
        read: makes a row of a key and its entry; None for an object that is ignored. Raises ``ROW_ERRORS``.
        sizes: int32 [I, 2], heights and widths of the images, 0 if unknown.
        errors: counts invalid objects, or raises the first.
        name_of: the object in words, by its key, for messages.
        box_format: of the rows' boxes.
        box_name: how messages call a box.
        scale: of x and y, by which boxes are multiplied.
        num_points: least number of key points of an object; further ones are zeros.
        is_normalized: boxes are fractions of the image's width and height.
        has_keys: whether to keep the keys.
    """
    keys = array("q")
    images = array("q")
    labels = array("q")
    boxes = array("d")
    ignored = array("b")
    points: list[Float32Array | None] = []
    shapes = ShapeColumns()
    for key, entry in entries:
        try:
            if isinstance(entry, Exception):
                raise entry
            row = read(key, entry)
        except ROW_ERRORS as error:
            errors.add(name_of(key), reason_of(error))
            continue
        if row is None:
            errors.ignored += 1
            continue
        keys.append(key)
        images.append(row.image)
        labels.append(row.label)
        boxes.extend(row.box)
        ignored.append(row.is_ignored)
        points.append(row.points)
        shapes.append(row.shape)
        if isinstance(row.shape, Rings):
            errors.short_polygons += row.shape.skipped
    image_of = np.frombuffer(images, np.int64)
    edges = edges_of(np.frombuffer(boxes, np.float64).reshape(-1, 4), box_format)
    if scale is not None:
        edges *= np.array(scale * 2)
    limits = np.ones((len(keys), 2)) if is_normalized else sizes[image_of].astype(np.float64)
    checked, good = _check_boxes(edges, limits, is_normalized, errors, box_name, lambda k: name_of(keys[k]))
    order = good[np.argsort(image_of[good], kind="stable")]
    stacked = _stack(points, num_points)
    packed = shapes.packed()
    return Objects(
        np.searchsorted(image_of[order], np.arange(len(sizes) + 1)),
        checked[order],
        np.frombuffer(labels, np.int64)[order],
        sizes,
        None if stacked is None else stacked[order],
        None if packed is None else packed[order],
        is_normalized,
        np.frombuffer(ignored, np.bool_)[order] if any(ignored) else None,
        np.frombuffer(keys, np.int64)[order] if has_keys else None,
    )


def _stack(points: Sequence[Float32Array | None], least: int) -> Float32Array | None:
    """Stack key points to float32 [M, K, 3], padded with zeros; None without key points."""
    most = max((len(row) for row in points if row is not None), default=0)
    if not max(most, least):
        return None
    stacked = np.zeros((len(points), max(most, least), 3), np.float32)
    for k, row in enumerate(points):
        if row is not None:
            stacked[k, : len(row)] = row
    return stacked


def _check_boxes(
    edges: Float64Array,
    sizes: Float64Array,
    is_normalized: bool,
    errors: AnnotationErrors,
    box_name: str,
    name_of: Callable[[int], str],
) -> tuple[Float32Array, Int64Array]:
    """Boxes clipped to images of ``sizes`` (height and width, 0 if unknown), and the indices of the valid ones."""
    limits = np.where(sizes > 0, sizes, np.inf)[:, [1, 0, 1, 0]]
    clipped = np.clip(edges, 0, limits)
    sides = edges[:, 2:] - edges[:, :2]
    is_inverted = np.any(sides < 0, axis=1)
    has_no_area = np.any(sides == 0, axis=1) & ~is_inverted
    is_outside = np.any(clipped[:, 2:] <= clipped[:, :2], axis=1)
    good = np.flatnonzero(~(is_inverted | is_outside | has_no_area))
    for k in np.flatnonzero(is_inverted | is_outside & ~has_no_area).tolist():
        if is_inverted[k]:
            what = "has its edges in the wrong order, or a negative size"
        elif is_normalized:
            what = "lies outside of its image; accepted: fractions of the image's width and height, 0 to 1"
        else:
            what = f"lies outside of its image, {sizes[k, 0]:g} x {sizes[k, 1]:g} (height x width)"
        shown = ", ".join(f"{edge:g}" for edge in edges[k].tolist())
        errors.add(name_of(k), f"{box_name} with the edges ({shown}) {what}")
    distance = np.abs(clipped - edges)[good]
    errors.zero_area += int(np.count_nonzero(has_no_area))
    errors.clipped += int(np.count_nonzero((distance > (_FRACTION_SLACK if is_normalized else _SLACK)).any(1)))
    return clipped.astype(np.float32), good

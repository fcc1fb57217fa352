"""The objects of all images of a data set in a few arrays, and their faults."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from variegate.formats.annotated.outlines import masks_of
from variegate.formats.annotated.shapes import NO_OUTLINE, Shapes, ShapesBuilder
from variegate.formats.annotated.values import FINITE, IGNORED_VALUE, MOST, MaskOptions
from variegate.formats.base import SourceError, first_names

# Of ``Objects``, with an entry for each object.
_COLUMNS = ("boxes", "labels", "keypoints", "shapes", "ignored")


@dataclass
class Faults:
    """Of single objects: the first one is raised, or all are left out and counted."""

    on_error: str
    bad: int = 0
    first: str = ""
    clipped: int = 0
    flat: int = 0
    ignored: int = 0
    degenerate: int = 0  # polygons

    def add(self, where: str, what: str) -> None:
        """Raises SourceError unless wrong objects are left out."""
        if self.on_error != "skip":
            raise SourceError(f'{where}: {what}; on_error="skip" leaves such objects out')
        self.first = self.first or f"{where}: {what}"
        self.bad += 1

    def notes(self, ignored: str, verb: str = "are") -> list[str]:
        """``ignored``: the data set's word for objects that do not count."""
        lines = {
            f"{self.bad:,} invalid objects {verb} skipped (the first: {self.first})": self.bad,
            f"{self.flat:,} objects without area {verb} skipped": self.flat,
            f'{self.ignored:,} {ignored} objects are skipped; "ignored": True keeps them': self.ignored,
            f"{self.degenerate:,} polygons of fewer than three points cover nothing, and are skipped": self.degenerate,
            f"{self.clipped:,} boxes reach beyond their images, and are clipped": self.clipped,
        }
        return [line for line, count in lines.items() if count]


def leave_out(missing: Sequence[str], count: int, what: str, on_error: str, where: str, advice: str = "") -> list[str]:
    """A note on those of ``count`` images that are ``missing``; none where there are none of these. Raises SourceError
    unless they are to be skipped, and others are left."""
    if not missing:
        return []
    line = f"{len(missing):,} of {count:,} images {what}: {first_names(missing)}"
    if on_error != "skip" or len(missing) == count:
        raise SourceError(f"{where}: {line}{advice}")
    return [f"{line}; they are skipped"]


@dataclass(frozen=True, eq=False)
class Objects:
    """Of image i: ``starts[i]:starts[i + 1]``. ``boxes``: float32 [M, 4], edges x1, y1, x2, y2. ``sizes``: int32
    [I, 2], the images' heights and widths by the annotations; 0 where they do not say. ``keypoints``: float32 [M, K, 3]
    with visibility. ``is_normalised``: places are parts of the image's width and height. ``ignored``: bool [M], COCO's
    ``iscrowd`` and VOC's ``difficult``, where such objects are kept."""

    starts: Int64Array
    boxes: Float32Array
    labels: Int64Array
    sizes: Int32Array
    keypoints: Float32Array | None
    shapes: Shapes | None
    is_normalised: bool = False
    ignored: BoolArray | None = None

    def targets(
        self, image: int, size: tuple[int, int] | None, mask: str | None, unoutlined: str = "fill"
    ) -> dict[str, Any]:
        """Arrays of the image's own, in pixels. ``size``: its height and width, None where nothing depends on it;
        ``mask``: one of ``values.MASKS``; ``unoutlined``: of ``values.UNOUTLINED``. Raises ValueError for shapes that
        do not fit the image."""
        some = slice(int(self.starts[image]), int(self.starts[image + 1]))
        boxes = self.boxes[some].copy()
        labels = self.labels[some].copy()
        scale = (float(size[1]), float(size[0])) if self.is_normalised and size is not None else (1.0, 1.0)
        boxes *= np.array(scale * 2, np.float32)
        found: dict[str, Any] = {"boxes": boxes, "labels": labels}
        if self.keypoints is not None:
            found["keypoints"] = self.keypoints[some] * np.array([*scale, 1.0], np.float32)
        if mask is not None and size is not None:
            masks, areas = self._masks(range(some.start, some.stop), size, scale)
            found |= self._joined(masks, areas, mask, unoutlined, found, self.about(image)["outline"] == NO_OUTLINE)
        return found

    def _masks(
        self, some: range, size: tuple[int, int], scale: tuple[float, float]
    ) -> tuple[BoolArray, list[tuple[slice, slice]]]:
        """bool [M, H, W] of objects with an outline, and the part of each that may be True."""
        if self.shapes is None:
            return np.zeros((len(some), *size), np.bool_), [(slice(0), slice(0))] * len(some)
        return masks_of(self.shapes, some, size, scale)

    @staticmethod
    def _joined(
        masks: BoolArray,
        areas: list[tuple[slice, slice]],
        mask: str,
        unoutlined: str,
        targets: dict[str, Any],
        has_box_alone: BoolArray,
    ) -> dict[str, Any]:
        labels = targets["labels"]
        for k in np.flatnonzero(has_box_alone).tolist() if unoutlined != "background" else ():
            areas[k] = _area_of(targets["boxes"][k])
            masks[k][areas[k]] = True
        if mask == "each":
            return {"masks": masks.view(np.uint8)}
        values = labels + 1 if mask == "classes" else np.arange(1, len(masks) + 1)
        if unoutlined == "ignore":
            values = np.where(has_box_alone, IGNORED_VALUE, values)
        whole = np.zeros(masks.shape[1:], np.uint8 if values.max(initial=0) <= 255 else np.int32)
        # Small objects lie on top of large ones, which would hide them otherwise, and outlines on top of boxes.
        covered = np.array([-np.count_nonzero(masks[k][area]) for k, area in enumerate(areas)], np.int64)
        for k in np.lexsort((covered, ~has_box_alone)).tolist():
            whole[areas[k]][masks[k][areas[k]]] = values[k]
        return {"mask": whole}

    def about(self, image: int) -> dict[str, AnyArray]:
        """Properties of the image's objects: ``ignored``, bool [M], and ``outline``, int64 [M], one of
        ``shapes.OUTLINES``."""
        some = range(int(self.starts[image]), int(self.starts[image + 1]))
        ignored = np.zeros(len(some), np.bool_) if self.ignored is None else self.ignored[some.start : some.stop]
        kinds = [NO_OUTLINE if self.shapes is None else self.shapes.kind(k) for k in some]
        return {"ignored": ignored, "outline": np.array(kinds, np.int64)}

    def notes_on_masks(self, masks: MaskOptions, num_classes: int) -> list[str]:
        """Raises SourceError as ``MaskOptions.notes`` does."""
        without = len(self.labels) - (0 if self.shapes is None else self.shapes.num_outlines)
        return masks.notes(without, len(self.labels), num_classes)

    def of_images(self, chosen: BoolArray) -> Objects:
        """Those of the images where ``chosen``, bool [I], is True."""
        counts = np.diff(self.starts)
        starts = np.append(0, np.cumsum(counts[chosen]))
        return self.take(np.flatnonzero(np.repeat(chosen, counts)), starts, self.sizes[chosen])

    def take(self, order: Int64Array, starts: Int64Array, sizes: Int32Array) -> Objects:
        """Some objects in another order, of other images."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        taken: dict[str, Any] = {name: None if column is None else column[order] for name, column in columns.items()}
        return replace(self, starts=starts, sizes=sizes, **taken)

    def digest(self) -> bytes:
        """Of everything."""
        digest = hashlib.sha256(b"normalised" if self.is_normalised else b"pixels")
        for one in (self.starts, self.boxes, self.labels, self.sizes, self.keypoints):
            if one is not None:
                digest.update(f"{one.dtype.str}{one.shape}".encode() + np.ascontiguousarray(one).tobytes())
        for part in [] if self.shapes is None else self.shapes.parts():
            digest.update(part)
        return digest.digest()


def _area_of(box: Float32Array) -> tuple[slice, slice]:
    """Rows and columns whose pixels have their centers in a box."""
    left, top, right, bottom = np.ceil(box.astype(np.float64) - 0.5).astype(np.int64).tolist()
    return slice(top, bottom), slice(left, right)


@dataclass
class ObjectsBuilder:
    """Objects in any order: ``images`` holds the image of each, ``boxes`` four edges, ``keypoints`` ``points`` times x,
    y and visibility, ``ignored`` 0 or 1 of each, or nothing."""

    points: int = 0
    images: array[int] = field(default_factory=lambda: array("q"))
    boxes: array[float] = field(default_factory=lambda: array("d"))
    labels: array[int] = field(default_factory=lambda: array("q"))
    keypoints: array[float] = field(default_factory=lambda: array("f"))
    shapes: ShapesBuilder = field(default_factory=ShapesBuilder)
    ignored: array[int] = field(default_factory=lambda: array("b"))

    def done(
        self, sizes: Int32Array, faults: Faults, where: Callable[[int], str], is_normalised: bool = False
    ) -> Objects:
        """Sorted by image, boxes checked and clipped. ``where``: names an object by its place among those added."""
        faults.degenerate += self.shapes.degenerate
        images = np.frombuffer(self.images, np.int64)
        boxes = np.frombuffer(self.boxes, np.float64).reshape(-1, 4)
        own = np.ones((len(images), 2)) if is_normalised else sizes[images].astype(np.float64)
        checked, is_good = check_boxes(boxes, own, faults, where, is_normalised)
        good = np.flatnonzero(is_good)
        order = good[np.argsort(images[good], kind="stable")]
        starts = np.searchsorted(images[order], np.arange(len(sizes) + 1)).astype(np.int64)
        every = Objects(
            starts,
            checked,
            np.frombuffer(self.labels, np.int64),
            sizes,
            np.frombuffer(self.keypoints, np.float32).reshape(-1, self.points, 3) if self.points else None,
            self.shapes.done(),
            is_normalised,
            np.frombuffer(self.ignored, np.bool_) if any(self.ignored) else None,
        )
        return every.take(order, starts, sizes)


def check_boxes(
    boxes: Float64Array,
    sizes: Float64Array,
    faults: Faults,
    where: Callable[[int], str],
    is_normalised: bool = False,
) -> tuple[Float32Array, BoolArray]:
    """Boxes clipped to images of ``sizes`` (height and width, 0 where not known), and a flag for each good one.

    ``is_normalised``: boxes are fractions of the image's width and height, and all sizes are 1.
    """
    slack = 1e-4 if is_normalised else 0.01
    limits = np.where(sizes > 0, sizes, np.inf)[:, [1, 0, 1, 0]]
    with np.errstate(invalid="ignore", over="ignore"):
        clipped = np.clip(boxes, 0, limits)
        is_odd = np.asarray(~(np.abs(boxes) <= MOST).all(axis=1))  # NaN is among them
        is_inverted = np.asarray((boxes[:, 2:] < boxes[:, :2]).any(axis=1))
        is_flat = (boxes[:, 2:] == boxes[:, :2]).any(1)
        is_outside = (clipped[:, 2:] <= clipped[:, :2]).any(1)
        reaches_out = (np.abs(clipped - boxes) > slack).any(1)
    wrong: BoolArray = is_odd | is_inverted | is_outside & ~is_flat
    for k in np.flatnonzero(wrong).tolist():
        shown = ", ".join(f"{value:g}" for value in boxes[k].tolist())
        what = f"is odd; accepted: {FINITE}" if is_odd[k] else "has its edges in the wrong order, or a negative size"
        if not (is_odd[k] or is_inverted[k]):
            what = f"lies outside of its image, {sizes[k, 0]:g} x {sizes[k, 1]:g} (height x width)"
            if is_normalised:
                what = "lies outside of its image; accepted: fractions of the image's width and height, 0 to 1"
        faults.add(where(k), f"the box with the edges ({shown}) {what}")
    good = ~(wrong | is_flat)
    faults.flat += int((is_flat & ~wrong).sum())
    faults.clipped += int((reaches_out & good).sum())
    return np.where(good[:, None], clipped, 0).astype(np.float32), good

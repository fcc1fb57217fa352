"""Targets of an output, as its row of the manifest keeps them, in the column ``targets``: an object of JSON with

``boxes``      [x1, y1, x2, y2] of each object, edges in pixels
``labels``     its class
``ignored``    1 for COCO's ``iscrowd`` and VOC's ``difficult``, else 0
``keypoints``  [x, y, visibility, ...] of each object, in the frame of the boxes; where the data set has any
``outlines``   of each object a list of rings [x, y, ...], COCO's compressed counts, or null; where there are any
``channels``   of the image

All files of annotations are made of these alone. Of an output in a shard there are only ``boxes``, ``labels``,
``keypoints``, a list of [x, y, visibility] of each object or of the image, and ``per_box``, by name, as far as the
records of the data set have them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from variegate.formats.annotated.shapes import NO_OUTLINE, RUNS

# Digits behind the point, of pixels.
DIGITS = 3


def record_of(targets: Mapping[str, Any], channels: int, is_single: bool) -> dict[str, Any]:
    """``targets``: arrays ``boxes``, ``labels``, ``ignored``, ``outline`` (``shapes.OUTLINES``), and perhaps
    ``keypoints`` and ``masks``. Objects with an outline of which no pixel is left are left out, and so are boxes
    without area when rounded. ``is_single``: outlines have one ring."""
    arrays = {name: np.asarray(value) for name, value in targets.items()}
    boxes = np.round(arrays["boxes"].astype(np.float64), DIGITS)
    kept, outlines = [], []
    for k, kind in enumerate(arrays["outline"].tolist()):
        outline = None if kind == NO_OUTLINE else _outline(arrays["masks"][k], kind, is_single)
        if (kind == NO_OUTLINE or outline) and (boxes[k, 2:] > boxes[k, :2]).all():
            kept.append(k)
            outlines.append(outline)
    found: dict[str, Any] = {
        "boxes": boxes[kept].tolist(),
        "labels": arrays["labels"][kept].tolist(),
        "ignored": arrays["ignored"][kept].astype(int).tolist(),
        "channels": channels,
    }
    if "keypoints" in arrays:
        points = np.round(arrays["keypoints"][kept].astype(np.float64), DIGITS)
        found["keypoints"] = [one.ravel().tolist() for one in points]
    if "masks" in arrays:
        found["outlines"] = outlines
    return found


def objects_of(targets: Mapping[str, Any], per_box: Sequence[str]) -> dict[str, Any]:
    """Of an output in a shard. Boxes without area when rounded are left out."""
    found: dict[str, Any] = {}
    kept: Any = slice(None)
    if "boxes" in targets:
        boxes = np.round(np.asarray(targets["boxes"]).astype(np.float64), DIGITS)
        kept = np.flatnonzero((boxes[:, 2:] > boxes[:, :2]).all(axis=1))
        found["boxes"] = boxes[kept].tolist()
    if "labels" in targets:
        found["labels"] = np.asarray(targets["labels"])[kept].tolist()
    if "keypoints" in targets:
        found["keypoints"] = np.round(np.asarray(targets["keypoints"])[kept].astype(np.float64), DIGITS).tolist()
    if per_box:
        found["per_box"] = {name: _some(targets[name], kept) for name in per_box}
    return found


def _some(values: Any, kept: Any) -> list[Any]:
    if isinstance(values, list):
        return values[kept] if isinstance(kept, slice) else [values[k] for k in kept.tolist()]
    some: list[Any] = np.asarray(values)[kept].tolist()
    return some


def targets_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Of a row of a manifest. Raises ValueError, TypeError for one that has none."""
    found: dict[str, Any] = json.loads(row["targets"])
    return found


def _outline(mask_HW: Any, kind: int, is_single: bool) -> Any:
    from variegate.formats.annotated.outlines import outline_of, runs_of  # here: Numba takes a while

    if kind == RUNS:
        return runs_of(mask_HW) if mask_HW.any() else None
    return [ring.ravel().tolist() for ring in outline_of(mask_HW, is_single)]


Row = dict[str, Any]
# Written outputs, each with its number from 1 on among all rows; asked for as often as a file is made.
Rows = Callable[[], Iterator[tuple[int, Row]]]
# Of a file: all of it, or pieces of one that may be large.
Content = bytes | Iterable[bytes]

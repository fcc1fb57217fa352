"""Targets of an output, in the column ``targets`` of its manifest row: a JSON object with

``boxes``      per object [x1, y1, x2, y2], edges in pixels
``labels``     per object its class
``ignored``    per object 1 for COCO's ``iscrowd`` and VOC's ``difficult``, else 0
``keypoints``  per object [x, y, visibility, ...], in the frame of the boxes; missing if the data set has none
``outlines``   per object a list of rings [x, y, ...], COCO's compressed counts, or null; missing without any
``channels``   of the image

All annotation files are written from these fields. Outputs in shards have only ``boxes``, ``labels`` and ``keypoints``
(a list of [x, y, visibility] per object or per image). They also have ``per_box``, by name, if the data set's records
have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from variegate.data.annotated.outlines import NO_OUTLINE, RUNS, outline_of, runs_of

# Digits behind the point, of pixels.
DIGITS = 3
Row = dict[str, Any]
# Written outputs, each with its number from 1 on among all rows; called as often as a file is made.
Rows = Callable[[], Iterator[tuple[int, Row]]]
# A complete file, or pieces of a large file.
Content = bytes | Iterable[bytes]


def record_of(targets: Mapping[str, Any], channels: int, is_single: bool) -> dict[str, Any]:
    """``targets``: arrays ``boxes``, ``labels``, ``ignored``, ``outline`` (``outlines.OUTLINES``), and perhaps
    ``keypoints`` and ``masks``. Objects without area after rounding, and objects whose outline covers no pixel, are
    excluded. Boxes of objects with an outline fit it. ``is_single``: outlines have one ring."""
    arrays = {name: np.asarray(value) for name, value in targets.items()}
    outlines = [
        None if kind == NO_OUTLINE else _outline(arrays["masks"][k], kind, is_single)
        for k, kind in enumerate(arrays["outline"].tolist())
    ]
    boxes = arrays["boxes"].astype(np.float64)
    for k in np.flatnonzero(arrays["outline"] != NO_OUTLINE).tolist():
        boxes[k] = _fitted(boxes[k], arrays["masks"][k])
    boxes = _rounded(boxes)
    is_left = (arrays["outline"] == NO_OUTLINE) | np.array([bool(outline) for outline in outlines], np.bool_)
    order = np.flatnonzero(_have_area(boxes) & is_left)
    found: dict[str, Any] = {
        "boxes": boxes[order].tolist(),
        "labels": arrays["labels"][order].tolist(),
        "ignored": arrays["ignored"][order].astype(int).tolist(),
        "channels": channels,
    }
    if "keypoints" in arrays:
        found["keypoints"] = [one.ravel().tolist() for one in _rounded(arrays["keypoints"][order])]
    if "masks" in arrays:
        found["outlines"] = [outlines[k] for k in order.tolist()]
    return found


def objects_of(targets: Mapping[str, Any], per_box: Sequence[str]) -> dict[str, Any]:
    """Read an output in a shard. Boxes without area after rounding are excluded."""
    found: dict[str, Any] = {}
    order: Any = slice(None)
    if "boxes" in targets:
        boxes = _rounded(targets["boxes"])
        order = np.flatnonzero(_have_area(boxes))
        found["boxes"] = boxes[order].tolist()
    if "labels" in targets:
        found["labels"] = np.asarray(targets["labels"])[order].tolist()
    if "keypoints" in targets:
        found["keypoints"] = _rounded(targets["keypoints"])[order].tolist()
    if per_box:
        found["per_box"] = {name: _some(targets[name], order) for name in per_box}
    return found


def _rounded(values: Any) -> Any:
    return np.round(np.asarray(values).astype(np.float64), DIGITS)


def _fitted(box: Any, mask_HW: Any) -> Any:
    """Edges of a box, those farther than a pixel from the object's mask moved to it: the box of a transformed box is
    looser than that of the transformed object."""
    columns = np.flatnonzero(mask_HW.any(axis=0))
    rows = np.flatnonzero(mask_HW.any(axis=1))
    if not len(rows):
        return box
    seen = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float64)
    return np.where(np.abs(box - seen) <= 1.0, box, seen)


def _have_area(boxes: Any) -> Any:
    return (boxes[:, 2:] > boxes[:, :2]).all(axis=1)


def _some(values: Any, order: Any) -> list[Any]:
    if isinstance(values, list):
        return values[order] if isinstance(order, slice) else [values[k] for k in order.tolist()]
    some: list[Any] = np.asarray(values)[order].tolist()
    return some


def _outline(mask_HW: Any, kind: int, is_single: bool) -> Any:
    if kind == RUNS:
        return runs_of(mask_HW) if mask_HW.any() else None
    return [ring.ravel().tolist() for ring in outline_of(mask_HW, is_single)]


def targets_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Names of the targets in a manifest's row. Raises ValueError, TypeError for one that has none."""
    found: dict[str, Any] = json.loads(row["targets"])
    return found

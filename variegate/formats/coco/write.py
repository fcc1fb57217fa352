"""COCO's JSON of a run: ``annotations.json``, an entry a line, beside the folder ``images``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from variegate.formats.annotated.outlines import fill_rings
from variegate.formats.annotated.shapes import Runs, decode_runs
from variegate.formats.annotated.written import DIGITS, Content, Row, Rows, targets_in

FILE = "annotations.json"
IMAGES = "images/"
_compact = json.JSONEncoder(separators=(",", ":")).encode
# Of what the user's file says: the settings of a run, of which this is made again, keep no order of keys.
_sorted = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def coco_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: what an ``AnnotatedFolder`` says, with ``categories``."""
    yield FILE, _pieces(about["categories"], rows)


def _pieces(categories: list[dict[str, Any]], rows: Rows) -> Iterator[bytes]:
    yield b'{"info":{"description":"written by variegate augment"},\n"licenses":[],\n"categories":'
    yield _sorted(categories).encode()
    yield b',\n"images":['
    yield from _listed(_image(id, row) for id, row in rows())
    yield b'],\n"annotations":['
    yield from _listed(entry for id, row in rows() for entry in _objects(id, row, categories))
    yield b"]}\n"


def _listed(entries: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """Ids of entries without one count from 1."""
    for number, entry in enumerate(entries, 1):
        entry.setdefault("id", number)
        yield (",\n" if number > 1 else "\n").encode() + _compact(entry).encode()


def _image(id: int, row: Row) -> dict[str, Any]:
    name = row["file"].removeprefix(IMAGES)
    return {"id": id, "file_name": name, "width": row["width"], "height": row["height"]}


def _objects(id: int, row: Row, categories: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    found = targets_in(row)
    size = row["height"], row["width"]
    for k, (box, label, ignored) in enumerate(zip(found["boxes"], found["labels"], found["ignored"], strict=True)):
        category, (left, top, right, bottom) = categories[label], box
        sides = round(right - left, DIGITS), round(bottom - top, DIGITS)
        entry = {
            "image_id": id,
            "category_id": category["id"],
            "bbox": [left, top, *sides],
            "area": round(sides[0] * sides[1], DIGITS),
            "iscrowd": ignored,
        }
        if "outlines" in found:
            entry["segmentation"], area = _segmentation(found["outlines"][k], size)
            entry["area"] = area or entry["area"]
        if (count := len(category.get("keypoints") or ())) and "keypoints" in found:
            entry["keypoints"], entry["num_keypoints"] = _points(found["keypoints"][k][: 3 * count])
        yield entry


def _segmentation(outline: Any, size: tuple[int, int]) -> tuple[Any, int]:
    """With the number of its pixels."""
    if isinstance(outline, str):
        mask = decode_runs(Runs(*size, outline.encode()), *size)
        return {"size": list(size), "counts": outline}, int(mask.sum())
    mask = np.zeros(size, np.bool_)
    if rings := [np.reshape(ring, (-1, 2)) for ring in outline or ()]:
        fill_rings(mask, np.concatenate(rings), np.cumsum([len(ring) for ring in rings]))
    return outline or [], int(mask.sum())


def _points(numbers: list[float]) -> tuple[list[float], int]:
    """COCO's are pixels by their indices, half a pixel before their centres; what is not there is at (0, 0)."""
    points = np.reshape(numbers, (-1, 3))
    points[:, :2] = np.where(points[:, 2:] > 0, np.round(points[:, :2] - 0.5, DIGITS), 0.0)
    told = [[x, y, int(visibility)] for x, y, visibility in points.tolist()]
    return [number for point in told for number in point], int((points[:, 2] > 0).sum())

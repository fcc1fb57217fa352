"""Tar archives in WebDataset's layout: for each record an image, a ``.cls`` and a ``.json`` with one key.

Or, with annotations, boxes, key points and masks under the names and in the form that the source has them: ``about`` is
that of ``AnnotatedShards`` or ``AnnotatedRows``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from variegate.data.annotated.written import DIGITS, RecordForm
from variegate.data.base import SourceError
from variegate.data.shards import Labels, Record, Shard
from variegate.data.storage import Storage
from variegate.data.yolo import yolo_rows
from variegate.targets.box_formats import from_edges

_BLOCK = 512
_END = bytes(2 * _BLOCK)
_MOST_BYTES = 8**11


class WebDatasetShard(Shard):
    """``<key>.cls`` holds the label (-1 for none), ``<key>.json`` the sample's id, name and class and the copy
    (of what is packed, which has none, key and label).

    The run writes the names of the classes to ``classnames.txt``, where ``open_source`` looks for them. Headers are
    plain ustar without times and owners.
    """

    def _add(self, record: Record, label: Any) -> None:
        about: dict[str, Any] = {"id": record.id, "copy": record.copy}
        if record.copy is None:
            about = {"key": record.key, "id": record.id, "label": label}
        about |= {"source": record.source, "class": record.class_name}
        self._member(record.member, record.data)
        self._member(f"{record.key}.cls", str(label).encode())
        self._member(f"{record.key}.json", json.dumps(about).encode())

    def _finish(self) -> None:
        self._writer.file.write(_END)

    def _member(self, name: str, data: bytes) -> None:
        file = self._writer.file
        file.write(tar_header(name, len(data)))
        file.write(data)
        file.write(bytes(-len(data) % _BLOCK))


def tar_header(name: str, size: int) -> bytes:
    """Of a plain file. Raises ValueError for names beyond 100 ASCII characters, and for 8 GiB and more."""
    if len(name) > 100 or not name.isascii() or size >= _MOST_BYTES:
        raise ValueError(f"{name}: {size:,} bytes; accepted: names of up to 100 ASCII characters, less than 8 GiB")
    begin = name.encode().ljust(100, b"\0") + b"0000644\x000000000\x000000000\0" + b"%011o\x0000000000000\0" % size
    end = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    # The checksum counts its own eight bytes as spaces.
    return begin + b"%06o\0 " % (sum(begin) + 8 * 32 + sum(end)) + end


# Digits behind the point, of parts of a side: a thousandth of a pixel of any image.
_DIGITS_OF_PARTS = 8
_NO_PNG = (".tif", ".tiff", ".bmp", ".gif", ".jpg", ".jpeg", ".webp")


class ImageAnnotations(NamedTuple):
    """Targets of an output: ``size``, its height and width; ``objects``, of ``records.objects_of``; ``mask``, the
    bytes of a PNG. None for what the data set has not."""

    size: tuple[int, int]
    objects: Mapping[str, Any] | None
    mask: bytes | None


def has_objects(about: Mapping[str, Any]) -> bool:
    """There are boxes or key points."""
    if about["format"] == "members":
        return about["objects"] is not None or about["rows"] is not None
    return (about["record"]["boxes"] or about["record"]["keypoints"]) is not None


def check_written(about: Mapping[str, Any], image_format: str) -> None:
    """Raises SourceError for what shards of this source cannot hold."""
    is_tar = about["format"] == "members"
    if is_tar and about["mask"] is not None and mask_member(about) == image_format:
        accepted = "jpg, webp"
        raise SourceError(f"format: got {image_format!r}, as the members of masks end; accepted here: {accepted}")
    types = {} if is_tar else about["record"]["per_box"]
    if odd := next((name for name, kind in types.items() if kind is None or "<" in kind), None):
        raise SourceError(f"per_box: column {odd!r} is {types[odd]}; accepted, to be written: numbers, bool, string")


def mask_member(about: Mapping[str, Any]) -> str:
    """The extension of masks, which are written as PNG."""
    stem, last = os.path.splitext(f".{about['mask']}" if "." not in about["mask"] else about["mask"])
    if not last:
        stem, last = "", stem
    return f"{stem}.png".removeprefix(".") if last in _NO_PNG else str(about["mask"])


def named_lists(objects: Mapping[str, Any], form: RecordForm, size: tuple[int, int]) -> dict[str, list[Any]]:
    """A list under each name that the form has, with an entry for each object; of key points without boxes, for each
    point. A list of no objects has no names: what is not there is empty."""
    found: dict[str, list[Any]] = {}
    digits = _DIGITS_OF_PARTS if form.normalized else DIGITS
    scale = np.array([size[1], size[0]], np.float64) if form.normalized else np.ones(2)
    if form.boxes is not None:
        boxes = np.reshape(objects.get("boxes", []), (-1, 4)) / np.tile(scale, 2)
        found[form.boxes] = np.round(from_edges(boxes, form.box_format), digits).tolist()
    if form.labels is not None:
        found[form.labels] = objects.get("labels", [])
    if form.keypoints is not None:
        found[form.keypoints] = _points(objects.get("keypoints", []), form, scale, digits)
    return found | objects.get("per_box", {})


class AnnotatedTarShard(WebDatasetShard):
    """For each record an image, its objects in JSON or in YOLO's rows, its mask, and in ``.json`` the sample's id and
    name and the copy."""

    def __init__(self, storage: Storage, name: str, labels: Labels, about: Mapping[str, Any]) -> None:
        super().__init__(storage, name, labels)
        self._about = about
        self._form = RecordForm(**about["record"])

    def _add(self, record: Record, label: Any) -> None:
        about = self._about
        beside = record.beside
        texts: dict[str, Any] = {"json": {"id": record.id, "copy": record.copy, "source": record.source}}
        self._member(record.member, record.data)
        if (name := about["objects"]) is not None:
            # With what the member says of the sample, where it has room for that.
            lists = named_lists(beside.objects or {}, self._form, beside.size)
            found: Any = as_objects(lists) if self._form.is_list else lists
            if self._form.under is not None:
                found = {self._form.under: found}
            texts[name] = found if isinstance(found, list) else texts.get(name, {}) | found
        for name, text in texts.items():
            self._member(f"{record.key}.{name}", json.dumps(text).encode())
        if (name := about["rows"]) is not None:
            row = {"height": beside.size[0], "width": beside.size[1]}
            lines = yolo_rows(row, beside.objects, about["points"][1] if about["points"] else 0)
            self._member(f"{record.key}.{name}", lines.encode())
        if about["mask"] is not None:
            self._member(f"{record.key}.{mask_member(about)}", beside.mask)


def as_objects(lists: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Lists with an entry for each object -> the objects."""
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


def _points(points: list[Any], form: RecordForm, scale: Any, digits: int) -> list[Any]:
    """[x, y, visibility] each, nested as they are."""
    if not points:
        return []
    array = np.array(points, np.float64)
    shift = np.where(array[..., 2:] > 0, 0.5, 0.0) if form.point_origin == "centre" else 0.0
    array[..., :2] = np.round((array[..., :2] - shift) / scale, digits)
    nested: list[Any] = array.tolist()
    return nested

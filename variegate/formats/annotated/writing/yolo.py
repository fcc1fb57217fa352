"""YOLO's text files, ``labels/*.txt``, and ``data.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import yaml

from variegate.formats.annotated.writing.records import targets_in
from variegate.formats.annotated.writing.rows import Content, Row, Rows
from variegate.formats.annotated.yolo_data import label_file

_VAL = "# val: the folder of the images to validate with, which are best left as they are\n"


def yolo_files(about: Mapping[str, Any], classes: list[str], rows: Rows) -> Iterator[tuple[str, Content]]:
    """``about``: with ``folders`` of images and ``kpt_shape``."""
    folders, shape = about["folders"], about["kpt_shape"]
    known: dict[str, Any] = {"train": folders[0] if len(folders) == 1 else folders, "names": dict(enumerate(classes))}
    known |= {"kpt_shape": shape} if shape else {}
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True)
    yield "data.yaml", (text + _VAL).encode()
    for _, row in rows():
        yield label_file(row["file"]), yolo_rows(row, targets_in(row), shape[1] if shape else 0).encode()


def yolo_rows(row: Row, found: Mapping[str, Any], columns: int) -> str:
    """A line for each object. ``row``: with the image's ``height`` and ``width``; ``columns``: of a key point; 0 where
    there are none."""
    scale = np.array([row["width"], row["height"]], np.float64)
    lines = []
    for k, (box, label) in enumerate(zip(found["boxes"], found["labels"], strict=True)):
        outline = found["outlines"][k] if "outlines" in found and not columns else None
        if outline:
            numbers = (np.reshape(outline[0], (-1, 2)) / scale).ravel().tolist()
        else:
            first, last = np.array(box[:2]) / scale, np.array(box[2:]) / scale
            numbers = [*((first + last) / 2).tolist(), *(last - first).tolist()]
        words = [f"{number:.6f}" for number in numbers]
        if columns:
            words += _points(np.reshape(found["keypoints"][k], (-1, 3)), scale, columns)
        lines.append(" ".join([str(label), *words]) + "\n")
    return "".join(lines)


def _points(points: Any, scale: Any, columns: int) -> list[str]:
    """What is not there is at (0, 0), which is all that says so where there is no visibility."""
    words = []
    for x, y, visibility in points.tolist():
        place = np.array([x, y]) / scale if visibility > 0 else np.zeros(2)
        words += [f"{place[0]:.6f}", f"{place[1]:.6f}"]
        words += [str(int(visibility))] if columns == 3 else []
    return words

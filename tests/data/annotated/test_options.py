"""Options of annotations: text as commands take it, dicts, and values that are not accepted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.annotated.made import put_coco, put_images, put_voc, put_yolo
from tests.data.tars import encoded, write_tar
from variegate.data.annotated.options import split_typed
from variegate.data.base import SourceError
from variegate.data.opening import open_source


@pytest.mark.parametrize(
    ("text", "first", "options"),
    [
        ("voc", "voc", {}),
        ("yolo,split=train", "yolo", {"split": "train"}),
        ("a.json,mask=each,ignored=true", "a.json", {"mask": "each", "ignored": True}),
        ("yolo, keypoints = 17x3, mask=None", "yolo", {"keypoints": [17, 3], "mask": None}),
        ("one, two.json", "one, two.json", {}),
        ("one, two.json,ignored=no", "one, two.json", {"ignored": False}),
        ("masks,images=a,b,masks=c=d", "masks", {"images": "a,b", "masks": "c=d"}),
        ("", "", {}),
    ],
)
def test_options_follow_commas(text: str, first: str, options: dict[str, Any]) -> None:
    assert split_typed(text) == (first, options)


def test_text_opens_what_a_dict_does(tmp_path: Path) -> None:
    file = put_coco(tmp_path / "coco")
    typed = open_source(tmp_path / "coco" / "images", annotations=f"{file},mask=each")
    given = open_source(tmp_path / "coco" / "images", annotations={"file": file, "mask": "each"})
    assert typed.fingerprint == given.fingerprint
    assert len(open_source(put_voc(tmp_path / "voc"), annotations="voc,split=train")) == 2
    yolo = open_source(put_yolo(tmp_path / "yolo"), annotations="yolo,mask=classes")
    assert set(yolo.read(0).targets) == {"boxes", "labels", "mask"}


def put(root: Path) -> None:
    put_images(root / "images")
    write_tar(root / "a.tar", [("0.jpg", encoded(0))])
    pq.write_table(pa.table({"image": [{"bytes": encoded(0)}], "label": [0]}), root / "a.parquet")


@pytest.mark.parametrize(
    ("place", "annotations", "message"),
    [
        ("", "vco", "annotations: got 'vco'; accepted: a COCO"),
        ("", "labels.txt,mask=each", "got 'labels.txt,mask=each'; accepted: a COCO .json file"),
        ("", {"format": "voc", "mask": "each"}, "annotations: got the option 'mask'; accepted: split, ignored"),
        ("", "yolo,nothing=1", "got the option 'nothing'; accepted: split, mask, unoutlined, keypoints"),
        ("", "yolo,mask=big", "mask: got 'big'; accepted: 'instances', 'classes', 'each', None"),
        ("", "yolo,keypoints=17", "keypoints: got '17'; accepted"),
        ("", {"format": "yolo", "keypoints": [17]}, "keypoints: got [17]; accepted"),
        ("", "yolo,format=voc", "got format= after 'yolo', which says it"),
        ("", {"format": "coco"}, "file: got None; accepted: a path"),
        ("", {"split": "train"}, "annotations: got {'split'"),
        ("", {"format": "coco", "file": "a.json", "ignored": 1}, "ignored: got 1; accepted: True, False"),
        ("gone", "voc", "there is no such folder"),
        ("a.tar", {"objects": "json", "rows": "txt"}, 'got both "objects" and "rows"'),
        ("a.tar", {"objects": "json", "mask": "json"}, "got the member 'json' twice"),
        ("a.tar", {"mask": "a/b"}, "mask: got 'a/b'; accepted: what follows the key"),
        ("a.tar", {"rows": "txt", "points": [0, 2]}, "points: got [0, 2]; accepted: [number of points, 2 or 3]"),
        ("a.tar", {"split": "x"}, "got the option 'split'; accepted: objects, rows, mask"),
        ("a.tar", "columns", "got 'columns' with .tar files; accepted: 'members'"),
        ("a.parquet", {"objects": "things"}, "no column 'things'; its columns: image"),
        ("a.parquet", {"objects": "label"}, "column 'label' is int64; accepted: a struct of lists"),
        ("a.parquet", {"mask": "label"}, "column 'label' is int64; accepted: image files"),
        ("a.parquet", {"boxes": "label"}, "column 'label' is int64; accepted: lists"),
        ("a.parquet", {"box_format": "yxyx"}, "box_format: got 'yxyx'; accepted: None, 'xyxy'"),
        ("a.parquet", {"bbox": "x"}, "got the option 'bbox'; accepted: image, objects, mask, boxes"),
        ("a.parquet", {"mask": 3}, "mask: got 3; accepted: the name of a column"),
        ("a.parquet", "columns", "no column of objects or masks"),
        ("a.parquet", "voc", "got 'voc' with .parquet files; accepted: 'columns'"),
    ],
)
def test_options_that_are_not_accepted_are_named(tmp_path: Path, place: str, annotations: Any, message: str) -> None:
    put(tmp_path)
    with pytest.raises(SourceError, match=re.escape(message)):
        open_source(tmp_path / place, annotations=annotations)


def test_annotations_are_for_places(tmp_path: Path) -> None:
    put(tmp_path)
    with pytest.raises(TypeError, match="annotations: got 3"):
        open_source(tmp_path, annotations=3)
    with pytest.raises(SourceError, match="the source is a ndarray"):
        open_source(np.zeros((1, 2, 2, 3), np.uint8), annotations="voc")
    with pytest.raises(SourceError, match="stream=True is for"):
        open_source(tmp_path, annotations="masks", stream=True)

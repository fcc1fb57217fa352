"""Annotations at addresses: the same data sets as in folders of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.data.annotated.made import NAMES, check_objects, coco_entries, put_coco, put_yolo
from tests.data.web import serving
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError


def upload(memory: Any, root: Path) -> str:
    for file in root.rglob("*"):
        if file.is_file():
            memory.pipe(f"/data/{file.relative_to(root).as_posix()}", file.read_bytes())
    return "memory://data"


def test_coco_behind_a_web_server_which_lists_nothing(tmp_path: Path) -> None:
    put_coco(tmp_path)
    files = {f"images/{name}": (tmp_path / "images" / name).read_bytes() for name in NAMES[:2]}
    files["instances.json"] = json.dumps(coco_entries()).encode()
    with serving(files) as (address, _):
        source: Any = open_source(f"{address}/images", annotations=f"{address}/instances.json?token=secret")
        assert source.paths() == list(NAMES)
        with pytest.raises(DecodeError, match=rf"^{address}/images/c\.png: no such file$"):
            source.read(2)
        assert "secret" not in f"{source!r} {source.notes()}"
        for given in ("voc", "yolo", "masks"):
            with pytest.raises(SourceError, match=rf"^{address}/images.*: http servers cannot list a folder"):
                open_source(f"{address}/images", annotations=given)
        with pytest.raises(SourceError, match=rf"^{address}/gone\.json: the server answers HTTP 404 \(no such file\)$"):
            open_source(f"{address}/images", annotations=f"{address}/gone.json")
        local: Any = open_source(tmp_path / "images", annotations=f"{address}/instances.json")
        check_objects(local)


def test_what_is_missing_at_an_address(tmp_path: Path, memory: Any) -> None:
    put_yolo(tmp_path)
    url = upload(memory, tmp_path)
    wrong = {
        "masks": "no folder masks in it",
        "voc": "no folder JPEGImages in it",
        "yolo,split=val": "no folder images/val in it",
        "gone.json": r"annotations: no file gone\.json, neither here nor in memory://data",
    }
    for given, match in wrong.items():
        with pytest.raises(SourceError, match=match):
            open_source(url, annotations=given)
    memory.rm("/data/images/b.png")
    memory.pipe("/data/instances.json", json.dumps(coco_entries()).encode())
    with pytest.raises(SourceError, match=r"1 of 3 images missing from memory://data/images: b\.png"):
        open_source(f"{url}/images", annotations=f"{url}/instances.json")
    with pytest.raises(SourceError, match=r"memory://nothing: no folder images in it|no such file or folder"):
        open_source("memory://nothing", annotations="yolo")

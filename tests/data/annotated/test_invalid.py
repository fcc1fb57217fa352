"""Invalid annotations of every layout, by the table ``invalid.txt``: errors that name the place, skipped on request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.annotated.made import coco_entries, put_coco, put_voc, put_yolo
from tests.data.tars import encoded, read_all, write_tar
from tests.soak.mutating import check
from tests.soak.parsers.annotated import PARSERS
from variegate.data.base import Item, SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError

CLASSES = ["ant", "cat", "dog"]


def put_object(root: Path, content: str) -> tuple[Path, Any]:
    entries = coco_entries()
    change = json.loads(content)
    first = entries["annotations"][0]
    entries["annotations"][0] = {**first, **change} if isinstance(change, dict) else change
    return root / "images", {"file": put_coco(root, entries)}


def put_lists(root: Path, content: str) -> tuple[Path, Any]:
    return put_text(root, json.dumps({**coco_entries(), **json.loads(content)}))


def put_text(root: Path, content: str) -> tuple[Path, Any]:
    file = put_coco(root)
    file.write_text(content)
    return root / "images", {"file": file}


def put_xml(root: Path, content: str) -> tuple[Path, Any]:
    old, new = content.split(" -> ")
    file = put_voc(root) / "Annotations/a.xml"
    file.write_text(file.read_text().replace(old, new, 1))
    return root, "voc"


def put_line(root: Path, content: str) -> tuple[Path, Any]:
    (put_yolo(root) / "labels/a.txt").write_text(f"0 0.5 0.5 0.5 0.5\n\n{content}\n")
    return root, "yolo"


def put_data_yaml(root: Path, content: str) -> tuple[Path, Any]:
    (put_yolo(root / "below") / "data.yaml").write_text(content)
    return root / "below", "yolo,split=train"


def put_member(root: Path, content: str) -> tuple[Path, Any]:
    good = b'{"boxes": [[1, 2, 3, 4]], "labels": [0]}'
    members = [("0000.jpg", encoded(0)), ("0000.json", content.encode()), ("1.jpg", encoded(1)), ("1.json", good)]
    return Path(write_tar(root / "a.tar", members)), "members"


def put_row(root: Path, content: str) -> tuple[Path, Any]:
    box, name = json.loads(f"[{content}]")
    objects = {"bbox": [box, [1.0, 2.0, 3.0, 4.0]], "category": [name, "dog"]}
    pq.write_table(pa.table({"image": [{"bytes": encoded(0)}], "objects": [objects]}), root / "a.parquet")
    return root / "a.parquet", "columns"


# Each puts a data set with the content into a folder -> the place and the annotations to open. Some take no objects
# away but the file, or the sample.
PUTS: dict[str, Callable[[Path, str], tuple[Path, Any]]] = {
    "coco": put_object,
    "coco lists": put_lists,
    "coco file": put_text,
    "voc": put_xml,
    "yolo": put_line,
    "data.yaml": put_data_yaml,
    "members": put_member,
    "columns": put_row,
}
# Labels of the first image if invalid objects are skipped.
REMAINING = {"coco": [[0]], "voc": [[0], []], "yolo": [[0]], "columns": [[2]]}


def cases() -> Iterator[Any]:
    for line in Path(__file__).with_name("invalid.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            layout, content, message = line.split(" | ")
            content = re.sub(r"<(.|<a>)\*(\d+)>", lambda match: match[1] * int(match[2]), content)
            yield pytest.param(layout, content, message, id=f"{layout}: {message[:60]}")


def read_first(place: Path, annotations: Any, **options: Any) -> Any:
    classes = CLASSES if annotations == "columns" else None
    source = open_source(place, annotations=annotations, classes=classes, **options)
    return source, source.read(0).targets


@pytest.mark.parametrize(("layout", "content", "message"), cases())
def test_invalid_annotations_are_named_and_skipped(tmp_path: Path, layout: str, content: str, message: str) -> None:
    place, annotations = PUTS[layout](tmp_path, content)
    with pytest.raises((SourceError, DecodeError), match=re.escape(message)) as caught:
        read_first(place, annotations)
    assert str(caught.value).startswith(str(tmp_path))
    assert len(str(caught.value)) <= 400 + 3 * len(str(tmp_path))
    if layout in REMAINING:
        source, targets = read_first(place, annotations, on_error="skip")
        assert targets["labels"].tolist() in REMAINING[layout]
        assert any(re.match("skipped 1 invalid object", note) for note in source.notes())
    elif layout != "members":
        with pytest.raises(SourceError, match=re.escape(message)):
            read_first(place, annotations, on_error="skip")
    else:
        first, second = read_all(open_source(place, annotations=annotations, stream=True))
        assert message in str(first)
        assert isinstance(second, Item)
        assert second.targets is not None
        assert second.targets["labels"].tolist() == [0]


@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_mutated_files_are_read_or_refused(parser: Any, tmp_path: Path) -> None:
    check(parser, 0, range(60), tmp_path)

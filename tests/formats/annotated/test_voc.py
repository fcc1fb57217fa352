"""Pascal VOC's XML files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.formats.annotated.made import check_objects, put_voc, voc_xml
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source
from variegate.formats.voc import parse_xml

BOMB = b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'


def test_corners_are_edges(tmp_path: Path) -> None:
    check_objects(open_source(put_voc(tmp_path)))
    check_objects(open_source(tmp_path, annotations="voc"))


def test_splits_and_classes(tmp_path: Path) -> None:
    put_voc(tmp_path)
    check_objects(open_source(tmp_path, annotations={"format": "voc", "split": "train"}), (2, 0))
    of_class = open_source(tmp_path, annotations={"format": "voc", "split": "bee_train"})
    assert of_class.paths() == ["JPEGImages/c.png"]
    with pytest.raises(SourceError, match=r"split: no file .*val\.txt"):
        open_source(tmp_path, annotations={"format": "voc", "split": "val"})
    with pytest.raises(SourceError, match=r"a\.xml: object 2: of the class 'ant'; accepted: cat, bee"):
        open_source(tmp_path, annotations="voc", classes=["cat", "bee"])
    (tmp_path / "ImageSets" / "Main" / "train.txt").write_text("a\ngone\n")
    with pytest.raises(SourceError, match=r"train\.txt: 1 of 2 images are not in JPEGImages: gone"):
        open_source(tmp_path, annotations={"format": "voc", "split": "train"})


def test_difficult_objects_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    put_voc(tmp_path)
    (tmp_path / "Annotations" / "c.xml").write_text(voc_xml(2, difficult="1"))
    source = open_source(tmp_path, classes=None)
    assert '1 difficult objects are skipped; "ignored": True keeps them' in source.notes()
    check_objects(open_source(tmp_path, annotations={"format": "voc", "ignored": True}))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "a.xml: no XML: no element found"),
        ("<annotation><object>", "a.xml: no XML"),
        (BOMB.decode(), "a.xml: a document type (<!DOCTYPE ...>), which is not read"),
        ("<a>" * 70 + "</a>" * 70, "a.xml: nested more than 64 deep"),
        (voc_xml(0).replace("<xmin>6</xmin>", "<xmin>six</xmin>"), "a.xml: object 1: its bndbox is six 11 25 30"),
        (voc_xml(0).replace("<xmin>6</xmin>", ""), "a.xml: object 1: its bndbox is ? 11 25 30"),
        (voc_xml(0).replace("<name>cat</name>", ""), "a.xml: object 1: has no name"),
        (voc_xml(0).replace("<xmin>6</xmin>", "<xmin>28</xmin>"), "a.xml: object 1: the box with the edges (27"),
        (voc_xml(0).replace("<width>60</width>", "<width>wide</width>"), "a.xml: width is 'wide'; accepted: whole"),
        (voc_xml(0).replace("<width>60</width>", "<width>1e999</width>"), "a.xml: width is '1e999'; accepted: whole"),
        (voc_xml(0).replace("<xmax>25", "<xmax>1e999"), "the box with the edges (5, 10, inf, 30) is odd"),
        (voc_xml(0).replace("<xmax>25", "<xmax>" + "x" * 9000), "a.xml: object 1: its bndbox is 6 11 'xxxxx"),
    ],
)  # fmt: skip
def test_wrong_files_are_named_or_left_out(tmp_path: Path, text: str, what: str) -> None:
    put_voc(tmp_path)
    (tmp_path / "Annotations" / "a.xml").write_text(text)
    with pytest.raises(SourceError, match=re.escape(what)):
        open_source(tmp_path)
    source = open_source(tmp_path, on_error="skip")
    assert any(note.startswith("1 invalid objects are skipped") for note in source.notes())


def test_no_entity_is_expanded() -> None:
    assert parse_xml(b"<a>x &amp; y</a>").text == "x & y"
    with pytest.raises(ValueError, match="document type"):
        parse_xml(BOMB)


def test_boxes_are_new_arrays(tmp_path: Path) -> None:
    source: object = open_source(put_voc(tmp_path))
    read = getattr(source, "read")  # noqa: B009
    read(0).targets["boxes"][:] = 0
    assert np.abs(read(0).targets["boxes"]).max() > 0

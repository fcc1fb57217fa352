"""Pascal VOC's XML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.data.annotated.made import check_objects, put_voc, voc_xml
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.data.voc import parse_xml


def test_corners_are_edges(tmp_path: Path) -> None:
    check_objects(open_source(put_voc(tmp_path)))
    source: Any = open_source(tmp_path, annotations="voc")
    source.read(0).targets["boxes"][:] = 0  # a new array
    check_objects(source)


def test_splits_and_classes(tmp_path: Path) -> None:
    put_voc(tmp_path)
    check_objects(open_source(tmp_path, annotations="voc,split=train"), (2, 0))
    assert open_source(tmp_path, annotations="voc,split=bee_train").paths() == ["JPEGImages/c.png"]
    with pytest.raises(SourceError, match=r"split: no file .*val\.txt"):
        open_source(tmp_path, annotations="voc,split=val")
    with pytest.raises(SourceError, match=r"a\.xml: object 2: of the class 'ant'; accepted: cat, bee"):
        open_source(tmp_path, annotations="voc", classes=["cat", "bee"])
    (tmp_path / "ImageSets" / "Main" / "train.txt").write_text("a\ngone\n")
    with pytest.raises(SourceError, match=r"train\.txt: 1 of 2 images missing from JPEGImages: gone"):
        open_source(tmp_path, annotations="voc,split=train")


def test_difficult_objects_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    put_voc(tmp_path)
    (tmp_path / "Annotations" / "c.xml").write_text(voc_xml(2, difficult="1"))
    assert 'skipped 1 difficult object; "ignored": True keeps them' in open_source(tmp_path).notes()
    check_objects(open_source(tmp_path, annotations="voc,ignored=true"))


def test_no_entity_is_expanded() -> None:
    assert parse_xml(b"<a>x &amp; y</a>").text == "x & y"
    with pytest.raises(ValueError, match="document type"):
        parse_xml(b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>')

"""Annotations as commands take them: text that means what a dict of options does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.annotated.made import put_coco, put_voc, put_yolo
from variegate.formats.annotated.options import split_typed
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source


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
    assert typed.read(0).targets["masks"].shape == (2, 40, 60)
    assert len(open_source(put_voc(tmp_path / "voc"), annotations="voc,split=train")) == 2
    yolo = open_source(put_yolo(tmp_path / "yolo"), annotations="yolo,mask=classes")
    assert set(yolo.read(0).targets) == {"boxes", "labels", "mask"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yolo,nothing=1", "got the option 'nothing'; accepted: split, mask, unoutlined, keypoints"),
        ("yolo,mask=big", "mask: got 'big'; accepted: 'instances', 'classes', 'each', None"),
        ("yolo,keypoints=17", "keypoints: got '17'; accepted"),
        ("yolo,format=voc", "got format= after 'yolo', which says it"),
        ("labels.txt,mask=each", "got 'labels.txt,mask=each'; accepted: a COCO .json file"),
    ],
)
def test_what_is_not_accepted_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_source(put_yolo(tmp_path), annotations=text)
    assert message in str(caught.value)

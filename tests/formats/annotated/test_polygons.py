"""Polygons that are taken out of a large file's text: the same data set as without, to the bit, and the same errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.annotated.made import coco_entries, put_coco
from variegate.formats import coco as coco_read
from variegate.formats.base import SourceError
from variegate.formats.coco_polygons import take_polygons
from variegate.formats.opening import open_source


def annotation(text: str) -> bytes:
    return b'{"annotations": [{"segmentation": ' + text.encode() + b"}]}"


def random_numbers() -> list[str]:
    random = np.random.default_rng(0)
    values = random.uniform(-700, 700, 400)
    forms = [f"{value:.{digits}f}" for value, digits in zip(values, [0, 1, 2, 3, 7, 12, 15] * 60, strict=False)]
    return [*forms, *map(repr, values.tolist()), *map(str, (values * 1e-7).tolist())]


@pytest.mark.parametrize("spaces", ["", " ", "\r\n\t "])
def test_numbers_are_those_of_json(spaces: str) -> None:
    numbers = [
        *random_numbers(),
        "0",
        "-0",
        "1e3",
        "25E-1",
        "1.5e+2",
        "123456789012345678901234",
        "0.000000000000000001",
    ]
    rings = [numbers[i : i + 6] for i in range(0, len(numbers) - 6, 6)]
    separate = f"{spaces},{spaces}"
    shapes = [f"[{spaces}[{spaces}{separate.join(ring)}{spaces}]{spaces}]" for ring in rings]
    text = f'{{"annotations": [{", ".join(f"""{{"segmentation"{spaces}:{spaces}{shape}}}""" for shape in shapes)}]}}'
    taken = take_polygons(text.encode())
    assert taken is not None
    wanted = [json.loads(shape)[0] for shape in shapes]
    left = [entry["segmentation"] for entry in json.loads(str(taken.text, "utf-8"))["annotations"]]
    assert len(taken.ends) >= len(shapes) - 3  # but for numbers that are not told for certain
    for shape, numbers_of in zip(left, wanted, strict=True):
        if isinstance(shape, int):
            first = taken.rings[taken.ends[shape - 1] if shape else 0]
            found = taken.points[first : taken.rings[taken.ends[shape]]]
            np.testing.assert_array_equal(found.ravel(), np.array(numbers_of, np.float32))
        else:
            assert shape == [numbers_of]


@pytest.mark.parametrize(
    "shape",
    [
        *("[]", "[[]]", "[[1,2,3,4]]", "[[1,2,3,4,5,6,7]]", "[[1,2,3,4,5,6],[1]]", "null", '"[[1,2,3,4,5,6]]"'),
        *("[[1,2,3,4,5,NaN]]", "[[1,2,3,4,5,[6]]]", '{"counts": [1], "size": [1, 1]}', "[[1,2,3,4,5,1e400]]"),
        *("[[1,2,3,4,5,06]]", "[[1,2,3,4,5,+6]]", "[[1,2,3,4,5,.6]]", "[[1,2,3,4,5,6.]]", "[[1,2,3,4,5,6e]]"),
        *("[[1,2,3,4,5,6,]]", "[[1,2,3,4,5,6],]", "[[1,2,3,4,5,6]", "[[1,2,3,4,5,-]]", "[1,2,3,4,5,6]", "[[1 2 3]]"),
    ],
)
def test_what_is_no_polygon_stays_in_the_text(shape: str) -> None:
    for text in (annotation(shape), annotation(shape)[:-3]):
        taken = take_polygons(text)
        assert taken is not None
        assert bytes(taken.text) == text
        assert not len(taken.ends)


def test_only_annotations_are_looked_at() -> None:
    ring = "[[1,2,3,4,5,6]]"
    kept = (
        f'{{"info": {{"segmentation": {ring}}}, "images": [{{"segmentation": {ring}, "file_name": '
        f'"\\"segmentation\\": {ring} \\\\"}}], "annotations": [{{"more": {{"segmentation": {ring}}}, "text": '
        f'"annotations"}}], "categories": [{{"segmentation": {ring}}}]}}'
    ).encode()
    taken = take_polygons(kept)
    assert taken is not None
    assert bytes(taken.text) == kept
    assert take_polygons(annotation("0")) is None
    assert take_polygons(annotation("-1")) is None


def opened_both_ways(file: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    found: list[Any] = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(coco_read, "LARGE", least)
        try:
            found.append(open_source(file.parent / "images", annotations={"file": file, "mask": "each"}, **options))
        except SourceError as error:
            found.append(str(error))
    return found


def test_a_data_set_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = coco_entries()
    entries["annotations"][0]["segmentation"] = [[5, 10, 25.25, 10, 25, 30], [7, 12, 9, 12, 9, 20, 7.125, 20]]
    entries["annotations"][1]["segmentation"] = {"counts": [0, 2400], "size": [40, 60]}
    file = put_coco(tmp_path, entries)
    for indent in (None, 1):
        file.write_bytes(b"\xef\xbb\xbf" + json.dumps(entries, indent=indent).encode())
        taken, whole = opened_both_ways(file, monkeypatch)
        assert taken.fingerprint == whole.fingerprint
        for index in range(3):
            masks = taken.read(index).targets["masks"]
            np.testing.assert_array_equal(masks, whole.read(index).targets["masks"])
        assert masks.any()


def test_errors_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = coco_entries()
    entries["annotations"][2]["segmentation"] = [[1, 2, 3]]
    file = put_coco(tmp_path, entries)
    first, second = opened_both_ways(file, monkeypatch)
    assert first == second
    assert "annotations, the entry with id 502: a polygon of 3 numbers" in first
    text = json.dumps(coco_entries(), indent=1)
    for wrong in (text[:-40], text.replace('"images"', "images"), text.replace("3,", "3;")):
        file.write_text(wrong)
        first, second = opened_both_ways(file, monkeypatch)
        assert first == second
        assert "no JSON" in first


def test_a_number_behind_an_escaped_key_is_no_polygon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk compares bytes; JSON reads the escape, and would find another object's polygons by the number."""
    file = put_coco(tmp_path)
    text = file.read_text()
    for number in ("7", "0"):
        odd = re.sub(r'"segmentation": \[\[20.*?\]\]', rf'"\\u0073egmentation": {number}', text)
        assert odd != text
        file.write_text(odd)
        monkeypatch.setattr(coco_read, "LARGE", 0)
        with pytest.raises(SourceError, match=f"id 501: segmentation is {number}; accepted: polygons or an RLE"):
            open_source(tmp_path / "images", annotations=str(file))

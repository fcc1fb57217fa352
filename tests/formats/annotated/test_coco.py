"""COCO's JSON files."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.annotated.made import check_objects, coco_entries, put_coco
from variegate.errors import DecodeError
from variegate.formats.base import SourceError
from variegate.formats.opening import open_source


def opened(root: Path, entries: dict[str, Any] | None = None, on_error: str = "raise", **options: Any) -> Any:
    file = put_coco(root, entries)
    return open_source(root / "images", annotations={"file": file, **options}, on_error=on_error)


def changed(k: int = 0, **values: Any) -> dict[str, Any]:
    """The entries with another annotation ``k``."""
    entries = copy.deepcopy(coco_entries())
    entries["annotations"][k] |= values
    return entries


def test_boxes_labels_and_images_without_objects(tmp_path: Path) -> None:
    source = opened(tmp_path)
    check_objects(source)
    assert source.notes() == ["1 images have no objects"]
    assert "mask" not in source.read(0).targets


def test_the_file_may_be_given_from_the_folder_on(tmp_path: Path) -> None:
    put_coco(tmp_path).rename(tmp_path / "images" / "here.json")
    check_objects(open_source(tmp_path / "images", annotations="here.json"))
    with pytest.raises(SourceError, match=r"annotations: no file gone\.json, neither here nor in .*images"):
        open_source(tmp_path / "images", annotations="gone.json")


def test_masks_cover_the_boxes_and_small_objects_lie_on_top(tmp_path: Path) -> None:
    mask = opened(tmp_path, mask="instances").read(0).targets["mask"]
    wanted = np.zeros((40, 60), np.uint8)
    wanted[5:40, 20:60] = 2
    wanted[10:30, 5:25] = 1
    assert mask.dtype == np.uint8
    np.testing.assert_array_equal(mask, wanted)
    classes = opened(tmp_path, mask="classes").read(0).targets["mask"]
    np.testing.assert_array_equal(classes, np.array([0, 3, 1])[wanted])
    each = opened(tmp_path, mask="each").read(0).targets["masks"]
    assert each.shape == (2, 40, 60)
    assert each[1].sum() == 35 * 40
    assert opened(tmp_path, mask="each").read(1).targets["masks"].shape == (0, 30, 20)
    assert opened(tmp_path, mask="instances").read(1).targets["mask"].shape == (30, 20)


def test_run_lengths_and_crowds(tmp_path: Path) -> None:
    counts = [100, 20, 2280]
    entries = changed(iscrowd=1, segmentation={"size": [40, 60], "counts": counts})
    source = opened(tmp_path, entries, mask="instances")
    assert source.read(0).targets["labels"].tolist() == [0]
    assert '1 crowd (iscrowd) objects are skipped; "ignored": True keeps them' in source.notes()
    mask = opened(tmp_path, entries, mask="each", ignored=True).read(0).targets["masks"][0]
    np.testing.assert_array_equal(np.flatnonzero(mask.T), np.arange(100, 120))  # down the columns
    compressed = changed(segmentation={"size": [40, 60], "counts": "T3d0XW2"})
    np.testing.assert_array_equal(opened(tmp_path, compressed, mask="each").read(0).targets["masks"][0], mask)


def test_key_points_lie_in_the_middle_of_their_pixels(tmp_path: Path) -> None:
    entries = changed(keypoints=[7, 11, 2, 0, 0, 0], num_keypoints=1)
    entries["categories"][2]["keypoints"] = ["nose", "tail"]
    points = opened(tmp_path, entries).read(0).targets["keypoints"]
    assert points.dtype == np.float32
    np.testing.assert_array_equal(points, [[[7.5, 11.5, 2], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])


def test_an_object_with_another_number_of_key_points_is_left_out_as_the_note_says(tmp_path: Path) -> None:
    entries = changed(keypoints=[7, 11, 2])
    entries["categories"][2]["keypoints"] = ["nose", "tail"]
    source = opened(tmp_path, entries, on_error="skip")
    assert source.notes()[0].startswith("1 invalid objects are skipped")
    assert source.read(0).targets["labels"].tolist() == [0]


def test_key_points_of_zeros_alone_are_none(tmp_path: Path) -> None:
    entries = changed(keypoints=[0] * 9)
    entries["categories"][2]["keypoints"] = ["nose", "tail"]
    assert len(opened(tmp_path, entries).read(0).targets["labels"]) == 2


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"bbox": [5, 10, -20, 20]}, "500 of a.png: the box with the edges (5, 10, -15, 30) has its edges"),
        ({"bbox": [5, float("nan"), 20, 20]}, "500 of a.png: bbox is [5, nan, 20, 20]; accepted: finite numbers"),
        ({"bbox": [70, 10, 20, 20]}, "a.png: the box with the edges (70, 10, 90, 30) lies outside of its image"),
        ({"bbox": [5, 10, 20]}, "500 of a.png: bbox is [5, 10, 20]; accepted: 4 numbers"),
        ({"bbox": "box"}, "500 of a.png: bbox is 'box'; accepted: a list of numbers"),
        ({"category_id": 5}, "500 of a.png: category_id 5, which no category has"),
        ({"image_id": 5}, "annotation 500: image_id 5, which no image has"),
        ({"segmentation": [[1, 2, 3, 4, 5]]}, "500 of a.png: a polygon of 5 numbers; accepted: x and y of three"),
        ({"segmentation": {"size": [40, 60], "counts": [3, 4]}}, "500 of a.png: an RLE of 7 pixels, not 40 x 60"),
        ({"segmentation": {"size": [40, 60], "counts": [2**63 - 1, 2**63 - 1, 2402]}},
         "500 of a.png: an RLE of 40 x 60 with a run of 9223372036854775807 pixels; accepted: 0 to 2,400"),
        ({"segmentation": {"size": [10**30, 60], "counts": [3]}}, "500 of a.png: an RLE of the size [1000000000000000"),
        ({"segmentation": {"size": [-40, -60], "counts": [2400]}}, "a.png: an RLE of the size [-40, -60]; accepted:"),
        ({"segmentation": [[float("nan"), 1, 5, 7, 8, 9]]}, "a.png: a polygon with nan; accepted: finite numbers, up"),
        ({"segmentation": [None]}, "500 of a.png: a polygon None; accepted: a list of numbers"),
        ({"segmentation": [[1, 1, 5, "x", 8, 9]]}, "a.png: a polygon is [1, 1, 5, 'x', 8, 9]; accepted: numbers"),
        ({"bbox": [5, 10, 3e38, 20]}, "500 of a.png: bbox is [5, 10, 3e+38, 20]; accepted: finite numbers, up to 1e9"),
        ({"bbox": [5, 10, 10**400, 20]}, "; accepted: finite numbers, up to 1e9"),
        ({"bbox": [5, "ten", 20, 20]}, "500 of a.png: bbox is [5, 'ten', 20, 20]; accepted: numbers"),
        ({"iscrowd": "no"}, "500 of a.png: iscrowd is 'no'; accepted: whole numbers from 0 to 1"),
        ({"keypoints": [float("nan"), 1, 2]}, "500 of a.png: keypoints is [nan, 1, 2]; accepted: finite numbers"),
        ({"image_id": [1]}, "annotation 500: unhashable"),
        ({"category_id": "c" * 9000}, "500 of a.png: category_id 'ccccc"),
    ],
)  # fmt: skip
def test_wrong_objects_are_named_or_left_out(tmp_path: Path, values: dict[str, Any], what: str) -> None:
    with pytest.raises(SourceError, match=re.escape(what)) as caught:
        opened(tmp_path, changed(**values))
    assert str(caught.value).startswith(str(tmp_path / "instances.json"))
    assert len(str(caught.value)) <= 400 + len(str(tmp_path))
    source = opened(tmp_path, changed(**values), on_error="skip")
    assert source.read(0).targets["labels"].tolist() == [0]
    assert any(note.startswith("1 invalid objects are skipped") for note in source.notes())


def test_numbers_in_quotes_are_numbers(tmp_path: Path) -> None:
    """Strings were joined to one another: x + width of "1" and "3" was 13."""
    source = opened(tmp_path, changed(bbox=["1", "2", "3", "4"], iscrowd="0"))
    np.testing.assert_array_equal(source.read(0).targets["boxes"][0], [1, 2, 4, 6])
    assert not [note for note in source.notes() if "crowd" in note]
    assert opened(tmp_path, changed(iscrowd="1")).read(0).targets["labels"].tolist() == [0]


def test_an_annotation_that_is_a_list_is_named_or_left_out(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["annotations"].append([1])
    with pytest.raises(SourceError, match=r"annotation \[1\]: is \[1\]; accepted: an object"):
        opened(tmp_path, entries)
    check_objects(opened(tmp_path, entries, on_error="skip"))


def test_boxes_over_the_edge_are_clipped_and_flat_ones_left_out(tmp_path: Path) -> None:
    entries = changed(bbox=[-3, 10, 20, 60])
    entries["annotations"][1]["bbox"] = [3, 3, 0, 5]
    source = opened(tmp_path, entries)
    np.testing.assert_array_equal(source.read(0).targets["boxes"], [[0, 10, 17, 40]])
    assert source.notes()[:2] == [
        "1 objects without area are skipped",
        "1 boxes reach beyond their images, and are clipped",
    ]


_IMAGE = {"id": 1, "file_name": "a.png"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "not COCO's"),
        ("", "no JSON"),
        ('{"images": [', "no JSON"),
        ('{"images": [{"id": 1}\n{}]}', "no JSON: Expecting ',' delimiter: line 2 column 1"),
        ('{"images": ' + "[" * 100_000, "nested too deeply"),
        ({"images": 3}, "'images' is no list"),
        ({"annotations": None}, "no 'annotations' in it"),
        ({"images": [{"id": 1}]}, "images, the entry with id 1: no 'file_name'"),
        ({"images": [_IMAGE, _IMAGE]}, "images, the entry with id 1: an id that another entry has"),
        ({"images": [{"id": 1, "file_name": "../a.png"}]}, "file_name is '../a.png'"),
        ({"images": [7]}, "images, the entry with id 7: is 7; accepted: an object"),
        ({"images": [{**_IMAGE, "height": 10**30}]},
         "images, the entry with id 1: height is 1000000000000000000000000000000; accepted: whole numbers from"),
        ({"images": [{**_IMAGE, "width": -4}]}, "width is -4; accepted: whole numbers from 0"),
        ({"images": [{**_IMAGE, "width": float("inf")}]}, "width is inf; accepted: whole numbers"),
        ({"images": []}, "names no images"),
        ('{"images": [{"id": %s}]}' % ("1" * 5000), "no JSON: Exceeds the limit"),
        ({"categories": [{"id": 1, "name": "\ud800"}]}, "categories, the entry with id 1: classes: got ["),
        ({"categories": [{"id": 1, "name": "a", "keypoints": [1] * 1001}]}, "1,001 key points; accepted: up to 1,000"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path: Path, text: Any, what: str) -> None:
    if isinstance(text, dict):
        entries = {**coco_entries(), **text}
        text = json.dumps({name: value for name, value in entries.items() if value is not None})
    put_coco(tmp_path).write_text(text)
    for on_error in ("raise", "skip"):
        with pytest.raises(SourceError, match=re.escape(what)):
            open_source(tmp_path / "images", annotations=tmp_path / "instances.json", on_error=on_error)


def test_missing_images_and_more_images(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["images"][1]["file_name"] = "gone.png"
    with pytest.raises(SourceError, match=r"1 of 3 images are not in .*images: gone\.png"):
        opened(tmp_path, entries)
    source = opened(tmp_path, entries, on_error="skip")
    check_objects(source, (0, 2))
    assert any("b.png" in note and "do not name" in note for note in source.notes())


def test_an_image_of_another_size_is_named_when_it_is_read(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["images"][0]["height"] = 44
    with pytest.raises(DecodeError, match=r"a\.png.*is 40 x 60 \(height x width\), and 44 x 60 by its annotations"):
        opened(tmp_path, entries).read(0)


def test_the_fingerprint_covers_annotations(tmp_path: Path) -> None:
    first = opened(tmp_path).fingerprint
    assert opened(tmp_path).fingerprint == first
    entries = json.loads(json.dumps(coco_entries()))
    entries["annotations"][0]["segmentation"][0][0] += 1
    assert opened(tmp_path, entries).fingerprint != first
    assert opened(tmp_path, mask="each").fingerprint != first


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_polygons_of_two_points_leave_the_others_of_their_object(tmp_path: Path, on_error: str) -> None:
    good = coco_entries()["annotations"][0]["segmentation"][0]
    entries = changed(segmentation=[[1, 2, 3, 4], good, [5, 6]])
    source = opened(tmp_path, entries, on_error, mask="each")
    assert "2 polygons of fewer than three points cover nothing, and are skipped" in source.notes()
    whole = opened(tmp_path, coco_entries(), mask="each").read(0)
    np.testing.assert_array_equal(source.read(0).targets["masks"], whole.targets["masks"])
    assert len(opened(tmp_path, changed(segmentation=[[1, 2, 3, 4]])).read(0).targets["boxes"]) == 2


def put_boxes_and_an_outline(root: Path) -> Path:
    """In the first image, 40 x 60, a box of class 0 and a smaller outline of class 2 that overlaps it."""
    entries = coco_entries()
    box, outline = {"bbox": [10.2, 5, 20.2, 20.6], "category_id": 70}, {"bbox": [4, 4, 12, 12], "category_id": 18}
    outline["segmentation"] = [[4, 4, 16, 4, 16, 16, 4, 16]]
    entries["annotations"] = [{**one, "id": n, "image_id": 100} for n, one in enumerate((outline, box))]
    return put_coco(root, entries)


@pytest.mark.parametrize(
    ("mask", "unoutlined", "value"),
    [
        *(("classes", "fill", 1), ("classes", "ignore", 255), ("classes", "background", 0)),
        *(("instances", "fill", 2), ("instances", "background", 0), ("each", "fill", 1), ("each", "background", 0)),
    ],
)
def test_masks_of_objects_without_an_outline(tmp_path: Path, mask: str, unoutlined: str, value: int) -> None:
    file = put_boxes_and_an_outline(tmp_path)
    source: Any = open_source(tmp_path / "images", annotations={"file": file, "mask": mask, "unoutlined": unoutlined})
    outline = {"classes": 3, "instances": 1, "each": 1}[mask]
    expected = np.zeros((2, 40, 60), np.uint8)
    expected[0, 4:16, 4:16] = outline
    expected[1, 5:26, 10:30] = value  # pixels whose centers are inside
    targets = source.read(0).targets
    if mask == "each":
        np.testing.assert_array_equal(targets["masks"], expected)
    else:  # outlines on top of boxes
        np.testing.assert_array_equal(targets["mask"], np.where(expected[0], expected[0], expected[1]))
    [note] = [note for note in source.notes() if "no outline" in note]
    assert note.startswith("1 of 2 objects have no outline; in masks ")
    if unoutlined == "fill":  # the default
        plain: Any = open_source(tmp_path / "images", annotations={"file": file, "mask": mask})
        assert plain.fingerprint == source.fingerprint
        assert not [note for note in open_source(tmp_path / "images", annotations=file).notes() if "outline" in note]


def test_ignored_boxes_are_refused_where_the_value_means_something_else(tmp_path: Path) -> None:
    file = put_boxes_and_an_outline(tmp_path)
    for mask in (None, "each", "instances"):
        with pytest.raises(
            SourceError, match=r"unoutlined: got 'ignore' with mask=.*; accepted: 'fill', 'background', or"
        ):
            open_source(tmp_path / "images", annotations={"file": file, "mask": mask, "unoutlined": "ignore"})
    entries = json.loads(file.read_text())
    entries["categories"] += [{"id": 1000 + n, "name": f"class {n}"} for n in range(252)]
    file.write_text(json.dumps(entries))
    with pytest.raises(SourceError, match="unoutlined: got 'ignore' with 255 classes; accepted: up to 254 classes"):
        open_source(tmp_path / "images", annotations={"file": file, "mask": "classes", "unoutlined": "ignore"})

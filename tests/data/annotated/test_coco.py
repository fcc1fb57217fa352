"""COCO's JSON files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.annotated.made import check_objects, coco_entries, put_coco
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError


def opened(root: Path, entries: dict[str, Any] | None = None, on_error: str = "raise", **options: Any) -> Any:
    file = put_coco(root, entries)
    return open_source(root / "images", annotations={"file": file, **options}, on_error=on_error)


def changed(k: int = 0, **values: Any) -> dict[str, Any]:
    """The entries with another annotation ``k``, of a category with two key points."""
    entries = copy.deepcopy(coco_entries())
    entries["annotations"][k] |= values
    if "keypoints" in values:
        entries["categories"][2]["keypoints"] = ["nose", "tail"]
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
    wanted = np.zeros((40, 60), np.uint8)
    wanted[5:40, 20:60] = 2
    wanted[10:30, 5:25] = 1
    for mask, values in (("instances", [0, 1, 2]), ("classes", [0, 3, 1])):
        found = opened(tmp_path, mask=mask).read(0).targets["mask"]
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, np.array(values)[wanted])
    each = opened(tmp_path, mask="each")
    assert [int(one.sum()) for one in each.read(0).targets["masks"]] == [20 * 20, 35 * 40]
    assert each.read(1).targets["masks"].shape == (0, 30, 20)
    assert opened(tmp_path, mask="instances").read(1).targets["mask"].shape == (30, 20)


def test_run_lengths_and_crowds(tmp_path: Path) -> None:
    for counts in ([100, 20, 2280], "T3d0XW2"):
        entries = changed(iscrowd=1, segmentation={"size": [40, 60], "counts": counts})
        source = opened(tmp_path, entries, mask="instances")
        assert source.read(0).targets["labels"].tolist() == [0]
        assert '1 crowd (iscrowd) objects are skipped; "ignored": True keeps them' in source.notes()
        mask = opened(tmp_path, entries, mask="each", ignored=True).read(0).targets["masks"][0]
        np.testing.assert_array_equal(np.flatnonzero(mask.T), np.arange(100, 120))  # down the columns


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([7, 11, 2, 0, 0, 0], [[7.5, 11.5, 2], [0, 0, 0]]),  # the centers of pixels
        ([0] * 9, [[0, 0, 0], [0, 0, 0]]),  # zeros alone are none
        ([7, 11, 2], None),
    ],
)
def test_key_points(tmp_path: Path, numbers: list[int], expected: Any) -> None:
    source = opened(tmp_path, changed(keypoints=numbers), on_error="skip")
    points = source.read(0).targets["keypoints"]
    assert points.dtype == np.float32
    assert points[: len(points) - 1].tolist() == ([expected] if expected else [])
    assert source.notes()[0].startswith("1 invalid objects are skipped") == (expected is None)


def test_numbers_in_quotes_are_numbers(tmp_path: Path) -> None:
    """Strings were joined to one another: x + width of "1" and "3" was 13."""
    source = opened(tmp_path, changed(bbox=["1", "2", "3", "4"], iscrowd="0"))
    np.testing.assert_array_equal(source.read(0).targets["boxes"][0], [1, 2, 4, 6])
    assert opened(tmp_path, changed(iscrowd="1")).read(0).targets["labels"].tolist() == [0]


def test_boxes_over_the_edge_are_clipped_and_flat_ones_left_out(tmp_path: Path) -> None:
    entries = changed(bbox=[-3, 10, 20, 60])
    entries["annotations"][1]["bbox"] = [3, 3, 0, 5]
    source = opened(tmp_path, entries)
    np.testing.assert_array_equal(source.read(0).targets["boxes"], [[0, 10, 17, 40]])
    clipped = "1 boxes reach beyond their images, and are clipped"
    assert source.notes()[:2] == ["1 objects without area are skipped", clipped]


def test_a_list_that_is_missing_is_named(tmp_path: Path) -> None:
    for name in ("images", "annotations", "categories"):
        entries = coco_entries()
        del entries[name]
        with pytest.raises(SourceError, match=f"no '{name}' in it"):
            opened(tmp_path, entries)


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
    entries = copy.deepcopy(coco_entries())
    entries["annotations"][0]["segmentation"][0][0] += 1
    assert opened(tmp_path, entries).fingerprint != first
    assert opened(tmp_path, mask="each").fingerprint != first


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_polygons_of_two_points_leave_the_others_of_their_object(tmp_path: Path, on_error: str) -> None:
    good = coco_entries()["annotations"][0]["segmentation"][0]
    source = opened(tmp_path, changed(segmentation=[[1, 2, 3, 4], good, [5, 6]]), on_error, mask="each")
    assert "2 polygons of fewer than three points cover nothing, and are skipped" in source.notes()
    without = opened(tmp_path, mask="each").read(0)
    np.testing.assert_array_equal(source.read(0).targets["masks"], without.targets["masks"])
    assert len(opened(tmp_path, changed(segmentation=[[1, 2, 3, 4]])).read(0).targets["boxes"]) == 2


def box_and_outline() -> dict[str, Any]:
    """In the first image, 40 x 60, a box of class 0 and a smaller outline of class 2 that overlaps it."""
    entries = coco_entries()
    outline = {"id": 0, "image_id": 100, "category_id": 18, "bbox": [4, 4, 12, 12]}
    outline["segmentation"] = [[4, 4, 16, 4, 16, 16, 4, 16]]
    box = {"id": 1, "image_id": 100, "category_id": 70, "bbox": [10.2, 5, 20.2, 20.6]}
    return {**entries, "annotations": [outline, box]}


@pytest.mark.parametrize(
    ("case", "value"),
    [
        *(("classes fill", 1), ("classes ignore", 255), ("classes background", 0)),
        *(("instances fill", 2), ("instances background", 0), ("each fill", 1), ("each background", 0)),
    ],
)
def test_masks_of_objects_without_an_outline(tmp_path: Path, case: str, value: int) -> None:
    mask, unoutlined = case.split()
    source = opened(tmp_path, box_and_outline(), mask=mask, unoutlined=unoutlined)
    expected = np.zeros((2, 40, 60), np.uint8)
    expected[0, 4:16, 4:16] = 3 if mask == "classes" else 1
    expected[1, 5:26, 10:30] = value  # pixels whose centers are inside
    targets = source.read(0).targets
    if mask == "each":
        np.testing.assert_array_equal(targets["masks"], expected)
    else:  # outlines on top of boxes
        np.testing.assert_array_equal(targets["mask"], np.where(expected[0], expected[0], expected[1]))
    assert any(note.startswith("1 of 2 objects have no outline; in masks ") for note in source.notes())
    if unoutlined == "fill":  # the default
        assert opened(tmp_path, box_and_outline(), mask=mask).fingerprint == source.fingerprint
        assert not any("outline" in note for note in opened(tmp_path, box_and_outline()).notes())


def test_ignored_boxes_are_refused_if_the_value_means_something_else(tmp_path: Path) -> None:
    for mask in (None, "each", "instances"):
        with pytest.raises(SourceError, match=r"unoutlined: got 'ignore' with mask=.*; accepted: 'fill', 'background'"):
            opened(tmp_path, mask=mask, unoutlined="ignore")
    entries = box_and_outline()
    entries["categories"] += [{"id": 1000 + n, "name": f"class {n}"} for n in range(252)]
    with pytest.raises(SourceError, match="unoutlined: got 'ignore' with 255 classes; accepted: up to 254 classes"):
        opened(tmp_path, entries, mask="classes", unoutlined="ignore")

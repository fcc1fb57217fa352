"""COCO's JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.data.annotated.made import check_objects, coco_entries, put_coco
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.errors import DecodeError


def opened(root: Path, entries: dict[str, Any] | None = None, on_error: str = "raise", **options: Any) -> Any:
    file = put_coco(root, entries)
    return open_source(root / "images", annotations={"file": file, **options}, on_error=on_error)


def test_boxes_labels_and_images_without_objects(tmp_path: Path) -> None:
    source = opened(tmp_path)
    check_objects(source)
    assert source.notes() == ["1 image without objects"]
    assert "mask" not in source.read(0).targets


def test_the_file_may_be_given_from_the_folder_on(tmp_path: Path) -> None:
    put_coco(tmp_path).rename(tmp_path / "images" / "here.json")
    check_objects(open_source(tmp_path / "images", annotations="here.json"))
    with pytest.raises(SourceError, match=r"annotations: no file gone\.json, neither here nor in .*images"):
        open_source(tmp_path / "images", annotations="gone.json")


def test_missing_images_and_more_images(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["images"][1]["file_name"] = "gone.png"
    with pytest.raises(SourceError, match=r"1 of 3 images missing from .*images: gone\.png"):
        opened(tmp_path, entries)
    source = opened(tmp_path, entries, on_error="skip")
    check_objects(source, (0, 2))
    assert any("b.png" in note and "without annotations" in note for note in source.notes())


def test_an_image_of_another_size_is_named_when_it_is_read(tmp_path: Path) -> None:
    entries = coco_entries()
    entries["images"][0]["height"] = 44
    with pytest.raises(DecodeError, match=r"a\.png.*is 40 x 60 \(height x width\), and 44 x 60 by its annotations"):
        opened(tmp_path, entries).read(0)


def test_the_fingerprint_covers_annotations(tmp_path: Path) -> None:
    first = opened(tmp_path).fingerprint
    assert opened(tmp_path).fingerprint == first
    entries = coco_entries()
    entries["annotations"][0]["segmentation"][0][0] += 1
    assert opened(tmp_path, entries).fingerprint != first
    assert opened(tmp_path, mask="each").fingerprint != first


def box_and_outline() -> dict[str, Any]:
    """In the first image, 40 x 60, a box of class 0 and a smaller outline of class 2 that overlaps it."""
    entries = coco_entries()
    outline = {"id": 0, "image_id": 100, "category_id": 18, "bbox": [4, 4, 12, 12]}
    outline["segmentation"] = [[4, 4, 16, 4, 16, 16, 4, 16]]
    box = {"id": 1, "image_id": 100, "category_id": 70, "bbox": [10.2, 5, 20.2, 20.6]}
    return {**entries, "annotations": [outline, box]}


def test_ignored_boxes_are_refused_if_the_value_means_something_else(tmp_path: Path) -> None:
    for mask in (None, "each", "instances"):
        with pytest.raises(SourceError, match=r"unoutlined: got 'ignore' with mask=.*; accepted: 'fill', 'background'"):
            opened(tmp_path, mask=mask, unoutlined="ignore")
    entries = box_and_outline()
    entries["categories"] += [{"id": 1000 + n, "name": f"class {n}"} for n in range(252)]
    with pytest.raises(SourceError, match="unoutlined: got 'ignore' with 255 classes; accepted: up to 254 classes"):
        opened(tmp_path, entries, mask="classes", unoutlined="ignore")

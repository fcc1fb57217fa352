"""Duplicates, near duplicates, leaks and contradictions of small made data."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from PIL import Image

import variegate as vg
from variegate.apps.check.duplicates import find_duplicates
from variegate.apps.check.findings import FINDING_KINDS, SCHEMA, DataFinding
from variegate.apps.check.fingerprint import fingerprint

Image_HWC = npt.NDArray[np.uint8]
A, B, C = (np.asarray(image)[:300, :300] for image in vg.sample_images(3))


def jpeg(image: Image_HWC, quality: int = 40) -> Image_HWC:
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream, formats=["JPEG"]))


def crop(image: Image_HWC) -> Image_HWC:
    return np.ascontiguousarray(image[8:-7, 8:-7])


def table_of(images: dict[str, Image_HWC | None], labels: dict[str, int] | None = None) -> pa.Table:
    """Names such as "train/a.png"."""
    rows: list[dict[str, Any]] = []
    for index, (name, image) in enumerate(images.items()):
        row: dict[str, Any] = dict.fromkeys(SCHEMA.names)
        split, file = name.split("/", 1)
        label = (labels or {}).get(name, -1)
        row |= {"split": split, "index": index, "file": file, "label": label}
        row["class"] = None if label < 0 else f"class{label}"
        if image is not None:
            row |= fingerprint(image)._asdict()
            row["height"], row["width"] = image.shape[:2]
        rows.append(row)
    return pa.Table.from_pylist(rows, SCHEMA)


def found(findings: list[DataFinding], kind: str) -> dict[str, tuple[float | None, int | None]]:
    return {f"{each.split}/{each.file}": (each.measure, each.group) for each in findings if each.finding == kind}


def test_same_pixels_are_duplicates_and_alike_ones_near_duplicates() -> None:
    images = {"train/a": A, "train/b": B, "train/a2": A.copy(), "train/a3": jpeg(A), "train/none": None, "train/c": C}
    findings = find_duplicates(table_of(images))
    assert found(findings, "duplicates") == {"train/a": (0.0, 1), "train/a2": (0.0, 1)}
    near = found(findings, "near_duplicates")
    assert set(near) == {"train/a", "train/a3"}, "the copy has the pixels of the first one, which speaks for both"
    assert near["train/a"] == near["train/a3"]
    assert near["train/a"][1] == 2, "numbered through, from 1"
    assert {each.finding for each in findings} == {"duplicates", "near_duplicates"} < set(FINDING_KINDS)
    assert next(each.why for each in findings if each.file == "a2") == "has the same pixels as a"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (crop, "bits differ"),
        (lambda image: image[:, ::-1], "bits differ, mirrored left to right"),
        (lambda image: image[::-1], "bits differ, mirrored upside down"),
        (lambda image: image[::-1, ::-1], "bits differ, turned by 180 degrees"),
        (lambda image: image[::3, ::3], "bits differ"),
        (lambda image: np.repeat(image.mean(2, keepdims=True), 3, 2).astype(np.uint8), "bits differ"),
        (lambda image: (image * 0.8 + 10).astype(np.uint8), "bits differ"),
    ],
)
def test_looks_survive(change: Any, words: str) -> None:
    findings = find_duplicates(table_of({"train/a": A, "train/b": B, "train/x": np.ascontiguousarray(change(A))}))
    assert set(found(findings, "near_duplicates")) == {"train/a", "train/x"}
    why = next(each.why for each in findings if each.file == "x")
    assert why.startswith("looks like a: ")
    assert words in why


def test_train_images_that_are_in_the_test_split_leak() -> None:
    images = {"train/a": A, "train/b": B, "train/c": C, "test/1": C[:, ::-1], "test/2": A.copy(), "test/3": jpeg(A)}
    findings = find_duplicates(table_of(images))
    leaks = found(findings, "leaks")
    assert leaks["train/a"][0] == 0.0
    assert set(leaks) == {"train/a", "train/c", "test/1", "test/2"}, "a group holds the test image too"
    assert leaks["train/c"] == leaks["test/1"]
    by_file = {each.file: each.why for each in findings if each.finding == "leaks"}
    assert by_file["a"] == "has the same pixels as test image 2"
    assert by_file["c"].startswith("looks like test image 1: ")
    assert by_file["c"].endswith(" of 64 bits differ, mirrored left to right")
    assert set(found(findings, "near_duplicates")) == {"test/2", "test/3"}, "of one split each"


def test_every_copy_of_what_looks_like_a_test_image_leaks() -> None:
    """Copies are compared once, and to leave out the first alone would leave the others to train."""
    images = {"train/c": C, "train/c2": C.copy(), "train/b": B, "test/1": C[:, ::-1], "test/2": C[:, ::-1].copy()}
    leaks = found(find_duplicates(table_of(images)), "leaks")
    assert {"train/c", "train/c2"} <= set(leaks)
    assert "train/b" not in leaks


def test_images_of_two_classes_that_are_alike_contradict_each_other() -> None:
    images = {"train/a": A, "train/a2": A.copy(), "train/b": B, "test/b2": jpeg(B), "train/c": C, "train/c2": C.copy()}
    labels = {"train/a": 0, "train/a2": 1, "train/b": 0, "test/b2": 2, "train/c": 1}
    findings = find_duplicates(table_of(images, labels))
    contradictions = found(findings, "contradictions")
    assert set(contradictions) == {"train/a", "train/a2", "train/b", "test/b2"}, "no label, no contradiction"
    assert contradictions["train/a"] == contradictions["train/a2"]
    assert contradictions["train/b"][1] == contradictions["test/b2"][1] != contradictions["train/a"][1]
    why = {each.file: each.why for each in findings if each.finding == "contradictions"}
    assert why["a2"] == "has the same pixels as a of class class0, and is of class class1"
    assert why["b"].startswith("looks like test image b2 of class class2, and is of class class0: ")


def test_blank_images_are_alike_where_their_colours_are() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 3, (3, 60, 60, 3), np.uint8)
    images = {"train/white": 250 + noise[0], "train/white2": 250 + noise[1], "train/black": noise[2]}
    images["train/red"] = np.full((60, 60, 3), (250, 0, 0), np.uint8)
    images["train/gray"] = np.full((60, 60, 3), 75, np.uint8)  # red's luminance
    near = found(find_duplicates(table_of(images)), "near_duplicates")
    assert set(near) == {"train/white", "train/white2"}


def test_noise_is_like_no_other_noise() -> None:
    rng = np.random.default_rng(0)
    images = {f"train/{k}": rng.integers(0, 256, (32, 32, 3), np.uint8) for k in range(60)}
    assert find_duplicates(table_of(images)) == []


def test_a_distance_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 to 15"):
        find_duplicates(table_of({}), 16)


def test_no_images_no_findings() -> None:
    assert find_duplicates(table_of({})) == []
    assert find_duplicates(table_of({"train/none": None})) == []


def test_images_of_a_few_pixels_look_like_none_but_the_same_pixels_are_found() -> None:
    small = np.asarray(Image.fromarray(A).resize((15, 15)))
    other = np.clip(small.astype(int) + 2, 0, 255).astype(np.uint8)
    images = {"train/a": small, "train/b": other, "train/c": small.copy()}
    findings = find_duplicates(table_of(images))
    assert set(found(findings, "duplicates")) == {"train/a", "train/c"}
    assert not found(findings, "near_duplicates")
    larger = {name: np.pad(image, ((0, 1), (0, 1), (0, 0)), "edge") for name, image in images.items()}
    assert set(found(find_duplicates(table_of(larger)), "near_duplicates")) == {"train/a", "train/b"}


def test_groups_are_numbered_as_a_report_shows_them() -> None:
    """Serious kinds first, and of each the largest."""
    images = {"train/b": B, "train/b2": B, "train/a": A, "train/a2": A, "train/a3": A, "test/c": C, "train/c": C}
    findings = find_duplicates(table_of(images))
    assert found(findings, "leaks") == {"test/c": (0.0, 1), "train/c": (0.0, 1)}
    groups = {name: group for name, (_, group) in found(findings, "duplicates").items()}
    assert groups == {"train/a": 2, "train/a2": 2, "train/a3": 2, "train/b": 3, "train/b2": 3}


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("is_mirrored", [False, True])
def test_copies_turned_by_90_degrees_are_near_duplicates(turns: int, is_mirrored: bool) -> None:
    turned = np.ascontiguousarray(np.rot90(A[:, ::-1] if is_mirrored else A, turns))
    images = {"train/b": B, "train/turned": jpeg(turned), "train/a": A, "train/c": C, "test/a": crop(A)}
    findings = find_duplicates(table_of(images))
    assert set(found(findings, "near_duplicates")) == {"train/turned", "train/a"}
    assert set(found(findings, "leaks")) == {"train/turned", "train/a", "test/a"}
    why = {each.why for each in findings if each.finding == "near_duplicates"}
    text = "mirrored and turned by 90 degrees" if is_mirrored else r"turned by (90|270) degrees"
    assert all(re.search(rf"bits differ, {text}$", each) for each in why), why

"""Every finding of a row that is just beyond its threshold, and none of one just beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from variegate.apps.check.findings import SCHEMA, DataFinding
from variegate.apps.check.judging import Thresholds, judge, thresholds_for
from variegate.options.datasets import ThresholdOptions

LIMITS = Thresholds(0.25, 0.75, 0.05, 1.2, 30, 2000, 4, 10, 0.5)
COLUMNS = pa.schema([one for one in SCHEMA if one.name != "findings"])
UNMEASURED = dict.fromkeys(("mean", "std", "brightness", "dark_end", "bright_end", "contrast", "entropy", "sharpness"))


def row(index: int = 0, **other: Any) -> dict[str, Any]:
    """Of a photo with which nothing is wrong."""
    usual = {
        **{"split": "train", "index": index, "file": f"a/{index}.jpg", "label": index % 2, "class": "ab"[index % 2]},
        **{"bytes": 9000, "kind": "JPEG", "mode": "RGB", "orientation": 1, "is_truncated": False},
        **{"height": 300, "width": 400, "mean": [0.5] * 3, "std": [0.2] * 3, "brightness": 0.5, "dark_end": 0.1},
        **{"bright_end": 0.9, "contrast": 0.2, "entropy": 7.0, "sharpness": 2.0},
    }
    return usual | other


def table_of(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), COLUMNS)


def judged(*rows: dict[str, Any], limits: Thresholds = LIMITS) -> list[DataFinding]:
    return judge(table_of(*rows), limits)


@pytest.mark.parametrize(
    ("finding", "beyond", "beside"),
    [
        ("corrupt", {"error": "no image", **UNMEASURED}, {}),
        ("truncated", {"is_truncated": True, "error": "truncated", **UNMEASURED}, {"is_truncated": None}),
        ("truncated", {"is_truncated": True}, {"is_truncated": False}),
        ("damaged", {"warning": "Corrupt JPEG data"}, {"warning": None}),
        ("empty", {"bytes": 0, "error": "it is empty", "is_truncated": True, **UNMEASURED}, {"bytes": 1}),
        ("empty", {"width": 0, "error": "it has no pixels", **UNMEASURED}, {"width": 300}),
        ("wrong_extension", {"kind": "PNG"}, {"kind": "PNG", "file": "a/0.PNG"}),
        ("wrong_extension", {"file": "a.tar: 1.png"}, {"file": "a.tar: 1.JPEG"}),
        ("wrong_extension", {"kind": "JPEG", "file": "0.webp"}, {"kind": "MPO"}),
        ("wrong_extension", {"kind": "TIFF"}, {"kind": "TIFF", "file": "t.parquet: row 12"}),
        ("exif_turned", {"orientation": 6}, {"orientation": None}),
        ("tiny", {"height": 30, "width": 29}, {"height": 30, "width": 30}),
        ("huge", {"height": 2000, "width": 2001}, {"height": 2000, "width": 2000}),
        ("extreme_aspect", {"height": 100, "width": 401}, {"height": 400, "width": 100}),
        ("blank", {"std": [0.0, 0.003, 0.0], "contrast": 0.001, "sharpness": None}, {"std": [0.0, 0.06, 0.0]}),
        (
            "dark",
            {"mean": [0.1] * 3, "bright_end": 0.24, "contrast": 0.11},
            {"mean": [0.1] * 3, "bright_end": 0.25, "contrast": 0.11},
        ),
        (
            "dark",
            {"mean": [0.1] * 3, "bright_end": 0.24, "contrast": 0.11},
            {"mean": [0.1] * 3, "bright_end": 0.24, "contrast": 0.12},
        ),
        (
            "bright",
            {"mean": [0.9] * 3, "dark_end": 0.76, "contrast": 0.11},
            {"mean": [0.9] * 3, "dark_end": 0.75, "contrast": 0.11},
        ),
        (
            "bright",
            {"mean": [0.9] * 3, "dark_end": 0.76, "contrast": 0.11},
            {"mean": [0.9] * 3, "dark_end": 0.76, "contrast": 0.12},
        ),
        ("low_contrast", {"contrast": 0.049}, {"contrast": 0.05}),
        ("blurred", {"sharpness": 1.19}, {"sharpness": 1.2}),
        ("blurred", {"sharpness": 0.3}, {"sharpness": None}),
        ("blurred", {"sharpness": 0.3, "height": 64, "width": 64}, {"sharpness": 0.3, "height": 15, "width": 60}),
    ],
)
def test_a_row_beyond_a_threshold_and_one_beside_it(
    finding: str, beyond: dict[str, Any], beside: dict[str, Any]
) -> None:
    found = judged(*(row(index) for index in range(2, 6)), row(**beyond))
    assert [(one.finding, one.index, one.split) for one in found] == [(finding, 0, "train")]
    assert found[0].file == beyond.get("file", "a/0.jpg")
    assert found[0].why
    assert not judged(*(row(index) for index in range(2, 6)), row(**beside))


def test_why_has_the_measure_and_the_threshold() -> None:
    (found,) = judged(row(2), row(3), row(4), row(5), row(sharpness=0.5))
    assert (found.measure, found.why) == (0.5, "sharpness is 0.500, below 1.200")


def test_with_nothing_beyond_there_is_no_finding() -> None:
    assert not judged(*(row(index) for index in range(6)))


def test_blurred_images_among_sharp_ones_do_not_move_the_threshold_below_them() -> None:
    sharp = np.random.default_rng(7).normal(2.2, 0.1, 300)
    some = [row(index, sharpness=float(one)) for index, one in enumerate([*sharp, *[1.0] * 60])]
    assert {one.index for one in judge(table_of(*some))} == set(range(300, 360))


def test_a_mode_is_unusual_unless_most_images_have_it() -> None:
    some = [row(index, mode="CMYK" if index < 2 else "RGB") for index in range(4)]
    assert [one.finding for one in judged(*some)] == ["unusual_mode"] * 2
    assert not judged(*(row(index, mode="CMYK") for index in range(4)))


def test_what_follows_from_another_finding_is_not_said() -> None:
    blank = {"std": [0.0] * 3, "contrast": 0.0, "sharpness": 0.1, "bright_end": 0.0, "dark_end": 0.0}
    dim = {"mean": [0.08] * 3, "contrast": 0.01, "sharpness": 0.1, "bright_end": 0.1, "dark_end": 0.05}
    flat = {"contrast": 0.01, "sharpness": 0.1}
    found = judged(*(row(index, **one) for index, one in enumerate([blank, dim, flat, {}])))
    assert [(one.index, one.finding) for one in found] == [(0, "blank"), (1, "dark"), (2, "low_contrast")]


def test_what_does_not_decode_has_findings_of_its_file_alone() -> None:
    broken = row(height=3, width=3000, error="no image", kind="PNG", **UNMEASURED)
    found = judged(broken, *(row(index) for index in range(2, 6)))
    assert [one.finding for one in found] == ["corrupt", "wrong_extension"]


def test_classes_of_other_sizes() -> None:
    some = [row(index, label=int(index > 10)) for index in range(13)]
    assert not judged(*some)
    (found,) = judged(*(row(index, label=int(index > 20)) for index in range(23)))
    assert (found.finding, found.file, found.measure) == ("imbalance", None, 10.5)
    assert [(one.finding, one.index) for one in judged(*some[:-1])] == [("imbalance", None), ("lone_files", 11)]
    assert not judged(*(row(index, label=-1) for index in range(3)))
    assert not judged(row())


@pytest.mark.parametrize("count", [0, 1, 2, 19])
def test_small_sets_have_fixed_thresholds(count: int) -> None:
    night = thresholds_for(table_of(*(row(index, bright_end=0.1, sharpness=0.3) for index in range(count))))
    assert (night.dark, night.bright, night.low_contrast, night.blurred) == (0.25, 0.75, 0.05, 1.2)


def test_thresholds_of_a_usual_set_do_not_make_a_share_of_it_odd() -> None:
    rng = np.random.default_rng(5)
    some = [
        row(index, bright_end=light, dark_end=shade, contrast=contrast, sharpness=sharp, height=int(h), width=int(w))
        for index, (light, shade, contrast, sharp, h, w) in enumerate(
            zip(
                rng.uniform(0.5, 1, 400),
                rng.uniform(0, 0.4, 400),
                rng.uniform(0.1, 0.3, 400),
                rng.normal(2.2, 0.15, 400),
                rng.integers(200, 600, 400),
                rng.integers(200, 600, 400),
                strict=True,
            )
        )
    ]
    assert not judge(table_of(*some))


def test_night_photos_are_not_dark_as_a_whole_but_black_ones_among_them_are() -> None:
    rng = np.random.default_rng(6)
    lights = rng.normal(0.15, 0.01, 200).tolist()
    night = [row(index, mean=[0.1] * 3, bright_end=one, contrast=0.06) for index, one in enumerate(lights)]
    found = judge(table_of(*night, row(200, mean=[0.005] * 3, bright_end=0.01, contrast=0.06)))
    assert [(one.finding, one.index) for one in found] == [("dark", 200)]


def test_thresholds_follow_from_train_images_and_hold_for_test_images() -> None:
    train = [row(index, height=1000, width=1000) for index in range(30)]
    test = [row(index, split="test", height=32, width=32) for index in range(30)]
    limits = thresholds_for(table_of(*train, *test))
    assert limits == thresholds_for(table_of(*train))
    assert {(one.finding, one.split) for one in judge(table_of(*train, *test))} == {("tiny", "test")}


def test_thresholds_that_are_given_are_used() -> None:
    given = ThresholdOptions(dark=0.1, blurred=0, tiny=500, imbalance=1)
    limits = thresholds_for(table_of(*(row(index) for index in range(30))), given)
    assert (limits.dark, limits.blurred, limits.tiny, limits.imbalance) == (0.1, 0, 500, 1)
    assert limits.bright == 0.75


def test_saturated_colors_are_neither_dark_nor_bright() -> None:
    blue = {"mean": [0.02, 0.05, 0.9], "std": [0.02, 0.05, 0.15], "bright_end": 0.2, "dark_end": 0.1, "contrast": 0.03}
    yellow = {
        "mean": [0.99, 0.95, 0.1],
        "std": [0.02, 0.05, 0.15],
        "bright_end": 0.9,
        "dark_end": 0.8,
        "contrast": 0.03,
    }
    gray = {"mean": [0.15] * 3, "std": [0.03] * 3, "bright_end": 0.2, "dark_end": 0.1, "contrast": 0.03}
    found = judged(*(row(index, **one) for index, one in enumerate([blue, yellow, gray, {}])))
    assert [(one.finding, one.index) for one in found] == [("dark", 2)]

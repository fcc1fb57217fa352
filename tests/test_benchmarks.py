"""The benchmarks' own rules: which rows there are, what limits our code, and how a table counts and tells misses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from benchmarks import levels, report, run_check
from benchmarks.checking import damage
from benchmarks.columns import verdict
from benchmarks.rows import catalogue, columns
from benchmarks.rows.checks import checks
from benchmarks.rows.libraries import ours
from benchmarks.rows.worker import check_batch
from benchmarks.single.functions import BATCHED, FUNCTIONS
from benchmarks.single.harness import select
from benchmarks.startup_batch import with_wheels
from tests.decode.jpegs import jpeg
from tests.images import noise
from variegate.compiling.levels import LEVELS, host_features
from variegate.transforms import functional as F


def test_every_row_is_spelled_by_us() -> None:
    for case in catalogue.CASES:
        assert set(ours.STEPS) >= {name for names in case.views or ((case.name,),) for name in names}
        assert case.target == (4.0 if case.kind == "pipeline" else 2.0)


def test_views_are_checked_and_seen_by_the_worker() -> None:
    case = catalogue.BY_NAME["dino"]
    assert case.sides == (224, 96)
    files = [jpeg(60, 70), jpeg(50, 90)]
    assert all(check.passed for check in checks(case, files))
    batch = vg.Augmenter(ours.transform(case)).decode_and_run(files)
    check_batch(batch, case, 2)
    with pytest.raises(ValueError, match=r"group is \(2, 6, 3, 96, 96\); \(2, 2, 3, 224, 224\) is asked for"):
        check_batch(batch[::-1], case, 2)


def test_rows_are_selected_by_name_in_the_catalogues_order() -> None:
    assert [case.name for case in catalogue.select("simclr,hflip")] == ["hflip", "simclr"]
    assert catalogue.select("") == catalogue.CASES
    with pytest.raises(ValueError, match="--rows blur: accepted: normalize, hflip"):
        catalogue.select("blur")
    with pytest.raises(ValueError, match="--rows nothing: accepted, with semicolons: function"):
        select("nothing")


def test_the_check_of_a_row_sees_wrong_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    case = catalogue.Case("invert", "invert", "operation", size=32, out=32)
    images = np.stack([noise(32, 32, seed=i) for i in range(3)])
    assert all(check.passed for check in checks(case, images))
    right = ours.outputs

    def off_by_one(case: catalogue.Case, images: Any, device: str, is_float: bool) -> Any:
        return (
            right(case, images, device, is_float) ^ 1
            if device == "reference"
            else right(case, images, device, is_float)
        )

    monkeypatch.setattr("benchmarks.rows.checks.outputs", off_by_one)
    assert not all(check.passed for check in checks(case, images))


def test_levels_that_the_processor_lacks_are_left_out_and_said() -> None:
    found, left_out = levels.chosen(["v2", "v3", "v4", "vbmi", "host"])
    can_run = [level for level in LEVELS if level.features <= host_features()]
    assert len(found) == len(can_run) + 1
    assert len(left_out) == len(LEVELS) - len(can_run)
    assert found[-1].environment == {}
    for limited, level in zip(found, can_run, strict=False):
        assert limited.environment["NUMBA_CPU_NAME"] == level.cpu_name
        assert limited.environment["NUMBA_CACHE_DIR"].endswith(level.name)
    assert levels.chosen([]) == ([levels.UNLIMITED], [])


def test_a_verdict_names_what_each_level_is_asked_for() -> None:
    libraries = {"ours:v2": {"images_per_second": 50.0}, "ours:v3": {"images_per_second": 70.0}}
    record = {"libraries": {**libraries, "peer": {"images_per_second": 10.0}}, "target": 10.0}
    said = verdict(record | {"level_targets": {"v2": 4.0, "v3": 8.0}})
    assert said == "v2: 5.00x the best peer; target 4x: met; v3: 7.00x the best peer; target 8x: missed"


def _row(ours_at: float, peer_at: float, kind: str, target: float) -> dict[str, Any]:
    cells = {
        name: {"images_per_second": at, "microseconds": 1e6 / at} for name, at in (("ours", ours_at), ("dali", peer_at))
    }
    return {"title": kind, "kind": kind, "target": target, "checks": {}, "libraries": cells}


def test_w2o_counts_misses_and_rows_below_the_peer() -> None:
    rows = {"a": _row(30, 10, "operation", 2.0), "b": _row(9, 10, "operation", 2.0), "c": _row(30, 10, "pipeline", 4.0)}
    libraries = {"ours": {"library": "Variegate"}, "dali": {"library": "DALI CPU"}}
    record = {"work": "w2o", "libraries": libraries, "rows": rows, "floor": 1.0, "left_out": []}
    assert columns.verdict(record) == (
        "Variegate: 1 of 2 operations reach 2x, 0 of 1 pipelines reach 4x; 1 slower than the best peer"
    )
    assert "ours misses: b 0.90, c 3.00" in columns.notes(record)
    assert report.heads(record)[0] == ("row", "ours", "DALI", "best peer", "ratio", "target")


def test_every_function_stands_in_w8() -> None:
    called = {function.__name__ for function, _, _ in FUNCTIONS.values()}
    same = {"hflip", "vflip", "grayscale", "to_grayscale", "five_crop", "ten_crop"}  # the last two: crops
    assert called >= {name for name in F.__all__ if name not in same} - {"rgb_to_grayscale"}
    assert set(BATCHED) <= set(FUNCTIONS)


def test_occupancy_is_what_registers_leave() -> None:
    pytest.importorskip("triton")
    from benchmarks.gpu.prediction import devices
    from benchmarks.gpu.prediction.machine_code import Code
    from benchmarks.gpu.prediction.model import occupancy

    hopper = next(device for device in devices.DEVICES if device.capability == 90)
    # 96 registers of 128 threads: five such programs of four warps fit into 64 Ki registers.
    assert occupancy(Code(96, 0, 0, 4, []), hopper) == 20 / 64
    assert occupancy(Code(32, 0, 0, 4, []), hopper) == 1.0


def test_a_folder_without_wheels_is_said(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError, match="no wheel in it; `make wheel` builds them"):
        with_wheels(tmp_path, 1)


def test_findings_of_a_check_are_counted_by_how_files_were_damaged() -> None:
    ways = {way: finding for way, (finding, _) in damage.damages(damage.HELD_APART).items()}
    truth = {
        "photo-0.jpg": "",
        "way-0.jpg": "motion",
        "way-1.jpg": "upscaled",
        "way-2.jpg": "pale",
        "way-3.jpg": "blank",
    }
    some = {name: way for name, way in ways.items() if name in truth.values()}
    found = {"photo-0.jpg": {"blurred"}, "way-0.jpg": {"blurred"}, "way-2.jpg": {"blank", "low_information"}}
    ours = run_check._table(truth, some, found, "variegate")
    assert ours["blurred"] == {"damaged": 2, "found": 1, "recall": 0.5, "wrongly": 1, "precision": 0.5}
    assert ours["blank"]["precision"] == 0
    # "low_information" stands for both.
    theirs = run_check._table(truth, some, found, "CleanVision")
    assert (theirs["blank"]["recall"], theirs["blank"]["wrongly"]) == (0, 0)
    assert theirs["low_contrast"] == {"damaged": 1, "found": 1, "recall": 1, "wrongly": 0, "precision": 1}
    assert run_check._recall_by_way(truth, some, found, "variegate") == {
        "blank": 0,
        "pale": 0,
        "motion": 1,
        "upscaled": 0,
    }


def test_rows_of_targets_are_checked_and_their_samples_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.targets import catalogue as rows
    from benchmarks.targets import ours as with_targets
    from benchmarks.targets.samples import make_samples

    with pytest.raises(ValueError, match="--rows blur: accepted, with commas: detection, mosaic"):
        rows.select("blur")
    row = rows.Row("small", "small", "affine", side=48, out=48, batch=3, boxes=3, masks=2, has_instances=True)
    samples = make_samples([jpeg(60, 70), jpeg(50, 90)], row)
    assert [len(sample["masks"]) for sample in samples] == [3, 3, 3]
    assert list(samples[0]["mask"]) == ["mask", "mask1"]
    assert all(check.passed for check in with_targets.checks(row, samples))
    right = with_targets.bounds
    monkeypatch.setattr(with_targets, "bounds", lambda mask: right(mask) + 4)
    assert [check.passed for check in with_targets.checks(row, samples)] == [True, True, False]

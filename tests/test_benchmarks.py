"""The benchmarks' own rules: which cases there are, what is checked before a speed counts, and how tables judge."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from benchmarks import cases, checks, harness, inputs, levels, report, run
from benchmarks.feeding import Feed, Step
from benchmarks.libraries import LoaderInputs, ours, pillow
from benchmarks.worker import check_batch
from tests.decode.jpegs import jpeg
from tests.images import noise
from variegate.native.library import compiled_levels
from variegate.transforms import functional as F

INVERT = cases.Case("invert", "invert", "operation", size=32, out=32)


def test_every_case_is_spelled_by_us() -> None:
    for work in cases.WORKS.values():
        for case in work.cases:
            if case.kind == "function":
                assert case.key in cases.FUNCTIONS
            elif case.kind == "targets":
                assert case.key in ours.targets(case)
            elif case.kind != "loader":
                assert set(ours.STEPS) >= {name for names in case.views or ((case.key,),) for name in names}


def test_functions_of_w8_are_called_with_arguments_that_they_have() -> None:
    for name, arguments in cases.FUNCTIONS.items():
        assert set(arguments) < set(inspect.signature(getattr(F, name)).parameters)
    assert set(pillow.OPERATIONS) <= set(cases.FUNCTIONS)


def test_cases_are_selected_by_name_in_the_tables_order() -> None:
    assert [case.name for case in cases.select(cases.W2O, "simclr,hflip")] == ["hflip", "simclr"]
    assert [case.name for case in cases.select(cases.W8, "rotate, mixed sizes")] == ["rotate, mixed sizes"]
    assert cases.select(cases.W2O, "") == list(cases.W2O)
    with pytest.raises(ValueError, match="--rows blur: accepted: normalize, hflip"):
        cases.select(cases.W2O, "blur")


def test_every_work_has_a_module_or_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    for module in run.MODULES.values():
        assert find_spec(f"benchmarks.{module}") is not None
    with pytest.raises(SystemExit) as ended:
        run.main(["expand", "--help"])
    assert ended.value.code == 0
    assert "benchmarks.run expand" in capsys.readouterr().out
    assert run.main(["w2o", "--rows", "blur"]) == 2
    assert "--rows blur: accepted" in capsys.readouterr().err


# -- checks ------------------------------------------------------------------------------------------------------------


def test_the_check_of_a_case_sees_wrong_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.stack([noise(32, 32, seed=i) for i in range(3)])
    assert [check.passed for check in checks.check(INVERT, images)] == [True, True]
    right = checks.outputs

    def off_by_one(case: Any, images: Any, device: str, is_float: bool = False) -> Any:
        made = right(case, images, device, is_float)
        return made ^ 1 if device == "oracle" else made

    monkeypatch.setattr(checks, "outputs", off_by_one)
    assert [check.passed for check in checks.check(INVERT, images)] == [False, True]


def test_a_case_whose_check_failed_has_no_speed() -> None:
    class Wrong:
        def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
            assert request["command"] == "check"  # nothing else is asked of it
            return {"checks": [{"name": "cpu equals the reference", "passed": False, "found": "1 off"}]}

    work, processes = cases.WORKS["w2o"], {"ours": Wrong()}
    row = harness.run_case(work, INVERT, processes, harness.Options(4, 1.0, 1))
    assert row["failed"]
    assert "libraries" not in row
    record = {"work": "w2o", "title": "", "batch": 4, "inputs": "", "libraries": {"ours": {"library": "Variegate"}}}
    record |= {"seconds": 1.0, "repeats": 1}
    assert "check FAILED" in report.markdown({**record, "rows": {"invert": row}, "failed": True})
    hoisted = harness.hoist({**record, "rows": {"invert": row}, "failed": True})
    assert "no speed is reported" in report.markdown(hoisted)


def test_views_are_checked_and_seen_by_the_worker() -> None:
    case = cases.BY_NAME["dino"]
    assert case.sides == (224, 96)
    files = [jpeg(60, 70), jpeg(50, 90)]
    assert all(check.passed for check in checks.check(case, files))
    batch = vg.Augmenter(ours.transform(case)).decode_and_run(files)
    check_batch(batch, case, 2)
    with pytest.raises(ValueError, match=r"group is \(2, 6, 3, 96, 96\); \(2, 2, 3, 224, 224\) is asked for"):
        check_batch(batch[::-1], case, 2)


def test_targets_are_checked_and_their_samples_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = cases.Objects(boxes=3, masks=2, has_instances=True)
    case = cases.Case("few", "few", "targets", 48, 48, steps="targets_affine", batch=3, objects=objects)
    samples = inputs.make_samples([jpeg(60, 70), jpeg(50, 90)], case)
    assert [len(sample["masks"]) for sample in samples] == [3, 3, 3]
    assert list(samples[0]["mask"]) == ["mask", "mask1"]
    assert all(check.passed for check in checks.check(case, samples))
    check_batch(ours.LIBRARIES["ours"].ways(case, samples, 3)["one call"](), case, 3)
    right = checks.bounds
    monkeypatch.setattr(checks, "bounds", lambda mask: right(mask) + 4)
    assert [check.passed for check in checks.check(case, samples)] == [True, True, False]


@pytest.mark.parametrize("kind", ["function", "as_transform", "call"])
def test_single_images_are_checked_and_measured_beside_a_batch(kind: cases.Kind) -> None:
    case = cases.Case("one", "one", kind, steps="rotate" if kind == "function" else "imagenet")
    images = [noise(40, 50, seed=i) for i in range(2)]
    assert all(check.passed for check in checks.check(case, images))
    library = ours.LIBRARIES["ours"]
    assert library.ways(case, images, 1)["one call"]() is not None
    ((name, (together, count)),) = library.parts(case, images).items()
    assert (name, count, len(together())) == ("in a batch", 2, 2)


def test_the_loader_holds_every_file_once(tmp_path: Path) -> None:
    inputs.write_photos([jpeg(60, 70), jpeg(50, 90), jpeg(64, 64)], tmp_path, copies=2)
    assert inputs.list_photos(tmp_path)[1] == [0, 0, 1, 1, 2, 2]
    given = LoaderInputs(tmp_path, 2, 1)
    assert [check.passed for check in checks.check(cases.LOADER, given)] == [True, True]
    (opener,) = ours.LIBRARIES["ours"].loaders(given).values()
    feed = Feed(opener, Step())
    for _ in range(4):  # into the second epoch
        check_batch(feed(), cases.FEEDS, 2)
    feed.close()


# -- levels ------------------------------------------------------------------------------------------------------------


def test_levels_that_cannot_run_here_are_named() -> None:
    found, missing = levels.chosen(["v2", "v3", "v4", "vbmi", "host"])
    assert len(found) + len(missing) == 5
    assert found[-1].environment == {}
    for limited in found[:-1]:
        assert limited.environment["VARIEGATE_LEVEL"] in compiled_levels()
    assert levels.chosen([]) == ([levels.UNLIMITED], [])


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_verdict_names_what_each_level_is_asked_for() -> None:
    libraries = {"ours:v2": {"images_per_second": 50.0}, "ours:v3": {"images_per_second": 70.0}}
    record = {
        "libraries": {**libraries, "peer": {"images_per_second": 10.0}},
        "asked": {"": 10.0, "v2": 4.0, "v3": 8.0},
    }
    found = report.library_verdict(record)
    assert found == "v2: 5.00x the best peer; target 4x: met; v3: 7.00x the best peer; target 8x: missed"


def _row(ours_at: float, peer_at: float, kind: str, target: float) -> dict[str, Any]:
    speeds = (("ours", ours_at), ("dali", peer_at))
    cells = {name: {"images_per_second": at, "microseconds": 1e6 / at} for name, at in speeds}
    return {"title": kind, "kind": kind, "target": target, "checks": {}, "libraries": cells}


def test_misses_and_rows_below_the_peer_are_counted() -> None:
    rows = {"a": _row(30, 10, "operation", 2.0), "b": _row(9, 10, "operation", 2.0), "c": _row(30, 10, "pipeline", 4.0)}
    record = {"libraries": {"ours": {"library": "Variegate"}, "dali": {"library": "DALI CPU"}}, "rows": rows}
    assert report.case_verdict(record) == (
        "Variegate: 1 of 2 operations reach 2x, 0 of 1 pipelines reach 4x; 1 slower than the best peer"
    )
    header, table = report.case_table(record)
    assert header == ["row", "ours", "DALI", "best peer", "ratio", "target"]
    assert [line[4] for line in table] == ["3.0", "0.9 (missed)", "3.0 (missed)"]


@pytest.mark.parametrize("name", ["w2o-batch64", "w2-batch64", "w1-batch64", "w3-batch256", "loader-batch64"])
def test_recorded_results_are_still_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[1] / "docs" / "results" / f"{name}.json"
    report.print_markdown([str(path)])
    assert "DALI" in capsys.readouterr().out

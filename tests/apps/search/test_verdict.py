"""The comparison that ends a search: on images that it has not seen, resumed, and in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests.apps.search.runs import small_run
from variegate.apps.search import SearchSpace
from variegate.apps.search.compare import Trial, compare
from variegate.apps.search.driver import LocalSearch
from variegate.apps.search.run import SearchRun
from variegate.apps.search.verdict import COMPARISON_NAME, ResultComparison, outcome
from variegate.formats.base import SourceError


def run_with_test() -> SearchRun:
    run = small_run(space=SearchSpace(space="pba-relative", around=("Crop", "Flip")), epochs=2, interval=1, size=2)
    rows = run.validation.labels.argsort(stable=True).numpy()
    return replace(run, validation=run.validation.take(rows[::2]), test=run.validation.take(rows[1::2]))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdict") / "out"
    assert LocalSearch(run_with_test(), folder, ["cpu"]).run() is not None
    return folder


def test_a_comparison_goes_on_where_it_was_stopped(searched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparing = ResultComparison(run_with_test(), searched, 2, ["cpu"])
    assert [Path(name).name for name in comparing.policies] == ["none", "flip-crop", "schedule.json"]
    assert (comparing.evaluation.subsets.scored, comparing.evaluation.subsets.train) == (16, 64)
    assert len(comparing.evaluation.subsets.images) == 80
    stop, told = Event(), list[Trial]()

    def stop_after_two(trial: Trial) -> None:
        told.append(trial)
        if len(told) == 2:
            stop.set()

    assert len(comparing.run(stop_after_two, stop)) == 2
    path = searched / COMPARISON_NAME
    before = path.read_bytes()
    path.write_bytes(before + b'{"policy": "none", "rep')  # killed while it wrote
    schedule = (searched / "schedule.json").read_bytes()
    again = list[Trial]()
    trials = ResultComparison(run_with_test(), searched, 2, ["cpu"]).run(again.append)
    assert [(one.repeat, Path(one.policy).name) for one in trials] == [
        (repeat, name) for repeat in (0, 1) for name in ("none", "flip-crop", "schedule.json")
    ]
    assert again[:2] == told
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes().splitlines()) == 6
    assert (searched / "schedule.json").read_bytes() == schedule
    assert all(0 <= one.accuracy <= 1 for one in trials)
    monkeypatch.setattr("variegate.apps.search.evaluate.Evaluation._trial", lambda *_: pytest.fail("trained again"))
    assert ResultComparison(run_with_test(), searched, 2, ["cpu"]).run() == trials
    path.write_text("[]\n")
    with pytest.raises(SourceError, match=r"comparison\.jsonl: is damaged .*; delete it to compare again"):
        ResultComparison(run_with_test(), searched, 2, ["cpu"]).run()
    path.unlink()


def test_other_images_to_compare_on_are_another_search(searched: Path) -> None:
    run = run_with_test()
    with pytest.raises(SourceError, match=r"out: holds a search with --test "):
        LocalSearch(replace(run, test=run.validation), searched, ["cpu"]).run()
    with pytest.raises(ValueError, match="test: got None; accepted: images that the search has not seen"):
        ResultComparison(replace(run, test=None), searched, 2, ["cpu"])
    assert json.loads((searched / "search.json").read_text())["test"] is not None


def told_of(mine: list[float], none: list[float], crop: list[float]) -> list[str]:
    policies = {"none": none, "flip-crop": crop, "out/schedule.json": mine}
    trials = [Trial(name, i, value, 1.0) for name, values in policies.items() for i, value in enumerate(values)]
    return outcome(compare(trials, list(policies), 100), 100)


def test_a_search_that_lost_says_so() -> None:
    rows, verdict, lost = told_of([0.50, 0.51, 0.52], [0.60, 0.61, 0.63], [0.70, 0.71, 0.72])
    seen = "On 100 images that the search has not seen: none 61.33%, flip-crop 71.00%, schedule.json 51.00%."
    assert rows == seen
    assert verdict.startswith(
        "schedule.json is worse than flip-crop, the highest of the 2 policies that need no search"
    )
    assert lost == "The search lost: flip-crop needs no search."
    _, verdict, unclear = told_of([0.60, 0.70, 0.65], [0.66, 0.62, 0.67], [0.50, 0.51, 0.52])
    assert verdict.startswith("No difference shown: schedule.json is 0.0 points ")
    assert unclear == "The search is not shown to have gained anything: none needs no search."
    _, verdict = told_of([0.80, 0.81, 0.83], [0.60, 0.61, 0.63], [0.70, 0.71, 0.72])
    assert verdict.startswith("schedule.json is better than both policies that need no search")
    _, verdict = told_of([0.80], [0.60], [0.70])
    assert verdict.startswith("No verdict: a single repeat is complete")

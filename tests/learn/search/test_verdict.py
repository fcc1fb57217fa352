"""The comparison that ends a search: on images that it has not seen, resumed, and in words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.learn.search.runs import small_run
from variegate.data.base import SourceError
from variegate.learn.driver import LocalSearch
from variegate.learn.events import InterruptedTrainingError, Training
from variegate.learn.image_race import Evaluated
from variegate.learn.policy import SearchSpace
from variegate.learn.run import SearchRun
from variegate.learn.search import compare_result, outcome
from variegate.learn.verdict import compare


def run_with_test() -> SearchRun:
    run = small_run(space=SearchSpace(space="pba-relative", crop=0.25, flip=True), epochs=2, interval=1, size=2)
    rows = run.validation.labels.argsort(stable=True).numpy()
    return replace(run, validation=run.validation.take(rows[::2]), test=run.validation.take(rows[1::2]))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verdict") / "out"
    assert LocalSearch(run_with_test(), folder, ["cpu"]).run() is not None
    return folder


def compared(folder: Path, stop_after: int = 6) -> tuple[Evaluated, list[Training]]:
    seen, stop = list[Training](), Event()

    def note(event: Any) -> None:
        seen.extend([event] if isinstance(event, Training) else [])
        if len(seen) == stop_after:
            stop.set()

    try:
        found = compare_result(run_with_test(), folder, 2, ["cpu"], note, stop)
    finally:
        TOLD[:] = seen
    assert found is not None
    subsets = found.race.plan.subsets
    assert (subsets.scored, subsets.train, len(subsets.images)) == (16, 64, 80)
    return found, seen


TOLD: list[Training] = []


def test_a_comparison_goes_on_where_it_was_stopped(searched: Path) -> None:
    with pytest.raises(InterruptedTrainingError, match="the search is complete, and its comparison is not"):
        compared(searched, stop_after=2)
    assert [Path(one.candidate).name for one in TOLD] == ["none", "crop"]
    path = searched / "comparison.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + b'{"candidate": "none", "rou')  # killed while it wrote
    schedule = (searched / "schedule.json").read_bytes()
    found, rest = compared(searched)
    assert [(one.round, Path(one.candidate).name) for one in rest] == [
        (0, "schedule.json"),
        *((1, name) for name in ("none", "crop", "schedule.json")),
    ]
    assert path.read_bytes().startswith(before)
    assert (searched / "schedule.json").read_bytes() == schedule
    again, none = compared(searched)
    assert (again.comparison, none) == (found.comparison, [])
    assert outcome(found.comparison, 16)[0].startswith("On 16 images that the search has not seen: none ")
    result = json.loads((searched / "comparison.json").read_text())
    assert result["is_complete"]
    assert len(result["trainings"]) == 6
    path.write_text("nonsense\n")
    with pytest.raises(SourceError, match=r"comparison\.jsonl: "):
        compared(searched)
    path.unlink()


def test_other_images_to_compare_on_are_another_search(searched: Path) -> None:
    run = run_with_test()
    with pytest.raises(SourceError, match=r"out: holds a search with --test "):
        LocalSearch(replace(run, test=run.validation), searched, ["cpu"]).run()
    assert json.loads((searched / "search.json").read_text())["test"] is not None


def told_of(mine: list[float], none: list[float], crop: list[float]) -> list[str]:
    policies = {"none": none, "flip+crop+cutout": crop, "out/schedule.json": mine}
    trials = [Training(name, i, value, 1.0) for name, values in policies.items() for i, value in enumerate(values)]
    return outcome(compare(trials, list(policies), 100), 100)


def test_a_search_that_lost_says_so() -> None:
    rows, verdict, lost = told_of([0.50, 0.51, 0.52], [0.60, 0.61, 0.63], [0.70, 0.71, 0.72])
    seen = "On 100 images that the search has not seen: none 61.33%, flip+crop+cutout 71.00%, schedule.json 51.00%."
    assert rows == seen
    assert verdict.startswith(
        "schedule.json is worse than flip+crop+cutout, the highest of the 2 policies that need no search"
    )
    assert lost == "The search lost: flip+crop+cutout needs no search."
    _, verdict, unclear = told_of([0.60, 0.70, 0.65], [0.66, 0.62, 0.67], [0.50, 0.51, 0.52])
    assert verdict.startswith("No difference shown: schedule.json is 0.0 points ")
    assert unclear == "The search is not shown to have gained anything: none needs no search."
    _, verdict = told_of([0.80, 0.81, 0.83], [0.60, 0.61, 0.63], [0.70, 0.71, 0.72])
    assert verdict.startswith("schedule.json is better than flip+crop+cutout, the highest of the 2 policies")
    _, verdict = told_of([0.80], [0.60], [0.70])
    assert verdict.startswith("No verdict: a single repeat is complete")

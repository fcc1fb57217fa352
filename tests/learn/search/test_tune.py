"""The search as trials of Ray Tune: its own Population Based Training, with policies that the paper's rules change."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.jobs.bounded import fail_after
from tests.learn.search.objectives import NUMBERS, count_late
from tests.learn.search.runs import small_run
from tests.one_ray import one_ray
from variegate.data.base import SourceError
from variegate.learn import tune
from variegate.learn.driver import LocalSearch
from variegate.learn.events import SearchProgress
from variegate.learn.history import Settings, read_log
from variegate.learn.policy import SearchSpace
from variegate.learn.search import ObjectiveRun
from variegate.learn.tune import ROWS_NAME, TuneSearch, _steps, explored

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("ray")]


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with fail_after(240):
        yield


@pytest.fixture(scope="module", autouse=True)
def cluster(request: pytest.FixtureRequest) -> str:
    return one_ray(request.config)["address"]


def test_a_search_resumes_and_gives_a_schedule_of_all_epochs(tmp_path: Path) -> None:
    """The search is stopped after the first step, the last result of which is in no snapshot: one member is behind.

    It trains the step again. Scores grow with each step: beside members that are ahead it is the worst.
    """
    stop = Event()

    def interrupt(progress: SearchProgress) -> None:
        if progress.step == 1 and progress.rows:
            stop.set()

    out = tmp_path / "out"
    run = ObjectiveRun(Settings(size=2, interval=2, epochs=6, space=SearchSpace(space="pba-relative")), count_late)
    assert TuneSearch(run, out).run(interrupt, stop) is None
    with pytest.raises(SourceError, match="holds a search with the back end 'ray' that is not finished"):
        LocalSearch(run, out, ["cpu"]).run()
    seen: list[SearchProgress] = []
    schedule = TuneSearch(run, out).run(seen.append)
    assert schedule is not None
    assert sum(segment.epochs for segment in schedule.segments) == 6
    assert seen[-1].step == 3
    history = read_log(out / "population.jsonl")
    # Each has trained each step, and copies took the weights over.
    assert [[row.score for row in rows] for rows in history.steps] == [[2.0] * 2, [4.0] * 2, [6.0] * 2]
    assert any(row.copied_from is not None for row in history.rows)
    assert any(number for row in history.steps[-1] for number in row.policy)
    assert not (out / "ray").exists()


def test_images_are_searched(tmp_path: Path, cluster: str) -> None:
    pixels = np.random.default_rng(0).integers(60, 120, (48, 8, 8, 3)).astype(np.uint8)
    sizes: dict[str, Any] = {"population": 2, "epochs": 2, "interval": 1, "model": "wrn-10-1", "batch_size": 8}
    where: dict[str, Any] = {"out": tmp_path / "out", "backend": "ray", "address": cluster}
    found = vg.search((pixels, [number % 3 for number in range(48)]), ["Rotate"], repeats=0, **sizes, **where)
    assert found.schedule.epochs == 2
    assert 0 <= found.score <= 1


def test_an_error_of_users_training_names_the_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "RETRIES", 0)  # each in a new process

    def failing(policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        raise ZeroDivisionError("of the loss")

    with pytest.raises(RuntimeError, match=r"objective: member \d, step 1 \(after epoch 0\): ZeroDivisionError: of"):
        vg.search(failing, **NUMBERS | {"population": 2}, out=tmp_path / "out", backend="ray")


def test_policies_of_copies_are_explored() -> None:
    space = SearchSpace(space="pba-relative")
    before = {"member": {"number": 2, "policy": list(space.zeros())}}
    random.seed(0)
    after = explored(space, before)
    assert after["member"]["number"] == 2
    assert any(space.check(after["member"]["policy"]))
    assert before["member"]["policy"] == list(space.zeros())


def test_rows_are_traced_to_their_donors(tmp_path: Path) -> None:
    """Of a step that was trained again after a failure, the last result counts; NaN has no rank in Tune."""
    settings = replace(small_run().settings, size=2)
    policy = list(settings.space.zeros())
    lines = [(1, 0, 0.5, 0), (1, 1, "-Infinity", 1), (2, 0, 0.1, 0), (2, 0, 0.6, 0), (2, 1, 0.7, 0), (3, 0, 0.8, 0)]
    text = "".join(
        f'{{"step": {step}, "member": {member}, "score": {score}, "parent": {parent}, "policy": {policy}}}\n'
        for step, member, score, parent in lines
    )
    (tmp_path / ROWS_NAME).write_text(text)
    first, second = _steps(tmp_path, settings)
    assert [(row.epoch, row.copied_from) for row in first] == [(2, None), (2, 0)]
    assert math.isnan(first[1].score)
    assert [row.score for row in second] == [0.6, 0.7]


def test_a_race_on_a_cluster_is_the_local_one_though_its_processes_die(tmp_path: Path, cluster: str) -> None:
    def objective(skill: float, seed: int) -> float:
        return skill + seed % 1000 / 1e6

    def dying(skill: float, seed: int) -> float:
        try:
            (tmp_path / "died").touch(exist_ok=False)
        except FileExistsError:
            return objective(skill, seed)
        os._exit(1)

    skills = {"none": 0.6, "flip": 0.7, "crop": 0.8}
    found = vg.race(dying, skills, rounds=2, out=tmp_path / "out", backend="ray", address=cluster)
    assert (tmp_path / "died").exists()
    local = vg.race(objective, skills, rounds=2, workers=2)
    assert found.standings == local.standings
    assert found.trainings == local.trainings
    # All are over, so that nothing is trained here.
    assert vg.race(dying, skills, rounds=2, out=tmp_path / "out").standings == local.standings

    def failing(skill: float, seed: int) -> float:
        raise ZeroDivisionError("of the loss")

    with pytest.raises(ZeroDivisionError, match=r"^of the loss"):
        vg.race(failing, skills, backend="ray")
    lock = Lock()
    with pytest.raises(ValueError, match=r"objective: got .*, which cannot be pickled \(cannot pickle '_th"):
        vg.race(lambda skill, seed: lock and 0.0, skills, backend="ray")
    with pytest.raises(ValueError, match=r"gpus_per_training: got 1; accepted: at most the 0 GPUs of the cluster"):
        vg.race(objective, skills, backend="ray", gpus_per_training=1)


def test_training_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    lock = Lock()

    def locked(policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        with lock:
            return 0.0, None

    with pytest.raises(ValueError, match=r"objective: got .*locked, which cannot be pickled \(cannot pickle '_th"):
        vg.search(locked, **NUMBERS, out=tmp_path / "out", backend="ray")


def test_arguments_are_checked_before_anything_starts(tmp_path: Path) -> None:
    run = small_run()
    make: Callable[..., TuneSearch] = TuneSearch
    with pytest.raises(ValueError, match="gpus_per_member: got 2; accepted: 0 to 1"):
        make(run, tmp_path / "out", gpus_per_member=2)
    with pytest.raises(ValueError, match="address: got 'ray://there:10001', which"):
        make(run, tmp_path / "out", address="ray://there:10001")
    with pytest.raises(ValueError, match="model: got 'resnet'; accepted: wrn-"):
        make(replace(run, model="resnet"), tmp_path / "out")
    with pytest.raises(ValueError, match=r"gpus_per_member: got 0.5, and the cluster has 0 GPUs"):
        make(run, tmp_path / "out", gpus_per_member=0.5).run()

"""The search on one machine: repeatable, interruptible, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.learn.search.runs import contents, small_run
from variegate.data.base import SourceError
from variegate.learn.driver import LocalSearch, search_devices
from variegate.learn.events import SearchProgress
from variegate.learn.fit import Fit
from variegate.learn.history import read_log
from variegate.learn.members import member_seed
from variegate.learn.run import CHECKPOINT_NAMES
from variegate.threads import default_threads


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "out"
    assert LocalSearch(small_run(), folder, ["cpu"]).run() is not None
    return folder


def test_the_schedule_is_one_that_the_loader_takes(reference: Path) -> None:
    policy: Any = vg.load_policy(reference / "schedule.json")
    assert policy.schedule.epochs == 6
    assert sorted(contents(reference)) == ["images.jsonl", "population.jsonl", "schedule.json", "search.json"]
    history = read_log(reference / "population.jsonl")
    assert [len(rows) for rows in history.steps] == [4, 4, 4]
    assert {row.copied_from for row in history.steps[-1]} == {None}
    assert len([row for row in history.rows if row.copied_from is not None]) == 2
    assert all(0 <= row.score <= 1 for row in history.rows)


def stop_after(step: int, members: int) -> tuple[Event, Callable[[SearchProgress], None]]:
    stop = Event()

    def look(progress: SearchProgress) -> None:
        if (progress.step, progress.members_done) == (step, members) and not progress.rows:
            stop.set()

    return stop, look


def test_an_interrupted_search_goes_on_to_the_same_schedule(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for step, members in ((0, 2), (1, 1), (2, 3)):
        stop, look = stop_after(step, members)
        assert LocalSearch(small_run(), folder, ["cpu"]).run(look, stop) is None
        kept = [f"{step}-{member}.pt" for member in range(4 * (step > 0))]
        kept += [f"{step + 1}-{member}.pt" for member in range(members)]
        assert sorted(path.name for path in (folder / CHECKPOINT_NAMES["local"]).iterdir()) == kept
    assert LocalSearch(small_run(), folder, ["cpu"]).run() is not None
    assert contents(folder) == contents(reference)


@pytest.mark.parametrize("devices", [["cpu"], ["cpu:0", "cpu:1"]])
def test_a_stop_does_not_wait_for_the_end_of_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: list[str]
) -> None:
    train, stop, epochs = Fit.train_epoch, Event(), []

    def stopping(self: Fit, loader: Any, epoch: int) -> torch.Tensor:
        stop.set()
        epochs.append(epoch)
        return train(self, loader, epoch)

    monkeypatch.setattr(Fit, "train_epoch", stopping)
    assert LocalSearch(small_run(), tmp_path / "out", devices).run(stop=stop) is None
    assert set(epochs) == {0}


def test_members_may_train_at_the_same_time(reference: Path, tmp_path: Path) -> None:
    assert LocalSearch(small_run(), tmp_path / "out", ["cpu:0", "cpu:1", "cpu:2"]).run() is not None
    assert contents(tmp_path / "out") == contents(reference)


def test_devices() -> None:
    assert search_devices(["cpu:0", "cpu:1"], 8) == ["cpu:0", "cpu:1"]
    assert search_devices(["cpu:0", "cpu:1"], 1) == ["cpu:0"]
    if not torch.cuda.is_available():
        assert search_devices("auto", 3) == [f"cpu:{n}" for n in range(min(3, default_threads()))]
    with pytest.raises(ValueError, match="devices: got 'gpu'"):
        search_devices("gpu", 2)


def test_a_finished_search_only_writes_its_schedule_again(reference: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("images.jsonl", "population.jsonl", "search.json"):
        (folder / name).write_bytes((reference / name).read_bytes())
    seen: list[SearchProgress] = []
    assert LocalSearch(small_run(), folder, ["cpu"]).run(seen.append) is not None
    assert seen == []
    assert contents(folder) == contents(reference)


def test_members_have_seeds_of_their_own() -> None:
    assert len({member_seed(seed, member) for seed in range(20) for member in range(20)}) == 400
    assert member_seed(0, 0) == 2498446953882209414


def test_images_are_searched_as_the_command_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(48) % 3
    pixels = rng.integers(60, 120, (48, 8, 8, 3)).astype(np.uint8)
    options: dict[str, Any] = {
        "population": 2,
        "epochs": 2,
        "interval": 1,
        "model": "wrn-10-1",
        "devices": "cpu",
        "batch_size": 8,
    }
    found = vg.search((pixels, labels.tolist()), ["Rotate"], out=tmp_path / "out", **options)
    assert found.schedule.epochs == 2
    assert 0 <= found.score <= 1
    assert {name for name, *_ in found.schedule.segments[-1].policy} == {"Rotate", "Crop", "Flip", "Cutout"}
    assert found.verdict.startswith("On 9 images that the search has not seen: none ")
    again = vg.search((pixels, labels.tolist()), "rotate", out=tmp_path / "out", **options)
    assert (again.history, again.verdict) == (found.history, found.verdict)
    with pytest.raises(SourceError, match=r"has one class \(0\); accepted: two or more"):
        vg.search((pixels, [0] * 48), out=tmp_path / "one", **options)
    with pytest.raises(SourceError, match="no-such-folder"):
        vg.search(tmp_path / "no-such-folder", out=tmp_path / "none")

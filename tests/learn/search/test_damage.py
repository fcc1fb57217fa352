"""Folders in which something is not as the search left it: one clear line, and nothing in them is touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from tests.learn.search.runs import contents, small_run
from variegate.data.base import SourceError
from variegate.learn.driver import LocalSearch

Change = Callable[[Path], object]
SAVED = "checkpoint/2-1.pt"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a search after two of three steps."""
    folder = tmp_path_factory.mktemp("search") / "out"
    stop = Event()
    assert LocalSearch(small_run(interval=1, epochs=3), folder, ["cpu"]).run(
        lambda progress: stop.set() if progress.rows and progress.step == 2 else None, stop
    ) is None  # fmt: skip
    return contents(folder)


def checkpoint(**change: Any) -> Change:
    def write(folder: Path) -> None:
        saved = torch.load(folder / SAVED, weights_only=True)
        torch.save({**saved, **change}, folder / SAVED)

    return write


def weights(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    def write(folder: Path) -> None:
        saved = torch.load(folder / SAVED, weights_only=True)
        saved["state"][f"model/{name}"] = change(saved["state"][f"model/{name}"])
        torch.save(saved, folder / SAVED)

    return write


def cut(name: str, keep: float) -> Change:
    def write(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * keep)])

    return write


def put(name: str, data: bytes) -> Change:
    return lambda folder: (folder / name).write_bytes(data)


def changed_byte(name: str, place: int) -> Change:
    def write(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[place] ^= 0x81
        (folder / name).write_bytes(data)

    return write


def line(number: int, change: Callable[[dict[str, Any]], object]) -> Change:
    def write(folder: Path) -> None:
        path = folder / "population.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        described = json.loads(lines[number - 1])
        change(described)
        lines[number - 1] = json.dumps(described) + "\n"
        path.write_text("".join(lines))

    return write


DAMAGES: dict[str, tuple[Change, str]] = {
    "an empty checkpoint": (put(SAVED, b""), r"checkpoint/2-1\.pt: is damaged, or no .*delete .*out"),
    "a flipped bit in the weights": (changed_byte(SAVED, 100_000), r"checkpoint/2-1\.pt: is damaged"),
    "another checkpoint": (
        lambda folder: torch.save([torch.zeros(2)], folder / SAVED),
        r"checkpoint/2-1\.pt: is no checkpoint of a search; restore the file",
    ),
    "another search's": (checkpoint(run={"model": "wrn-16-1"}), r"2-1\.pt: is the checkpoint of another search"),
    "no weights": (checkpoint(state=None), r"checkpoint/2-1\.pt: its state fits no member"),
    "other shapes": (weights("head.weight", lambda old: old[:1]), r"checkpoint/2-1\.pt: its state fits no member"),
    "no checkpoint": (
        lambda folder: (folder / SAVED).unlink(),
        r"checkpoint/2-1\.pt: is missing, but population\.jsonl has 2 steps; restore the file, or delete",
    ),
    "no log": (
        lambda folder: (folder / "population.jsonl").unlink(),
        r"population\.jsonl: has 0 steps, but checkpoint/2-0\.pt is of step 2; restore .*start over",
    ),
    "a line that is none": (
        changed_byte("population.jsonl", 1500),
        r"population\.jsonl: line \d: got .*; restore the file, or delete",
    ),
    "another score": (
        line(3, lambda row: row.update(score=1.0)),
        r"population\.jsonl: step 1 does not follow from the steps before it and its scores; restore the file",
    ),
    "a policy of another space": (line(3, lambda row: row.update(policy=[1])), r"population\.jsonl: step 1, member 1"),
    "another log": (line(1, lambda row: row.update(seed=5)), r"population\.jsonl: is the log of a search with other"),
    "a log without settings": (line(1, lambda row: row.pop("space")), r"population\.jsonl: line 1: accepted"),
    "settings that are no JSON": (put("search.json", b'{"source'), r"search\.json: is no JSON .*; restore the"),
    "no settings": (lambda folder: (folder / "search.json").unlink(), "holds files of something else"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_is_named_and_left_as_it_is(stopped: dict[str, bytes], tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "checkpoint").mkdir()
    for name, data in stopped.items():
        (folder / name).write_bytes(data)
    change, said = DAMAGES[damage]
    change(folder)
    before = contents(folder)
    assert before != stopped
    with pytest.raises(ValueError, match=said):
        LocalSearch(small_run(interval=1, epochs=3), folder, ["cpu"]).run()
    assert contents(folder) == before


def test_a_step_that_the_log_lost_is_not_trained_again(stopped: dict[str, bytes], tmp_path: Path) -> None:
    folder, seen = tmp_path / "out", list[int]()
    (folder / "checkpoint").mkdir(parents=True)
    for name, data in stopped.items():
        (folder / name).write_bytes(data)
    cut("population.jsonl", 0.6)(folder)
    stop = Event()
    assert LocalSearch(small_run(interval=1, epochs=3), folder, ["cpu"]).run(
        lambda progress: (seen.append(progress.members_done), stop.set() if progress.rows else None), stop
    ) is None  # fmt: skip
    assert seen == [4, 4]
    assert contents(folder) == stopped


def test_when_the_log_is_whole_the_checkpoint_does_not_matter(stopped: dict[str, bytes], tmp_path: Path) -> None:
    """What a search leaves that is killed when all but the schedule is written."""
    folder = tmp_path / "out"
    run = small_run(interval=1, epochs=3)
    schedule = LocalSearch(run, folder, ["cpu"]).run()
    whole = contents(folder)
    (folder / "checkpoint").mkdir()
    (folder / SAVED).write_bytes(stopped[SAVED][:1000])
    (folder / "schedule.json").unlink()
    assert LocalSearch(run, folder, ["cpu"]).run() == schedule
    assert contents(folder) == whole


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SourceError, match=r"out: is a file; accepted: a folder, or a name that is still free"):
        LocalSearch(small_run(), tmp_path / "out", ["cpu"]).run()
    assert (tmp_path / "out").read_text() == "mine"


def test_one_run_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    folder = tmp_path / "out"
    run = small_run(epochs=2)
    with run.claimed(folder):
        assert sorted(contents(folder)) == [".search.lock", "images.jsonl", "search.json"]
        with pytest.raises(SourceError, match=r"out: another run \(process \d+\) is writing there; wait until"):
            LocalSearch(run, folder, ["cpu"]).run()
        with pytest.raises(SourceError, match="holds a search with --model"), replace(run, model="x").claimed(folder):
            pass
    assert sorted(contents(folder)) == ["images.jsonl", "search.json"]
    # What a holder that was killed leaves keeps nobody out, also where it came no further.
    (folder / ".search.lock").write_text("1\n")
    (folder / "images.jsonl").unlink()
    (folder / "search.json").rename(folder / ".search.json.tmp")
    assert LocalSearch(run, folder, ["cpu"]).run() is not None
    assert sorted(contents(folder)) == ["images.jsonl", "population.jsonl", "schedule.json", "search.json"]

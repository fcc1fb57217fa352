"""TensorBoard's events: the log's numbers, each once, however often a training was stopped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.apps.train.digits import digits, options
from tests.cli.searches import run
from tests.needed import needs
from variegate.apps.train import train
from variegate.apps.train.progress import TrainingEvents, write_events

pytestmark = needs("sklearn", "tensorboardX")


@pytest.fixture(autouse=True)
def _tell_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.train.progress._TELL_SECONDS", 0.0)


def events_in(out: Path) -> list[tuple[str, int, float, float]]:
    """Tag, step, value and time of every event in the folder, in the files' order."""
    from tensorboardX.proto.event_pb2 import Event as Message

    from variegate.apps.train.progress import _records

    found = []
    for path in sorted((out / "tensorboard").iterdir()):
        for record in _records(path.read_bytes()):
            event = Message.FromString(record)
            found += [(one.tag, event.step, one.simple_value, event.wall_time) for one in event.summary.value]
    return found


def wanted(out: Path) -> list[tuple[str, int, float]]:
    """What the log says, in its order."""
    found, step = [], 0
    for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()):
        step = line.get("step", step)
        kind = "train" if "step" in line else "validation"
        found += [(f"{kind}/{name}", step, value) for name, value in line.items() if name not in ("epoch", "step")]
    return found


def check(out: Path) -> None:
    found, expected = events_in(out), wanted(out)
    assert [(tag, step) for tag, step, *_ in found] == [(tag, step) for tag, step, _ in expected]
    assert [value for _, _, value, _ in found] == pytest.approx([value for *_, value in expected])


def test_events_are_the_log_also_after_a_stop_and_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, validation = digits(96)
    chosen = {"tensorboard": True, "epochs": 3, "checkpoint_every": 2, "batch_size": 16}
    stop = Event()
    train(
        source,
        options(tmp_path, **chosen),
        validation=validation,
        stop=stop,
        tell=lambda line: stop.set() if line.get("step") == 3 else None,
    )
    check(tmp_path)
    times = {(tag, step): when for tag, step, _, when in events_in(tmp_path)}

    def die(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("variegate.apps.train.trainer.evaluated", die)
        with pytest.raises(ZeroDivisionError):
            train(source, options(tmp_path, **chosen), validation=validation)
    (file,) = (tmp_path / "tensorboard").iterdir()
    with open(file, "ab") as more:  # as a kill leaves it
        more.write(b"\x20\0\0\0\0\0\0\0broken")
    train(source, options(tmp_path, **chosen), validation=validation)
    check(tmp_path)
    tags = {tag for tag, *_ in events_in(tmp_path)}
    assert {"train/loss", "train/lr", "train/images_per_second", "train/waiting"} <= tags
    assert {"validation/top1", "validation/top5"} <= tags
    kept = {(tag, step): when for tag, step, _, when in events_in(tmp_path) if step <= 2}
    assert kept == {place: when for place, when in times.items() if place[1] <= 2}, "times stay"


def test_of_a_training_that_is_over(tmp_path: Path) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=1))
    assert not (tmp_path / "tensorboard").exists()
    write_events(tmp_path)
    check(tmp_path)
    train(source, options(tmp_path, epochs=1, tensorboard=True))
    check(tmp_path)


def test_other_keys_and_numbers(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 0, "step": 1, "loss": 1.5, "magnitude": 7, "what": "so", "all": [1]}\n{"epoch"')
    events = TrainingEvents(tmp_path / "tensorboard", log)
    events({"epoch": 0, "step": 2, "loss": float("nan"), "is_done": True, "magnitude": 8})
    events({"epoch": 0, "top1": 0.5})
    events.close()
    found = [(tag, step, value) for tag, step, value, _ in events_in(tmp_path)]
    assert found == [
        ("train/loss", 1, 1.5),
        ("train/magnitude", 1, 7.0),
        ("train/magnitude", 2, 8.0),
        ("validation/top1", 2, 0.5),
    ]


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)  # as if it were not installed
    assert run("train", tmp_path, "--out", tmp_path / "out", "--tensorboard") == 2
    said = capsys.readouterr().err
    assert "error: --tensorboard needs tensorboardX (" in said
    assert said.endswith("pip install 'variegate[tensorboard]'\n")
    assert not (tmp_path / "out").exists()

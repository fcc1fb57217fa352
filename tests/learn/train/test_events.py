"""TensorBoard's events: the numbers of the log; after a resumption, those of dropped steps are purged."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.cli.searches import run
from tests.learn.train.digits import digits, logged, options
from tests.needed import needs
from variegate.learn.trainer import train

pytestmark = needs("sklearn", "tensorboardX")


def events_in(out: Path) -> list[Any]:
    """Messages of all files in the folder, in the files' order."""
    from tensorboardX.proto.event_pb2 import Event as Message

    found = []
    for path in sorted((out / "tensorboard").iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):
            # A TFRecord: a length and its checksum, so many bytes and theirs.
            (length,) = struct.unpack_from("<Q", data, place)
            found.append(Message.FromString(data[place + 12 : place + 12 + length]))
            place += length + 16
    return found


def shown(out: Path) -> list[tuple[str, int, float]]:
    """Tag, step and value of the events, without those that TensorBoard discards."""
    found: list[tuple[str, int, float]] = []
    for event in events_in(out):
        if event.HasField("session_log"):
            found = [one for one in found if one[1] < event.step]
        found += [(one.tag, event.step, one.simple_value) for one in event.summary.value]
    return found


def check(out: Path) -> None:
    """The events are the numbers of the log."""
    expected, step = [], 0
    for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()):
        step = line.get("step", step)
        kind = "train" if "step" in line else "validation"
        expected += [(f"{kind}/{name}", step, value) for name, value in line.items() if name not in ("epoch", "step")]
    found = shown(out)
    assert [(tag, step) for tag, step, _ in found] == [(tag, step) for tag, step, _ in expected]
    assert [value for *_, value in found] == pytest.approx([value for *_, value in expected])


def test_events_are_the_log_also_after_a_stop_and_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.learn.progress._TELL_SECONDS", 0.0)
    # Files of one second would have one name.
    names = iter("abc")
    source, validation = digits(96)
    chosen = {"tensorboard": True, "epochs": 3, "checkpoint_every": 2, "batch_size": 16}
    stop = Event()

    def run_and_rename(**more: Any) -> None:
        try:
            train(source, options(tmp_path, **chosen), validation=validation, **more)
        finally:
            for path in (tmp_path / "tensorboard").glob("events*"):
                path.rename(path.with_name(f"{next(names)}.events"))

    run_and_rename(stop=stop, on_event=lambda event: stop.set() if logged(event).get("step") == 3 else None)
    check(tmp_path)

    def die(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("variegate.learn.fit.Fit.score", die)
        with pytest.raises(ZeroDivisionError):
            run_and_rename()
    run_and_rename()
    check(tmp_path)
    tags = {tag for tag, *_ in shown(tmp_path)}
    assert tags == {
        "train/loss",
        "train/lr",
        "train/images_per_second",
        "train/waiting",
        "validation/top1",
        "validation/top5",
    }


def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)  # as if it were not installed
    assert run("train", tmp_path, "--out", tmp_path / "out", "--tensorboard") == 2
    said = capsys.readouterr().err
    assert "error: --tensorboard needs tensorboardX (" in said
    assert said.endswith("pip install 'variegate[tensorboard]'\n")
    assert not (tmp_path / "out").exists()

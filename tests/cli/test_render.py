"""How events look: a bar on a terminal, lines in a log, JSON for machines."""

from __future__ import annotations

import io
import json
import re
import signal
import threading
import warnings
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from variegate.cli import augment
from variegate.cli.console import print_line
from variegate.cli.render import COMMON_LOOKS, Bar, Look, Looks, rendering
from variegate.events import Note, Progress, Skipped
from variegate.jobs.augment import ExpansionProgress
from variegate.workers.scheduler import DeviceSnapshot


@dataclass(frozen=True)
class RoundEnded:
    number: int
    leader: str


LOOKS: Looks = {
    **COMMON_LOOKS,
    RoundEnded: Look(
        bar=lambda event: Bar("racing", event.number, 9, event.leader),
        log=lambda event: f"round {event.number}: {event.leader}",
        json="round",
    ),
}
EVENTS = [RoundEnded(1, "flip"), Skipped("cat/oops.jpg", "zero bytes"), Note("no GPU"), Progress("racing", 2, 9)]


def render(
    monkeypatch: pytest.MonkeyPatch,
    looks: Looks,
    *events: object,
    as_json: bool = False,
    terminal: bool = False,
    width: int = 110,
) -> str:
    """What standard error shows of the events."""
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=terminal, width=width, color_system=None)
    monkeypatch.setattr("variegate.cli.render.stderr", lambda: console)
    with rendering(as_json, looks) as on_event:
        for event in events:
            on_event(event)
    return shown.getvalue()


def test_a_log_gets_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown = render(monkeypatch, LOOKS, *EVENTS, object())
    assert shown.splitlines() == ["round 1: flip", "skipped cat/oops.jpg: zero bytes", "note: no GPU"]
    assert capsys.readouterr().out == ""


def test_a_terminal_gets_a_bar_below_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = render(monkeypatch, LOOKS, *reversed(EVENTS), terminal=True)
    assert shown.index("note: no GPU") < shown.index("skipped cat/oops.jpg: zero bytes") < shown.index("1/9")
    assert "flip" in shown
    assert "round 1" not in shown


def test_machines_get_the_fields_of_events(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(monkeypatch, LOOKS, *EVENTS, as_json=True) == ""
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"event": "round", "number": 1, "leader": "flip"},
        {"event": "skipped", "source": "cat/oops.jpg", "reason": "zero bytes"},
    ]


def test_objects_keep_their_distance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rarely = {**LOOKS, RoundEnded: replace(LOOKS[RoundEnded], json_seconds=60.0)}
    render(monkeypatch, rarely, *EVENTS, as_json=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["event"] == "skipped"


def test_warnings_are_notes_and_ctrl_c_asks_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("variegate.cli.render.stderr", lambda: Console(file=shown, width=110))
    with rendering(as_json=True) as on_event:
        assert threading.current_thread() is threading.main_thread()
        warnings.warn("16 bits", stacklevel=1)
        signal.raise_signal(signal.SIGINT)
        assert on_event.stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert shown.getvalue() == "note: 16 bits\n"
    with rendering(as_json=True, ctrl_c="raises"), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def halfway(num_devices: int = 2) -> ExpansionProgress:
    devices = [DeviceSnapshot(f"cuda:{n}", "ready", 100.0, 3, 2, 48, 7, 0) for n in range(num_devices - 1)]
    devices.append(DeviceSnapshot("cuda:last", "starting", 0.0, 4, 0, 0, 0, 1))
    return ExpansionProgress("augmenting", 90, 10, 0, 1, 200, 50.0, tuple(devices))


def test_people_see_an_expansion_and_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = render(monkeypatch, augment._looks(), halfway(), terminal=True)
    for text in ("augmenting", "100/200", "50 images/s", "ETA", "1 quarantined", "stolen", "cuda:last (starting)"):
        assert text in shown
    row = next(line for line in shown.splitlines() if line.strip().startswith("cuda:0"))
    assert row.split() == ["cuda:0", "100", "48", "2", "3", "7", "0"]
    assert "and 84 more" in render(monkeypatch, augment._looks(), halfway(100), terminal=True)


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            60,
            [
                "augmenting 100/200 ETA",
                "50 images/s 1 quarantined",
                "device images/s images in flight",
                "cuda:0 100 48 2",
            ],
        ),
        (80, ["augmenting 100/200 ETA", "device images/s images in flight queue stolen lost", "cuda:0 100 48 2 3 7 0"]),
    ],
)
def test_a_narrow_terminal_keeps_the_totals(monkeypatch: pytest.MonkeyPatch, width: int, lines: list[str]) -> None:
    shown = render(monkeypatch, augment._looks(), halfway(), terminal=True, width=width)
    words = [re.sub(r"[━╸╺\s]+", " ", line).strip() for line in shown.splitlines()]
    for expected in lines:
        assert any(expected in line for line in words), (expected, words)
    assert ("queue" in shown) is (width >= 80)


def test_prose_wraps_at_words_and_commands_stay_whole() -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=20, color_system=None)
    for is_prose in (True, False):
        print_line("variegate train SRC --policy run/policy.json", console, is_prose)
    assert shown.getvalue().splitlines() == [
        "variegate train SRC ",
        "--policy ",
        "run/policy.json",
        "variegate train SRC --policy run/policy.json",
    ]


def test_machines_get_the_progress_of_an_expansion(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = augment._looks()
    often = {**looks, ExpansionProgress: replace(looks[ExpansionProgress], json_seconds=0.0)}
    render(monkeypatch, often, halfway(), as_json=True)
    progress = json.loads(capsys.readouterr().out)
    devices = progress.pop("devices")
    assert progress == {
        "event": "progress",
        "written": 90,
        "resumed": 10,
        "total": 200,
        "images_per_second": 50.0,
        "eta_seconds": 2.0,
        "quarantined": 1,
    }
    assert devices[0] == {
        "name": "cuda:0",
        "state": "ready",
        "rate": 100.0,
        "queued": 3,
        "in_flight": 2,
        "done": 48,
        "steals": 7,
        "losses": 0,
    }

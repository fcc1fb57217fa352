"""What is shown while an expansion runs."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from variegate.cli import augment as live
from variegate.cli.augment import ExpansionView
from variegate.jobs.augment import Report
from variegate.workers.scheduler import DeviceSnapshot, Snapshot


def view_of(
    monkeypatch: pytest.MonkeyPatch, report: Report, as_json: bool = False
) -> tuple[ExpansionView, io.StringIO]:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=110, color_system=None)
    plan = SimpleNamespace(num_outputs=200, num_items=50)
    expansion: Any = SimpleNamespace(plan=plan, report=report, verb="augmenting")
    monkeypatch.setattr("variegate.cli.console.stderr", lambda: console)
    return ExpansionView(expansion, as_json), shown


def halfway(devices: int = 2) -> Report:
    report = Report(files=50, total=200, written=100, seconds=2.0, skipped=[("cat/oops.jpg", "zero bytes")])
    report.snapshot = Snapshot(
        [DeviceSnapshot(f"cuda:{n}", "ready", 25.0, 3, 2, 12, 7, 0) for n in range(devices - 1)]
        + [DeviceSnapshot("cuda:last", "starting", 0.0, 4, 0, 0, 0, 1)],
        outstanding=20,
        quarantined=1,
    )
    return report


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_SHOW_EVERY", 0.0)
    monkeypatch.setattr(live, "_JSON_EVERY", 0.0)


def test_people_see_the_whole_and_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    report = halfway()
    view, shown = view_of(monkeypatch, report)
    with view:
        view(report)
        view(report)
    text = shown.getvalue()
    assert text.count("skipped cat/oops.jpg: zero bytes") == 1
    for said in (
        "augmenting",
        "100/200",
        "50 images/s",
        "ETA",
        "1 quarantined",
        "queue",
        "stolen",
        "cuda:last (starting)",
    ):
        assert said in text
    row = next(line for line in text.splitlines() if line.strip().startswith("cuda:0"))
    # Items hold four images each here.
    assert row.split() == ["cuda:0", "100", "3", "2", "48", "7", "0"]


def test_of_very_many_devices_some_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    report = halfway(devices=100)
    view, shown = view_of(monkeypatch, report)
    with view:
        view(report)
    assert "and 84 more" in shown.getvalue()


def test_machines_get_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    report = halfway()
    view, shown = view_of(monkeypatch, report, as_json=True)
    with view:
        view(report)
    assert shown.getvalue() == ""
    skipped, progress = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert skipped == {"event": "skipped", "source": "cat/oops.jpg", "reason": "zero bytes"}
    assert (progress["written"], progress["total"], progress["images_per_second"]) == (100, 200, 50.0)
    assert progress["eta_seconds"] == 2.0
    assert progress["quarantined"] == 1
    first = progress["devices"][0]
    assert (first["name"], first["rate"], first["queued"], first["done"], first["steals"]) == (
        "cuda:0",
        100.0,
        3,
        48,
        7,
    )

"""An expansion as it goes on: a bar and a table of devices for people, lines of JSON for machines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from variegate.cli.console import emit_json, say, table_of

if TYPE_CHECKING:
    from variegate.engine.expansion import Expansion, Report
    from variegate.engine.messages import DeviceSnapshot

_SHOW_EVERY, _JSON_EVERY = 0.25, 1.0
_MOST_DEVICES = 16


class ExpansionView:
    """Call it with the report whenever something was done; use as a context baseline the run."""

    def __init__(self, expansion: Expansion, as_json: bool, console: Console) -> None:
        self._per_item = expansion.plan.num_outputs / expansion.plan.num_items
        self._as_json, self._console = as_json, console
        self._skipped_shown = 0
        self._shown = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[quarantined]}"),
            console=console,
        )
        total = expansion.report.total
        self._task = self._bar.add_task("starting", total=total, rate="", quarantined="")
        is_shown = console.is_terminal and not as_json
        self._live = Live(self._bar, console=console, refresh_per_second=4, transient=True) if is_shown else None

    def __enter__(self) -> ExpansionView:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, report: Report) -> None:
        for name, reason in report.skipped[self._skipped_shown :]:
            if self._as_json:
                emit_json("skipped", source=name, reason=reason)
            else:
                say(f"skipped {name}: {reason}", self._console if self._live is None else self._live.console)
        self._skipped_shown = len(report.skipped)
        now = time.monotonic()
        if self._as_json and now - self._shown >= _JSON_EVERY:
            self._shown = now
            emit_json("progress", **self._facts(report))
        elif self._live is not None and now - self._shown >= _SHOW_EVERY:
            self._shown = now
            self._draw(report)

    def _facts(self, report: Report) -> dict[str, Any]:
        rate = report.rate
        left = report.total - report.written - report.resumed - report.missing
        devices = report.snapshot.devices if report.snapshot is not None else []
        return {
            "written": report.written,
            "resumed": report.resumed,
            "total": report.total,
            "images_per_second": round(rate, 1),
            "eta_seconds": round(left / rate, 1) if rate > 0 else None,
            "quarantined": len(report.skipped),
            "devices": [
                device._asdict()
                | {"rate": round(device.rate * self._per_item, 1), "done": round(device.done * self._per_item)}
                for device in devices
            ],
        }

    def _draw(self, report: Report) -> None:
        done = report.written + report.resumed + report.missing
        self._bar.update(
            self._task,
            description="augmenting" if report.written else "starting",
            completed=done,
            rate=f"{report.rate:,.0f} images/s" if report.written else "",
            quarantined=f"{len(report.skipped):,} quarantined" if report.skipped else "",
        )
        if self._live is not None and report.snapshot is not None:
            self._live.update(Group(self._bar, self._table(report.snapshot.devices)))

    def _table(self, devices: list[DeviceSnapshot]) -> Table:
        table = table_of(("device", "images/s", "queue", "in flight", "images", "stolen", "lost"))
        for device in devices[:_MOST_DEVICES]:
            name = device.name if device.state == "ready" else f"{device.name} ({device.state})"
            rate = f"{device.rate * self._per_item:,.0f}" if device.rate else ""
            counts = (
                device.queued,
                device.in_flight,
                round(device.done * self._per_item),
                device.steals,
                device.losses,
            )
            table.add_row(name, rate, *(f"{count:,}" for count in counts))
        if len(devices) > _MOST_DEVICES:
            table.add_row(f"and {len(devices) - _MOST_DEVICES:,} more")
        return table

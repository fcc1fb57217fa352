"""An expansion as it goes on: a bar and a table of devices for people, lines of JSON for machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from variegate.cli.console import emit_json, say, table_of

if TYPE_CHECKING:
    from variegate.jobs.augment import Expansion, Report
    from variegate.jobs.messages import DeviceSnapshot

_SHOW_EVERY, _JSON_EVERY = 0.25, 1.0
_MOST_DEVICES = 16


class ExpansionView(Progress):
    """Call it with the report whenever something was done; use as a context around the run."""

    def __init__(self, expansion: Expansion, as_json: bool, console: Console) -> None:
        self._per_item = expansion.plan.num_outputs / expansion.plan.num_items
        self._as_json, self._verb = as_json, expansion.verb
        self._devices: list[DeviceSnapshot] = []
        self._skipped_shown = 0
        self._shown = time.monotonic()
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[quarantined]}"),
            console=console,
            disable=as_json or not console.is_terminal,
            refresh_per_second=4,
            transient=True,
        )
        self._task = self.add_task("starting", total=expansion.report.total, rate="", quarantined="")

    def __call__(self, report: Report) -> None:
        for name, reason in report.skipped[self._skipped_shown :]:
            if self._as_json:
                emit_json("skipped", source=name, reason=reason)
            else:
                say(f"skipped {name}: {reason}", self.console)
        self._skipped_shown = len(report.skipped)
        now = time.monotonic()
        if now - self._shown >= (_JSON_EVERY if self._as_json else _SHOW_EVERY):
            self._shown = now
            if self._as_json:
                emit_json("progress", **self._facts(report))
            elif not self.disable:
                self._draw(report)

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self._devices:
            yield self._table(self._devices)

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
        if report.snapshot is not None:
            self._devices = report.snapshot.devices
        self.update(
            self._task,
            description=self._verb if report.written else "starting",
            completed=report.written + report.resumed + report.missing,
            rate=f"{report.rate:,.0f} images/s" if report.written else "",
            quarantined=f"{len(report.skipped):,} quarantined" if report.skipped else "",
        )

    def _table(self, devices: list[DeviceSnapshot]) -> Table:
        table = table_of(("device", "images/s", "queue", "in flight", "images", "stolen", "lost"))
        for device in devices[:_MOST_DEVICES]:
            name = device.name if device.state == "ready" else f"{device.name} ({device.state})"
            rate = f"{device.rate * self._per_item:,.0f}" if device.rate else ""
            done = round(device.done * self._per_item)
            counts = (device.queued, device.in_flight, done, device.steals, device.losses)
            table.add_row(name, rate, *(f"{count:,}" for count in counts))
        if len(devices) > _MOST_DEVICES:
            table.add_row(f"and {len(devices) - _MOST_DEVICES:,} more")
        return table

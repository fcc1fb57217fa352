"""The progress of an expansion, or of measurements: a bar for people, lines of JSON for machines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from variegate.cli.console import emit_json, say

if TYPE_CHECKING:
    from variegate.engine.expand import Report

_JSON_EVERY = 1.0


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f} images/s", style="progress.data.speed")


class ExpansionProgress:
    """Call it with a Report whenever something was done; use as a context around the run."""

    def __init__(self, total: int, as_json: bool, console: Console) -> None:
        self._as_json = as_json
        self._console = console
        self._shown_bad = 0
        self._last_json = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            _RateColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            disable=as_json or not console.is_terminal,
        )
        self._task = self._progress.add_task("augmenting", total=total)

    def __enter__(self) -> ExpansionProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, report: Report) -> None:
        for path, reason in report.skipped[self._shown_bad :]:
            if self._as_json:
                emit_json("skipped", source=path, reason=reason)
            else:
                say(f"skipped {path}: {reason}", self._progress.console)
        copies_per_image = report.total // max(report.files, 1)
        self._shown_bad = len(report.skipped)
        missing = copies_per_image * self._shown_bad
        self._progress.update(self._task, completed=report.written, total=report.total - missing)
        if self._as_json and time.monotonic() - self._last_json >= _JSON_EVERY:
            self._last_json = time.monotonic()
            emit_json("progress", written=report.written, total=report.total - missing)


class StageProgress:
    """Call it with what is being done, and how much of how much is done (0: not known yet); use as a context.

    ``event``: what lines of JSON call it.
    """

    def __init__(self, as_json: bool, console: Console, event: str = "measuring") -> None:
        self._as_json, self._event = as_json, event
        self._progress = Progress(
            BarColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=as_json or not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("opening", total=None)

    def __enter__(self) -> StageProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._as_json:
            emit_json(self._event, what=what, done=done, total=total)
        self._progress.update(self._task, description=what, completed=done, total=total or None)

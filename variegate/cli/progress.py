"""The progress of measurements: a bar for people, lines of JSON for machines."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from variegate.cli.console import emit_json, stderr


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


def counting_bar(as_json: bool, *more: ProgressColumn) -> Progress:
    """On a terminal: what is done, how many of how many, the time left, and ``more``."""
    console = stderr()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("ETA"))
    return Progress(
        *columns,
        TimeRemainingColumn(),
        *more,
        console=console,
        disable=as_json or not console.is_terminal,
        transient=True,
    )

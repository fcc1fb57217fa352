"""What ``variegate search`` shows while it runs: a bar on a terminal, else a line for every step."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from rich.progress import TextColumn

from variegate.cli.console import emit_json, say
from variegate.cli.progress import counting_bar

if TYPE_CHECKING:
    from variegate.search.local import LocalSearch
    from variegate.search.local import Progress as SearchProgress
    from variegate.search.tune import TuneSearch


class SearchView:
    """Call it with the search's progress; use as a context."""

    def __init__(self, search: LocalSearch | TuneSearch, as_json: bool) -> None:
        self._as_json, self._started = as_json, time.perf_counter()
        self._size = search.run_settings.settings.size
        self._bar = counting_bar(as_json, TextColumn("{task.fields[best]}"))
        self._task = self._bar.add_task("searching", total=search.run_settings.settings.steps * self._size, best="")

    def __enter__(self) -> SearchView:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, progress: SearchProgress) -> None:
        best = "" if math.isnan(progress.best) else f"best {progress.best:.2%}"
        done = progress.step * self._size + (0 if progress.rows else progress.members_done)
        self._bar.update(
            self._task, completed=done, description=f"step {progress.step + 1}/{progress.steps}", best=best
        )
        if not progress.rows:
            return
        lost = [row.member for row in progress.rows if math.isnan(row.score)]
        copies = [(row.member, row.copied_from) for row in progress.rows if row.copied_from is not None]
        if self._as_json:
            emit_json(
                "step",
                step=progress.step,
                steps=progress.steps,
                epoch=progress.rows[0].epoch,
                best=round(progress.best, 4),
                copies=copies,
                lost=lost,
                is_flat=progress.is_flat,
            )
            return
        if not self._bar.console.is_terminal:
            seconds = time.perf_counter() - self._started
            line = f"step {progress.step}/{progress.steps}: best {progress.best:.2%}, {len(copies)} copied"
            say(f"{line}, {seconds:,.0f} s", self._bar.console)
        for member, donor in copies:
            if member in lost:
                say(
                    f"note: member {member} diverged (its loss is not finite); it goes on as member {donor}",
                    self._bar.console,
                )
        if progress.is_flat:
            say(
                f"note: after epoch {progress.rows[0].epoch} all members score the same; nobody was ranked",
                self._bar.console,
            )

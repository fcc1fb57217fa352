"""Renderers of events: a bar on a terminal, lines in a log, JSON for machines.

Functions of the API report events (``variegate.events``). A command declares how each type of event looks in a table,
and passes the renderer to the function:

    LOOKS = {
        **COMMON_LOOKS,  # Progress moves the bar; Skipped and Note are lines
        EpochEnded: Look(
            bar=lambda event: Bar("training", event.epoch, event.epochs, f"loss {event.loss:.4f}"),
            log=lambda event: f"epoch {event.epoch}: loss {event.loss:.4f}",
            json="epoch",
        ),
    }

    with rendering(options.as_json, LOOKS) as render:
        result = work(..., on_event=render, stop=render.stop)

Types without a look are not shown. Within the context, the first Ctrl-C sets ``render.stop``, and warnings are notes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from variegate import events
from variegate.cli.console import NARROW, cell, emit_json, interrupt_sets, print_line, stderr, warnings_as_notes

_FRAMES_PER_SECOND = 4


@dataclass(frozen=True)
class Bar:
    """State of the bar: a title, a count of a total (0: unknown), and a table below it.

    ``detail`` is right of the estimated time, or below the bar on a narrow terminal.
    """

    title: str
    done: float
    total: float = 0
    detail: str = ""
    below: RenderableType | None = None


@dataclass(frozen=True)
class Look:
    """Looks of a type of event: functions of the event. A renderer skips an event for which it has none.

    ``bar``: the state of the bar. ``log``: a line where standard error is no terminal. ``line``: a line in both cases.
    ``json``: fields of an object with --json; or its name, with the event's own fields. ``json_seconds``: shortest time
    between two objects. Lines and fields may be empty.
    """

    bar: Callable[[Any], Bar] | None = None
    log: Callable[[Any], str] | None = None
    line: Callable[[Any], str] | None = None
    json: Callable[[Any], dict[str, Any]] | str | None = None
    json_seconds: float = 0.0


Looks: TypeAlias = Mapping[type, Look]
CtrlC: TypeAlias = Literal["stops", "patient", "raises"]

COMMON_LOOKS: Looks = {
    events.Progress: Look(bar=lambda event: Bar(event.stage, event.done, event.total)),
    events.Skipped: Look(line=lambda event: f"skipped {event.source}: {event.reason}", json="skipped"),
    events.Note: Look(line=lambda event: f"note: {event.text}"),
}


class Renderer:
    """Renders events as lines of a log. ``stop``: set by the first Ctrl-C."""

    def __init__(self, looks: Looks) -> None:
        self.console = stderr()
        self.stop = threading.Event()
        self._looks = looks

    def __call__(self, event: object) -> None:
        look = self._looks.get(type(event))
        if look is not None:
            self.render(event, look)

    def render(self, event: object, look: Look) -> None:
        for text_of in (look.line, look.log):
            if text_of is not None and (text := text_of(event)):
                print_line(text, self.console, is_prose=True)

    def __enter__(self) -> Renderer:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class JsonRenderer(Renderer):
    """Prints events as lines of JSON on standard output."""

    def __init__(self, looks: Looks) -> None:
        super().__init__(looks)
        self._started = time.monotonic()
        self._printed: dict[type, float] = {}

    def render(self, event: Any, look: Look) -> None:
        now = time.monotonic()
        if look.json is None or now - self._printed.get(type(event), self._started) < look.json_seconds:
            return
        self._printed[type(event)] = now
        if isinstance(look.json, str):
            emit_json(look.json, **asdict(event))
        elif fields := look.json(event):
            emit_json(**fields)


class BarRenderer(Renderer):
    """Draws a bar on a terminal, with lines above it. The bar is computed for a frame, not for each event."""

    def __init__(self, looks: Looks) -> None:
        super().__init__(looks)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}", markup=False),
        )
        self._task = self._progress.add_task("starting", total=None, detail="")
        self._newest: Callable[[], Bar] | None = None
        self._live = Live(
            console=self.console,
            get_renderable=self._frame,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
        )

    def render(self, event: object, look: Look) -> None:
        if look.line is not None and (text := look.line(event)):
            print_line(text, self.console, is_prose=True)
        if (bar_of := look.bar) is not None:
            self._newest = lambda: bar_of(event)

    def _frame(self) -> RenderableType:
        if self._newest is None:
            return self._progress.get_renderable()
        bar = self._newest()
        is_narrow = self.console.width < NARROW
        self._progress.update(
            self._task,
            description=bar.title,
            completed=bar.done,
            total=bar.total or None,
            detail="" if is_narrow else bar.detail,
        )
        lines = [self._progress.get_renderable()]
        if is_narrow and bar.detail:
            lines.append(cell(bar.detail))
        if bar.below is not None:
            lines.append(bar.below)
        return Group(*lines)

    def __enter__(self) -> Renderer:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()


@contextmanager
def rendering(as_json: bool, looks: Looks = COMMON_LOOKS, ctrl_c: CtrlC = "stops") -> Iterator[Renderer]:
    """Context manager: choose the renderer and use it during the work.

    ``ctrl_c``: "stops": the first Ctrl-C sets ``stop``, the second raises KeyboardInterrupt. "patient": every Ctrl-C
    sets ``stop``, because torchrun passes on a Ctrl-C that the terminal has sent already. "raises": the first Ctrl-C
    raises, for work that loses nothing.
    """
    kind = JsonRenderer if as_json else BarRenderer if stderr().is_terminal else Renderer
    with ExitStack() as stack:
        renderer = stack.enter_context(kind(looks))
        if ctrl_c != "raises":
            stack.enter_context(interrupt_sets(renderer.stop, ctrl_c == "patient"))
        stack.enter_context(warnings_as_notes(renderer.console))
        yield renderer

"""Output of all commands: one-line errors with exit codes, progress, JSON, and a Ctrl-C that ends cleanly."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from rich.console import Console, ConsoleOptions
from rich.status import Status
from rich.table import Table
from rich.text import Text

from variegate.errors import one_line
from variegate.io.addresses import redact_secrets, redact_text

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130
# Terminals of fewer columns show fewer columns of tables, and the details of a bar below it.
NARROW = 80


class CommandError(Exception):
    """Ends a command with one line and an exit code."""

    def __init__(self, error: BaseException | str, code: int = FAILED) -> None:
        super().__init__(str(error))
        self.error = error
        self.code = code


_starting: list[Status] = []


@contextmanager
def starting(as_json: bool) -> Iterator[None]:
    """Show a spinner on a terminal until the first output of a command, as its imports may take seconds."""
    console = stderr()
    if not as_json and console.is_terminal:
        _starting.append(console.status("starting"))
        _starting[-1].start()
    try:
        yield
    finally:
        _end_start()


def _end_start() -> None:
    while _starting:
        _starting.pop().stop()


def stdout() -> Console:
    """The console of results, made on use: tests and redirections replace ``sys.stdout``."""
    _end_start()
    return Console(highlight=False)


def stderr() -> Console:
    """The console of progress, notes and errors."""
    _end_start()
    return Console(stderr=True, highlight=False)


def print_line(text: str, to: Console | None = None, is_prose: bool = False) -> None:
    """Print a line without markup and secrets, whatever the names in it hold.

    ``is_prose``: wrap at words on a terminal. Other lines are never broken, so that commands and paths can be copied.
    """
    console = to or stdout()
    is_wrapped = is_prose and console.is_terminal
    console.print(redact_text(text), markup=False, emoji=False, soft_wrap=not is_wrapped)


def note(*texts: str | None, to: Console | None = None) -> None:
    """Print each text that is not empty as a line on standard error."""
    for text in filter(None, texts):
        print_line(f"note: {text}", to or stderr(), is_prose=True)


def cell(text: str) -> Text:
    """A table's cell, without markup and secrets."""
    return Text(redact_text(text))


def print_key_values(facts: Iterable[tuple[str, str]]) -> None:
    """Print a name and a value a line."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, cell(value))
    stdout().print(table)


@dataclass(frozen=True)
class ConsoleTable:
    """A table without lines. ``left``: headings of columns that are flush left, as the first is; others hold numbers.

    ``wide_only``: headings of columns that a terminal of fewer than ``NARROW`` columns does not show.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[str] = ()
    wide_only: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        is_narrow = options.max_width < NARROW
        table = Table(box=None, pad_edge=False, header_style="dim")
        columns = zip(self.headings, *self.rows, strict=True)
        visible = [column for column in columns if not (is_narrow and column[0] in self.wide_only)]
        for heading, *_ in visible:
            is_left = heading in (self.headings[0], *self.left)
            table.add_column(heading, justify="left" if is_left else "right", overflow="fold")
        for row in list(zip(*visible, strict=True))[1:]:
            table.add_row(*map(cell, row))
        yield table


def emit_json(event: str, **fields: Any) -> None:
    """Print a line of JSON in ASCII: addresses without secrets, null for numbers that JSON does not have."""
    print_json({"event": event, **fields})


def print_json(fields: dict[str, Any]) -> None:
    """Print an object as ``emit_json`` does, without an event."""
    line = json.dumps(_for_json(fields), allow_nan=False)
    print(line.replace("\x7f", "\\u007f"), flush=True)  # the one control character that JSON does not escape


def _for_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _for_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(item) for item in value]
    if isinstance(value, str):
        return redact_secrets(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plot_or_note(draw: Callable[[], object], out: Path) -> str | None:
    """Draw a plot -> its file; None, with a note, where matplotlib is missing."""
    from variegate.apps.plotting import PlotError

    try:
        draw()
    except PlotError as error:
        note(str(error))
        return None
    return str(out)


def fail(error: BaseException | str, code: int, as_json: bool = False) -> typer.Exit:
    """Print an error in one line, as JSON too if wanted (of rank 0 alone under torchrun) -> the exception to raise."""
    message = one_line(error) or type(error).__name__
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        message = f"{error.filename}: no such file or folder"
    elif isinstance(error, OSError) and error.filename is not None:
        message = f"{error.filename}: {error.strerror}"
    if as_json and os.environ.get("RANK", "0") == "0":
        emit_json("error", message=message)
    print_line(f"variegate: error: {message}", stderr(), is_prose=True)
    return typer.Exit(code)


@contextmanager
def one_line_errors(as_json: bool, typed: Mapping[str, str]) -> Iterator[None]:
    """Bad input ends with exit code 2, what fails on the way with 1, Ctrl-C with 130; one line each, no traceback.

    ``typed``: maps Python option names to flags, so that a message about "batch_size" is about --batch-size.
    """
    try:
        yield
    except CommandError as error:
        raise fail(error.error, error.code, as_json) from error
    except ValueError as error:  # all of bad input are
        raise fail(_as_typed(str(error), typed), BAD_INPUT, as_json) from error
    except (FileNotFoundError, ImportError) as error:  # or a package is not installed
        raise fail(error, BAD_INPUT, as_json) from error
    except OSError as error:
        raise fail(error, FAILED, as_json) from error
    except KeyboardInterrupt:  # Typer would end without a word
        raise fail("interrupted", INTERRUPTED, as_json) from None


def _as_typed(message: str, typed: Mapping[str, str]) -> str:
    """A message about arguments with the names of options: "seed: ...; with labels=True" is about --labels."""

    def option_of(match: re.Match[str]) -> str:
        name, value = match.groups()
        flag = typed.get(name, name)
        if value in ("True", "False", "None"):
            return f"with {flag}" if value == "True" else f"without {flag}"
        return f"with {flag} {value.strip(chr(39))}"

    name, colon, rest = message.partition(":")
    if name not in typed:
        return message
    return f"{typed[name]}{colon}" + re.sub(r"\bwith (\w+)=(True|False|None|'\w+')", option_of, rest)


@contextmanager
def interrupt_sets(stop: threading.Event, is_patient: bool = False) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) sets ``stop`` and lets the work end; the second interrupts at once, unless
    ``is_patient``: torchrun passes on a Ctrl-C that the terminal has sent already."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and not is_patient:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def warnings_as_notes(to: Console) -> Iterator[None]:
    """Print warnings as plain lines among the progress, without source code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        note(str(message), to=to)

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield

"""Records whatever is opened, imported or asked of a network because of names that hold a mark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec
from fsspec.spec import AbstractFileSystem

MARK = "touched_8f3a"
# An address of a file system that records, one within another, one of the web, a path and the name of a function.
ADDRESSES = (
    f"recording://{MARK}/a.json",
    f"reference::recording://{MARK}/a.json",
    f"http://127.0.0.1:9/{MARK}.tar",
    f"/{MARK}/a.png",
    f"{MARK}:factory",
)
_EVENTS = ("open", "import", "os.listdir", "os.scandir", "glob.glob", "urllib.Request", "subprocess.Popen", "exec")
_SOCKET = ("socket.connect", "socket.getaddrinfo")
_recorded: list[str] | None = None


class RecordingFileSystem(AbstractFileSystem):  # type: ignore[misc]
    protocol, cachable = "recording", False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if _recorded is not None:
            _recorded.append("a file system")


fsspec.register_implementation("recording", RecordingFileSystem, clobber=True)


def _record(event: str, args: tuple[Any, ...]) -> None:
    if _recorded is None:
        return
    names = [os.fsdecode(one) for one in args if isinstance(one, (str, bytes))] if event in _EVENTS else []
    if event in _SOCKET or any(MARK in name for name in names):
        _recorded.append(f"{event} {args}")


sys.addaudithook(_record)  # none can be taken away, and this one looks at a flag


@contextmanager
def recorded_opens() -> Iterator[list[str]]:
    """What was touched within, by audit events of Python and by the file system above."""
    global _recorded
    _recorded = found = list[str]()
    try:
        yield found
    finally:
        _recorded = None


def replaced(value: Any, new: Any) -> Iterator[Any]:
    """``value`` with each of its strings replaced in turn; the values of "type" stay, as they choose the reader."""
    if isinstance(value, str):
        yield new
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "type":
                yield from ({**value, key: changed} for changed in replaced(inner, new))
    elif isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            yield from ([*value[:at], changed, *value[at + 1 :]] for changed in replaced(inner, new))

"""Refusals that name the line of the user's source: ``augment.py:12: `if image.mean() > 10:`: ...``."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NOT_USERS = (_PACKAGE, f"{os.sep}numpy{os.sep}")


_refusals: ContextVar[ValueError | None] = ContextVar("refusals", default=None)


class PipelineError(ValueError):
    """A function that cannot be traced into a transform, or code that only a traced function may run."""


def place() -> str:
    """``file:line`` of the innermost code that is neither Variegate's nor NumPy's, and that line."""
    frame = users_frame()
    return shown_place(frame.f_code.co_filename, frame.f_lineno)


def users_frame() -> types.FrameType:
    frame = sys._getframe(1)
    while frame.f_back is not None and any(part in frame.f_code.co_filename for part in _NOT_USERS):
        frame = frame.f_back
    return frame


def shown_place(file: str, line: int) -> str:
    code = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": `{code}`" if code else "")


def refuse(what: str, accepted: str = "", where: str | None = None) -> NoReturn:
    """Raises PipelineError: ``what`` cannot be, at the user's line, and what can."""
    error = PipelineError(f"{where or place()}: {what}" + (f"; accepted: {accepted}" if accepted else ""))
    _refusals.set(_refusals.get() or error)
    raise error


@contextmanager
def none_swallowed() -> Iterator[None]:
    """A refusal within stands, also if a ``try`` of the traced function has caught it."""
    token = _refusals.set(None)
    try:
        yield
        error = _refusals.get()
        if error is not None:
            raise error
    finally:
        _refusals.reset(token)

"""Events of long work: small frozen dataclasses that functions of the API report and commands render.

A long function takes ``on_event``. It is called with each event, in order, in the caller's thread. Events of one kind
of work are declared next to it; those below are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

OnEvent: TypeAlias = Callable[[Any], object]


@dataclass(frozen=True)
class Progress:
    """``done`` of ``total`` images, measurements or epochs of a stage of the work. ``total`` is 0 if not known."""

    stage: str
    done: float
    total: float = 0


@dataclass(frozen=True)
class Skipped:
    """An image that cannot be read was skipped."""

    source: str
    reason: str


@dataclass(frozen=True)
class Note:
    """A remark that users should see."""

    text: str


def ignore_event(event: object) -> None:
    """An ``on_event`` that does nothing."""

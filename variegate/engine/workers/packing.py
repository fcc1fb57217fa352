"""Reports and payloads as they travel between processes: what does not survive the way fails its task, nothing more."""

from __future__ import annotations

import pickle
from typing import TypeAlias

from variegate.engine.messages import Event, TaskDone, TaskFailed
from variegate.engine.workers.base import Fatal, Report, end_of
from variegate.engine.workers.loop import Assignment, Place
from variegate.engine.workers.wire import Parts, decode, encode

# An event, and the outputs that came with it, encoded.
PackedReport: TypeAlias = tuple[Event | Fatal, Parts | None]


def pack_report(report: Report, pickler: type[pickle.Pickler] = pickle.Pickler) -> PackedReport:
    event, outputs = report
    if outputs is None:
        return event, None
    try:
        return event, encode(outputs, pickler)
    except Exception as error:
        return _failed(event, f"its results cannot be sent: {end_of(error)}"), None


def unpack_report(packed: PackedReport) -> Report:
    event, parts = packed
    if parts is None:
        return Report(event)
    try:
        return Report(event, decode(parts))
    except Exception as error:
        return Report(_failed(event, f"its results cannot be read: {end_of(error)}"))


def _failed(event: Event | Fatal, reason: str) -> TaskFailed:
    assert isinstance(event, TaskDone)
    return TaskFailed(event.device, event.worker, event.task, reason)


def unpack_task(place: Place, task: int, start: int, stop: int, parts: Parts | None) -> Assignment | Report:
    """The report says why there is no assignment."""
    try:
        return Assignment(task, start, stop, None if parts is None else decode(parts))
    except Exception as error:
        reason = f"what belongs to its items cannot be read: {end_of(error)}"
        return Report(TaskFailed(place.device, place.worker, task, reason))

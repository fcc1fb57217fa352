"""The log's numbers as TensorBoard shows them: made anew from ``log.jsonl`` at each start, and followed from there."""

from __future__ import annotations

import importlib
import json
import math
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from variegate.apps.train.folder import LOG_NAME
from variegate.apps.train.progress import Line

EVENTS_FOLDER = "tensorboard"
_PATTERN = "events.out.tfevents.*"
_FLUSH_SECONDS = 2


def check_events() -> None:
    """Raises ImportError where TensorBoard's events cannot be written."""
    try:
        importlib.import_module("tensorboardX")
    except ImportError as error:
        raise ImportError(
            f"--tensorboard needs tensorboardX ({error}): pip install 'variegate[tensorboard]'"
        ) from error


class TrainingEvents:
    """Events in ``folder``, of the lines that ``log`` holds already and of those that this is called with.

    What an earlier run has written there is written again, with its times, as far as the log goes: events of steps that
    came after the checkpoint that a run goes on from are gone, as their lines are, and none comes twice. A TensorBoard
    that is open drops what it has read of them. Numbers of a step are train/NAME, those of a scoring validation/NAME
    at the step before it.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        from tensorboardX import SummaryWriter

        known = _times(folder)
        for old in folder.glob(_PATTERN):
            old.unlink()
        # At the start of a file that begins at step 0, TensorBoard forgets what others said of steps from there on.
        self._writer: Any = SummaryWriter(str(folder), purge_step=0, flush_secs=_FLUSH_SECONDS)
        self._step = 0
        if log.exists():
            whole, _, _ = log.read_text(encoding="utf-8").rpartition("\n")
            for text in whole.splitlines():
                self._add(json.loads(text), known)

    def __call__(self, line: Line) -> None:
        self._add(line, {})

    def _add(self, line: Line, known: dict[tuple[str, int], float]) -> None:
        kind, now = ("train" if "step" in line else "validation"), time.time()
        self._step = line.get("step", self._step)
        for name, value in line.items():
            if name in ("epoch", "step") or isinstance(value, bool) or not isinstance(value, (int, float)):
                continue
            if math.isfinite(value):
                tag = f"{kind}/{name}"
                self._writer.add_scalar(tag, value, self._step, known.get((tag, self._step), now))

    def close(self) -> None:
        self._writer.close()


def write_events(out: Path) -> None:
    """Of a training in this folder, whether it is over or not. Raises ImportError."""
    check_events()
    TrainingEvents(out / EVENTS_FOLDER, out / LOG_NAME).close()


@contextmanager
def told_as_events(out: Path, tell: Callable[[Line], object] | None) -> Iterator[Callable[[Line], object] | None]:
    """-> what is to be called with each line: it writes events, and calls ``tell``."""
    events = TrainingEvents(out / EVENTS_FOLDER, out / LOG_NAME)

    def both(line: Line) -> None:
        events(line)
        if tell is not None:
            tell(line)

    try:
        yield both
    finally:
        events.close()


def _times(folder: Path) -> dict[tuple[str, int], float]:
    """When each number was written, of the whole records in the folder's files, the later file's last."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[tuple[str, int], float] = {}
    for path in sorted(folder.glob(_PATTERN)):
        for record in _records(path.read_bytes()):
            try:
                event = Event.FromString(record)
            except Exception:  # protobuf's own errors: of a file that something else wrote
                break
            for value in event.summary.value:
                found[value.tag, event.step] = event.wall_time
    return found


def _records(data: bytes) -> Iterator[bytes]:
    """Of a TFRecord file: a length and its checksum, so many bytes and theirs. One that was cut off is not given."""
    place = 0
    while place + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        end = place + 12 + length
        if end + 4 > len(data):
            return
        yield data[place + 12 : end]
        place = end + 4

"""Training runs of a race or an evaluation: several in parallel, each logged when it ends, and none trained twice."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeAlias

from variegate.checks import check_pixel_version
from variegate.data.base import SourceError
from variegate.events import OnEvent, Progress
from variegate.io.amounts import pluralize
from variegate.io.durable import AppendOnlyFile, make_folder, named_write_errors, write_atomically
from variegate.jobs.output.run_folder import locked
from variegate.learn.events import Training

# (candidate, round) -> (score, seconds); None if it was stopped.
Outcome: TypeAlias = tuple[float, float]
Train: TypeAlias = Callable[[str, int], Outcome | None]


class TrainingJournal:
    """Log of finished training runs, a line each, after a line of settings. To be closed."""

    def __init__(self, path: Path, described: Mapping[str, Any], what: str, *, place: str, is_replaced: bool = False):
        """``what``: "a race", the kind of log at ``place``. ``is_replaced``: one with other settings gives way.

        Raises SourceError for a damaged file, and naming the setting in which another one differs.
        """
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # a torn last line is trained again
        try:
            rows = [json.loads(line) for line in lines]
            self.done = [_training(row) for row in rows[1:]]
        except (ValueError, TypeError, LookupError) as error:
            raise SourceError(f"{path}: is damaged ({error}); restore it, or choose another name") from error
        if rows and rows[0] != described:
            if not is_replaced:
                _refuse(rows[0], described, what, place)
            lines = []
            self.done = []
        end = sum(len(line) + 1 for line in lines)
        self._file = AppendOnlyFile(path, str(path), end, json.dumps(described).encode() + b"\n")

    def append(self, row: Training) -> None:
        described = {**asdict(row), "score": None if math.isnan(row.score) else row.score}
        self._file.append(json.dumps(described, allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        self._file.close()


def _training(row: dict[str, Any]) -> Training:
    """A line of the journal; earlier versions wrote more fields."""
    values = {one.name: row[one.name] for one in fields(Training)}
    score = math.nan if row["score"] is None else row["score"]
    return Training(**{**values, "score": score})


def _refuse(theirs: Any, mine: Mapping[str, Any], what: str, place: str) -> None:
    if not isinstance(theirs, dict):
        raise SourceError(f"{place}: holds no {what.partition(' ')[2]}; choose another name")
    if "pixels" in mine:
        check_pixel_version(place, theirs.get("pixels"), SourceError)
    name = next((one for one in mine if theirs.get(one) != mine[one]), "format")
    raise SourceError(
        f"{place}: holds {what} with {name} {theirs.get(name)!r}, this one has {mine.get(name)!r}; choose another name"
    )


class TrainingRunner:
    """Executes training runs, ``workers`` at a time in threads.

    ``all``: complete training runs, also of an earlier process. ``on_event``: called with each, one at a time.
    ``budget``: seconds that are left to the first training; later ones are not cut off, as their length is known.
    """

    def __init__(
        self,
        train: Train,
        journal: TrainingJournal | None,
        workers: int,
        on_event: OnEvent,
        stop: Event | None,
        budget: float | None = None,
    ) -> None:
        self._budget = math.inf if budget is None else budget
        self._train_one = train
        self._journal = journal
        self._on_event = on_event
        self.all = [] if journal is None else journal.done
        self.done = {(one.round, one.candidate): one for one in self.all}
        self._began = time.perf_counter() - max((one.elapsed for one in self.all), default=0.0)
        self.workers = workers
        self.stop = stop or Event()
        self._failed = Event()
        self._jobs = [0, 0]  # of the latest ``run``: done, and in all
        self._lock = Lock()

    @property
    def elapsed(self) -> float:
        """Wall-clock seconds, including earlier processes."""
        return time.perf_counter() - self._began

    def run(self, jobs: Iterable[tuple[int, str]], may_begin: Callable[[], bool] = lambda: True) -> None:
        """Execute unfinished training runs, in the order of rounds and candidates; a failing training stops the
        others."""

        def train(job: tuple[int, str]) -> None:
            if not self.stop.is_set() and not self._failed.is_set() and may_begin():
                try:
                    self._train(*job)
                except BaseException:
                    self._failed.set()
                    raise

        open_jobs = [job for job in jobs if job not in self.done]
        self._jobs = [0, len(open_jobs)]
        if self.workers == 1:
            for job in open_jobs:
                train(job)
        else:
            with ThreadPoolExecutor(self.workers, "variegate-training") as pool:
                list(pool.map(train, open_jobs))

    def is_over(self) -> bool:
        """True if a training is to end before its last epoch."""
        is_over_budget = not self.all and self.elapsed > self._budget
        return self.stop.is_set() or self._failed.is_set() or is_over_budget

    def _train(self, number: int, name: str) -> None:
        if (outcome := self._train_one(name, number)) is None:
            return
        score, seconds = outcome
        with self._lock:
            row = Training(name, number, score, round(seconds, 3), round(self.elapsed, 3))
            if self._journal is not None:
                self._journal.append(row)
            self.all.append(row)
            self.done[number, name] = row
            self._jobs[0] += 1
            self._on_event(row)
            self._on_event(Progress("training", *self._jobs))


def cost(trainings: int, seconds: float) -> str:
    """Training runs and their seconds, in words."""
    return f"{pluralize(trainings, 'training run')}, {seconds:,.1f} seconds"


def check_folder(folder: Path, begins_with: str, error: type[Exception] = SourceError) -> bool:
    """True where a run has begun, with a file of this name. Raises ``error`` where none may."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise error(f"{folder}: is a file; accepted: a folder, or a name that is still free")
    if (folder / begins_with).exists():
        return True
    if others := [path.name for path in folder.glob("[!.]*")]:
        other = min(others)
        raise error(f"{folder}: holds files of something else ({other}); choose an empty folder or a new name")
    return False


@contextmanager
def locked_folder(folder: Path, lock: str, check: Callable[[], object]) -> Iterator[None]:
    """Make a folder, and lock it until the end. ``check`` refuses a folder with other content, which stays
    unchanged."""
    check()
    with named_write_errors(str(folder)):
        make_folder(folder)
    with locked(folder / lock, str(folder)):
        check()
        yield


def read_json(path: Path, lines: int | None = None) -> dict[str, Any]:
    """A JSON object in a file, or in its first ``lines``; empty if missing or unreadable."""
    try:
        with open(path, "rb") as file:
            found: Any = json.loads(file.read() if lines is None else b"".join(islice(file, lines)))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_json(path: Path, described: Mapping[str, Any]) -> None:
    """Write a result; null for numbers that JSON does not have. Raises WriteError."""
    text = json.dumps(_finite(dict(described)), indent=1, allow_nan=False)
    write_atomically(path, text.encode() + b"\n", durable=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

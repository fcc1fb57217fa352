"""Searches by their back ends, and the back end of one machine.

The log has the decisions, the checkpoint the members' states. Files of a step are written before its rows in the log.
"""

from __future__ import annotations

import io
import math
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Lock
from typing import Any, ClassVar

import torch

from variegate.events import OnEvent
from variegate.executors.runners.devices import resolve
from variegate.io.durable import write_atomically
from variegate.learn.events import SearchProgress, notes_as_warnings
from variegate.learn.fit import one_thread_each, threads_each
from variegate.learn.history import History, LogError, PopulationLog, Row, best_score, read_log
from variegate.learn.population import Population, Step
from variegate.learn.run import CHECKPOINT_NAMES, LOG_NAME, PopulationRun
from variegate.policies.schedule import Schedule
from variegate.threads import default_threads
from variegate.workers.devices import choose_devices, kind_of


class CheckpointError(ValueError):
    """A checkpoint from which this search cannot resume; the message names the file, the reason, and a remedy."""


class PopulationSearch(ABC):
    """A search of ``run`` in ``folder``; back ends differ in what trains the members."""

    backend: ClassVar[str]

    def __init__(self, run: PopulationRun, folder: Path) -> None:
        self.run_settings = run
        self.folder = folder
        self.path = folder / CHECKPOINT_NAMES[self.backend]

    def run(self, on_event: OnEvent = notes_as_warnings, stop: Event | None = None) -> Schedule | None:
        """-> the schedule, written to the folder too; None where ``stop`` was set before the end.

        A folder with an unfinished search of the same settings is resumed from its last complete step; the log survives
        a crash or a power failure.

        Raises SourceError for a folder with other content, or if another run is writing to it; CheckpointError and
        LogError for damaged files; WriteError; LostPopulationError if every member diverged; and errors of the back
        end.
        """
        with self.run_settings.claimed(self.folder, self.backend):
            if not self._train(on_event, stop):
                return None
            schedule = self.run_settings.finish(self.folder, read_log(self.folder / LOG_NAME))
            shutil.rmtree(self.path, ignore_errors=True)
        return schedule

    @abstractmethod
    def _train(self, on_event: OnEvent, stop: Event | None) -> bool:
        """Up to the last step -> whether it came to that."""


def search_devices(devices: str | Sequence[str] = "auto", members: int = 1) -> list[str]:
    """At most ``members`` devices, from a list or text; "auto": all GPUs, else a CPU per core. Raises ValueError."""
    if devices != "auto":
        typed = devices.split(",") if isinstance(devices, str) else devices
        names = choose_devices([name.strip() for name in typed])
        if kind_of(names[0]) not in ("cpu", "cuda"):
            raise ValueError(f"devices: got {names[0]!r}, which trains nothing; accepted: CPUs and GPUs")
    elif torch.cuda.is_available():
        names = choose_devices([f"cuda:{number}" for number in range(torch.cuda.device_count())])
    else:
        names = tuple(f"cpu:{number}" for number in range(default_threads()))
    return list(names[:members])


class LocalSearch(PopulationSearch):
    """A search on one machine: on CPUs the same run gives the same schedule, whatever the interruptions.

    ``devices``: dealt out to the members in turn.
    """

    backend = "local"

    def __init__(self, run: PopulationRun, folder: Path, devices: Sequence[str] = ("auto",)) -> None:
        super().__init__(run, folder)
        self.devices = [resolve(name) for name in devices]
        threads = threads_each(self.devices)
        makers = {name: run.on(name, num_threads=threads) for name in dict.fromkeys(self.devices)}
        places = [self.devices[number % len(self.devices)] for number in range(run.settings.size)]
        self._members = [makers[place](number) for number, place in enumerate(places)]
        # Scores of members that trained a step before an interruption, and the best of the step before.
        self._done: dict[int, float] = {}
        self._best = math.nan

    def _train(self, on_event: OnEvent, stop: Event | None) -> bool:
        settings = self.run_settings.settings
        population = self._resume()
        scores = dict(self._done)  # of the step that is being trained, by member
        best = self._best
        lock = Lock()
        over = Event()
        places = range(len(self.devices))

        def report(rows: tuple[Row, ...] = (), is_flat: bool = False) -> None:
            on_event(SearchProgress(population.step, settings.steps, settings.size, len(scores), best, rows, is_flat))

        def take_turns(place: int) -> None:
            """Train the members on a device, each its part of this step; none begins once ``over`` is set."""
            step = population.step + 1
            for number in range(place, settings.size, len(self.devices)):
                if number in scores:
                    continue
                try:
                    member = self._members[number]
                    policy = population.policies[number]
                    score = None if over.is_set() else member.train(policy, step, stop)
                    if score is None:
                        return
                    self._write(step, number, score)
                except BaseException:
                    over.set()
                    raise
                with lock:
                    scores[number] = score
                    report()

        threads = one_thread_each(*(self.devices if self.run_settings.one_thread else ()))
        log = PopulationLog(self.folder / LOG_NAME, settings, population.step)
        with closing(log), threads, ThreadPoolExecutor(len(places), "variegate-search") as pool:
            if scores:
                report()
            try:
                while not population.is_done:
                    if len(scores) < settings.size:
                        list(map(take_turns, places) if len(places) == 1 else pool.map(take_turns, places))
                    if len(scores) < settings.size:
                        return False
                    step = population.advance([scores[member] for member in range(settings.size)])
                    log.append(step.rows)
                    best = best_score(step.rows)
                    if not population.is_done:  # after the last step the log has all that is needed
                        self._copy(step)
                    report(step.rows, step.is_flat)
                    scores.clear()
            finally:
                over.set()
        return True

    def _resume(self) -> Population:
        """The population after the last whole step; members have their states. Raises CheckpointError, LogError,
        OSError."""
        settings = self.run_settings.settings
        log = self.folder / LOG_NAME
        try:
            # A run that was killed while it wrote the first line has logged nothing.
            is_begun = log.exists() and b"\n" in log.read_bytes()
            history = read_log(log) if is_begun else History(settings, ())
            if history.settings != settings:
                raise LogError(f"{log}: is the log of a search with other settings")
            if len(history.steps) < settings.steps:
                self._load(history)
            population = _replay(history, log)
        except (CheckpointError, LogError) as error:
            raise type(error)(f"{error}; restore the file, or delete {self.folder} to start over") from error
        self._best = best_score(history.steps[-1] if history.steps else ())
        return population

    def _file(self, step: int, number: int) -> Path:
        return self.path / f"{step}-{number}.pt"

    def _files(self) -> dict[Path, int]:
        """Checkpoint files, each with its step."""
        return {path: int(path.name.partition("-")[0]) for path in self.path.glob("[0-9]*-[0-9]*.pt")}

    def _write(self, step: int, number: int, score: float) -> None:
        """Write a member's checkpoint; after the last step no other member needs it."""
        state = None if step == self.run_settings.settings.steps else self._members[number].state_dict()
        buffer = io.BytesIO()
        described = {"run": self.run_settings.describe(), "step": step, "member": number}
        torch.save({**described, "score": score, "state": state}, buffer)
        write_atomically(self._file(step, number), buffer.getvalue(), durable=True)

    def _copy(self, step: Step) -> None:
        """Make the copies of a step, and delete the files of the step before it."""
        for copy in step.copies:
            self._members[copy.target].load_state_dict(self._members[copy.donor].state_dict())
        for path, number in self._files().items():
            if number < step.rows[0].step:
                path.unlink()

    def _load(self, history: History) -> None:
        """Load the members' states. Members that have trained the next step do not train it again."""
        step = len(history.steps)
        for path, number in sorted(self._files().items()):
            if number > step + 1:
                is_of = f"{path.relative_to(self.folder)} is of step {number}"
                raise LogError(f"{self.folder / LOG_NAME}: has {step} steps, but {is_of}")
        for number in range(len(self._members)):
            if self._file(step + 1, number).exists():
                self._done[number] = self._read(step + 1, number, number)
            elif step:
                donor = history.steps[-1][number].copied_from
                self._read(step, number if donor is None else donor, number)

    def _read(self, step: int, source: int, target: int) -> float:
        """Give a member after a step to itself, or to one that copies it -> its score. Raises CheckpointError."""
        path = self._file(step, source)
        run = self.run_settings
        if not path.exists():
            raise CheckpointError(f"{path}: is missing, but {LOG_NAME} has {step} steps")
        with open(path, "rb") as file:
            try:
                # Its files' checksums, which torch writes and does not read.
                if (damaged := zipfile.ZipFile(file).testzip()) is not None:
                    raise ValueError(f"the checksum of {damaged} is another")
                file.seek(0)
                saved: Any = torch.load(file, map_location="cpu", weights_only=True)
            except Exception as error:  # of a damaged file: any
                raise CheckpointError(f"{path}: is damaged, or no checkpoint ({_first_line(error)})") from error
        try:
            is_ours = (saved["run"], saved["step"], saved["member"]) == (run.describe(), step, source)
            score = float(saved["score"])
            state = saved["state"]
        except (TypeError, ValueError, LookupError) as error:
            raise CheckpointError(f"{path}: is no checkpoint of a search") from error
        if not is_ours:
            raise CheckpointError(f"{path}: is the checkpoint of another search")
        if step < run.settings.steps:
            try:
                self._members[target].load_state_dict(state)
            except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
                raise CheckpointError(f"{path}: its state fits no member ({_first_line(error)})") from error
        return score


def _replay(history: History, path: Path) -> Population:
    """The population after the history. Raises LogError if its scores lead to other policies than the log has."""
    population = Population(history.settings)
    for number, logged in enumerate(history.steps, start=1):
        try:
            rows = population.advance([row.score for row in logged]).rows
        except RuntimeError:  # no member has a score
            rows = ()
        # As JSON: NaN is not equal to itself.
        if [row.to_dict() for row in rows] != [row.to_dict() for row in logged]:
            raise LogError(f"{path}: step {number} does not follow from the steps before it and its scores")
    return population


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(":. ") if lines else type(error).__name__

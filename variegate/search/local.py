"""The search on one machine: members take turns on each device, and all wait for each other at every step."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.engine.choice import choose_devices
from variegate.executors.devices import resolve
from variegate.policies.schedule import Schedule
from variegate.search.history import Row
from variegate.search.log import PopulationLog, read_log
from variegate.search.member import MemberData, new_member, one_thread_each, train_member
from variegate.search.population import Population
from variegate.search.run import CHECKPOINT_NAMES, LOG_NAME, SearchRun
from variegate.sinks.atomic import write_atomically

CHECKPOINT_NAME = CHECKPOINT_NAMES["local"]


@dataclass(frozen=True)
class Progress:
    """After a member's turn (``rows`` is empty) or a step (``rows`` as in the log)."""

    step: int
    steps: int
    members_done: int  # of this step
    best: float  # accuracy of the step before; NaN before the first
    rows: tuple[Row, ...] = ()
    is_flat: bool = False


class LocalSearch:
    """Deterministic on CPUs: the same run gives the same schedule, in one go or after any number of interruptions.

    ``devices``: names as an ``Augmenter`` takes them; the members are dealt out to them in turn.
    """

    def __init__(self, run: SearchRun, folder: Path, devices: Sequence[str] = ("auto",)) -> None:
        self.run_settings, self.folder = run, folder
        self.devices = [resolve(name) for name in devices]
        self._data = {device: MemberData(run, device) for device in self.devices}
        self._members = [
            new_member(run, member, self.devices[member % len(self.devices)]) for member in range(run.settings.size)
        ]

    def run(self, on_progress: Callable[[Progress], None] | None = None, stop: Event | None = None) -> Schedule | None:
        """-> the schedule, written to the folder too; None where ``stop`` was set before the end.

        A folder with an unfinished search of the same settings is gone on with, from its last whole step. Raises
        SourceError for a folder that holds anything else, LostPopulationError where every member diverged.
        """
        run, tell = self.run_settings, on_progress or (lambda progress: None)
        run.claim(self.folder)
        population, best = self._resume()
        log = PopulationLog(self.folder / LOG_NAME, run.settings, population.step)
        with log, one_thread_each(*self.devices):
            while not population.is_done:
                scores = self._train_all(population, best, tell, stop)
                if scores is None:
                    return None
                step = population.advance(scores)
                for copy in step.copies:
                    self._members[copy.target].load_state_dict(self._members[copy.donor].state_dict())
                log.append(step.rows)
                best = max(score for score in scores if not math.isnan(score))
                self._save(population, best)
                tell(Progress(population.step, run.settings.steps, len(scores), best, step.rows, step.is_flat))
        schedule = run.finish(self.folder, read_log(self.folder / LOG_NAME))
        with suppress(FileNotFoundError):
            os.unlink(self.folder / CHECKPOINT_NAME)
        return schedule

    def _train_all(
        self, population: Population, best: float, tell: Callable[[Progress], None], stop: Event | None
    ) -> list[float] | None:
        """Scores after the next step; None where it was stopped."""
        done: list[int] = []

        def take_turns(device: int) -> dict[int, float]:
            scores = {}
            for member in range(device, len(self._members), len(self.devices)):
                if stop is not None and stop.is_set():
                    break
                scores[member] = self._train(member, population)
                done.append(member)
                tell(Progress(population.step, population.settings.steps, len(done), best))
            return scores

        if len(self.devices) == 1:
            found = take_turns(0)
        else:
            with ThreadPoolExecutor(len(self.devices), "variegate-search") as pool:
                parts = list(pool.map(take_turns, range(len(self.devices))))
            found = {member: score for part in parts for member, score in part.items()}
        return [found[member] for member in range(len(self._members))] if len(found) == len(self._members) else None

    def _train(self, number: int, population: Population) -> float:
        """A member's epochs of this step -> its accuracy; NaN where it diverged."""
        member = self._members[number]
        data, policy = self._data[member.device], population.policies[number]
        return train_member(self.run_settings, member, data, policy, population.step + 1)

    def _resume(self) -> tuple[Population, float]:
        path = self.folder / CHECKPOINT_NAME
        if not path.exists():
            return self._finished_or_new()
        saved: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        for member, state in zip(self._members, saved["members"], strict=True):
            member.load_state_dict(state)
        return Population.from_dict(saved["population"]), saved["best"]

    def _finished_or_new(self) -> tuple[Population, float]:
        """Without a checkpoint a search is finished, or has not come to the end of its first step."""
        population = Population(self.run_settings.settings)
        path = self.folder / LOG_NAME
        if path.exists() and path.stat().st_size:
            history = read_log(path)
            if len(history.steps) == population.settings.steps:
                for rows in history.steps:
                    population.advance([row.score for row in rows])
        return population, math.nan

    def _save(self, population: Population, best: float) -> None:
        """The last step takes none: the log has all that is needed then."""
        buffer = io.BytesIO()
        members = [member.state_dict() for member in self._members]
        torch.save({"population": population.to_dict(), "best": best, "members": members}, buffer)
        write_atomically(self.folder / CHECKPOINT_NAME, buffer.getvalue())


def search_devices(devices: str | Sequence[str] = "auto") -> list[str]:
    """Full names: of "auto" all GPUs, without one the CPU. Raises ValueError for a list that is not accepted."""
    if devices != "auto":
        return [resolve(name) for name in choose_devices(devices)]
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [resolve(f"cuda:{n}") for n in range(number)] or ["cpu"]

"""The search on one machine: members take turns on each device, and all wait for each other at every step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from variegate.backends.devices import resolve
from variegate.policies.schedule import Schedule
from variegate.search import checkpoint
from variegate.search.history import Row, best_score
from variegate.search.log import PopulationLog, read_log
from variegate.search.members import images_of, new_member, one_thread_each, threads_each, train_member
from variegate.search.population import Population
from variegate.search.run import LOG_NAME, SearchRun
from variegate.training.captured import GraphMemory


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

    ``devices``: names as an ``Augmenter`` takes them; the members are dealt out to them in turn. Several CPUs ("cpu:0",
    "cpu:1", ...) are as many members at a time. ``capture``: on GPUs, record training steps as CUDA graphs.
    """

    def __init__(
        self, run: SearchRun, folder: Path, devices: Sequence[str] = ("auto",), *, capture: bool = True
    ) -> None:
        self.run_settings, self.folder = run, folder
        self.devices = [resolve(name) for name in devices]
        self._data = {device: images_of(run, device) for device in self.devices}
        # The steps of members on one GPU are replayed one at a time, so all may work in the same memory.
        shared = {name: GraphMemory(name) if capture and name != "cpu" else None for name in self._data}
        threads = threads_each(self.devices)
        self._members = [
            new_member(run, member, device, capture=capture, graph_memory=shared[device], num_threads=threads)
            for member, device in zip(range(run.settings.size), itertools.cycle(self.devices), strict=False)
        ]

    def run(self, on_progress: Callable[[Progress], None] | None = None, stop: Event | None = None) -> Schedule | None:
        """-> the schedule, written to the folder too; None where ``stop`` was set before the end.

        A folder with an unfinished search of the same settings is gone on with, from its last whole step: what the
        log has outlasts a crash or a power failure.

        Raises SourceError for a folder that holds anything else, or that another run is writing to; CheckpointError and
        LogError for damaged files; WriteError; LostPopulationError where every member diverged.
        """
        with self.run_settings.claimed(self.folder):
            return self._run(on_progress or (lambda progress: None), stop)

    def _run(self, tell: Callable[[Progress], None], stop: Event | None) -> Schedule | None:
        run = self.run_settings
        population, best = checkpoint.resume(self.folder, run, self._members)
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
                best = best_score(step.rows)
                if not population.is_done:  # then the log has all that is needed
                    checkpoint.save(self.folder, run, population.step, self._members)
                tell(Progress(population.step, run.settings.steps, len(scores), best, step.rows, step.is_flat))
        schedule = run.finish(self.folder, read_log(self.folder / LOG_NAME))
        checkpoint.remove(self.folder)
        return schedule

    def _train_all(
        self, population: Population, best: float, tell: Callable[[Progress], None], stop: Event | None
    ) -> list[float] | None:
        """Scores after the next step; None where it was stopped."""
        done: list[int] = []
        telling = Lock()

        def take_turns(device: int) -> dict[int, float]:
            scores = {}
            for member in range(device, len(self._members), len(self.devices)):
                score = self._train(member, population, stop)
                if score is None:
                    break
                scores[member] = score
                with telling:
                    done.append(member)
                    tell(Progress(population.step, population.settings.steps, len(done), best))
            return scores

        if len(self.devices) == 1:
            scores = take_turns(0)
        else:
            with ThreadPoolExecutor(len(self.devices), "variegate-search") as pool:
                parts = list(pool.map(take_turns, range(len(self.devices))))
            scores = {member: score for part in parts for member, score in part.items()}
        return [scores[member] for member in range(len(self._members))] if len(scores) == len(self._members) else None

    def _train(self, number: int, population: Population, stop: Event | None) -> float | None:
        """A member's part of this step."""
        member = self._members[number]
        data, policy = self._data[member.device], population.policies[number]
        return train_member(self.run_settings, member, data, policy, population.step + 1, stop)

"""Driver of a search, whatever trains its members, and the back end of one machine. The log has the decisions, a back
end's checkpoint the weights.

The log is written first: a step ahead of the checkpoint it is cut back, behind it never is.
"""

from __future__ import annotations

import io
import itertools
import math
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, ClassVar, TypeAlias

import torch

from variegate.apps.search.history import History, LogError, PopulationLog, Row, best_score, read_log
from variegate.apps.search.policy import Numbers
from variegate.apps.search.population import Population, SearchStream, Step, draw
from variegate.apps.search.run import CHECKPOINT_NAMES, LOG_NAME, SearchRun
from variegate.apps.train.classifier import Classifier, GraphMemory
from variegate.apps.train.images import TrainingImages
from variegate.executors.runners.devices import resolve
from variegate.io.durable import write_atomically
from variegate.jobs.engine import choose_devices, cores_each, kind_of
from variegate.policies.schedule import Schedule
from variegate.threads import default_threads


class CheckpointError(ValueError):
    """A checkpoint that this search cannot go on from; the line says which, why, and what to do."""


@dataclass(frozen=True)
class Progress:
    """After a member's turn (``rows`` is empty) or a step (``rows`` as in the log)."""

    step: int
    steps: int
    members_done: int  # of this step
    best: float  # accuracy of the step before; NaN before the first
    rows: tuple[Row, ...] = ()
    is_flat: bool = False


Load: TypeAlias = Callable[[], int]
Tell: TypeAlias = Callable[[Progress], None]


class SearchDriver:
    """Decisions from the members' scores; every step is on the disk before the next begins. To be closed.

    ``load`` reads the checkpoint -> its step, 0 without one; ``save`` makes a step's copies and writes it.
    """

    def __init__(
        self, run: SearchRun, folder: Path, path: Path, load: Load, save: Callable[[Step], None], tell: Tell
    ) -> None:
        self._save, self._tell = save, tell
        self.population, self.best = resume(run, folder, path, load)
        self._scores: dict[int, float] = {}
        self._scoring = Lock()
        self._log = PopulationLog(folder / LOG_NAME, run.settings, self.population.step)

    def close(self) -> None:
        self._log.close()

    @property
    def is_scored(self) -> bool:
        """True once all members have a score for this step."""
        return len(self._scores) == self.population.settings.size

    def score(self, member: int, step: int, score: float) -> None:
        """``step``: as the member counts, to be sure that it went on from the right checkpoint. From any thread."""
        if step != self.population.step + 1:
            raise RuntimeError(f"member {member} has trained step {step}, not {self.population.step + 1}")
        with self._scoring:
            self._scores[member] = score
            self._report()

    def end_step(self) -> Step:
        """All are scored -> what follows. Raises LostPopulationError."""
        step = self.population.advance([self._scores[member] for member in range(self.population.settings.size)])
        self._log.append(step.rows)
        self.best = best_score(step.rows)
        if not self.population.is_done:  # then the log has all that is needed
            self._save(step)
        self._report(step.rows, step.is_flat)
        self._scores = {}
        return step

    def _report(self, rows: tuple[Row, ...] = (), is_flat: bool = False) -> None:
        steps = self.population.settings.steps
        self._tell(Progress(self.population.step, steps, len(self._scores), self.best, rows, is_flat))


class PopulationSearch(ABC):
    """A search of ``run`` in ``folder``; back ends differ in what trains the members."""

    backend: ClassVar[str]

    def __init__(self, run: SearchRun, folder: Path) -> None:
        self.run_settings, self.folder = run, folder
        self.path = folder / CHECKPOINT_NAMES[self.backend]

    def run(self, on_progress: Tell | None = None, stop: Event | None = None) -> Schedule | None:
        """-> the schedule, written to the folder too; None where ``stop`` was set before the end.

        A folder with an unfinished search of the same settings is gone on with, from its last whole step: what the
        log has outlasts a crash or a power failure.

        Raises SourceError for a folder that holds anything else, or that another run is writing to; CheckpointError and
        LogError for damaged files; WriteError; LostPopulationError where every member diverged; and what the back end
        raises.
        """
        with self.run_settings.claimed(self.folder, self.backend):
            if not self._train(on_progress or (lambda progress: None), stop):
                return None
            schedule = self.run_settings.finish(self.folder, read_log(self.folder / LOG_NAME))
            if self.path.is_dir():
                shutil.rmtree(self.path, ignore_errors=True)
            else:
                self.path.unlink(missing_ok=True)
        return schedule

    @abstractmethod
    def _train(self, tell: Tell, stop: Event | None) -> bool:
        """Up to the last step -> whether it came to that."""


def resume(run: SearchRun, folder: Path, path: Path, load: Load) -> tuple[Population, float]:
    """The population after the last whole step, and its best accuracy. Raises CheckpointError, LogError, OSError."""
    log = folder / LOG_NAME
    try:
        # A run that was killed while it wrote the first line has logged nothing.
        is_begun = log.exists() and b"\n" in log.read_bytes()
        history = read_log(log) if is_begun else History(run.settings, ())
        if history.settings != run.settings:
            raise LogError(f"{log}: is the log of a search with other settings")
        step = run.settings.steps if len(history.steps) == run.settings.steps else load()
        if step == 0 and len(history.steps) > 1:
            raise CheckpointError(f"{path}: is missing, but {LOG_NAME} has {len(history.steps)} steps")
        if step > len(history.steps):
            raise LogError(f"{log}: has {len(history.steps)} steps, but {path.relative_to(folder)} is of step {step}")
        population = _replay(history, step, log)
    except (CheckpointError, LogError) as error:
        raise type(error)(f"{error}; restore the file, or delete {folder} to start over") from error
    return population, best_score(history.steps[step - 1] if step else ())


def _replay(history: History, steps: int, path: Path) -> Population:
    """The population after so many steps. Raises LogError where its scores lead to other policies than the log has."""
    population = Population(history.settings)
    for number, logged in enumerate(history.steps[:steps], start=1):
        try:
            rows = population.advance([row.score for row in logged]).rows
        except RuntimeError:  # no member has a score
            rows = ()
        # As JSON: NaN is not equal to itself.
        if [row.to_dict() for row in rows] != [row.to_dict() for row in logged]:
            raise LogError(f"{path}: step {number} does not follow from the steps before it and its scores")
    return population


def search_devices(devices: str | Sequence[str] = "auto", members: int = 1) -> list[str]:
    """Full names of at most ``members`` devices; "auto": all GPUs, else a CPU for each core. Raises ValueError."""
    if devices != "auto":
        names = choose_devices(devices)
        if kind_of(names[0]) not in ("cpu", "cuda"):
            raise ValueError(f"devices: got {names[0]!r}, which trains nothing; accepted: CPUs and GPUs")
    elif torch.cuda.is_available():
        names = choose_devices([f"cuda:{number}" for number in range(torch.cuda.device_count())])
    else:
        names = tuple(f"cpu:{number}" for number in range(default_threads()))
    return list(names[:members])


def threads_each(devices: Sequence[str]) -> int | None:
    """That augment for each of so many trainings at a time; None: all cores, for a single one."""
    return None if len(devices) == 1 else cores_each(len(devices))


@contextmanager
def one_thread_each(*devices: str) -> Iterator[None]:
    """On a CPU a training uses one thread: sums come out the same whatever the machine, and small models faster."""
    before = torch.get_num_threads()
    if "cpu" in devices:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def images_of(run: SearchRun, device: str) -> TrainingImages:
    """The images that members train on and are scored by, on a device."""
    return TrainingImages(run.train, run.validation, run.baseline.plain, device)


def new_member(run: SearchRun, member: int, device: str, **options: Any) -> Classifier:
    """As it is before the first step; ``options`` as of ``Classifier``. Raises ValueError for a wrong model."""
    seed, channels = member_seed(run.settings.seed, member), run.train.pixels.shape[3]
    return Classifier(run.model, run.train.num_classes, run.recipe, device, seed, channels, **options)


def train_member(
    run: SearchRun, classifier: Classifier, data: TrainingImages, policy: Numbers, step: int, stop: Event | None = None
) -> float | None:
    """Train a member's epochs of a step (from 1) -> accuracy; NaN where it diverged, None where ``stop`` was set."""
    transform = run.baseline.with_policy(run.settings.space.transform(policy))
    losses = []
    for epoch in range(run.settings.end_of(step - 1), run.settings.end_of(step)):
        if stop is not None and stop.is_set():
            return None
        losses.append(classifier.train(data.train, transform, epoch))
    # Read once all epochs are queued, so that a GPU never waits for the next to be prepared.
    if not all(map(math.isfinite, losses)):
        return math.nan
    return classifier.accuracy(data.scored, data.labels)


def member_seed(seed: int, member: int) -> int:
    """The seed of a member's weights, order of images and augmentations; 63 bits."""
    words = draw(SearchStream.MEMBER, seed, 0, member, 1)[0]
    return (int(words[0]) << 32 | int(words[1])) >> 1


class LocalSearch(PopulationSearch):
    """A search on one machine: on CPUs the same run gives the same schedule, whatever the interruptions.

    ``devices``: dealt out to the members in turn. ``capture``: on GPUs, record training steps as CUDA graphs.
    """

    backend = "local"

    def __init__(
        self, run: SearchRun, folder: Path, devices: Sequence[str] = ("auto",), *, capture: bool = True
    ) -> None:
        super().__init__(run, folder)
        self.devices = [resolve(name) for name in devices]
        self._data = {device: images_of(run, device) for device in self.devices}
        # The steps of members on one GPU are replayed one at a time, so all may work in the same memory.
        shared = {name: GraphMemory(name) if capture and name != "cpu" else None for name in self._data}
        threads = threads_each(self.devices)
        self._members = [
            new_member(run, member, device, capture=capture, graph_memory=shared[device], num_threads=threads)
            for member, device in zip(range(run.settings.size), itertools.cycle(self.devices), strict=False)
        ]

    def _train(self, tell: Tell, stop: Event | None) -> bool:
        driver = SearchDriver(self.run_settings, self.folder, self.path, self._load, self._save, tell)
        turns, number = partial(self._take_turns, driver, stop), len(self.devices)
        with closing(driver), one_thread_each(*self.devices), ThreadPoolExecutor(number, "variegate-search") as pool:
            while not driver.population.is_done:
                list(map(turns, range(number)) if number == 1 else pool.map(turns, range(number)))
                if not driver.is_scored:
                    return False
                driver.end_step()
        return True

    def _take_turns(self, driver: SearchDriver, stop: Event | None, device: int) -> None:
        """The members on a device, each its part of this step."""
        step = driver.population.step + 1
        for number in range(device, len(self._members), len(self.devices)):
            member, policy = self._members[number], driver.population.policies[number]
            score = train_member(self.run_settings, member, self._data[member.device], policy, step, stop)
            if score is None:
                return
            driver.score(number, step, score)

    def _save(self, step: Step) -> None:
        for copy in step.copies:
            self._members[copy.target].load_state_dict(self._members[copy.donor].state_dict())
        buffer = io.BytesIO()
        states = [member.state_dict() for member in self._members]
        torch.save({"run": self.run_settings.describe(), "step": step.rows[0].step, "members": states}, buffer)
        write_atomically(self.path, buffer.getvalue(), durable=True)

    def _load(self) -> int:
        """The members get their weights -> the step; 0 without a checkpoint: the first step has not come to its end."""
        path, run = self.path, self.run_settings
        if not path.exists():
            return 0
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
            is_ours = saved["run"] == run.describe() and len(saved["members"]) == len(self._members)
            step = saved["step"]
        except (TypeError, LookupError) as error:
            raise CheckpointError(f"{path}: is no checkpoint of a search") from error
        if not is_ours or not isinstance(step, int) or not 0 < step < run.settings.steps:
            raise CheckpointError(f"{path}: is the checkpoint of another search")
        try:
            for member, state in zip(self._members, saved["members"], strict=True):
                member.load_state_dict(state)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise CheckpointError(f"{path}: its weights are not those of {run.model} ({_first_line(error)})") from error
        return step


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0].rstrip(":. ") if lines else type(error).__name__

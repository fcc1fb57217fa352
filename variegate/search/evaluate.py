"""The same training with one policy after another: how a user decides whether a search is worth it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, NamedTuple

from variegate.executors.devices import resolve
from variegate.policies import PBA, load_policy
from variegate.search.devices import one_thread_each, threads_each
from variegate.search.member import member_seed
from variegate.training.around import Around
from variegate.training.classifier import Classifier
from variegate.training.images import LabelledImages
from variegate.training.placed import PlacedImages
from variegate.training.recipe import Recipe
from variegate.transforms.base import Transform

# Names beside those of ``load_policy``.
NO_AUGMENTATION, FLIP_CROP = "none", "flip-crop"


class Trial(NamedTuple):
    """One training. ``accuracy``: NaN where it diverged."""

    policy: str
    repeat: int
    accuracy: float
    seconds: float


class Summary(NamedTuple):
    """Of a policy. ``spread``: the standard deviation of the accuracies; NaN of a single one."""

    policy: str
    accuracies: tuple[float, ...]
    mean: float
    spread: float
    seconds: float  # of a training, on average


@dataclass(frozen=True)
class Evaluation:
    """Trainings that differ in their policy alone; repeats, in weights, order and chance."""

    train: LabelledImages
    test: LabelledImages
    model: str
    recipe: Recipe
    around: Around
    policies: Sequence[str]
    repeats: int = 3
    seed: int = 0
    devices: Sequence[str] = ("auto",)
    capture: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for no policies, and what ``load_policy`` raises: before hours of training."""
        if self.repeats < 1:
            raise ValueError(f"repeats: got {self.repeats}; accepted: 1 or more")
        names = [name for name in self.policies if self.policies.count(name) > 1]
        if not self.policies or names:
            got = f"{names[0]!r} twice" if names else "none"
            raise ValueError(f"policies: got {got}; accepted: each name once, such as none, flip-crop, randaugment")
        for name in self.policies:
            self._transform(name)

    def run(self, on_trial: Callable[[Trial], None] | None = None, stop: Event | None = None) -> list[Trial]:
        """All trainings, as many at a time as there are devices; once ``stop`` is set, those that are over.

        Each repeat has every policy, so that what is stopped early has compared them all. A training that fails stops
        the others. ``on_trial`` is called from the threads that train, one at a time.
        """
        names = [resolve(name) for name in self.devices]
        data = {name: PlacedImages(self.train, self.test, self.around, name) for name in names}
        free: SimpleQueue[str] = SimpleQueue()
        for name in names:
            free.put(name)
        failed, telling = Event(), Lock()

        def is_over() -> bool:
            return failed.is_set() or (stop is not None and stop.is_set())

        def train(job: tuple[int, str]) -> Trial | None:
            device = free.get()
            try:
                trial = self._trial(job[1], job[0], data[device], is_over)
                if trial is not None and on_trial is not None:
                    with telling:
                        on_trial(trial)
            except BaseException:
                failed.set()
                raise
            finally:
                free.put(device)
            return trial

        jobs = [(repeat, name) for repeat in range(self.repeats) for name in self.policies]
        with one_thread_each(*names):
            if len(names) == 1:
                found = [train(job) for job in jobs]
            else:
                with ThreadPoolExecutor(len(names), "variegate-evaluate") as pool:
                    found = list(pool.map(train, jobs))
        return [trial for trial in found if trial is not None]

    def _trial(self, name: str, repeat: int, data: PlacedImages, is_over: Callable[[], bool]) -> Trial | None:
        made = Classifier(
            self.model,
            data.train.num_classes,
            self.recipe,
            data.device,
            member_seed(self.seed, repeat),  # the same for all policies: they differ in nothing else
            data.train.pixels.shape[3],
            capture=self.capture,
            num_threads=threads_each(self.devices),
        )
        transform, accuracy = self._transform(name), math.nan
        # From here, as torch loads a part of itself for the first optimizer of a process, which takes seconds.
        started = time.perf_counter()
        for epoch in range(self.recipe.epochs):
            if is_over():
                return None
            if not math.isfinite(made.train(data.train, transform, epoch)):
                break
        else:
            accuracy = made.accuracy(data.scored, data.labels)
        return Trial(name, repeat, accuracy, time.perf_counter() - started)

    def _transform(self, name: str) -> Transform:
        if name == NO_AUGMENTATION:
            return self.around.plain
        return self.around.with_policy(None if name == FLIP_CROP else scaled_policy(name, self.recipe.epochs))


def scaled_policy(name: str, epochs: int) -> Transform:
    """``load_policy``, with schedules stretched or shortened to a training of so many epochs."""
    policy: Any = load_policy(name)
    return replace(policy, schedule=policy.resolved.scaled(epochs)) if isinstance(policy, PBA) else policy


def summarize(trials: Sequence[Trial]) -> list[Summary]:
    """In the order of the policies; those that diverged count as 0, which is what they are worth. Files are called by
    their names, without folders where those suffice to tell them apart.
    """
    names = list(dict.fromkeys(trial.policy for trial in trials))
    short = [shown(name) for name in names]
    unique = [one if short.count(one) == 1 else name for name, one in zip(names, short, strict=True)]
    return [_summary(s, [t for t in trials if t.policy == name]) for name, s in zip(names, unique, strict=True)]


def _summary(title: str, trials: Sequence[Trial]) -> Summary:
    accuracies = tuple(0.0 if math.isnan(trial.accuracy) else trial.accuracy for trial in trials)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else math.nan
    seconds = statistics.fmean(trial.seconds for trial in trials)
    return Summary(title, accuracies, statistics.fmean(accuracies), spread, seconds)


def shown(name: str) -> str:
    """A policy's name in tables: of a file its own, without folders."""
    return Path(name).name if name.endswith((".json", ".yaml", ".yml")) else name


def markdown(summaries: Sequence[Summary]) -> Iterator[str]:
    """The table, for pages."""
    yield "| policy | accuracy, mean | spread | each | seconds a training |"
    yield "|---|--:|--:|---|--:|"
    for one in summaries:
        each = ", ".join(f"{100 * accuracy:.2f}" for accuracy in one.accuracies)
        spread = "" if math.isnan(one.spread) else f"{100 * one.spread:.2f}"
        yield f"| {one.policy} | {100 * one.mean:.2f} % | {spread} | {each} | {one.seconds:.1f} |"

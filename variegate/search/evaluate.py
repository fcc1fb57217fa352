"""The same training with one policy after another: how a user decides whether a search is worth it."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import torch

from variegate.augmenter import Augmenter
from variegate.executors.devices import resolve
from variegate.policies import PBA, load_policy
from variegate.policies.schedule import Schedule, published_schedule
from variegate.search.member import member_seed, one_thread_each
from variegate.training.around import Around
from variegate.training.classifier import Classifier
from variegate.training.images import LabelledImages
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
    device: str = "auto"

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
        """All trainings; each repeat has every policy, so that what is stopped early has compared them all."""
        device = resolve(self.device)
        train, test = self.train.to(device), self.test.to(device)
        images = Augmenter(self.around.plain, device)(test.pixels)
        assert isinstance(images, torch.Tensor)
        trials: list[Trial] = []
        with one_thread_each(device):
            for repeat in range(self.repeats):
                for name in self.policies:
                    if stop is not None and stop.is_set():
                        return trials
                    trials.append(self._trial(name, repeat, device, train, images, test.labels))
                    if on_trial is not None:
                        on_trial(trials[-1])
        return trials

    def _trial(
        self, name: str, repeat: int, device: str, train: LabelledImages, images: torch.Tensor, labels: torch.Tensor
    ) -> Trial:
        started = time.perf_counter()
        channels = train.pixels.shape[3]
        # The same seed for all policies: they differ in nothing else.
        seed = member_seed(self.seed, repeat)
        made = Classifier(self.model, train.num_classes, self.recipe, device, seed, channels)
        transform = self._transform(name)
        losses = (made.train(train, transform, epoch) for epoch in range(self.recipe.epochs))
        has_diverged = any(not math.isfinite(loss) for loss in losses)
        accuracy = math.nan if has_diverged else made.accuracy(images, labels)
        return Trial(name, repeat, accuracy, time.perf_counter() - started)

    def _transform(self, name: str) -> Transform:
        if name == NO_AUGMENTATION:
            return self.around.plain
        return self.around.with_policy(None if name == FLIP_CROP else scaled_policy(name, self.recipe.epochs))


def scaled_policy(name: str, epochs: int) -> Transform:
    """``load_policy``, with schedules stretched or shortened to a training of so many epochs."""
    policy: Any = load_policy(name)
    if isinstance(policy, PBA):
        schedule = (
            policy.schedule if isinstance(policy.schedule, Schedule) else published_schedule(str(policy.schedule))
        )
        return replace(policy, schedule=schedule.scaled(epochs))
    return policy


def summarize(trials: Sequence[Trial]) -> list[Summary]:
    """In the order of the policies; those that diverged count as 0, which is what they are worth."""
    return [_summary(name, [t for t in trials if t.policy == name]) for name in dict.fromkeys(t.policy for t in trials)]


def _summary(name: str, trials: Sequence[Trial]) -> Summary:
    accuracies = tuple(0.0 if math.isnan(trial.accuracy) else trial.accuracy for trial in trials)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else math.nan
    seconds = statistics.fmean(trial.seconds for trial in trials)
    return Summary(shown(name), accuracies, statistics.fmean(accuracies), spread, seconds)


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

"""The same training with one policy after another: how a user decides whether a search is worth it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Lock

import numpy as np
import torch

from variegate.apps.search.compare import Trial, is_own
from variegate.apps.search.driver import one_thread_each, threads_each
from variegate.apps.search.population import SearchStream, repeat_seed
from variegate.apps.train.adaptation import Adaptation, EntropyAdaptation, GapAdaptation
from variegate.apps.train.classifier import Classifier
from variegate.apps.train.images import BaselineAugmentation, LabelledImages, TrainingImages, split
from variegate.apps.train.step import in_channels_last
from variegate.augmenter.augmenter import Augmenter
from variegate.executors.runners.devices import resolve
from variegate.options.search import Hyperparameters
from variegate.policies.load import scaled_policy
from variegate.policies.uniform import AdaptiveRandAugment, refuse_given_magnitude
from variegate.transforms import Transform

# Names beside those of ``load_policy``.
NO_AUGMENTATION, FLIP_CROP = "none", "flip-crop"


@dataclass(frozen=True)
class Subsets:
    """A random part of ``train`` images for each repeat, the same for all policies; ``test``, or the rest, scores.

    Raises SourceError for too few images, in all or of a class.
    """

    images: LabelledImages
    train: int
    test: LabelledImages | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.of(0)

    @property
    def varies(self) -> bool:
        return self.test is None or self.train != len(self.images)

    @property
    def scored(self) -> int:
        """The number of images that score a training."""
        return len(self.images) - self.train if self.test is None else len(self.test)

    def of(self, repeat: int) -> tuple[LabelledImages, LabelledImages]:
        """-> what trains, and what scores."""
        seed = repeat_seed(self.seed, repeat, SearchStream.SUBSET)
        if self.test is None:
            return split(self.images, self.train, None, seed)
        return (split(self.images, self.train, 0, seed)[0] if self.varies else self.images), self.test

    @property
    def scope(self) -> str:
        """The chance that the spread over repeats, and so its intervals, cover; in one sentence."""
        total, scored = f"{len(self.images):,}", f"{self.scored:,}"
        if not self.varies:
            covered = f"alone: all {total} images always train, the same {scored} always score"
        elif self.test is None:
            covered = f"and in which of these {total} images train and which {scored} score"
        else:
            covered = f"and in which {self.train:,} of these {total} images train; the same {scored} always score"
        return f"Intervals cover the chance in training {covered}. Other images may say otherwise."


@dataclass(frozen=True)
class Evaluation:
    """Trainings that differ in their policy alone; repeats differ in images, weights, order and chance.

    ``baseline``: made of the images that train in a repeat. ``policies``: names in whatever case, files, and
    ``ADAPTIVE``.
    """

    subsets: Subsets
    model: str
    recipe: Hyperparameters
    baseline: Callable[[LabelledImages], BaselineAugmentation]
    policies: Sequence[str]
    repeats: int = 5
    seed: int = 0
    devices: Sequence[str] = ("auto",)
    capture: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for no policies, and what ``load_policy`` raises: before hours of training."""
        if self.repeats < 1:
            raise ValueError(f"repeats: got {self.repeats}; accepted: 1 or more")
        if not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed: got {self.seed}; accepted: an integer from 0 to 2**64 - 1")
        policies = tuple(name if is_own(name) or os.sep in name else name.lower() for name in self.policies)
        object.__setattr__(self, "policies", policies)
        twice = [f"{name!r} twice" for name in policies if policies.count(name) > 1]
        if not policies or twice:
            got = twice[0] if twice else "none"
            raise ValueError(f"policies: got {got}; accepted: each name once, such as none, flip-crop, randaugment")
        self.recipe.steps_in(self.subsets.train)
        if GAP in policies:
            self.recipe.steps_in(len(held_back(self.subsets.of(0)[0], self.seed)[0]))
        baseline = self.baseline(self.subsets.images)
        for name in policies:
            self._transform(name, baseline)

    def run(
        self, on_trial: Callable[[Trial], None] | None = None, stop: Event | None = None, done: Sequence[Trial] = ()
    ) -> list[Trial]:
        """All trainings, as many at a time as there are devices; once ``stop`` is set, those that are over.

        ``done``: those of an earlier life, which come first. A training that fails stops the others. ``on_trial`` is
        called from the threads that train, one at a time.
        """
        names = [resolve(name) for name in self.devices]
        images = _RepeatImages(self)
        free: SimpleQueue[str] = SimpleQueue()
        for name in names:
            free.put(name)
        failed, telling = Event(), Lock()

        def is_over() -> bool:
            return failed.is_set() or (stop is not None and stop.is_set())

        def train(job: tuple[int, str]) -> Trial | None:
            device = free.get()
            try:
                trial = self._trial(job[1], job[0], *images.of(device, job[0]), is_over)
                if trial is not None and on_trial is not None:
                    with telling:
                        on_trial(trial)
            except BaseException:
                failed.set()
                raise
            finally:
                free.put(device)
            return trial

        over = {(trial.repeat, trial.policy) for trial in done}
        jobs = [(repeat, name) for repeat in range(self.repeats) for name in self.policies]
        jobs = [job for job in jobs if job not in over]
        with one_thread_each(*names), ThreadPoolExecutor(len(names), "variegate-evaluate") as pool:
            trials = map(train, jobs) if len(names) == 1 else pool.map(train, jobs)
            return [*done, *(trial for trial in trials if trial is not None)]

    def _trial(
        self, name: str, repeat: int, data: TrainingImages, baseline: BaselineAugmentation, is_over: Callable[[], bool]
    ) -> Trial | None:
        seed = repeat_seed(self.seed, repeat)  # the same for all policies: they differ in nothing else
        images, adaptive = data.train, None
        if name in ADAPTIVE:
            adaptive = AdaptiveTraining(name, data.train, baseline.plain, data.device, seed)
            images = adaptive.images
        classifier = Classifier(
            self.model,
            data.train.num_classes,
            self.recipe,
            data.device,
            seed,
            data.train.pixels.shape[3],
            capture=self.capture,
            num_threads=threads_each(self.devices),
        )
        if adaptive is not None:
            classifier.adapt(adaptive.adaptation)
        transform, accuracy = self._transform(name, baseline), math.nan
        # From here, as torch loads a part of itself for the first optimizer of a process, which takes seconds.
        started = time.perf_counter()
        for epoch in range(self.recipe.epochs):
            if is_over():
                return None
            if not math.isfinite(classifier.train(images, transform, epoch)):
                break
            if adaptive is not None:
                adaptive.end_epoch(classifier)
        else:
            accuracy = classifier.accuracy(data.scored, data.labels)
        return Trial(name, repeat, accuracy, time.perf_counter() - started)

    def _transform(self, name: str, baseline: BaselineAugmentation) -> Transform:
        if name == NO_AUGMENTATION:
            return baseline.plain
        if name in ADAPTIVE:
            return baseline.with_policy(adaptive_policy())
        policy = None if name == FLIP_CROP else scaled_policy(name, self.recipe.epochs)
        refuse_given_magnitude(policy, f"policies: {name}", " and ".join(ADAPTIVE))
        return baseline.with_policy(policy)


class _RepeatImages:
    """The images of each repeat, made once on each device, and given up when the next repeat begins there."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation, self._lock = evaluation, Lock()
        self._prepared: dict[tuple[str, int], tuple[TrainingImages, BaselineAugmentation]] = {}

    def of(self, device: str, repeat: int) -> tuple[TrainingImages, BaselineAugmentation]:
        number = repeat if self._evaluation.subsets.varies else 0
        with self._lock:
            for key in [key for key in self._prepared if key[0] == device and key[1] < number]:
                del self._prepared[key]
            if (device, number) not in self._prepared:
                train, scored = self._evaluation.subsets.of(number)
                baseline = self._evaluation.baseline(train)
                self._prepared[device, number] = TrainingImages(train, scored, baseline.plain, device), baseline
            return self._prepared[device, number]


GAP, ENTROPY = "adaptive:gap", "adaptive:entropy"
ADAPTIVE = (GAP, ENTROPY)
# Of the images that train: with gap they only say how the training does. It must not look at those that score it.
_HELD_BACK = 10


def adaptive_policy() -> Transform:
    """``randaugment``, at magnitudes that are given."""
    return AdaptiveRandAugment()


def held_back(images: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """-> the images that train, and the tenth of them that does not, with gap. Raises SourceError for too few."""
    number = max(images.num_classes, len(images) // _HELD_BACK)
    return split(images, len(images) - number, None, seed)


class AdaptiveTraining:
    """Of one training: its ``images`` and its ``adaptation``. ``plain``: what is done to images that are looked at."""

    def __init__(self, name: str, images: LabelledImages, plain: Transform, device: str, seed: int) -> None:
        self.images = images
        self.adaptation: Adaptation = EntropyAdaptation(images.ids)
        self._compared: list[tuple[torch.Tensor, torch.Tensor]] = []
        if name == GAP:
            self.images, others = held_back(images, seed)
            some = self.images.take(np.arange(min(len(others), len(self.images))))
            augmenter = Augmenter(plain, device, layout="NHWC")
            self._compared = [(in_channels_last(augmenter(one.pixels)), one.labels) for one in (some, others)]
            self.adaptation = GapAdaptation()

    def end_epoch(self, classifier: Classifier) -> None:
        self.adaptation.settle()
        losses = [classifier.mean_loss(*one) for one in self._compared]
        self.adaptation.end_epoch(*losses)

"""The same training with one policy after another: how a user decides whether a search is worth it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any

import numpy as np

from variegate.checks import PIXEL_VERSION, integer
from variegate.executors.runners.devices import resolve
from variegate.jobs.output.run_folder import locked
from variegate.learn.adaptation import Adaptation, EntropyAdaptation
from variegate.learn.candidates import Candidate, describe_rows, parse_candidate
from variegate.learn.classifier import Classifier
from variegate.learn.compare import Comparison, describe, is_own, short_name
from variegate.learn.driver import one_thread_each, threads_each
from variegate.learn.images import BaselineAugmentation, LabelledImages, TrainingImages, split
from variegate.learn.population import SearchStream, repeat_seed
from variegate.learn.run import digest_of, digests, digests_by_row, searched_on
from variegate.learn.trainings import (
    Outcome,
    Training,
    TrainingJournal,
    TrainingRunner,
    cost,
    read_json,
    write_json,
)
from variegate.options.search import Hyperparameters


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
        """The chance that intervals over repeats cover, in words."""
        trained = f"{self.train:,} of {len(self.images):,} images" if self.varies else "all images always"
        scored = f"{self.scored:,} others" if self.test is None else f"always the same {self.scored:,}"
        return (
            f"Intervals cover the chance in training, where {trained} train and {scored} score. New images vary more."
        )


@dataclass(frozen=True)
class Evaluation:
    """Trainings that differ in their policy alone; repeats differ in images, weights, order and chance.

    ``baseline``: made of the images that train in a repeat. ``policies``: names of ``parse_candidate``.
    """

    subsets: Subsets
    model: str
    recipe: Hyperparameters
    baseline: Callable[[LabelledImages], BaselineAugmentation]
    policies: Sequence[str]
    repeats: int = 5
    seed: int = 0
    devices: Sequence[str] = ("auto",)

    def __post_init__(self) -> None:
        """Raises ValueError for no policies, and what ``load_policy`` raises: before hours of training."""
        integer("repeats", self.repeats, 1, accepted="1 or more")
        integer("seed", self.seed, 0, 2**64 - 1)
        rows = [parse_candidate(name) for name in self.policies]
        policies = tuple(row.name for row in rows)
        object.__setattr__(self, "policies", policies)
        twice = [f"{name!r} twice" for name in policies if policies.count(name) > 1]
        if not policies or twice:
            got = twice[0] if twice else "none"
            raise ValueError(f"policies: got {got}; accepted: each name once, such as none, crop, flip+crop")
        self.recipe.steps_in(self.subsets.train)
        self.check(rows)

    def check(self, rows: Sequence[Candidate]) -> None:
        """Raises ValueError for rows that cannot be trained with, SourceError for too few images for one."""
        baseline = self.baseline(self.subsets.images)
        for row in rows:
            row.transform(baseline, self.recipe.epochs)

    def cost(self, trainings: Sequence[Training]) -> str:
        """Of trainings, in words."""
        return cost(len(trainings), sum(one.seconds for one in trainings))

    def describe(self) -> dict[str, Any]:
        """All that decides a training, besides the images and the policy."""
        baseline = self.baseline(self.subsets.images)
        around = {"padding": baseline.padding, "flip": baseline.flip, "cutout": baseline.cutout}
        size = "x".join(map(str, baseline.size))
        subsets = self.subsets
        described = {"size": size, "train": subsets.train, "scored": subsets.scored, "model": self.model}
        return {**described, **asdict(self.recipe), **around, "seed": self.seed, "pixels": PIXEL_VERSION}

    def run(
        self,
        on_training: Callable[[Training], object] | None = None,
        stop: Event | None = None,
        journal: TrainingJournal | None = None,
    ) -> list[Training]:
        """All trainings, as many at a time as there are devices; once ``stop`` is set, those that are over.

        A training that fails stops the others. ``on_training`` is called from the threads that train, one at a time.
        """
        rows = {name: parse_candidate(name) for name in self.policies}
        jobs = [(repeat, name) for repeat in range(self.repeats) for name in rows]
        with WholeTrainings(self) as trainings:

            def train(name: str, repeat: int) -> Outcome | None:
                return trainings.train(rows[name], repeat, runner.is_over)

            runner = TrainingRunner(train, journal, len(self.devices), on_training, stop)
            runner.run(jobs)
        return [runner.done[job] for job in jobs if job in runner.done]


def biases(evaluation: Evaluation) -> list[str]:
    """Advantages of a policy over others, in words: a schedule that has seen images, fewer images to train."""
    subsets = evaluation.subsets
    told = list[str]()
    scored = subsets.images if subsets.test is None else subsets.test
    for name in filter(is_own, evaluation.policies):
        searched = searched_on(str(parse_candidate(name).policy))
        seen = sum(digest in searched for digest in digests_by_row(scored)) if searched else 0
        if seen:
            counts = f"{seen:,} of the {len(scored):,} images from which those that score are taken"
            told.append(f"{short_name(name)} was searched on {counts}, which favors it; pass other images as --test")
        elif subsets.test is None and not searched:
            of = "if learned on SRC, has seen images that score it"
            told.append(f"{short_name(name)}, {of}; pass other images as --test")
    return told


class WholeTrainings(ExitStack):
    """Trainings of a plan from the first epoch to the score, one at a time on each of its devices; use as a context."""

    def __init__(self, plan: Evaluation) -> None:
        super().__init__()
        self.plan = plan
        self._lock = Lock()
        # Of each repeat and device: given up when the next repeat begins there.
        self._images: dict[tuple[str, int], tuple[TrainingImages, BaselineAugmentation]] = {}
        names = [resolve(name) for name in plan.devices]
        self._free: SimpleQueue[str] = SimpleQueue()
        for name in names:
            self._free.put(name)
        self.enter_context(one_thread_each(*names))

    def train(self, row: Candidate, repeat: int, is_over: Callable[[], bool]) -> Outcome | None:
        """-> accuracy (NaN: it diverged) and its cost; None where ``is_over`` ended it."""
        device = self._free.get()
        try:
            return self._train(row, repeat, device, is_over)
        finally:
            self._free.put(device)

    def _images_of(self, device: str, repeat: int) -> tuple[TrainingImages, BaselineAugmentation]:
        number = repeat if self.plan.subsets.varies else 0
        with self._lock:
            for key in [key for key in self._images if key[0] == device and key[1] < number]:
                del self._images[key]
            if (device, number) not in self._images:
                train, scored = self.plan.subsets.of(number)
                baseline = self.plan.baseline(train)
                self._images[device, number] = TrainingImages(train, scored, baseline.plain, device), baseline
            return self._images[device, number]

    def _train(self, row: Candidate, repeat: int, device: str, is_over: Callable[[], bool]) -> Outcome | None:
        plan, (data, baseline) = self.plan, self._images_of(device, repeat)
        seed = repeat_seed(plan.seed, repeat)  # the same for all policies: they differ in nothing else
        classifier = Classifier(
            plan.model,
            data.train.num_classes,
            plan.recipe,
            data.device,
            seed,
            data.train.pixels.shape[3],
            num_threads=threads_each(plan.devices),
        )
        adaptation = EntropyAdaptation(data.train.ids) if row.is_adaptive else Adaptation()
        classifier.adapt(adaptation)
        transform = row.transform(baseline, plan.recipe.epochs)
        accuracy = math.nan
        # From here, as torch loads a part of itself for the first optimizer of a process, which takes seconds.
        started = time.perf_counter()
        for epoch in range(plan.recipe.epochs):
            if is_over():
                return None
            if not math.isfinite(classifier.train(data.train, transform, epoch)):
                break
            adaptation.settle()
            adaptation.end_epoch()
        else:
            accuracy = classifier.accuracy(data.scored, data.labels)
        return accuracy, time.perf_counter() - started


class EvaluationFiles:
    """Files beside a plot: the journal, from which an evaluation resumes, and its result."""

    def __init__(self, plot: Path) -> None:
        self.journal = plot.with_suffix(".jsonl")
        self.result = plot.with_suffix(".json")
        self._lock = plot.with_name(f".{plot.stem}.lock")

    @contextmanager
    def open(self, evaluation: Evaluation) -> Iterator[TrainingJournal]:
        """The journal, locked. One with other settings gives way once it is complete. Raises SourceError."""
        subsets = evaluation.subsets
        rows = [parse_candidate(name) for name in evaluation.policies]
        described = {"format": "variegate-evaluation/1", **describe_rows(rows), **evaluation.describe()}
        described["images"] = digest_of(digests(subsets.images))
        described["test"] = None if subsets.test is None else digest_of(digests(subsets.test))
        place = str(self.journal)
        with locked(self._lock, place, "name"):
            is_complete = read_json(self.result).get("is_complete") is True
            journal = TrainingJournal(self.journal, described, "an evaluation", place=place, is_replaced=is_complete)
            with closing(journal):
                yield journal

    def write(self, comparison: Comparison, evaluation: Evaluation, trainings: Sequence[Training]) -> None:
        """Write the result. Raises WriteError."""
        is_complete = len(trainings) == len(evaluation.policies) * evaluation.repeats
        described = {"format": "variegate-evaluation-result/1", "is_complete": is_complete, **evaluation.describe()}
        described |= {**describe(comparison), "scope": evaluation.subsets.scope}
        described |= {"cost": evaluation.cost(trainings), "trainings": [one._asdict() for one in trainings]}
        write_json(self.result, described)


def unseen(test: LabelledImages, policies: Sequence[str]) -> LabelledImages:
    """Images that no policy's file was searched on, as far as its folder says; all where that leaves none."""
    searched = set[str]().union(*(searched_on(policy) for policy in policies if is_own(policy)))
    rows = [row for row, digest in enumerate(digests_by_row(test)) if digest not in searched]
    return test.take(np.asarray(rows, np.int64)) if rows and len(rows) < len(test) else test

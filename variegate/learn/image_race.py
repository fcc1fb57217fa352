"""Races and evaluations on labeled images: training runs, files, and the resulting policy."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.checks import PIXEL_VERSION, integer
from variegate.events import OnEvent
from variegate.executors.runners.devices import resolve
from variegate.learn.adaptation import EntropyAdaptation
from variegate.learn.candidates import Candidate, describe_rows, parse_candidate, variations
from variegate.learn.events import Resumed, Started, Training
from variegate.learn.fit import FitData, check_batch, fit, one_thread_each, threads_each
from variegate.learn.images import BaselineAugmentation, LabelledImages, split
from variegate.learn.plots import plot_comparison
from variegate.learn.population import SearchStream, repeat_seed
from variegate.learn.reading import check_levels
from variegate.learn.rounds import FORMAT, RaceFiles, RaceRules, run_race
from variegate.learn.run import ORIGINALS_NAME, digest_of, digests, digests_by_row, searched_on, write_digests
from variegate.learn.standings import RaceResult
from variegate.learn.trainings import Outcome, TrainingRunner, cost, write_json
from variegate.learn.verdict import Comparison, compare, describe, is_custom, short_name
from variegate.options.fit import FitOptions
from variegate.policies.base_augment import has_base_augment
from variegate.threads import computed_once

POLICY_NAME = "policy.json"


@dataclass(frozen=True)
class Subsets:
    """A random part of ``train`` images for each round, the same for all policies; ``test``, or the rest, scores.

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
        """Number of images that score a training."""
        return len(self.images) - self.train if self.test is None else len(self.test)

    def of(self, number: int) -> tuple[LabelledImages, LabelledImages]:
        """Images that train and that score in a round."""
        seed = repeat_seed(self.seed, number, SearchStream.SUBSET)
        if self.test is None:
            return split(self.images, self.train, None, seed)
        return (split(self.images, self.train, 0, seed)[0] if self.varies else self.images), self.test

    @property
    def scope(self) -> str:
        """The chance that intervals over rounds cover, in words."""
        trained = f"{self.train:,} of {len(self.images):,} images" if self.varies else "all images always"
        scored = f"{self.scored:,} others" if self.test is None else f"always the same {self.scored:,}"
        return (
            f"Intervals cover the chance in training, where {trained} train and {scored} score. New images vary more."
        )


@dataclass(frozen=True)
class TrainingPlan:
    """A training run, apart from its policy; rounds differ in images, weights, order and chance.

    ``baseline``: made of the images that train in a round.
    """

    subsets: Subsets
    model: str
    recipe: FitOptions
    baseline: Callable[[LabelledImages], BaselineAugmentation]
    seed: int = 0
    devices: Sequence[str] = ("auto",)
    reading: Mapping[str, Any] = field(default_factory=dict)  # settings, ``read_settings``

    def __post_init__(self) -> None:
        integer("seed", self.seed, 0, 2**64 - 1)
        check_batch(self.recipe.batch_size or 1, self.subsets.train)

    def describe(self) -> dict[str, Any]:
        """All settings that affect a training, except the images and the policy."""
        baseline = self.baseline(self.subsets.images)
        around = {"padding": baseline.padding, "flip": baseline.flip, "cutout": baseline.cutout}
        size = "x".join(map(str, baseline.size))
        described = {"size": size, "train": self.subsets.train, "scored": self.subsets.scored, "model": self.model}
        settings = {**self.reading, **described, **asdict(self.recipe), **around}
        return {**settings, "seed": self.seed, "pixels": PIXEL_VERSION}

    def started(self, **more: Any) -> Started:
        """The event of its sizes."""
        subsets = self.subsets
        height, width = subsets.images.pixels.shape[1:3]
        counts = len(subsets.images), subsets.train, subsets.scored
        recipe = self.recipe
        size = int(height), int(width)
        devices = tuple(self.devices)
        return Started(
            *counts, recipe.batch_size or 0, recipe.num_epochs, self.model, size=size, devices=devices, **more
        )


@dataclass(frozen=True)
class ImageRace:
    """A race of ``rows``, trained as ``plan`` says. ``is_resized``: the images were, so their policy begins with it.

    Raises ValueError for rows that cannot be trained with, for too few, and for two that are the same.
    """

    plan: TrainingPlan
    rows: dict[str, Candidate]
    rules: RaceRules
    is_resized: bool = False
    _raced: list[tuple[Any, ...]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for row in self.rows.values():
            self._check_row(row)
        least = "two or more" if self.rules.drops else "each name once, such as none, crop, flip+crop"
        if len(self.rows) < (2 if self.rules.drops else 1):
            raise ValueError(f"policies: got {len(self.rows) or 'none'}; accepted: {least}")
        for row in self.rows.values() if self.rules.drops else ():
            if (content := self._content(row)) in self._raced:
                other = list(self.rows)[self._raced.index(content)]
                raise ValueError(f"policies: got {row.name!r}, which is the same as {other!r}; accepted: each once")
            self._raced.append(content)
        grain = 1 / self.plan.subsets.scored
        rules = replace(self.rules, grain=grain, is_share=True, variations=self._variations)
        object.__setattr__(self, "rules", rules)

    def _check_row(self, row: Candidate) -> None:
        epochs = self.plan.recipe.num_epochs
        transform = row.transform(self.baseline, epochs)
        try:
            check_levels(transform, self.plan.subsets.images.depth, epochs)
        except ValueError as error:
            raise ValueError(f"policies: got {row.name!r}: {error}") from error

    @computed_once
    def baseline(self) -> BaselineAugmentation:
        return self.plan.baseline(self.plan.subsets.images)

    @computed_once
    def images(self) -> dict[str, str]:
        """Digests of the images, by their names."""
        return digests(self.plan.subsets.images)

    def run(self, out: Path | None, on_event: OnEvent, stop: Event | None = None) -> RaceResult:
        """Run or resume a race with drops. Unless ``stop`` was set, the result is written to the folder ``out``.

        Raises SourceError for a folder with other content, WriteError, and errors of training.
        """
        files = None if out is None else RaceFiles.in_folder(out)
        with self._runner(files, on_event, stop) as runner:
            if out is not None and not (out / ORIGINALS_NAME).exists():
                write_digests(out, self.images)
            result = run_race(list(self.rows), self.rules, runner, on_event)
            if files is not None and out is not None and result.ending != "interrupted":
                if result.is_decided:
                    write_json(out / POLICY_NAME, self.policy(result.winner).to_dict())
                settings = {**self._described, "rounds": self.rules.rounds}
                write_json(files.result, {"settings": settings, **result.to_dict()})
        return result

    def evaluate(self, files: RaceFiles | None, on_event: OnEvent, stop: Event | None = None) -> Evaluated:
        """Run or resume a race that drops nobody; once ``stop`` is set, it returns the finished training runs.

        Raises SourceError for the journal of another evaluation, WriteError, and errors of training.
        """
        jobs = [(number, name) for number in range(self.rules.rounds) for name in self.rows]
        with self._runner(files, on_event, stop) as runner:
            if runner.all:
                on_event(Resumed(len(runner.all), len(jobs)))
            runner.run(jobs)
        return Evaluated(self, tuple(runner.done[job] for job in jobs if job in runner.done))

    @contextmanager
    def _runner(self, files: RaceFiles | None, on_event: OnEvent, stop: Event | None) -> Iterator[TrainingRunner]:
        """The runner of these training runs, with the journal in these files."""
        with ExitStack() as stack:
            journal = None if files is None else stack.enter_context(files.open(self._described))
            trainings = stack.enter_context(WholeTrainings(self.plan))

            def train(name: str, number: int) -> Outcome | None:
                return trainings.train(self.rows[name], number, runner.is_over)

            runner = TrainingRunner(train, journal, len(self.plan.devices), on_event, stop, self.rules.budget)
            yield runner

    def policy(self, name: str) -> T.Transform:
        """A row as one transform, with its crop, flip and cutout: training adds nothing to it."""
        row = self.rows[name]
        size = self.baseline.size
        around = row.around(self.baseline)
        policy = row.loaded(self.plan.recipe.num_epochs)
        steps: list[T.Transform] = [T.Resize(size)] if self.is_resized else []
        steps += [] if policy is None else [policy]
        if not has_base_augment(policy):
            flip = T.RandomHorizontalFlip(0.5 if around.flip else 0.0)
            steps += [T.RandomCrop(size, padding=around.padding), flip]
            steps += [T.Cutout(around.cutout, fill=around.fill)] if around.cutout else []
        return T.Compose(steps)

    def biases(self) -> list[str]:
        """Advantages of a policy over others, in words: a schedule that has seen images, fewer images to train."""
        subsets = self.plan.subsets
        found = list[str]()
        scored = subsets.images if subsets.test is None else subsets.test
        for name in filter(is_custom, self.rows):
            searched = searched_on(str(parse_candidate(name).policy))
            seen = sum(digest in searched for digest in digests_by_row(scored)) if searched else 0
            if seen:
                counts = f"{seen:,} of the {len(scored):,} images from which those that score are taken"
                found.append(
                    f"{short_name(name)} was searched on {counts}, which favors it; pass other images as --test"
                )
            elif subsets.test is None and not searched:
                of = "if learned on SRC, has seen images that score it"
                found.append(f"{short_name(name)}, {of}; pass other images as --test")
        return found

    def _content(self, row: Candidate) -> tuple[Any, ...]:
        around = row.around(self.baseline)
        policy = row.loaded()
        parts = None if has_base_augment(policy) else (around.padding, around.flip, around.cutout)
        return policy, row.is_adaptive, parts

    def _variations(self, name: str) -> list[str]:
        found = []
        for row in variations(self.rows[name], self.baseline):
            if (content := self._content(row)) not in self._raced:
                self._raced.append(content)
                self.rows[row.name] = row
                found.append(row.name)
        return found

    @computed_once
    def _described(self) -> dict[str, Any]:
        rules = self.rules.describe() if self.rules.drops else {}
        test = self.plan.subsets.test
        images = {"images": digest_of(self.images), "test": None if test is None else digest_of(digests(test))}
        return {"format": FORMAT, **describe_rows(list(self.rows.values())), **rules, **self.plan.describe(), **images}


@dataclass(frozen=True)
class Evaluated:
    """Finished training runs of a race that drops nobody."""

    race: ImageRace
    trainings: tuple[Training, ...]

    @property
    def is_complete(self) -> bool:
        return len(self.trainings) == len(self.race.rows) * self.race.rules.rounds

    @computed_once
    def comparison(self) -> Comparison:
        return compare(self.trainings, tuple(self.race.rows), self.race.plan.subsets.scored)

    @property
    def cost(self) -> str:
        """Cost of the training runs, in words."""
        return cost(len(self.trainings), sum(one.seconds for one in self.trainings))

    def diverged(self) -> list[str]:
        """A line for each policy with diverged training runs."""
        lost = Counter(one.candidate for one in self.trainings if math.isnan(one.score))
        return [
            f"{name}: {number} of its training runs diverged (the loss is not finite) and count as 0; a lower --lr may "
            "help"
            for name, number in lost.items()
        ]

    def describe(self) -> dict[str, Any]:
        """Policies, pairs and verdicts, with the scope of the intervals and the cost."""
        return {**describe(self.comparison), "scope": self.race.plan.subsets.scope, "cost": self.cost}

    def write(self, files: RaceFiles) -> None:
        """Write the result. Raises WriteError."""
        trainings = [asdict(one) for one in self.trainings]
        settings = {"is_complete": self.is_complete, **self.race.plan.describe()}
        write_json(files.result, {**settings, **self.describe(), "trainings": trainings})

    def plot(self, path: Path) -> None:
        """Draw the comparison. Raises PlotError without matplotlib, WriteError."""
        plan = self.race.plan
        counts = f"{plan.subsets.train:,} images train, {plan.subsets.scored:,} score"
        plot_comparison(self.comparison, path, f"{plan.model}, {counts}, {plan.recipe.num_epochs} epochs")


class WholeTrainings(ExitStack):
    """Runs full training runs of a plan, one at a time on each of its devices; use as a context."""

    def __init__(self, plan: TrainingPlan) -> None:
        super().__init__()
        self.plan = plan
        names = [resolve(name) for name in plan.devices]
        self._free: SimpleQueue[str] = SimpleQueue()
        for name in names:
            self._free.put(name)
        self.enter_context(one_thread_each(*names))
        # Devices that begin the next round share its images.
        self._images_of = lru_cache(maxsize=2)(self._split)

    def train(self, row: Candidate, number: int, is_over: Callable[[], bool]) -> Outcome | None:
        """-> accuracy (NaN: it diverged) and its cost; None where ``is_over`` ended it."""
        device = self._free.get()
        try:
            return self._train(row, number, device, is_over)
        finally:
            self._free.put(device)

    def _split(self, number: int) -> tuple[LabelledImages, LabelledImages, BaselineAugmentation]:
        """Images that train in a round, images that score, and the augmentation around policies."""
        train, scored = self.plan.subsets.of(number)
        return train, scored, self.plan.baseline(train)

    def _train(self, row: Candidate, number: int, device: str, is_over: Callable[[], bool]) -> Outcome | None:
        plan = self.plan
        train, scored, baseline = self._images_of(number if plan.subsets.varies else 0)
        threads = threads_each(plan.devices)
        data = FitData(train.samples, baseline.plain, device, threads)
        found = fit(
            data,
            row.transform(baseline, plan.recipe.num_epochs),
            plan.recipe,
            repeat_seed(plan.seed, number),  # the same for all policies: they differ in nothing else
            model=plan.model,
            adaptation=EntropyAdaptation(data.ids) if row.is_adaptive else None,
            is_over=is_over,
        )
        if found is None:
            return None
        started = time.perf_counter()
        accuracy = found.fit.score(data.others(scored.samples).plain_loader())["top1"] if found.is_finite else math.nan
        return accuracy, found.seconds + time.perf_counter() - started


def unseen(test: LabelledImages, policies: Sequence[str]) -> LabelledImages:
    """Images that no policy's file was searched on, as far as its folder says; all where that leaves none."""
    searched = set[str]().union(*(searched_on(policy) for policy in policies if is_custom(policy)))
    rows = [row for row, digest in enumerate(digests_by_row(test)) if digest not in searched]
    return test.take(np.asarray(rows, np.int64)) if rows and len(rows) < len(test) else test

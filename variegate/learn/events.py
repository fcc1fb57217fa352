"""Events that training, searches, races and evaluations send to ``on_event``, one at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from variegate.events import Note
from variegate.io.amounts import pluralize


@dataclass(frozen=True)
class Started:
    """Images are decoded and all sizes are known.

    ``images``, ``train``, ``score``, ``test``: numbers of all images, of images that train, that score a training, and
    that compare the result of a search. ``size``: (height, width). ``policies``: of a race or an evaluation, which
    trains ``repeats`` times with each (at most, in a race) within ``budget`` seconds. ``members``: of a population.
    """

    images: int
    train: int
    score: int
    batch_size: int
    epochs: int
    model: str
    test: int = 0
    size: tuple[int, int] = (0, 0)
    devices: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    repeats: int = 0
    budget: float | None = None
    members: int = 0

    def __str__(self) -> str:
        compare = f", {self.test:,} compare" if self.test else ""
        parts = f"{self.train:,} of {pluralize(self.images, 'image')} train, {self.score:,} score{compare}"
        epochs = pluralize(self.epochs, "epoch")
        members = f", {pluralize(self.members, 'member')}" if self.members else ""
        policies = f", {pluralize(len(self.policies), 'policy')}" if self.policies else ""
        budget = "" if self.budget is None else f" within {self.budget:,.0f} s"
        size = f"{self.size[0]}x{self.size[1]}"
        return f"{parts}; {self.model}, {epochs}, batches of {self.batch_size}{members}{policies}{budget}, {size}"


@dataclass(frozen=True)
class Chosen:
    """A choice of what options left open; a line with the reason."""

    text: str


@dataclass(frozen=True)
class Logged:
    """A line of the log of ``train``: of a step, or of the scores of an epoch. ``epochs``: of the training."""

    line: Mapping[str, Any]
    epochs: int


@dataclass(frozen=True)
class EpochEnded:
    """An epoch of ``train`` is over. ``loss``: mean of its steps. ``images_per_second``: of the last one. ``scores``:
    "top1" and, from ten classes on, "top5"; empty without images to score."""

    epoch: int
    loss: float
    images_per_second: float
    scores: Mapping[str, float]

    def __str__(self) -> str:
        scores = describe_scores({"loss": self.loss, **self.scores})
        return f"epoch {self.epoch}: {scores}{self.images_per_second:,.0f} images/s"


def describe_scores(line: Mapping[str, Any]) -> str:
    """The loss and the accuracies of a line of the log, each followed by a comma."""
    loss = f"loss {line['loss']:.4f}, " if "loss" in line else ""
    scores = [f"top-{name[3:]} {line[name]:.2%}, " for name in ("top1", "top5") if name in line]
    return loss + "".join(scores)


@dataclass(frozen=True, order=True)
class Training:
    """A training run with a candidate is over.

    ``round``: rounds of stage n of a race begin at 1000 * n. ``score``: NaN if it diverged. ``seconds``: of this
    training. ``elapsed``: seconds of the race so far.
    """

    candidate: str
    round: int
    score: float
    seconds: float
    elapsed: float = 0.0

    def __str__(self) -> str:
        score = "diverged" if math.isnan(self.score) else f"{self.score:.2%}"
        return f"{self.candidate}, round {self.round % 1000 + 1}: {score}, {self.seconds:,.1f} s"


@dataclass(frozen=True)
class Resumed:
    """A race or an evaluation resumed: ``done`` of ``total`` training runs were finished before."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"resuming after {self.done:,} of {pluralize(self.total, 'training run')}"


@dataclass(frozen=True)
class Round:
    """A round of a race is over: ``number``, from 1, of its ``stage``. ``leader``: so far, with its mean score."""

    stage: int
    number: int
    leader: str
    mean: float
    left: tuple[str, ...]
    dropped: tuple[str, ...]

    def __str__(self) -> str:
        stage = f"variations {self.stage}, " if self.stage else ""
        dropped = f", dropped {', '.join(self.dropped)}" if self.dropped else ""
        return f"{stage}round {self.number}: {self.leader} leads with {self.mean:.2%}, {len(self.left)} left{dropped}"


@dataclass(frozen=True)
class SearchProgress:
    """Progress of a population, sent after each member and after each step, which has the log's ``rows``.

    ``members_done``: of ``members`` in this step. ``best``: score of the step before; NaN before the first.
    """

    step: int
    steps: int
    members: int
    members_done: int
    best: float
    rows: tuple[Any, ...] = ()
    is_flat: bool = False

    @property
    def epoch(self) -> int:
        """Epochs that are over at the end of a step."""
        return int(self.rows[0].epoch)

    @property
    def copies(self) -> list[tuple[int, int]]:
        """(member, donor) of members that copied another."""
        return [(row.member, row.copied_from) for row in self.rows if row.copied_from is not None]

    @property
    def diverged(self) -> list[int]:
        """Members without a score."""
        return [row.member for row in self.rows if math.isnan(row.score)]

    def __str__(self) -> str:
        return f"step {self.step}/{self.steps}: best {self.best:.2%}, {len(self.copies)} copied"


class InterruptedTrainingError(Exception):
    """``stop`` was set before the end; the message names the finished steps."""


def notes_as_warnings(event: Any) -> None:
    """Handle events for callers that give no ``on_event``."""
    if isinstance(event, Note):
        warnings.warn(event.text, stacklevel=2)

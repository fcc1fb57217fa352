"""Epochs and images of a race that fit its budget: a training is timed before they are decided."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from variegate.learn.candidates import Candidate
from variegate.learn.evaluate import Evaluation, Subsets, WholeTrainings
from variegate.learn.images import split

# Rounds of all candidates that are to fit; two are the least that a verdict needs.
ROUNDS = 3
# Shorter trainings have fewer images, down to as many of a class and steps of an epoch, and only then fewer epochs.
LEAST_EPOCHS, _FEWEST_EPOCHS, _LEAST_OF_A_CLASS, _LEAST_STEPS = 10, 4, 8, 8
# Of the budget: trainings differ in length, and other processes take time.
_USED_SHARE = 0.8
# Batches of the training that is timed.
_TIMED_BATCHES = 4
# Seconds to score an image, in those to train on it once.
_SCORING = 1 / 3


@dataclass(frozen=True)
class Room:
    """Sizes of trainings that fit a budget. ``note``: a line about them, empty if nothing changes."""

    train: int
    epochs: int
    note: str


def measure(plan: Evaluation, rows: Sequence[Candidate]) -> float:
    """Seconds of training per image and epoch, on all devices of the plan at once, with the last of the rows."""
    images = plan.subsets.images
    batch = plan.recipe.batch_size
    train = min(plan.subsets.train, max(images.num_classes, _TIMED_BATCHES * batch))
    some = min(len(images), train + images.num_classes)
    if some < len(images):
        images = split(images, some, None, plan.seed)[0]
    timed = replace(plan, subsets=Subsets(images, train, None, plan.seed), recipe=replace(plan.recipe, epochs=1))
    chosen = rows[-len(plan.devices) :]
    workers = len(plan.devices)
    with WholeTrainings(timed) as trainings, ThreadPoolExecutor(workers) as pool:

        def run(number: int) -> float:
            outcome = trainings.train(chosen[number % len(chosen)], 0, lambda: False)
            return 0.0 if outcome is None else outcome[1]

        list(pool.map(run, range(workers)))  # the first compiles and loads
        seconds = max(pool.map(run, range(workers)))
    return seconds / (plan.recipe.steps_in(train) * batch + _SCORING * (len(images) - train))


def fit_budget(
    plan: Evaluation,
    rows: Sequence[Candidate],
    budget: float,
    are_open: tuple[bool, bool],
) -> Room:
    """The largest training, up to the plan's, of which three rounds of all rows fit into ``budget`` seconds.

    ``are_open``: whether images that train, and epochs, may change. The note says so if even the shortest training does
    not fit.
    """
    started = time.perf_counter()
    per_image = measure(plan, rows)
    left = budget - (time.perf_counter() - started)
    train = plan.subsets.train
    epochs = plan.recipe.epochs
    total = len(plan.subsets.images)
    in_turn = ROUNDS * math.ceil(len(rows) / len(plan.devices))

    def seconds(train: int, epochs: int) -> float:
        return in_turn * per_image * (train * epochs + _SCORING * (total - train))

    wanted = f"three rounds of {len(rows)} candidates"
    if seconds(train, epochs) <= _USED_SHARE * left:
        return Room(train, epochs, "")
    # Image passes of a training, for which there is time.
    allowed = _USED_SHARE * left / (in_turn * per_image)
    if are_open[1]:
        epochs = min(epochs, max(LEAST_EPOCHS, int((allowed - _SCORING * (total - train)) / train)))
    if are_open[0] and seconds(train, epochs) > _USED_SHARE * left:
        # Batches stay as large, since small ones take as long.
        least = max(_LEAST_OF_A_CLASS * plan.subsets.images.num_classes, _LEAST_STEPS * plan.recipe.batch_size)
        train = max(min(train, least), int((allowed - _SCORING * total) / (epochs - _SCORING)))
    if are_open[1] and seconds(train, epochs) > _USED_SHARE * left:
        epochs = max(_FEWEST_EPOCHS, int((allowed - _SCORING * (total - train)) / train))
    sizes = f"{train:,} images and {epochs} epoch{'s' * (epochs > 1)}"
    if seconds(train, epochs) <= left:
        return Room(train, epochs, f"trainings have {sizes}, so that {wanted} fit into {budget:,.0f} s")
    takes = f"{wanted} take about {seconds(train, epochs):,.0f} s with {sizes} per training"
    return Room(train, epochs, f"{takes}, more than {budget:,.0f} s; a higher --budget or fewer --policies help")

"""Images and epochs of searches and races: what options leave open follows from the images and the budget."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from variegate.data.base import SourceError
from variegate.io.amounts import pluralize
from variegate.learn.candidates import Candidate
from variegate.learn.choices import SEARCH, Data, choose
from variegate.learn.image_race import Subsets, TrainingPlan, WholeTrainings
from variegate.learn.images import LabelledImages, split
from variegate.options.search import EvaluationOptions, RaceOptions, SearchOptions, TrainingOptions

# From Population Based Augmentation on CIFAR-10; the rules below yield it for CIFAR-10's 50,000 images.
MOST_TRAINED = 4_000
_MOST_SCORED = 46_000
# To score members by fewer than eight images is to rank them by chance.
LEAST_TO_SEARCH = 16
# Rounds of all candidates that are to fit; two are the least that a verdict needs.
ROUNDS = 3
# Shorter training runs have fewer images, down to this many per class and steps per epoch, and only then fewer epochs.
_FEWEST_EPOCHS, _LEAST_OF_A_CLASS, _LEAST_STEPS = 4, 8, 8
# Share of the budget: training runs differ in length, and other processes take time.
_USED_SHARE = 0.8
# Batches of the training that is timed.
_TIMED_BATCHES = 4
# Seconds to score an image, in those to train on it once.
_SCORING = 1 / 3


@dataclass(frozen=True)
class Sizes:
    """Numbers of images that train and that score, the batch size, the epochs of a training, and its model."""

    train: int
    score: int
    batch_size: int
    epochs: int
    model: str


def search_sizes(images: LabelledImages, options: SearchOptions, held_out: int = 0) -> Sizes:
    """Sizes of a search: half of the images train, at most 4,000; others score, at most 46,000. ``held_out``: images
    besides. Raises SourceError, ValueError."""
    train, validation, total, classes = options.train, options.validation, len(images), images.num_classes
    _check_classes(images)
    if train is None and validation is None and total < LEAST_TO_SEARCH:
        raise SourceError(
            f"{total:,} images are too few to search on: some train the members and others score them; accepted: "
            f"{LEAST_TO_SEARCH} or more, two or more of every class"
        )
    if train is not None:
        _check("train", train, images, total - classes, held_out)
    if validation is not None:
        _check("validation", validation, images, total - (train or classes), held_out)
    if train is None:
        train = max(classes, min(MOST_TRAINED, total // 2, total - (validation or classes)))
    score = min(_MOST_SCORED, total - train) if validation is None else validation
    return _sizes(images, total + held_out, train, score, options)


def race_sizes(
    images: LabelledImages, tested: int | None, options: EvaluationOptions | RaceOptions, most: int | None = None
) -> Sizes:
    """Sizes of a race: four fifths train, or ``most``. ``tested``: number of separate images that score; None: the
    other images score. Raises SourceError, ValueError."""
    train = options.train
    total = len(images)
    classes = images.num_classes
    _check_classes(images, 2 if tested is None else 1)
    available = total - classes if tested is None else total
    if train is None:
        train = max(classes, min(available, total * 4 // 5, most or total))
    else:
        _check("train", train, images, available)
    return _sizes(images, total, train, total - train if tested is None else tested, options)


def _sizes(images: LabelledImages, total: int, train: int, score: int, options: TrainingOptions) -> Sizes:
    batch = options.batch_size
    if batch is not None and not 1 <= batch <= train:
        raise ValueError(f"batch_size: got {batch}, with {train:,} images to train; accepted: 1 to {train:,}")
    height, width = images.pixels.shape[1:3]
    data = Data(total, train, [(height, width)])
    chosen = choose(data, SEARCH, model=options.model, size=(height, width), batch_size=batch, epochs=options.epochs)
    return Sizes(train, score, chosen.batch_size, chosen.epochs, chosen.model)


def _check_classes(images: LabelledImages, least: int = 2) -> None:
    counts = images.labels.bincount(minlength=images.num_classes).tolist()
    if sum(count > 0 for count in counts) < 2:
        raise SourceError(f"there are images of one class, of {len(counts)}; accepted: two or more")
    for name, count in zip(images.classes, counts, strict=True):
        if 0 < count < least:  # a class without images keeps its index, as in every command
            accepted = "two or more, so that each class can train and score"
            raise SourceError(f"class {name!r} has {count} image; accepted: {accepted}")


def _check(name: str, got: int, images: LabelledImages, most: int, held_out: int = 0) -> None:
    """Each part has an image of every class at least, and ``most`` at most."""
    least = images.num_classes
    if not least <= got <= most:
        others = f", with {held_out:,} more held out (--repeats 0 holds out none)" if held_out else ""
        images_in = f"{len(images):,} images in {least} classes{others}"
        raise ValueError(f"{name}: got {got:,}, of {images_in}; accepted: {least:,} to {most:,}")


@dataclass(frozen=True)
class Room:
    """Sizes of training runs that fit a budget. ``note``: a line about them, empty if nothing changes."""

    train: int
    epochs: int
    note: str


def measure(plan: TrainingPlan, rows: Sequence[Candidate]) -> float:
    """Seconds of training per image and epoch, on all devices of the plan at once, with the last of the rows."""
    images = plan.subsets.images
    batch = plan.recipe.batch_size or 1
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
    return seconds / (train // batch * batch + _SCORING * (len(images) - train))


def fit_budget(
    plan: TrainingPlan,
    rows: Sequence[Candidate],
    budget: float,
    are_open: tuple[bool, bool],
) -> Room:
    """The largest training, up to the plan's, for which three rounds of all rows fit into ``budget`` seconds.

    ``are_open``: whether images that train, and epochs, may change. The note says so if even the shortest training does
    not fit.
    """
    started = time.perf_counter()
    per_image = measure(plan, rows)
    left = budget - (time.perf_counter() - started)
    train = plan.subsets.train
    epochs = plan.recipe.num_epochs
    total = len(plan.subsets.images)
    in_turn = ROUNDS * math.ceil(len(rows) / len(plan.devices))

    def seconds(train: int, epochs: int) -> float:
        return in_turn * per_image * (train * epochs + _SCORING * (total - train))

    wanted = f"three rounds of {len(rows)} candidates"
    if seconds(train, epochs) <= _USED_SHARE * left:
        return Room(train, epochs, "")
    # Number of images that a training can see in the time.
    allowed = _USED_SHARE * left / (in_turn * per_image)
    if are_open[1]:
        epochs = min(epochs, max(SEARCH.least_epochs, int((allowed - _SCORING * (total - train)) / train)))
    if are_open[0] and seconds(train, epochs) > _USED_SHARE * left:
        # Batches stay as large, since small ones take as long.
        least = max(_LEAST_OF_A_CLASS * plan.subsets.images.num_classes, _LEAST_STEPS * (plan.recipe.batch_size or 1))
        train = max(min(train, least), int((allowed - _SCORING * total) / (epochs - _SCORING)))
    if are_open[1] and seconds(train, epochs) > _USED_SHARE * left:
        epochs = max(_FEWEST_EPOCHS, int((allowed - _SCORING * (total - train)) / train))
    sizes = f"{pluralize(train, 'image')} and {pluralize(epochs, 'epoch')}"
    if seconds(train, epochs) <= left:
        return Room(train, epochs, f"trainings have {sizes}, so that {wanted} fit into {budget:,.0f} s")
    takes = f"{wanted} take about {seconds(train, epochs):,.0f} s with {sizes} per training"
    return Room(train, epochs, f"{takes}, more than {budget:,.0f} s; a higher --budget or fewer --policies help")

"""A search, or an evaluation, made of options and of the images that it is to work on: where an option leaves
something open, the images decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from variegate.options.search import EvaluationOptions, SearchOptions, TrainingOptions
from variegate.policies.spaces import SPACES
from variegate.policies.spaces import space as space_of
from variegate.search.evaluate import Evaluation, Subsets
from variegate.search.history import Settings
from variegate.search.policy import SearchSpace
from variegate.search.run import SearchRun
from variegate.training import images as image_sets
from variegate.training.baseline import BaselineAugmentation
from variegate.training.images import LabelledImages
from variegate.training.sizes import Sizes, evaluation_sizes, search_sizes


def prepare_search(
    images: LabelledImages, options: SearchOptions, place: str = "", fingerprint: str = ""
) -> tuple[SearchRun, Sizes]:
    """What ``LocalSearch`` and ``TuneSearch`` run, and how large it is.

    Raises SourceError for images that cannot be searched on; ValueError (PolicyError among them) for options.
    """
    sizes = search_sizes(images, options.train, options.validation, options.batch_size, options.epochs, options.model)
    space = options.space or ("pba" if images.pixels.shape[1:3] == (32, 32) else "pba-relative")
    searched = SearchSpace(known_operations(options.operations, space), space=space)
    train, validation = image_sets.split(images, sizes.train, sizes.score, options.seed)
    run = SearchRun(
        Settings(options.population, searched, options.seed, options.interval, sizes.epochs),
        options.hyperparameters(sizes.epochs, sizes.batch_size),
        sizes.model,
        BaselineAugmentation.of(train, **_baseline(images, options)),
        train,
        validation,
        place,
        fingerprint,
    )
    return run, sizes


def prepare_evaluation(
    images: LabelledImages, test: LabelledImages | None, options: EvaluationOptions, devices: Sequence[str]
) -> tuple[Evaluation, Sizes]:
    """``test``: other images of the same size and classes, which score the trainings; None: those that do not train.

    Raises SourceError for images that cannot be trained on; ValueError for options.
    """
    sizes = evaluation_sizes(
        images, None if test is None else len(test), options.train, options.batch_size, options.epochs, options.model
    )
    evaluation = Evaluation(
        Subsets(images, sizes.train, test, options.seed),
        sizes.model,
        options.hyperparameters(sizes.epochs, sizes.batch_size),
        partial(BaselineAugmentation.of, **_baseline(images, options)),
        policy_names(options.policies),
        options.repeats,
        options.seed,
        devices,
        options.capture,
    )
    return evaluation, sizes


def policy_names(policies: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in policies.split(",") if name.strip()]


def known_operations(operations: str | None, space: str | None) -> tuple[str, ...]:
    """As typed, but for upper and lower case, where names of the space differ in more than that."""
    if operations is None:
        return ()
    known = {name.lower(): name for name in space_of(space if space in SPACES else "pba").rules}
    return tuple(known.get(name.strip().lower(), name.strip()) for name in operations.split(","))


def _baseline(images: LabelledImages, options: TrainingOptions) -> dict[str, Any]:
    side = min(images.pixels.shape[1:3])
    padding = side // 8 if options.padding is None else options.padding
    return {"padding": padding, "flip": options.flip, "cutout": side // 2 if options.cutout is None else options.cutout}

"""Searches, races and evaluations from options and images."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from variegate.checks import as_integer
from variegate.data.base import SourceError, summarize_names
from variegate.data.samples import Samples
from variegate.events import Note, OnEvent
from variegate.io.addresses import redact_url
from variegate.io.amounts import pluralize
from variegate.jobs.arguments import absolute_place, open_by_index, parse_size
from variegate.learn import images as image_sets
from variegate.learn.candidates import candidates_of, default_candidates
from variegate.learn.choices import SEARCH, choose_size, keeps_size, sample_sizes
from variegate.learn.history import Settings
from variegate.learn.image_race import ImageRace, Subsets, TrainingPlan, unseen
from variegate.learn.images import BaselineAugmentation, LabelledImages
from variegate.learn.policy import SearchSpace
from variegate.learn.reading import check_levels, loader_arguments, read_settings
from variegate.learn.rounds import LOG_NAME, RaceRules
from variegate.learn.run import SearchRun
from variegate.learn.sizes import (
    LEAST_TO_SEARCH,
    MOST_TRAINED,
    Sizes,
    fit_budget,
    race_sizes,
    search_sizes,
)
from variegate.learn.trainings import read_json
from variegate.loader.value_range import range_note
from variegate.options.importing import import_user_module
from variegate.options.search import EvaluationOptions, RaceOptions, SearchOptions, TrainingOptions
from variegate.program.depth import Depth

# Searched crops and cutouts go up to these shares of the shorter side, unless options set pixels.
_MOST_CROP = 0.25
_MOST_CUTOUT = 0.75


def open_search(
    source: Any,
    options: SearchOptions,
    device: str,
    on_event: OnEvent,
    stop: Event | None = None,
    operations: Sequence[Any] | None = None,
) -> SearchRun:
    """Decode the images of a search, and of ``--test``, and prepare its run."""
    images, opened, _ = load_source(source, options, device, on_event, stop)
    test = None if options.test is None else load_test(options.test, images, options, device, on_event)
    place = absolute_place(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else ""
    return prepare_search(images, options, place, opened.fingerprint, test, operations)


def prepare_search(
    images: LabelledImages,
    options: SearchOptions,
    place: str = "",
    fingerprint: str = "",
    test: LabelledImages | None = None,
    operations: Sequence[Any] | None = None,
) -> SearchRun:
    """Make the run for ``LocalSearch`` and ``TuneSearch``.

    ``operations``: of the search, overriding the options. ``test``: images of the same size and classes that compare
    the result; None: a fifth of ``images``, held out, if each class has enough.

    Raises SourceError for images that cannot be searched on; ValueError (PolicyError among them) for options.
    """
    baseline = _baseline(images, options)
    searched = _search_space(images, options, known_operations(operations or options.operations))
    try:
        check_levels(searched.transform(searched.limits), images.depth)
    except ValueError as error:
        raise ValueError(f"operations: {error}") from error
    total = len(images)
    held_out = _held_out(images, options) if test is None else 0
    if held_out:
        images, test = image_sets.split(images, total - held_out, None, options.seed)
    sizes = search_sizes(images, options, held_out)
    train, validation = image_sets.split(images, sizes.train, sizes.score, options.seed)
    return SearchRun(
        Settings(options.population, searched, options.seed, options.interval, sizes.epochs),
        options.fit_options(sizes.epochs, sizes.batch_size),
        sizes.model,
        BaselineAugmentation.of(train, **baseline),
        train,
        validation,
        place,
        fingerprint,
        test,
        total,
        read_settings(options),
    )


# Below this a fifth says nothing, and the search has too few.
_LEAST_TO_HOLD_OUT = 2 * LEAST_TO_SEARCH
# Images that train, that score and that compare.
_PARTS = 3


def _held_out(images: LabelledImages, options: SearchOptions) -> int:
    """A fifth of the images, two of each class at least; 0 if a class has too few for three parts."""
    counts = images.labels.bincount(minlength=images.num_classes)
    total = len(images)
    if options.repeats == 0 or total < _LEAST_TO_HOLD_OUT or int(counts[counts > 0].min()) < _PARTS:
        return 0
    return max(total // 5, min(2 * images.num_classes, total - 2 * images.num_classes))


def _search_space(images: LabelledImages, options: SearchOptions, operations: tuple[Any, ...]) -> SearchSpace:
    """Crop, flip and cutout are searched up to --padding and --cutout, and not at all where these are 0."""
    space = options.space or ("pba" if images.pixels.shape[1:3] == (32, 32) else "pba-relative")
    if options.around == "fixed":
        return SearchSpace(operations, space=space)
    side = min(images.pixels.shape[1:3])
    crop = _MOST_CROP if options.padding is None else round(min(options.padding / side, 1.0), 4)
    cutout = _MOST_CUTOUT if options.cutout is None else round(min(options.cutout / side, 1.0), 4)
    return SearchSpace(operations, space=space, crop=crop, flip=options.flip, cutout=cutout)


def open_evaluation(
    source: Any, options: EvaluationOptions, devices: Sequence[str], on_event: OnEvent, stop: Event | None = None
) -> ImageRace:
    """Decode the images of an evaluation, and the images of ``--test`` that no search used, and prepare it."""
    images, _, _ = load_source(source, options, devices[0], on_event, stop)
    test = None if options.test is None else load_test(options.test, images, options, devices[0], on_event)
    kept = test if test is None else unseen(test, policy_names(options.policies))
    if test is not None and kept is not None and len(kept) < len(test):
        lost = len(test) - len(kept)
        on_event(Note(f"--test: skipped {lost:,} of {pluralize(len(test), 'image')}, on which the search ran"))
    race = prepare_evaluation(images, kept, options, devices)
    on_event(race.plan.started(policies=tuple(race.rows), repeats=options.repeats))
    for text in race.biases():
        on_event(Note(text))
    return race


def prepare_evaluation(
    images: LabelledImages, test: LabelledImages | None, options: EvaluationOptions, devices: Sequence[str]
) -> ImageRace:
    """``test``: other images of the same size and classes, which score the training runs; None: the images that do not
    train.

    Raises SourceError for images that cannot be trained on; ValueError for options.
    """
    sizes = race_sizes(images, None if test is None else len(test), options)
    rows = candidates_of(policy_names(options.policies))
    rules = RaceRules(options.repeats, drops=False)
    return ImageRace(_plan(images, test, options, sizes, devices), rows, rules)


def open_race(
    source: Any,
    policies: Sequence[Any] | Mapping[str, Any] | None,
    options: RaceOptions,
    rules: RaceRules,
    devices: Sequence[str],
    on_event: OnEvent,
    folder: Path | None = None,
    stop: Event | None = None,
) -> ImageRace:
    """Decode the images of a race, and prepare it. Raises as ``prepare_evaluation``.

    ``policies``: see ``race``; None: the policies of the options. ``folder``: of a race that may have begun, whose
    sizes are kept. A new one has sizes by which three rounds fit into its budget.
    """
    images, _, is_resized = load_source(source, options, devices[0], on_event, stop)
    sizes = race_sizes(images, None, options, MOST_TRAINED)
    plan = _plan(images, None, options, sizes, devices)
    rows = default_candidates(plan.baseline(images)) if policies is None else candidates_of(policies)
    race = ImageRace(plan, rows, rules, is_resized)  # refuses rows before anything is timed
    begun = {} if folder is None else read_json(folder / LOG_NAME, lines=1)
    changed = _sizes_of_race(begun, sizes, options, len(images)) if begun else _sizes_of_budget(race, options, on_event)
    if changed != sizes:
        changed = replace(changed, score=len(images) - changed.train)
        race = ImageRace(_plan(images, None, options, changed, devices), rows, rules, is_resized)
    on_event(race.plan.started(policies=tuple(race.rows), repeats=rules.rounds, budget=rules.budget))
    return race


def _sizes_of_budget(race: ImageRace, options: RaceOptions, on_event: OnEvent) -> Sizes:
    """The sizes of a race, changed so that three rounds fit into its budget."""
    plan = race.plan
    sizes = Sizes(
        plan.subsets.train, plan.subsets.scored, plan.recipe.batch_size or 1, plan.recipe.num_epochs, plan.model
    )
    are_open = options.train is None, options.epochs is None
    if race.rules.budget is None or not any(are_open):
        return sizes
    room = fit_budget(plan, list(race.rows.values()), race.rules.budget, are_open)
    if room.note:
        on_event(Note(room.note))
    return replace(sizes, train=room.train, epochs=room.epochs)


def _sizes_of_race(begun: dict[str, Any], sizes: Sizes, options: RaceOptions, images: int) -> Sizes:
    """The sizes that a race began with, if the options leave them open and its file has none out of bounds."""
    most = {"train": images - 1, "epochs": SEARCH.most_epochs, "batch_size": sizes.train}
    found = {name: as_integer(begun.get(name)) for name in most if getattr(options, name) is None}
    kept: dict[str, Any] = {name: one for name, one in found.items() if one is not None and 1 <= one <= most[name]}
    return replace(sizes, **kept)


def _plan(
    images: LabelledImages,
    test: LabelledImages | None,
    options: TrainingOptions,
    sizes: Sizes,
    devices: Sequence[str],
) -> TrainingPlan:
    subsets = Subsets(images, sizes.train, test, options.seed)
    recipe = options.fit_options(sizes.epochs, sizes.batch_size)
    baseline = partial(BaselineAugmentation.of, **_baseline(images, options))
    return TrainingPlan(subsets, sizes.model, recipe, baseline, options.seed, devices, read_settings(options))


def load_source(
    src: Any,
    options: TrainingOptions,
    device: str,
    on_event: OnEvent,
    stop: Event | None = None,
    sides: tuple[int, int] | None = None,
) -> tuple[LabelledImages, Samples, bool]:
    """Decode labeled images -> them, their source, and whether they were resized. ``sides``: instead of the size of the
    options. Notes name skipped images. Raises SourceError."""
    reading = loader_arguments(options)
    is_auto = sides is None and options.size == "auto"
    if sides is None and not is_auto:
        sides = parse_size(options.size)
    source = open_by_index(src)
    for text in source.notes():
        on_event(Note(text))
    if is_auto:
        sizes = sample_sizes(source, options)
        sides = None if keeps_size(sizes, SEARCH) else choose_size(sizes, SEARCH)
    images = image_sets.load_images(source, sides, device, stop, reading)
    if images.depth is Depth.FLOAT32:
        note = range_note(float(images.pixels.min()), float(images.pixels.max()))
        if note is not None:
            on_event(Note(note))
    counts = images.labels.bincount(minlength=images.num_classes).tolist()
    reported = source.empty_classes
    empty = [name for name, count in zip(images.classes, counts, strict=True) if not count and name not in reported]
    if empty:
        on_event(Note(f"classes without images, which keep their index: {summarize_names(empty)}"))
    if len(images) < len(source):
        on_event(
            Note(f"skipped {len(source) - len(images):,} of {pluralize(len(source), 'image')}, which cannot be read")
        )
    if images.num_classes < 2:
        place = redact_url(str(src)) if isinstance(src, (str, os.PathLike)) else "source"
        raise SourceError(
            f"{place}: has one class ({images.classes[0]}); accepted: two or more, in folders of their own"
        )
    return images, source, sides is not None


def load_test(
    src: Any, images: LabelledImages, options: TrainingOptions, device: str, on_event: OnEvent
) -> LabelledImages:
    """Decode labeled images that score, in addition to the training ``images``. Raises SourceError for other classes,
    or another size."""
    height, width = images.pixels.shape[1:3]
    sides = None if options.size == "none" else (height, width)
    test, _, _ = load_source(src, options, device, on_event, sides=sides)
    classes = images.classes[: test.num_classes]  # the last may have no image there
    place = redact_url(str(src)) if isinstance(src, (str, os.PathLike)) else "test"
    if test.classes != classes or test.pixels.shape[1:] != images.pixels.shape[1:]:
        raise SourceError(f"{place}: other classes, or images of another size, than the images that train")
    if test.depth is not images.depth:
        raise SourceError(f"{place}: images of {test.depth}; accepted: {images.depth}, as the images that train")
    return test


def policy_names(policies: str) -> list[str]:
    return [name.strip() for name in policies.split(",") if name.strip()]


def known_operations(operations: str | Sequence[Any] | None) -> tuple[Any, ...]:
    """Parse operations from text or objects; named modules are imported, and an object in a module is used directly."""
    entries = operations.split(",") if isinstance(operations, str) else operations or ()
    return tuple(_known(one.strip()) if isinstance(one, str) else one for one in entries)


def _known(text: str) -> Any:
    module, _, rest = text.partition(":")
    name, _, more = rest.partition(":")
    if not name.isidentifier() or name == "signed":
        return text
    found = getattr(import_user_module("operations", module), name, None)
    return text if more or found is None else found


def _baseline(images: LabelledImages, options: TrainingOptions) -> dict[str, Any]:
    side = min(images.pixels.shape[1:3])
    padding = side // 8 if options.padding is None else options.padding
    return {"padding": padding, "flip": options.flip, "cutout": side // 2 if options.cutout is None else options.cutout}

"""A search or an evaluation from options and images; what options leave open is a function of the images alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from variegate.checks import as_integer
from variegate.data.base import SourceError, first_names
from variegate.data.samples import Samples
from variegate.io.addresses import shown
from variegate.jobs.arguments import absolute_place, open_by_index, parse_size
from variegate.learn import images as image_sets
from variegate.learn.candidates import candidates_of, default_candidates
from variegate.learn.evaluate import Evaluation, Subsets, unseen
from variegate.learn.history import Settings
from variegate.learn.image_race import ImageRace
from variegate.learn.images import BaselineAugmentation, LabelledImages, fitting_batch, fitting_model
from variegate.learn.policy import SearchSpace
from variegate.learn.rounds import LOG_NAME, RaceRules
from variegate.learn.run import SearchRun
from variegate.learn.sizing import LEAST_EPOCHS, fit_budget
from variegate.learn.trainings import read_json
from variegate.options.importing import import_of_user
from variegate.options.search import EvaluationOptions, RaceOptions, SearchOptions, TrainingOptions

# Of Population Based Augmentation on CIFAR-10, which is what the rules below come to for its 50,000 images.
_SEARCHED = 4_000
_SCORED = 46_000
_EPOCHS = 200
# Images that a training sees in all: CIFAR-10's 50,000 over 200 epochs.
_SEEN = 10_000_000
# Searched crops and cutouts go up to these shares of the shorter side, where the options say nothing.
_MOST_CROP = 0.25
_MOST_CUTOUT = 0.75
# To score members by fewer than eight images is to rank them by chance.
_LEAST_TO_SEARCH = 16


def open_search(
    source: Any,
    options: SearchOptions,
    device: str,
    note: Callable[[str], object],
    operations: Sequence[Any] | None = None,
) -> tuple[SearchRun, Sizes]:
    """``load_source``, and ``load_test`` of other images, then ``prepare_search``."""
    images, opened, _ = load_source(source, options.size, device, note)
    test = None if options.test is None else load_test(options.test, images, options.size, device, note)
    place = absolute_place(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else ""
    return prepare_search(images, options, place, opened.fingerprint, test, operations)


def prepare_search(
    images: LabelledImages,
    options: SearchOptions,
    place: str = "",
    fingerprint: str = "",
    test: LabelledImages | None = None,
    operations: Sequence[Any] | None = None,
) -> tuple[SearchRun, Sizes]:
    """Make the run for ``LocalSearch`` and ``TuneSearch`` -> it, and its sizes.

    ``operations``: of the search, in place of those that the options name.
    ``test``: images of the same size and classes that compare what is found; None: a fifth of ``images``, held out,
    where each class has enough. Raises SourceError for images that cannot be searched on; ValueError (PolicyError
    among them) for options.
    """
    baseline = _baseline(images, options)
    searched = _search_space(images, options, known_operations(operations or options.operations))
    total = len(images)
    held_out = _held_out(images, options) if test is None else 0
    if held_out:
        images, test = image_sets.split(images, total - held_out, None, options.seed)
    sizes = replace(search_sizes(images, options, held_out), test=0 if test is None else len(test))
    train, validation = image_sets.split(images, sizes.train, sizes.score, options.seed)
    run = SearchRun(
        Settings(options.population, searched, options.seed, options.interval, sizes.epochs),
        options.hyperparameters(sizes.epochs, sizes.batch_size),
        sizes.model,
        BaselineAugmentation.of(train, **baseline),
        train,
        validation,
        place,
        fingerprint,
        test,
    )
    return run, sizes


# Below this a fifth says nothing, and the search has too few.
_LEAST_TO_HOLD_OUT = 2 * _LEAST_TO_SEARCH


def _held_out(images: LabelledImages, options: SearchOptions) -> int:
    """A fifth of the images, two of each class at least; 0 where a class has too few for three parts."""
    counts = images.labels.bincount(minlength=images.num_classes)
    total = len(images)
    if options.repeats == 0 or total < _LEAST_TO_HOLD_OUT or int(counts[counts > 0].min()) < _PARTS:
        return 0
    return max(total // 5, min(2 * images.num_classes, total - 2 * images.num_classes))


# That train, that score, and that compare.
_PARTS = 3


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
    source: Any, options: EvaluationOptions, devices: Sequence[str], note: Callable[[str], object]
) -> tuple[Evaluation, Sizes]:
    """``load_source``, and ``load_test`` of images that no policy was searched on, then ``prepare_evaluation``."""
    images, _, _ = load_source(source, options.size, devices[0], note)
    if options.test is None:
        return prepare_evaluation(images, None, options, devices)
    test = load_test(options.test, images, options.size, devices[0], note)
    kept = unseen(test, policy_names(options.policies))
    if len(kept) < len(test):
        note(f"{len(test) - len(kept):,} of {len(test):,} images of --test were searched on, and score nothing")
    return prepare_evaluation(images, kept, options, devices)


def prepare_evaluation(
    images: LabelledImages, test: LabelledImages | None, options: EvaluationOptions, devices: Sequence[str]
) -> tuple[Evaluation, Sizes]:
    """``test``: other images of the same size and classes, which score the trainings; None: those that do not train.

    Raises SourceError for images that cannot be trained on; ValueError for options.
    """
    sizes = evaluation_sizes(images, None if test is None else len(test), options)
    return _plan(images, test, options, sizes, policy_names(options.policies), options.repeats, devices), sizes


def open_race(
    source: Any,
    policies: Sequence[Any] | Mapping[str, Any] | None,
    options: RaceOptions,
    rules: RaceRules,
    devices: Sequence[str],
    note: Callable[[str], object],
    folder: Path | None = None,
) -> tuple[ImageRace, Sizes]:
    """``load_source``, then a race, which trains as an evaluation does, and its sizes. Raises as
    ``prepare_evaluation``.

    ``policies``: as of ``race``; None: those that the options allow. ``folder``: of a race that may have begun, whose
    sizes are kept. A new one has sizes by which three rounds fit into its budget.
    """
    images, _, is_resized = load_source(source, options.size, devices[0], note)
    most = min(_SEARCHED, max(images.num_classes, len(images) * 4 // 5))
    sizes = evaluation_sizes(images, None, options, most)
    plan = _plan(images, None, options, sizes, ["none"], options.rounds, devices)
    rows = default_candidates(plan.baseline(images)) if policies is None else candidates_of(policies)
    are_open = options.train is None, options.epochs is None
    begun = {} if folder is None else read_json(folder / LOG_NAME, lines=1)
    if begun:
        changed = _sizes_of_race(begun, sizes, options)
    elif rules.budget is not None and any(are_open):
        ImageRace(plan, rows, rules, is_resized)  # refuses rows before anything is timed
        room = fit_budget(plan, list(rows.values()), rules.budget, are_open)
        changed = replace(sizes, train=room.train, epochs=room.epochs)
        if room.note:
            note(room.note)
    else:
        changed = sizes
    if changed != sizes:
        sizes = replace(changed, score=sizes.images - changed.train)
        plan = _plan(images, None, options, sizes, ["none"], options.rounds, devices)
    return ImageRace(plan, rows, rules, is_resized), sizes


def _sizes_of_race(begun: dict[str, Any], sizes: Sizes, options: RaceOptions) -> Sizes:
    """The sizes that a race began with, where the options leave them open and its file has none out of bounds."""
    most = {"train": sizes.images - 1, "epochs": _EPOCHS, "batch_size": sizes.train}
    found = {name: as_integer(begun.get(name)) for name in most if getattr(options, name) is None}
    kept: dict[str, Any] = {name: one for name, one in found.items() if one is not None and 1 <= one <= most[name]}
    return replace(sizes, **kept)


def _plan(
    images: LabelledImages,
    test: LabelledImages | None,
    options: TrainingOptions,
    sizes: Sizes,
    policies: Sequence[str],
    repeats: int,
    devices: Sequence[str],
) -> Evaluation:
    return Evaluation(
        Subsets(images, sizes.train, test, options.seed),
        sizes.model,
        options.hyperparameters(sizes.epochs, sizes.batch_size),
        partial(BaselineAugmentation.of, **_baseline(images, options)),
        policies,
        repeats,
        options.seed,
        devices,
    )


def load_source(
    src: Any, size: str | tuple[int, int], device: str, note: Callable[[str], object]
) -> tuple[LabelledImages, Samples, bool]:
    """Decode labeled images -> them, their source, and whether they were resized. ``size``: as typed, or sides;
    ``note`` is told of what is left out. Raises SourceError."""
    sides = None if size == "auto" else parse_size(size) if isinstance(size, str) else size
    source = open_by_index(src)
    for text in source.notes():
        note(text)
    sides = image_sets.fitting_size(source) if size == "auto" else sides
    images = image_sets.load_images(source, sides, device)
    counts = images.labels.bincount(minlength=images.num_classes).tolist()
    reported = source.empty_classes
    empty = [name for name, count in zip(images.classes, counts, strict=True) if not count and name not in reported]
    if empty:
        note(f"classes without images, which keep their index: {first_names(empty)}")
    if len(images) < len(source):
        note(f"{len(source) - len(images):,} of {len(source):,} images cannot be read and are skipped")
    if images.num_classes < 2:
        place = shown(str(src)) if isinstance(src, (str, os.PathLike)) else "source"
        raise SourceError(
            f"{place}: has one class ({images.classes[0]}); accepted: two or more, in folders of their own"
        )
    return images, source, sides is not None


def load_test(
    src: Any, images: LabelledImages, size: str, device: str, note: Callable[[str], object]
) -> LabelledImages:
    """Decode labeled images that score, beside ``images`` that train. ``size``: as typed for these. Raises SourceError
    for other classes, or another size."""
    height, width = images.pixels.shape[1:3]
    test, _, _ = load_source(src, "none" if size == "none" else (height, width), device, note)
    classes = images.classes[: test.num_classes]  # the last may have no image there
    if test.classes != classes or test.pixels.shape[1:] != images.pixels.shape[1:]:
        place = shown(str(src)) if isinstance(src, (str, os.PathLike)) else "test"
        raise SourceError(f"{place}: other classes, or images of another size, than the images that train")
    return test


def policy_names(policies: str) -> list[str]:
    return [name.strip() for name in policies.split(",") if name.strip()]


def known_operations(operations: str | Sequence[Any] | None) -> tuple[Any, ...]:
    """As typed, or as objects; modules that are named are imported, and an object in one stands for itself."""
    entries = operations.split(",") if isinstance(operations, str) else operations or ()
    return tuple(_known(one.strip()) if isinstance(one, str) else one for one in entries)


def _known(text: str) -> Any:
    module, _, rest = text.partition(":")
    name, _, more = rest.partition(":")
    if not name.isidentifier() or name == "signed":
        return text
    found = getattr(import_of_user("operations", module), name, None)
    return text if more or found is None else found


def _baseline(images: LabelledImages, options: TrainingOptions) -> dict[str, Any]:
    side = min(images.pixels.shape[1:3])
    padding = side // 8 if options.padding is None else options.padding
    return {"padding": padding, "flip": options.flip, "cutout": side // 2 if options.cutout is None else options.cutout}


@dataclass(frozen=True)
class Sizes:
    """Of ``images``: how many train, how many score; images in a step, epochs of a training, and its model. ``test``:
    images that compare the result of a search."""

    images: int
    train: int
    score: int
    batch_size: int
    epochs: int
    model: str
    test: int = 0

    def __str__(self) -> str:
        epochs = f"{self.epochs:,} epoch{'s' if self.epochs > 1 else ''}"
        return (
            f"{self.train:,} of {self.images:,} images train, {self.score:,} score"
            + (f", {self.test:,} compare" if self.test else "")
            + f"; {self.model}, {epochs}, batches of {self.batch_size}"
        )


def search_sizes(images: LabelledImages, options: SearchOptions, held_out: int = 0) -> Sizes:
    """Sizes of a search: half of the images train, at most 4,000; others score, at most 46,000. ``held_out``: images
    besides. Raises SourceError, ValueError."""
    train, validation, total, classes = options.train, options.validation, len(images), images.num_classes
    _check_classes(images)
    if train is None and validation is None and total < _LEAST_TO_SEARCH:
        raise SourceError(
            f"{total:,} images are too few to search on: some train the members and others score them; accepted: "
            f"{_LEAST_TO_SEARCH} or more, two or more of every class"
        )
    if train is not None:
        _check("train", train, images, total - classes, held_out)
    if validation is not None:
        _check("validation", validation, images, total - (train or classes), held_out)
    if train is None:
        train = max(classes, min(_SEARCHED, total // 2, total - (validation or classes)))
    score = min(_SCORED, total - train) if validation is None else validation
    return _rest(total + held_out, train, score, max(images.pixels.shape[1:3]), options)


def evaluation_sizes(
    images: LabelledImages, tested: int | None, options: EvaluationOptions | RaceOptions, default: int | None = None
) -> Sizes:
    """Sizes of an evaluation or a race: four fifths train, or ``default``. ``tested``: images beside these that score;
    None: the rest does."""
    train = options.train
    total = len(images)
    classes = images.num_classes
    _check_classes(images, 2 if tested is None else 1)
    most = total - classes if tested is None else total
    if train is None:
        train = max(classes, min(most, default or total * 4 // 5))
    else:
        _check("train", train, images, most)
    score = total - train if tested is None else tested
    return _rest(total, train, score, max(images.pixels.shape[1:3]), options)


def _rest(total: int, train: int, score: int, side: int, options: TrainingOptions) -> Sizes:
    batch = options.batch_size
    epochs = options.epochs
    model = options.model
    if batch is not None and not 1 <= batch <= train:
        raise ValueError(f"batch_size: got {batch}, with {train:,} images to train; accepted: 1 to {train:,}")
    if epochs is None:
        epochs = max(LEAST_EPOCHS, min(_EPOCHS, _SEEN // train))
    if model is None:
        model = fitting_model(total, side)
    return Sizes(total, train, score, batch or fitting_batch(train), epochs, model)


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

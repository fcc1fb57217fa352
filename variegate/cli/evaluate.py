"""``variegate evaluate SRC``."""

from __future__ import annotations

import math
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from variegate.cli.console import INTERRUPTED, emit_json, fail, interrupt_sets, one_line_errors, say, stderr
from variegate.cli.evaluate_view import announce, show
from variegate.cli.progress import counting_bar
from variegate.cli.training import (
    IMAGES,
    OUTPUT,
    TRAINING,
    AsJson,
    BatchSize,
    Capture,
    Clip,
    Cutout,
    Devices,
    Flip,
    Lr,
    LrSchedule,
    Model,
    Momentum,
    Padding,
    Precision,
    Seed,
    Size,
    Src,
    WeightDecay,
    border,
    hole,
    listed,
    load,
)

if TYPE_CHECKING:
    from variegate.search.compare import Trial
    from variegate.search.evaluate import Evaluation

COMPARISON = "Comparison"


def evaluate(
    src: Src,
    policies: Annotated[
        str,
        typer.Option(
            help="These are compared, with commas: none (no augmentation), flip-crop (no policy), names of policies in "
            "whatever case, files.",
            rich_help_panel=COMPARISON,
        ),
    ] = "none,flip-crop,randaugment,trivialaugment",
    test: Annotated[
        str | None,
        typer.Option(
            metavar="SRC2",
            help="Other images score the trainings. By default those of SRC that do not train.",
            rich_help_panel=IMAGES,
            show_default=False,
        ),
    ] = None,
    train: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="So many images train, another random part in every repeat. By default four fifths.",
            rich_help_panel=IMAGES,
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, help="So many trainings with each policy; two or more give intervals.", rich_help_panel=COMPARISON
        ),
    ] = 5,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many epochs each training takes; schedules are scaled to them. By default 200, and fewer where "
            "more than 50,000 images train.",
            rich_help_panel=TRAINING,
            show_default=False,
        ),
    ] = None,
    model: Model = None,
    size: Size = "auto",
    padding: Padding = None,
    flip: Flip = True,
    cutout: Cutout = None,
    batch_size: BatchSize = None,
    lr: Lr = 0.1,
    lr_schedule: LrSchedule = "cosine",
    weight_decay: WeightDecay = 5e-4,
    momentum: Momentum = 0.9,
    clip: Clip = 5.0,
    precision: Precision = "float32",
    seed: Seed = 0,
    devices: Devices = "auto",
    capture: Capture = True,
    out: Annotated[Path, typer.Option(help="The plot is written to this PNG file.", rich_help_panel=OUTPUT)] = Path(
        "evaluate.png"
    ),
    as_json: AsJson = False,
) -> None:
    """Train the same model with one policy after another, and compare: is a search worth it on your images?

    All policies of a repeat train on the same images, from the same weights, in the same order; repeats differ in all
    of these. Policies are compared by their differences within repeats, with 95 % intervals and a verdict in words.
    """
    with one_line_errors(as_json):
        from variegate.data.sources.base import SourceError
        from variegate.outside.addresses import shown
        from variegate.plotting import check_path
        from variegate.search.compare import compare
        from variegate.search.devices import search_devices
        from variegate.search.evaluate import Evaluation
        from variegate.search.subsets import Subsets
        from variegate.training.around import Around
        from variegate.training.recipe import Recipe
        from variegate.training.sizes import evaluation_sizes

        check_path(out)
        compared = [name.strip() for name in policies.split(",") if name.strip()]
        chosen = search_devices(listed(devices), max(1, len(compared) * repeats))
        images, _, _ = load(src, size, chosen[0])
        tested = None
        if test is not None:
            height, width = images.pixels.shape[1:3]
            tested, _, _ = load(test, size if size == "none" else (height, width), chosen[0])
            theirs, ours = tested.classes, images.classes[: tested.num_classes]  # the last may have no image there
            if theirs != ours or tested.pixels.shape[1:] != images.pixels.shape[1:]:
                raise SourceError(f"{shown(test)}: other classes, or images of another size, than {shown(src)}")
        sizes = evaluation_sizes(images, None if tested is None else len(tested), train, batch_size, epochs, model)
        evaluation = Evaluation(
            Subsets(images, sizes.train, tested, seed),
            sizes.model,
            Recipe(sizes.epochs, sizes.batch_size, lr, lr_schedule, weight_decay, momentum, clip, precision),
            partial(Around.of, padding=border(padding, images), flip=flip, cutout=hole(cutout, images)),
            compared,
            repeats,
            seed,
            chosen,
            capture,
        )
        announce(evaluation, sizes, as_json)
        trials, is_stopped = _run(evaluation, as_json)
        if not trials:
            raise fail("interrupted before the first training was over", INTERRUPTED, as_json)
        for name in evaluation.policies:
            lost = [trial for trial in trials if trial.policy == name and math.isnan(trial.accuracy)]
            if lost:
                said = f"{name}: {len(lost)} of its trainings diverged (the loss is not finite) and count as 0"
                say(f"note: {said}; a lower --lr may help", stderr())
        show(compare(trials, evaluation.policies, evaluation.subsets.scored), evaluation, out, as_json)
    if is_stopped:
        done = f"{len(trials)} of {len(evaluation.policies) * repeats} trainings"
        raise fail(f"interrupted after {done}; the table is of the whole repeats among them", INTERRUPTED, as_json)


def _run(evaluation: Evaluation, as_json: bool) -> tuple[list[Trial], bool]:
    stop = threading.Event()
    total = len(evaluation.policies) * evaluation.repeats
    bar = counting_bar(as_json)
    task = bar.add_task("training", total=total)

    def tell(trial: Trial) -> None:
        bar.advance(task)
        if as_json:
            emit_json("trial", **trial._asdict())

    with bar, interrupt_sets(stop):
        trials = evaluation.run(tell, stop)
    return trials, len(trials) < total

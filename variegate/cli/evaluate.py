"""``variegate evaluate SRC``."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    cell,
    drawn,
    emit_json,
    fail,
    interrupt_sets,
    one_line_errors,
    say,
    stderr,
    stdout,
)
from variegate.cli.progress import counting_bar
from variegate.cli.training import (
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
    from variegate.search.evaluate import Evaluation, Summary, Trial


def evaluate(
    src: Src,
    policies: Annotated[
        str,
        typer.Option(help="With commas: none (no augmentation), flip-crop (no policy), names of policies, files."),
    ] = "none,flip-crop,randaugment,trivialaugment",
    test: Annotated[
        str | None, typer.Option(metavar="SRC2", help="Other images to test on. Default: a part of SRC.")
    ] = None,
    train: Annotated[int | None, typer.Option(min=1, help="Images to train on. Default: all, or four fifths.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trainings with each policy.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Of a training; schedules are scaled to it.")] = 200,
    model: Model = "wrn-28-2",
    size: Size = "none",
    padding: Padding = None,
    flip: Flip = True,
    cutout: Cutout = None,
    batch_size: BatchSize = 128,
    lr: Lr = 0.1,
    lr_schedule: LrSchedule = "cosine",
    weight_decay: WeightDecay = 5e-4,
    momentum: Momentum = 0.9,
    clip: Clip = 5.0,
    precision: Precision = "float32",
    seed: Seed = 0,
    devices: Devices = "auto",
    capture: Capture = True,
    out: Annotated[Path, typer.Option(help="The PNG file with the plot.")] = Path("evaluate.png"),
    as_json: AsJson = False,
) -> None:
    """Train the same model with one policy after another, and compare: is a search worth it on your images?

    Trainings of one repeat start from the same weights and see the images in the same order.
    """
    with one_line_errors(as_json):
        from variegate.data.sources.base import SourceError
        from variegate.data.sources.paths import shown
        from variegate.plotting import check_path
        from variegate.search.devices import search_devices
        from variegate.search.evaluate import Evaluation, summarize
        from variegate.training.around import Around
        from variegate.training.images import split
        from variegate.training.recipe import Recipe

        check_path(out)
        compared = [name.strip() for name in policies.split(",") if name.strip()]
        chosen = search_devices(listed(devices), max(1, len(compared) * repeats))
        images, _, _ = load(src, size, chosen[0])
        if test is None:
            trained, tested = split(images, train or len(images) * 4 // 5, None, seed)
        else:
            trained = images if train is None or train == len(images) else split(images, train, 0, seed)[0]
            tested, _, _ = load(test, size, chosen[0])
            theirs, ours = tested.classes, trained.classes[: tested.num_classes]  # the last may have no image there
            if theirs != ours or tested.pixels.shape[1:] != trained.pixels.shape[1:]:
                raise SourceError(f"{shown(test)}: other classes, or images of another size, than {shown(src)}")
        evaluation = Evaluation(
            trained,
            tested,
            model,
            Recipe(epochs, batch_size, lr, lr_schedule, weight_decay, momentum, clip, precision),
            Around.of(trained, border(padding, images), flip, hole(cutout, images)),
            compared,
            repeats,
            seed,
            chosen,
            capture,
        )
        trials, is_stopped = _run(evaluation, as_json)
        if not trials:
            raise fail("interrupted before the first training was over", INTERRUPTED, as_json)
        summaries = summarize(trials)
        for name in evaluation.policies:
            lost = [trial for trial in trials if trial.policy == name and math.isnan(trial.accuracy)]
            if lost:
                said = f"{name}: {len(lost)} of its trainings diverged (the loss is not finite) and count as 0"
                say(f"note: {said}; a lower --lr may help", stderr())
        _show(summaries, evaluation, out, as_json)
    if is_stopped:
        done = f"{len(trials)} of {len(evaluation.policies) * repeats} trainings"
        raise fail(f"interrupted after {done}; the table is of these", INTERRUPTED, as_json)


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


def _show(summaries: list[Summary], evaluation: Evaluation, out: Path, as_json: bool) -> None:
    from variegate.search.evaluate_plot import plot_evaluation
    from variegate.sinks.storage import WriteError

    plot: str | None = None
    unwritten: WriteError | None = None
    remark = f"{evaluation.model}, {len(evaluation.train):,} images, {evaluation.recipe.epochs} epochs"
    try:
        plot = drawn(lambda: plot_evaluation(summaries, out, remark), out)
    except WriteError as error:  # told after the table, which took the time
        unwritten = error
    if as_json:
        emit_json("done", policies=[summary._asdict() for summary in summaries], plot=plot)
    else:
        _print_table(summaries)
        if plot is not None:
            say(f"plot: {plot}")
    if unwritten is not None:
        raise fail(unwritten, FAILED, as_json)


def _print_table(summaries: list[Summary]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("policy", "accuracy", "spread", "each", "s a training"):
        table.add_column(name, justify="left" if name in ("policy", "each") else "right", overflow="fold")
    for one in summaries:
        spread = "" if math.isnan(one.spread) else f"{100 * one.spread:.2f}"
        each = ", ".join(f"{100 * accuracy:.2f}" for accuracy in one.accuracies)
        table.add_row(cell(one.policy), f"{one.mean:.2%}", spread, each, f"{one.seconds:.1f}")
    stdout().print(table)

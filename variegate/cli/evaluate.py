"""``variegate evaluate SRC``."""

from __future__ import annotations

import math
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    CountingBar,
    cell,
    emit_json,
    fail,
    interrupt_sets,
    note,
    plot_or_note,
    say,
    stderr,
    stdout,
    table_of,
)
from variegate.cli.options import device_list
from variegate.cli.search import ClassesOptions, load
from variegate.options.search import EvaluationOptions

if TYPE_CHECKING:
    from variegate.apps.search.compare import Comparison, Summary, Trial
    from variegate.apps.search.evaluate import Evaluation
    from variegate.apps.search.prepare import Sizes
    from variegate.apps.train.images import LabelledImages


@dataclass(frozen=True, kw_only=True)
class EvaluateCommandOptions(EvaluationOptions, ClassesOptions):
    pass


def evaluate(options: EvaluateCommandOptions) -> None:
    """Train the same model with one policy after another, and compare: is a search worth it on your images?

    All policies of a repeat train on the same images, from the same weights, in the same order; repeats differ in all
    of these. Policies are compared by their differences within repeats, with 95 % intervals and a verdict in words.
    """
    from variegate.apps.plotting import check_path
    from variegate.apps.search.compare import compare
    from variegate.apps.search.driver import search_devices
    from variegate.apps.search.prepare import policy_names, prepare_evaluation

    as_json = options.as_json
    check_path(options.out)
    trainings = len(policy_names(options.policies)) * options.repeats
    devices = search_devices(device_list(options.devices), max(1, trainings))
    images, _, _ = load(options.place, options.size, devices[0])
    test = None if options.test is None else _load_test(options.test, options, images, devices[0])
    evaluation, sizes = prepare_evaluation(images, test, options, devices)
    announce(evaluation, sizes, as_json)
    trials = _run(evaluation, as_json)
    if not trials:
        raise fail("interrupted before the first training was over", INTERRUPTED, as_json)
    for name in evaluation.policies:
        lost = [trial for trial in trials if trial.policy == name and math.isnan(trial.accuracy)]
        if lost:
            said = f"{name}: {len(lost)} of its trainings diverged (the loss is not finite) and count as 0"
            note(f"{said}; a lower --lr may help")
    show(compare(trials, evaluation.policies, evaluation.subsets.scored), evaluation, options.out, as_json)
    if len(trials) < trainings:
        done = f"{len(trials)} of {trainings} trainings"
        raise fail(f"interrupted after {done}; the table is of the whole repeats among them", INTERRUPTED, as_json)


def _load_test(src: str, options: EvaluateCommandOptions, images: LabelledImages, device: str) -> LabelledImages:
    """Raises SourceError for other classes than ``images`` have, or another size."""
    from variegate.formats.base import SourceError
    from variegate.io.addresses import shown

    height, width = images.pixels.shape[1:3]
    test, _, _ = load(src, "none" if options.size == "none" else (height, width), device)
    classes = images.classes[: test.num_classes]  # the last may have no image there
    if test.classes != classes or test.pixels.shape[1:] != images.pixels.shape[1:]:
        raise SourceError(f"{shown(src)}: other classes, or images of another size, than {shown(options.src)}")
    return test


def _run(evaluation: Evaluation, as_json: bool) -> list[Trial]:
    stop = threading.Event()
    bar = CountingBar(as_json)
    task = bar.add_task("training", total=len(evaluation.policies) * evaluation.repeats)

    def tell(trial: Trial) -> None:
        bar.advance(task)
        if as_json:
            emit_json("trial", **trial._asdict())

    with bar, interrupt_sets(stop):
        return evaluation.run(tell, stop)


def announce(evaluation: Evaluation, sizes: Sizes, as_json: bool) -> None:
    """The sizes, in a line; and where a learnt schedule would be favoured."""
    from variegate.apps.search.compare import is_own
    from variegate.apps.search.evaluate import GAP

    height, width = evaluation.subsets.images.pixels.shape[1:3]
    if as_json:
        side = [int(height), int(width)]
        emit_json("start", **asdict(sizes), size=side, repeats=evaluation.repeats, policies=list(evaluation.policies))
    else:
        say(f"sizes: {sizes}, {height}x{width}", stderr())
    if evaluation.subsets.test is None and any(is_own(name) for name in evaluation.policies):
        seen = "a schedule that was learnt on SRC has seen the images that score here"
        note(f"{seen}, and is favoured; give others as --test")
    if GAP in evaluation.policies:
        note(f"{GAP} trains on nine tenths of its images, and measures the gap on the others")


def show(comparison: Comparison, evaluation: Evaluation, out: Path, as_json: bool) -> None:
    """The table, the verdicts and the plot. A plot that cannot be written is told after the rest."""
    from variegate.apps.search.verdict import plot_evaluation, verdicts
    from variegate.formats.storage import WriteError

    plot: str | None = None
    unwritten: WriteError | None = None
    subsets, said = evaluation.subsets, verdicts(comparison)
    counts = f"{subsets.train:,} images train, {subsets.scored:,} score"
    remark = f"{evaluation.model}, {counts}, {evaluation.recipe.epochs} epochs"
    try:
        plot = plot_or_note(lambda: plot_evaluation(comparison, out, remark), out)
    except WriteError as error:  # told after the table, which took the time
        unwritten = error
    if as_json:
        emit_json(
            "done",
            policies=[_described(one, comparison) for one in comparison.summaries],
            reference=comparison.reference,
            repeats=comparison.repeats,
            verdicts=said,
            scope=subsets.scope,
            plot=plot,
        )
    else:
        _print_table(comparison)
        scope = [subsets.scope] if comparison.repeats > 1 and comparison.differences else []
        for sentence in (*said, *scope, *([] if plot is None else [f"plot: {plot}"])):
            say(sentence)
    if unwritten is not None:
        raise fail(unwritten, FAILED, as_json)


def _described(one: Summary, comparison: Comparison) -> dict[str, object]:
    found = comparison.differences.get(one.policy)
    difference = None if found is None else {**found._asdict(), "shown": found.shown}
    return {**one._asdict(), "needs_search": one.policy in comparison.own, "difference": difference}


def _print_table(comparison: Comparison) -> None:
    from variegate.apps.search.verdict import cells

    # What each training came to is in the plot and in --json: a line has 80 characters.
    to = f"to {comparison.reference}" + (" (95 %)" if comparison.repeats > 1 else "")
    titles = ("policy", "accuracy", "spread", *([to] if comparison.reference is not None else []), "s a training")
    table = table_of(titles)
    for one in comparison.summaries:
        mean, spread, difference = cells(one, comparison)
        middle = [difference] if comparison.reference is not None else []
        table.add_row(cell(one.policy), mean, spread, *middle, f"{one.seconds:.1f}")
    stdout().print(table)

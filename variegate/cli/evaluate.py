"""``variegate evaluate SRC``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, cell, emit_json, note, say
from variegate.cli.search import ClassesOptions, announce, decoding, run_trainings
from variegate.options.search import EvaluationOptions

if TYPE_CHECKING:
    from variegate.learn.compare import Comparison
    from variegate.learn.evaluate import Evaluation, EvaluationFiles
    from variegate.learn.trainings import Training


@dataclass(frozen=True, kw_only=True)
class EvaluateCommandOptions(EvaluationOptions, ClassesOptions):
    pass


def evaluate(options: EvaluateCommandOptions) -> None:
    """Compare policies by training the same model with each of them.

    Within a repeat, all policies train on the same images, from the same weights, in the same order. Repeats differ in
    all three. Policies are compared by their differences within repeats, with 95% intervals over training runs on these
    images, and a verdict. To resume an interrupted evaluation, or to add --repeats, run the same command again.
    """
    from variegate.apps.plotting import check_path
    from variegate.learn.compare import compare
    from variegate.learn.driver import search_devices
    from variegate.learn.evaluate import EvaluationFiles, biases
    from variegate.learn.prepare import open_evaluation, policy_names

    as_json = options.as_json
    files = EvaluationFiles(options.out)
    check_path(options.out)
    trainings = len(policy_names(options.policies)) * options.repeats
    devices = search_devices(options.devices, max(1, trainings))
    with decoding():
        evaluation, sizes = open_evaluation(options.place, options, devices, note)
    announce(sizes, evaluation.subsets.images, as_json, repeats=evaluation.repeats, policies=list(evaluation.policies))
    note(*biases(evaluation))
    with files.open(evaluation) as journal:
        done = run_trainings(evaluation, journal, as_json)
    if not done:
        raise CommandError("interrupted before the first training run was complete", INTERRUPTED)
    for name in evaluation.policies:
        lost = [one for one in done if one.candidate == name and math.isnan(one.score)]
        if lost:
            said = f"{name}: {len(lost)} of its training runs diverged (the loss is not finite) and count as 0"
            note(f"{said}; a lower --lr may help")
    comparison = compare(done, evaluation.policies, evaluation.subsets.scored)
    _show(comparison, evaluation, done, files, options.out, as_json)
    if len(done) < trainings:
        counts = f"{len(done)} of {trainings} training runs"
        raise CommandError(
            f"interrupted after {counts}; the table covers the complete repeats; to resume, run the same command again",
            INTERRUPTED,
        )


def _show(
    comparison: Comparison,
    evaluation: Evaluation,
    done: list[Training],
    files: EvaluationFiles,
    out: Path,
    as_json: bool,
) -> None:
    """Print the table and the verdicts, and write the files; raises CommandError at the end if one cannot be."""
    from variegate.data.storage import WriteError
    from variegate.learn.compare import cells, describe, plot_evaluation, verdicts

    plot, unwritten, subsets, sentences = None, None, evaluation.subsets, verdicts(comparison)
    counts = f"{subsets.train:,} images train, {subsets.scored:,} score"
    remark = f"{evaluation.model}, {counts}, {evaluation.recipe.epochs} epochs"
    try:
        files.write(comparison, evaluation, done)
        plot = console.plot_or_note(lambda: plot_evaluation(comparison, out, remark), out)
    except WriteError as error:  # reported after the table, which took the time
        unwritten = error
    reference = comparison.reference
    spent = evaluation.cost(done)
    if as_json:
        emit_json("done", **describe(comparison), scope=subsets.scope, cost=spent, plot=plot, result=str(files.result))
    else:
        # The accuracy of each training is in the plot and the files: a line has 80 characters.
        covered = " (95 %, on these images)" if comparison.repeats > 1 else ""
        to = [] if reference is None else [f"to {reference}{covered}"]
        table = console.table_of(("policy", "accuracy", "spread", *to, "s per run"))
        for one in comparison.summaries:
            mean, spread, difference = cells(one, comparison)
            middle = [] if reference is None else [difference]
            table.add_row(cell(one.policy), mean, spread, *middle, f"{one.seconds:.1f}")
        console.stdout().print(table)
        scope = [subsets.scope] if comparison.repeats > 1 and comparison.differences else []
        for sentence in (*sentences, *scope, f"cost: {spent}", *([] if plot is None else [f"plot: {plot}"])):
            say(sentence)
        say(f"results: {files.result}")
    if unwritten is not None:
        raise CommandError(unwritten)

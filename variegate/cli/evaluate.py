"""``variegate evaluate SRC``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from variegate.cli import console
from variegate.cli.console import INTERRUPTED, CommandError, emit_json, note, print_line
from variegate.cli.render import rendering
from variegate.cli.search import ClassesOptions, looks, training_errors_as_exit_codes
from variegate.options.search import EvaluationOptions

if TYPE_CHECKING:
    from variegate.learn.image_race import Evaluated


@dataclass(frozen=True, kw_only=True)
class EvaluateCommandOptions(EvaluationOptions, ClassesOptions):
    pass


def evaluate(options: EvaluateCommandOptions) -> None:
    """Compare policies by training the same model with each of them.

    Within a repeat, all policies train on the same images, from the same weights, in the same order. Repeats differ in
    all three. Policies are compared by their differences within repeats, with 95% intervals over training runs on these
    images, and a verdict. To resume an interrupted evaluation, or to add --repeats, run the same command again.

    Examples:
        variegate evaluate photos --policies none,crop,flip+crop --repeats 3
        variegate evaluate photos --test unseen --policies crop,search/policy.json
    """
    from variegate.data.storage import WriteError
    from variegate.learn.rounds import RaceFiles
    from variegate.learn.search import run_evaluation

    files = RaceFiles.beside(options.out)
    with training_errors_as_exit_codes(), rendering(options.as_json, looks()) as render:
        found = run_evaluation(options.place, options, render, render.stop)
    if not found.trainings:
        raise CommandError("interrupted before the first training run was complete", INTERRUPTED)
    note(*found.diverged())
    plot, unwritten = None, None
    try:
        found.write(files)
        plot = console.plot_or_note(lambda: found.plot(options.out), options.out)
    except WriteError as error:  # reported after the table, which took the time
        unwritten = error
    if options.as_json:
        emit_json("done", **found.describe(), plot=plot, result=str(files.result))
    else:
        _show(found)
        if plot is not None:
            print_line(f"plot: {plot}")
        print_line(f"results: {files.result}")
    if unwritten is not None:
        raise CommandError(unwritten)
    if not found.is_complete:
        counts = f"{len(found.trainings)} of {len(found.race.rows) * options.repeats} training runs"
        raise CommandError(
            f"interrupted after {counts}; the table covers the complete repeats; to resume, run the same command again",
            INTERRUPTED,
        )


def _show(found: Evaluated) -> None:
    """Print the table and the verdicts. The accuracy of each training is in the plot and the files."""
    from variegate.learn.verdict import cells, verdicts

    comparison = found.comparison
    covered = " (95 %, on these images)" if comparison.repeats > 1 else ""
    to = [] if comparison.reference is None else [f"to {comparison.reference}{covered}"]
    rows = []
    for one in comparison.summaries:
        mean, spread, difference = cells(one, comparison)
        rows.append((one.policy, mean, spread, *([difference] if to else []), f"{one.seconds:.1f}"))
    headings = ("policy", "accuracy", "spread", *to, "s per run")
    console.stdout().print(console.ConsoleTable(headings, rows, wide_only=("s per run",)))
    for sentence in verdicts(comparison):
        print_line(sentence, is_prose=True)
    if comparison.repeats > 1 and comparison.differences:
        print_line(found.race.plan.subsets.scope, is_prose=True)
    print_line(f"cost: {found.cost}")

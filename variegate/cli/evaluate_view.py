"""What ``variegate evaluate`` says: how much it trains, then a table, a verdict and a picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from variegate.cli.console import FAILED, cell, drawn, emit_json, fail, say, stderr, stdout

if TYPE_CHECKING:
    from variegate.search.compare import Comparison
    from variegate.search.evaluate import Evaluation
    from variegate.training.sizes import Sizes


def announce(evaluation: Evaluation, sizes: Sizes, as_json: bool) -> None:
    """The sizes, in a line; and where a learnt schedule would be favoured."""
    from variegate.search.compare import is_own

    height, width = evaluation.subsets.images.pixels.shape[1:3]
    if as_json:
        side = [int(height), int(width)]
        emit_json("start", **asdict(sizes), size=side, repeats=evaluation.repeats, policies=list(evaluation.policies))
    else:
        say(f"sizes: {sizes}, {height}x{width}", stderr())
    if evaluation.subsets.test is None and any(is_own(name) for name in evaluation.policies):
        say("note: a schedule that was learnt on SRC has seen the images that score here, and is favoured; give others "
            "as --test", stderr())  # fmt: skip


def show(comparison: Comparison, evaluation: Evaluation, out: Path, as_json: bool) -> None:
    """The table, the verdicts and the plot. A plot that cannot be written is told after the rest."""
    from variegate.search.evaluate_plot import plot_evaluation
    from variegate.search.verdict import verdicts
    from variegate.sinks.storage import WriteError

    plot: str | None = None
    unwritten: WriteError | None = None
    subsets, said = evaluation.subsets, verdicts(comparison)
    counts = f"{subsets.train:,} images train, {subsets.scored:,} score"
    remark = f"{evaluation.model}, {counts}, {evaluation.recipe.epochs} epochs"
    try:
        plot = drawn(lambda: plot_evaluation(comparison, out, remark), out)
    except WriteError as error:  # told after the table, which took the time
        unwritten = error
    if as_json:
        emit_json(
            "done",
            policies=[_described(one.policy, comparison) for one in comparison.summaries],
            reference=comparison.reference,
            repeats=comparison.repeats,
            verdicts=said,
            scope=subsets.scope,
            plot=plot,
        )
    else:
        _print_table(comparison)
        for sentence in said:
            say(sentence)
        if comparison.repeats > 1 and comparison.differences:
            say(subsets.scope)
        if plot is not None:
            say(f"plot: {plot}")
    if unwritten is not None:
        raise fail(unwritten, FAILED, as_json)


def _described(policy: str, comparison: Comparison) -> dict[str, object]:
    one = next(summary for summary in comparison.summaries if summary.policy == policy)
    found = comparison.differences.get(policy)
    difference = None if found is None else {**found._asdict(), "shown": found.shown}
    return {**one._asdict(), "needs_search": policy in comparison.own, "difference": difference}


def _print_table(comparison: Comparison) -> None:
    from variegate.search.verdict import cells

    table = Table(box=None, pad_edge=False, header_style="dim")
    # What each training came to is in the plot and in --json: a line has 80 characters.
    to = f"to {comparison.reference}" + (" (95 %)" if comparison.repeats > 1 else "")
    titles = ("policy", "accuracy", "spread", *([to] if comparison.reference is not None else []), "s a training")
    for name in titles:
        table.add_column(name, justify="left" if name == "policy" else "right", overflow="fold")
    for one in comparison.summaries:
        mean, spread, difference = cells(one, comparison)
        middle = [difference] if comparison.reference is not None else []
        table.add_row(cell(one.policy), mean, spread, *middle, f"{one.seconds:.1f}")
    stdout().print(table)

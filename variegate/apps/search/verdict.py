"""Verdict of a comparison, in words and as a plot: what is shown, what is not, and what it would take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from variegate.apps.plotting import AMBER, BLUE, FAINT, GREEN, INK, PALE_BLUE, drawn_figure, label_rows, line_handles
from variegate.apps.search.compare import CONFIDENCE, Comparison, Difference, Summary, quantile, spread_of

# How often a difference of the size that is said to be seen is seen.
_POWER = 0.8
_MOST_REPEATS = 1000


def verdicts(comparison: Comparison) -> list[str]:
    """A sentence or two for every policy in question; none where a single policy was trained with."""
    if len(comparison.summaries) < 2:
        return []
    if comparison.repeats < 2:
        whole = "no whole repeat is" if comparison.repeats == 0 else "a single repeat is"
        return [f"No verdict: {whole} there, and differences may be chance. Two or more give intervals (--repeats 5)."]
    return [_verdict(name, comparison) for name in comparison.judged]


def _verdict(name: str, comparison: Comparison) -> str:
    found = comparison.differences[name]
    of = "policies that need no search" if name in comparison.own and comparison.free else "others"
    number = len(found.rivals)
    highest = f", the highest of the {number} {of}" if number > 1 else ""
    size = points(abs(found.mean), found)
    if found.shown == "better":
        every = f"{'both' if number == 2 else f'all {number}'} {of}"
        than = found.to if number == 1 else f"{every}, and than {found.to}, the highest of them,"
        return f"{name} is better than {than} by {size} points, {_interval(found, comparison)}."
    if found.shown == "worse":
        turned = found._replace(mean=-found.mean, low=-found.high, high=-found.low)
        than = f"{found.to}{highest}{',' if highest else ''}"
        return f"{name} is worse than {than} by {size} points, {_interval(turned, comparison)}."
    side = f"{size} points {'above' if found.mean >= 0 else 'below'} {found.to}{highest}"
    takes = _what_it_takes(found, comparison)
    return f"No difference shown: {name} is {side}, {_interval(found, comparison)}. {takes}"


def points(share: float, found: Difference) -> str:
    """With a second digit where the interval is narrower than a point."""
    return f"{100 * share:.{2 if found.high - found.low < 0.01 else 1}f}"


def _interval(found: Difference, comparison: Comparison) -> str:
    ends = f"{points(found.low, found)} to {points(found.high, found)}"
    return f"{100 * found.confidence:.3g} % interval {ends}, {comparison.repeats} repeats"


def _what_it_takes(found: Difference, comparison: Comparison) -> str:
    spread, repeats = spread_of(found.each, comparison.grain), comparison.repeats
    seen = visible_difference(spread, repeats)
    now = f"{repeats} repeats show a difference of about {points(seen, found)} points"
    if float(points(abs(found.mean), found)) == 0:
        return f"{now}; more repeats are needed to see a smaller one."
    needed = repeats_needed(abs(found.mean), spread)
    many = f"about {needed:,}" if needed is not None else f"more than {_MOST_REPEATS:,}"
    return f"{now}; to see one of {points(abs(found.mean), found)} points takes {many}."


def visible_difference(spread: float, repeats: int) -> float:
    """A true difference that so many repeats show four times out of five, where differences spread so much."""
    error = 1 - CONFIDENCE
    return (quantile(1 - error / 2, repeats - 1) + quantile(_POWER, repeats - 1)) * spread / math.sqrt(repeats)


def repeats_needed(difference: float, spread: float) -> int | None:
    """The least number of repeats that show this difference four times out of five; None for more than 1,000."""
    if visible_difference(spread, _MOST_REPEATS) > difference:
        return None
    low, high = 1, _MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if visible_difference(spread, middle) <= difference else (middle, high)
    return high


def cells(one: Summary, comparison: Comparison) -> tuple[str, str, str]:
    """A row's accuracy, spread and difference with its interval, as text; empty where there is none."""
    spread = "" if math.isnan(one.spread) else f"{100 * one.spread:.2f}"
    found = comparison.differences.get(one.policy)
    if found is None or one.policy == comparison.reference:
        difference = ""
    else:
        ends = "" if math.isnan(found.low) else f" ({100 * found.low:+.2f} to {100 * found.high:+.2f})"
        difference = f"{100 * found.mean:+.2f}{ends}"
    return f"{one.mean:.2%}", spread, difference


# What an interval shows. Red is the colour of limits.
_COLOURS = {"better": GREEN, "worse": AMBER, None: BLUE}
_MEANINGS = {"better": "shown to be better", "worse": "shown to be worse", None: "no difference shown"}


def plot_evaluation(comparison: Comparison, path: str | Path, remark: str = "") -> None:
    """Write a PNG; a single repeat, or policy, has no intervals. Raises PlotError without matplotlib, OSError."""
    names = [one.policy for one in comparison.summaries]
    has_intervals = comparison.reference is not None and comparison.repeats > 1
    width = 5.3 + 0.075 * max(map(len, names)) + 4.1 * has_intervals
    height = 0.8 + 0.25 * has_intervals + 0.4 * len(names)
    with drawn_figure(path, width, height, "Accuracy with each policy", [remark]) as figure:
        axes = figure.subplots(1, 1 + has_intervals, sharey=True, squeeze=False)[0]
        _draw_accuracies(axes[0], comparison)
        if has_intervals:
            _draw_differences(axes[1], comparison)
            _add_legend(figure, comparison)
        label_rows(axes[0], names)
        for one in axes:
            one.grid(axis="x")
            one.margins(x=0.07)


def _draw_accuracies(axes: Any, comparison: Comparison) -> None:
    for row, one in enumerate(comparison.summaries):
        each = [100 * accuracy for accuracy in one.accuracies]
        axes.scatter(each, [row] * len(each), s=22, color=PALE_BLUE, zorder=2)
        axes.plot([100 * one.mean] * 2, [row - 0.26, row + 0.26], color=INK, linewidth=2.2, zorder=3)
        axes.annotate(f"{one.mean:.2%}", (1.01, row), xycoords=("axes fraction", "data"), va="center")
    axes.set_title("points: trainings, bars: means")
    axes.set_xlabel("accuracy in per cent")


def _draw_differences(axes: Any, comparison: Comparison) -> None:
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    for row, one in enumerate(comparison.summaries):
        if one.policy == comparison.reference:
            axes.annotate(" compared with", (0, row), va="center", color=FAINT)
            continue
        difference = comparison.differences[one.policy]
        each = [100 * value for value in difference.each]
        axes.scatter(each, [row] * len(each), s=16, color=PALE_BLUE, zorder=2)
        reach = [[100 * (difference.mean - difference.low)], [100 * (difference.high - difference.mean)]]
        style = {"fmt": "o", "ms": 5, "capsize": 3.5, "lw": 1.8, "zorder": 3, "color": _COLOURS[difference.shown]}
        axes.errorbar([100 * difference.mean], [row], xerr=reach, **style)
    axes.set_title(f"difference to {comparison.reference}, 95 % interval")
    axes.set_xlabel("percentage points, within a repeat")


def _add_legend(figure: Any, comparison: Comparison) -> None:
    """Of the colours that are there."""
    others = [difference for name, difference in comparison.differences.items() if name != comparison.reference]
    shown = {difference.shown for difference in others if not math.isnan(difference.low)}
    entries = [(colour, _MEANINGS[what]) for what, colour in _COLOURS.items() if what in shown]
    handles = line_handles(entries, lw=1.8, marker="o", ms=5)
    figure.legend(handles=handles, loc="outside lower right", ncols=3)

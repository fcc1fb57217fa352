"""A comparison as a picture: every training and the means, and beside them the differences with their intervals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from variegate.plotting import AMBER, BLUE, FAINT, GREEN, INK, PALE_BLUE, drawn_figure, label_rows, line_handles
from variegate.search.compare import Comparison

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

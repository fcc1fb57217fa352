"""A comparison as a picture: every training and the means, and beside them the differences with their intervals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from variegate.plotting import AMBER, BLUE, FAINT, GREEN, GRID, INK, PALE_BLUE, drawable
from variegate.search.canvas import add_axes, new_figure, save
from variegate.search.compare import Comparison

_WIDTH, _BETWEEN, _RIGHT, _TOP, _ROW, _BELOW = 3.7, 0.9, 0.3, 1.05, 0.4, 0.85
# What an interval shows. Red is the colour of limits.
_COLOURS = {"better": GREEN, "worse": AMBER, None: BLUE}
_MEANINGS = {"better": "shown to be better", "worse": "shown to be worse", None: "no difference shown"}


def plot_evaluation(comparison: Comparison, path: str | Path, remark: str = "") -> None:
    """Write a PNG; a single repeat, or policy, has no intervals. Raises PlotError without matplotlib, OSError."""
    names = [drawable(one.policy) for one in comparison.summaries]
    left = 0.45 + 0.075 * max(map(len, names))
    high = _ROW * (len(names) + 0.4)
    has_intervals = comparison.reference is not None and comparison.repeats > 1
    across = left + _WIDTH * (1 + has_intervals) + (_BETWEEN if has_intervals else 0.55) + _RIGHT
    figure = new_figure(across, _TOP + high + _BELOW, "Accuracy with each policy", remark)
    axes = add_axes(figure, left, _TOP, _WIDTH, high)
    _draw_accuracies(axes, comparison)
    axes.set_yticks(range(len(names)), names, fontsize=9, color=INK)
    if has_intervals:
        beside = add_axes(figure, left + _WIDTH + _BETWEEN, _TOP, _WIDTH, high)
        _draw_differences(beside, comparison)
        beside.set_yticks([])
        _legend(figure, comparison)
    save(figure, path)


def _draw_accuracies(axes: Any, comparison: Comparison) -> None:
    for place, one in enumerate(comparison.summaries):
        each = [100 * accuracy for accuracy in one.accuracies]
        axes.scatter(each, [place] * len(each), s=22, color=PALE_BLUE, zorder=2)
        axes.plot([100 * one.mean] * 2, [place - 0.26, place + 0.26], color=INK, linewidth=2.2, zorder=3)
        beside = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8.5, "color": INK}
        axes.annotate(f"{one.mean:.2%}", (1.01, place), **beside)
    _dress(axes, len(comparison.summaries), "points: trainings, bars: means", "accuracy in per cent")


def _draw_differences(axes: Any, comparison: Comparison) -> None:
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    for place, one in enumerate(comparison.summaries):
        if one.policy == comparison.reference:
            axes.annotate(" compared with", (0, place), va="center", fontsize=8.5, color=FAINT)
            continue
        found = comparison.differences[one.policy]
        each = [100 * difference for difference in found.each]
        axes.scatter(each, [place] * len(each), s=16, color=PALE_BLUE, zorder=2)
        reach = [[100 * (found.mean - found.low)], [100 * (found.high - found.mean)]]
        colour = _COLOURS[found.shown]
        axes.errorbar(
            [100 * found.mean], [place], xerr=reach, fmt="o", ms=5, color=colour, capsize=3.5, lw=1.8, zorder=3
        )
    title = f"difference to {comparison.reference}, 95 % interval"
    _dress(axes, len(comparison.summaries), title, "percentage points, within a repeat")


def _dress(axes: Any, rows: int, title: str, below: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, color=INK, pad=6)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xlabel(below, fontsize=8.5, color=FAINT)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.07)


def _legend(figure: Any, comparison: Comparison) -> None:
    """Of the colours that are there."""
    from matplotlib.lines import Line2D

    others = [found for name, found in comparison.differences.items() if name != comparison.reference]
    there = [what for what in _COLOURS if any(found.shown == what and not math.isnan(found.low) for found in others)]
    handles = [Line2D([], [], color=_COLOURS[what], lw=1.8, marker="o", ms=5, label=_MEANINGS[what]) for what in there]
    place = (1 - _RIGHT / figure.get_figwidth(), 0.01)
    figure.legend(
        handles=handles, loc="lower right", bbox_to_anchor=place, ncols=3, frameon=False, fontsize=8.5, labelcolor=INK
    )

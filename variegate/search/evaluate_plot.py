"""The accuracies of policies as points: every training, and the means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from variegate.plotting import FAINT, GREEN, GRID, INK, PALE_BLUE, RED, drawable
from variegate.search.canvas import add_axes, new_figure, save
from variegate.search.evaluate import Summary

_LEFT, _WIDTH, _TOP, _ROW = 1.6, 6.0, 0.95, 0.36


def plot_evaluation(summaries: Sequence[Summary], path: str | Path, remark: str = "") -> None:
    """Write a PNG, the best mean in a colour of its own. Raises PlotError without matplotlib, OSError."""
    high = _ROW * (len(summaries) + 0.6)
    title = "Accuracy with each policy"
    figure = new_figure(_LEFT + _WIDTH + 0.9, _TOP + high + 0.6, title, f"{remark}; points: trainings, bars: means")
    axes = add_axes(figure, _LEFT, _TOP, _WIDTH, high)
    best = max(summary.mean for summary in summaries)
    for place, one in enumerate(summaries):
        colour = RED if one.mean == best else GREEN
        axes.plot([100 * one.mean] * 2, [place - 0.3, place + 0.3], color=colour, linewidth=2.5, zorder=3)
        each = [100 * accuracy for accuracy in one.accuracies]
        axes.scatter(each, [place] * len(each), s=26, color=PALE_BLUE, zorder=2)
        beside = {"xycoords": ("axes fraction", "data"), "va": "center", "fontsize": 8.5, "color": colour}
        axes.annotate(f"{one.mean:.2%}", (1.01, place), **beside)
    axes.set_yticks(range(len(summaries)), [drawable(one.policy) for one in summaries], fontsize=9, color=INK)
    axes.set_ylim(len(summaries) - 0.4, -0.6)
    axes.set_xlabel("accuracy in per cent", fontsize=8.5, color=FAINT)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.margins(x=0.06)
    save(figure, path)

"""Strategies under each other: how long each takes beside the ideal, and how many devices are at work meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from variegate.engine.simulation.run import BINS, Outcome
from variegate.engine.simulation.scenario import seconds
from variegate.plotting import FAINT, FRAME, GREEN, GRID, INK, PALE_BLUE, RED, new_figure

_ROW = 0.62  # inches
_TOP, _BOTTOM = 1.36, 0.42


def draw_plot(outcomes: Sequence[Outcome], ideal: float, lines: Sequence[str], path: Path) -> None:
    """Write a PNG. Raises PlotError without matplotlib, OSError where the file cannot be written."""
    rows = len(outcomes)
    height = _TOP + _BOTTOM + _ROW * rows
    figure = new_figure(10.6, height)
    bottom, tall = _BOTTOM / height, _ROW * rows / height
    end = max(outcome.makespan for outcome in outcomes)
    _draw_makespans(figure.add_axes((0.155, bottom, 0.315, tall)), outcomes, ideal, end)
    _draw_work(figure.add_axes((0.52, bottom, 0.455, tall)), outcomes, ideal, end)
    title = _title(outcomes, ideal)
    figure.text(0.018, 1 - 0.32 / height, title, fontsize=14, fontweight="bold", color=INK, va="center")
    for place, line in enumerate(lines):
        figure.text(0.018, 1 - (0.62 + 0.2 * place) / height, line, fontsize=8.5, color=FAINT, va="center")
    headings = (
        (0.155, "left", f"simulated time until all is done; the line is the ideal, {seconds(ideal)}"),
        (0.52, "left", "devices at work, over the same time"),
        (0.978, "right", "mean"),
    )
    for x, side, text in headings:
        y = 1 - (_TOP - 0.16) / height
        figure.text(x, y, text, fontsize=9, fontstyle="italic", color=FAINT, ha=side, va="center")
    figure.savefig(path, format="png")


def _draw_makespans(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        axes.barh(row, outcome.makespan, height=0.62, color=_colour(outcome), zorder=2)
        text = f"{outcome.makespan / ideal:.2f}x"
        axes.text(outcome.makespan + 0.015 * end, row, text, va="center", fontsize=9.5, color=INK, zorder=4)
        axes.text(-0.03 * end, row, outcome.strategy.name, ha="right", va="center", fontsize=9.5, color=INK)
    axes.axvline(ideal, color=RED, lw=1.4, zorder=3)
    _finish(axes, len(outcomes), end, 1.16)


def _draw_work(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        floor = row + 0.36
        axes.plot([0, end], [floor, floor], color=FRAME, lw=0.8, zorder=1)
        times = np.linspace(0, outcome.makespan, BINS + 1)
        heights = floor - 0.76 * np.clip(np.append(outcome.at_work, outcome.at_work[-1]), 0, 1)
        axes.fill_between(times, floor, heights, step="post", color=_colour(outcome), lw=0, zorder=2)
        axes.plot([outcome.makespan] * 2, [floor, floor - 0.76], color=INK, lw=0.9, zorder=3)
        mean = f"{outcome.utilisation.mean():.0%}"
        axes.text(1.1 * end, floor - 0.38, mean, ha="right", va="center", fontsize=9.5, color=INK)
    axes.axvline(ideal, color=RED, lw=0.9, alpha=0.6, zorder=4)
    _finish(axes, len(outcomes), end, 1.1)


def _finish(axes: Any, rows: int, end: float, room: float) -> None:
    """``room``: for the numbers at the end."""
    axes.set_xlim(0, room * end)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.tick_params(axis="x", colors=FAINT, labelsize=8.5, length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g} s" if value else "0")
    axes.locator_params(axis="x", nbins=5)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1.02 * end])
    axes.grid(axis="x", color=GRID, lw=0.8, zorder=0)
    for place in ("top", "right", "bottom"):
        axes.spines[place].set_visible(False)
    axes.spines["left"].set_color(FRAME)


def _colour(outcome: Outcome) -> str:
    return GREEN if outcome.strategy.steal else PALE_BLUE


def _title(outcomes: Sequence[Outcome], ideal: float) -> str:
    best, worst = (choose(outcomes, key=lambda outcome: outcome.makespan) for choose in (min, max))
    if len(outcomes) == 1:
        return f"{best.strategy.name} takes {best.makespan / ideal:.2f}x the ideal"
    return (
        f"{best.strategy.name} takes {best.makespan / ideal:.2f}x the ideal, "
        f"{worst.strategy.name} {worst.makespan / ideal:.2f}x"
    )

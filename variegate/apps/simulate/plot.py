"""Strategies under each other: how long each takes beside the ideal, and how many devices are at work meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from variegate.apps.plotting import FRAME, GREEN, INK, PALE_BLUE, RED, drawn_figure, label_rows
from variegate.apps.simulate.run import BINS, Outcome
from variegate.apps.simulate.scenario import seconds


def draw_plot(outcomes: Sequence[Outcome], ideal: float, lines: Sequence[str], path: Path) -> None:
    """Write a PNG. Raises PlotError without matplotlib, OSError where the file cannot be written."""
    end = max(outcome.makespan for outcome in outcomes)
    height = 0.75 + 0.62 * len(outcomes)
    with drawn_figure(path, 10.6, height, _title(outcomes, ideal), lines) as figure:
        makespans, work = figure.subplots(1, 2, sharey=True, width_ratios=[0.41, 0.59])
        _draw_makespans(makespans, outcomes, ideal, end)
        _draw_work(work, outcomes, ideal, end)
        label_rows(makespans, [outcome.strategy.name for outcome in outcomes])
        for axes in (makespans, work):
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g} s" if value else "0")
            axes.locator_params(axis="x", nbins=5)
            axes.set_xticks([tick for tick in axes.get_xticks() if tick <= 1.02 * end])
            axes.grid(axis="x")
            axes.spines["left"].set_visible(True)
        makespans.set_xlim(0, 1.16 * end)
        work.set_xlim(0, 1.02 * end)


def _draw_makespans(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        axes.barh(row, outcome.makespan, height=0.62, color=_colour(outcome), zorder=2)
        axes.text(outcome.makespan + 0.015 * end, row, f"{outcome.makespan / ideal:.2f}x", va="center", zorder=4)
    axes.axvline(ideal, color=RED, lw=1.4, zorder=3)
    axes.set_title(f"simulated time; the line is the ideal, {seconds(ideal)}")


def _draw_work(axes: Any, outcomes: Sequence[Outcome], ideal: float, end: float) -> None:
    for row, outcome in enumerate(outcomes):
        floor = row + 0.36
        axes.plot([0, end], [floor, floor], color=FRAME, lw=0.8, zorder=1)
        times = np.linspace(0, outcome.makespan, BINS + 1)
        heights = floor - 0.76 * np.clip(np.append(outcome.at_work, outcome.at_work[-1]), 0, 1)
        axes.fill_between(times, floor, heights, step="post", color=_colour(outcome), lw=0, zorder=2)
        axes.plot([outcome.makespan] * 2, [floor, floor - 0.76], color=INK, lw=0.9, zorder=3)
        axes.annotate(f"{outcome.utilisation.mean():.0%}", (1.01, row), xycoords=("axes fraction", "data"), va="center")
    axes.axvline(ideal, color=RED, lw=0.9, alpha=0.6, zorder=4)
    axes.set_title("devices at work, over the same time, and their mean")


def _colour(outcome: Outcome) -> str:
    return GREEN if outcome.strategy.steal else PALE_BLUE


def _title(outcomes: Sequence[Outcome], ideal: float) -> str:
    best, worst = (choose(outcomes, key=lambda outcome: outcome.makespan) for choose in (min, max))
    title = f"{best.strategy.name} takes {best.makespan / ideal:.2f}x the ideal"
    return title + (f", {worst.strategy.name} {worst.makespan / ideal:.2f}x" if len(outcomes) > 1 else "")

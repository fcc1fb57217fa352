"""A study in pictures: throughput against the ceiling, and how long steps waited for their data, side by side."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from variegate.apps.plotting import BLUE, FAINT, GREEN, INK, RED, drawn_figure, label_rows
from variegate.apps.train.study.feeds import CEILING, OURS
from variegate.apps.train.study.report import FedStep, Study, fact_lines, ms_text

THROUGHPUT_NAME, WAITING_NAME = "throughput.png", "waiting.png"


def draw_throughput(found: Study, path: Path) -> None:
    """Write a PNG: a bar for each feed, as long as the share that is beside it. Raises PlotError without matplotlib,
    OSError."""
    feeds = found.feeds
    # A span's share is of the ceiling's span beside it, so that what else runs on the machine slows both.
    shares = [[rate / most for rate, most in zip(one.spans, feeds[0].spans, strict=True)] for one in feeds]
    end = 1.3 * max(map(max, shares))
    title = "Training with each feed, against a batch that is there already"
    with drawn_figure(path, 9.6, 1.0 + 0.5 * len(feeds), title, fact_lines(found)) as figure:
        axes = figure.subplots()
        for row, one in enumerate(feeds):
            axes.barh(row, one.ceiling_share, height=0.62, color=_colour(one), zorder=2)
            axes.plot([min(shares[row]), max(shares[row])], [row, row], color=INK, lw=1.1, alpha=0.55, zorder=3)
            rate = f"{one.images_per_second:,.0f} images/s"
            text = rate if one.name == CEILING else f"{one.ceiling_share:.1%}   {rate}"
            at = max(*shares[row], 1.0) + 0.01 * end
            axes.text(at, row, text, va="center", fontweight="bold" if one.name == OURS else "normal")
        axes.axvline(1.0, color=RED, lw=1.2, zorder=4)
        label_rows(axes, [one.name for one in feeds])
        axes.set_xlim(0, end)
        axes.set_xlabel("share of the ceiling's span beside each: median; thin lines: least to most")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(axis="x")


def draw_waiting(found: Study, path: Path) -> None:
    """Write a PNG: histograms of the time in ``next()``, and of the GPU's utilisation where it was sampled. Raises
    PlotError without matplotlib, OSError."""
    feeds = found.feeds
    is_sampled = any(one.utilisation for one in feeds)
    rows, width = 1 + is_sampled, 3.1 * len(feeds)
    title = "How long a step waits for its data"
    with drawn_figure(path, max(7.5, width), 2.7 * rows, title, fact_lines(found)) as figure:
        every = figure.subplots(rows, len(feeds), squeeze=False, sharey="row", sharex="row")
        for place, one in enumerate(feeds):
            _histogram(every[0][place], one, found.edges)
            if is_sampled:
                _busy(every[1][place], one)
        every[0][0].set_ylabel("share of steps")
        if is_sampled:
            every[1][0].set_ylabel("share of samples")


def _histogram(axes: Any, one: FedStep, edges: tuple[float, ...]) -> None:
    widths = [high - low for low, high in pairwise(edges)]
    shares = [count / one.steps for count in one.waiting]
    axes.bar(edges[:-1], shares, widths, align="edge", color=_colour(one), edgecolor="white", lw=0.5)
    axes.set_xscale("log")
    axes.axvline(one.step_ms, color=RED, lw=1, ls="--")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_title(f"{one.name}\nmean {ms_text(one.next_mean_ms)} ms, {one.next_share:.1%} of a step", color=INK)
    axes.set_xlabel("ms in next(); dashed: a step")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y")


def _busy(axes: Any, one: FedStep) -> None:
    samples = one.utilisation or (0,) * 10
    total = sum(samples) or 1
    shares = [count / total for count in samples]
    axes.bar(range(0, 100, 10), shares, 10, align="edge", color=_colour(one), edgecolor="white", lw=0.5)
    axes.set_title(f"GPU busy {one.utilisation_mean or 0:.0%}", color=INK)
    axes.set_xlabel("utilisation, %")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y")


def _colour(one: FedStep) -> str:
    return {CEILING: FAINT, OURS: GREEN}.get(one.name, BLUE)

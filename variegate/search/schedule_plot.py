"""A schedule as two maps over the epochs: how often each operation is applied, and how strongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.plotting import FAINT, INK, LABEL, drawn_figure
from variegate.policies import Schedule
from variegate.policies.spaces import space

_OFTEN, _STRONGLY = ("#f4f7f8", "#9cc4c9", "#2f7f86", "#12393f"), ("#f8e6cf", "#efb26f", "#d0692c", "#6e1f1a")

Floats = npt.NDArray[np.float64]


def plot_schedule(schedule: Schedule, path: str | Path, title: str = "What was applied, and when") -> None:
    """Write a PNG. An operation that a policy has twice has two thin rows; the one applied most often is on top.

    A magnitude is left blank while its probability is 0. Raises PlotError without matplotlib, OSError.
    """
    names, probability, magnitude = tables_of(schedule)
    order = np.argsort([-np.nanmean(p) for p in probability], kind="stable")
    names = [names[i] for i in order]
    policies = f"{len(schedule.segments)} {'policies' if len(schedule.segments) > 1 else 'policy'}"
    remark = f"{schedule.epochs} epochs, {policies}, magnitudes of the space {schedule.space}"
    edges = np.cumsum([0, *(segment.epochs for segment in schedule.segments)])
    # By the longest name, for operations of one's own.
    width, height = 9.3 + 0.075 * max(0, max(map(len, names)) - 12), 1.2 + 2 * 0.225 * len(names)
    with drawn_figure(path, width, height, title, [remark]) as figure:
        panels = (
            ("probability", probability, 1.0, _OFTEN, 3),
            ("magnitude", magnitude, space(schedule.space).bins - 1, _STRONGLY, 4),
        )
        both = figure.subplots(2, sharex=True)
        for axes, (what, tables, most, colours, ticks) in zip(both, panels, strict=True):
            mesh = _map(axes, [tables[i] for i in order], edges, most, colours)
            axes.set_yticks(np.arange(len(names)) + 0.5, names)
            axes.tick_params(axis="y", labelcolor=INK, labelsize=LABEL)
            axes.set_title(what)
            marks = np.linspace(0, most, ticks).round(1)
            figure.colorbar(
                mesh, ax=axes, ticks=marks, fraction=0.02, aspect=1.9 * len(names), pad=0.01
            ).outline.set_visible(False)
        _mark_without_magnitude(both[1], names, schedule)
        both[1].set_xlabel("epoch")


def tables_of(schedule: Schedule) -> tuple[list[str], list[Floats], list[Floats]]:
    """Names, and for each: probability and magnitude [copy, segment]; NaN where there is no such tuple or it is off."""
    rows: dict[str, int] = {}
    for segment in schedule.segments:
        names = [op for op, _, _ in segment.policy]
        rows.update({op: max(rows.get(op, 1), names.count(op)) for op in names})
    size = len(schedule.segments)
    probability = {op: np.full((n, size), np.nan) for op, n in rows.items()}
    magnitude = {op: np.full((n, size), np.nan) for op, n in rows.items()}
    for s, segment in enumerate(schedule.segments):
        seen = dict.fromkeys(rows, 0)
        for op, p, level in segment.policy:
            probability[op][seen[op], s] = p
            magnitude[op][seen[op], s] = level if p > 0 else np.nan
            seen[op] += 1
    return list(rows), [np.nan_to_num(p) for p in probability.values()], list(magnitude.values())


def _map(axes: Any, tables: list[Floats], edges: npt.NDArray[np.int64], most: float, colours: tuple[str, ...]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("", colours)
    for row, table in enumerate(tables):
        # A little air between operations, none between the copies of one.
        marks = np.linspace(row + 0.07, row + 0.93, len(table) + 1)
        mesh = axes.pcolormesh(edges, marks, np.ma.masked_invalid(table), cmap=shades, vmin=0, vmax=most)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(len(tables), 0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return mesh


def _mark_without_magnitude(axes: Any, names: list[str], schedule: Schedule) -> None:
    rules = space(schedule.space).rules
    for row, name in enumerate(names):
        if rules[name].low == rules[name].high:
            axes.axhspan(row + 0.07, row + 0.93, color="#f1f3f4", zorder=2)
            axes.text(schedule.epochs / 2, row + 0.5, "no magnitude", color=FAINT, ha="center", va="center")

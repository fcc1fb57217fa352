"""Searches in pictures: policies with their intervals, the schedule over the epochs, and the population as a tree."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from variegate.apps.plotting import (
    AMBER,
    BLUE,
    FAINT,
    GREEN,
    INK,
    LABEL,
    PALE_BLUE,
    drawn_figure,
    label_rows,
    line_handles,
)
from variegate.arrays import Float64Array, Int64Array
from variegate.learn.history import History, Row, members_of
from variegate.learn.standings import RaceResult, stage_name
from variegate.learn.verdict import Comparison
from variegate.policies import Schedule
from variegate.policies.custom_space import magnitudes

_DEAD, _ALIVE, _BEST = "#d3dae0", "#6f8fa8", GREEN
_TURN = 0.5  # The part of a step within which the line of a copy reaches its member.
_OFTEN, _STRONGLY = ("#f4f7f8", "#9cc4c9", "#2f7f86", "#12393f"), ("#f8e6cf", "#efb26f", "#d0692c", "#6e1f1a")

Line = list[tuple[float, float]]
Lines = dict[str, list[Line]]


class PolicyRow(NamedTuple):
    """A row of a picture. ``scores``: of each training run. ``each``, ``interval``: differences to the reference, and
    their mean with its ends; empty for the reference. ``shown``: "better", "worse" or None."""

    name: str
    scores: tuple[float, ...]
    mean: float
    each: tuple[float, ...] = ()
    interval: tuple[float, ...] = ()
    shown: str | None = None


# Meaning of an interval, for labels. Red is the color of limits.
_COLORS = {"better": GREEN, "worse": AMBER, None: BLUE}
_MEANINGS = {"better": "shown to be better", "worse": "shown to be worse", None: "no difference shown"}
_LINE_WIDTH = 100


def comparison_rows(comparison: Comparison) -> list[PolicyRow]:
    """Rows of an evaluation."""
    rows = []
    for one in comparison.summaries:
        row = PolicyRow(one.policy, one.accuracies, one.mean)
        found = comparison.differences.get(one.policy)
        if found is not None and comparison.repeats > 1:
            row = row._replace(each=found.each, interval=(found.mean, found.low, found.high), shown=found.shown)
        rows.append(row)
    return rows


def race_rows(result: RaceResult) -> list[PolicyRow]:
    """Rows of a race: each candidate by its difference to the leader of its stage."""
    rows = []
    stages = len({one.stage for one in result.standings})
    for one in result.standings:
        name = one.candidate if stages == 1 else f"{one.candidate} ({stage_name(one.stage)})"
        row = PolicyRow(name, (), one.mean)
        if math.isfinite(one.low) and one.low < one.high:
            shown = None if one.dropped is None else "worse"
            row = row._replace(interval=(-one.behind, -one.high, -one.low), shown=shown)
        rows.append(row)
    return rows


def plot_comparison(comparison: Comparison, path: str | Path, remark: str = "") -> None:
    """Write a PNG of an evaluation; a single repeat, or policy, has no intervals. Raises PlotError without matplotlib,
    OSError."""
    rows = comparison_rows(comparison)
    with drawn_figure(path, *_size_of(rows), "Accuracy with each policy", [remark]) as figure:
        _draw_policies(figure, rows, f"difference to {comparison.reference}, 95 % interval of trainings")


def plot_race(result: RaceResult, path: str | Path) -> None:
    """Write a PNG of a race: candidates, intervals, verdict and cost. Raises PlotError without matplotlib, OSError."""
    rows = race_rows(result)
    with drawn_figure(path, *_size_of(rows), "Race of policies", _wrapped(result.verdict, result.cost)) as figure:
        _draw_policies(figure, rows, "difference to the leader of the stage, simultaneous intervals")


def plot_search(schedule: Schedule, comparison: Comparison | None, path: str | Path, *lines: str) -> None:
    """Write a PNG of a search: its schedule and, if present, the final comparison. ``lines``: verdict and cost. Raises
    PlotError without matplotlib, OSError."""
    width, tall = _schedule_size(schedule)
    rows = [] if comparison is None else comparison_rows(comparison)
    below = _size_of(rows)[1] if rows else 0.0
    with drawn_figure(path, width, tall + below, "Search of a schedule", _wrapped(*lines)) as figure:
        parts = figure.subfigures(1 + bool(rows), 1, height_ratios=[tall, below][: 1 + bool(rows)], squeeze=False)
        _draw_schedule(parts[0, 0], schedule)
        if comparison is not None:
            _draw_policies(parts[1, 0], rows, f"difference to {comparison.reference}, 95 % interval")


def _wrapped(*texts: str) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(text, _LINE_WIDTH)]


def _size_of(rows: Sequence[PolicyRow]) -> tuple[float, float]:
    has_intervals = any(row.interval for row in rows)
    width = 5.3 + 0.075 * max(len(row.name) for row in rows) + 4.1 * has_intervals
    return width, 0.8 + 0.25 * has_intervals + 0.4 * len(rows)


def _draw_policies(figure: Any, rows: Sequence[PolicyRow], title: str) -> None:
    has_intervals = any(row.interval for row in rows)
    axes = figure.subplots(1, 1 + has_intervals, sharey=True, squeeze=False)[0]
    _draw_accuracies(axes[0], rows)
    if has_intervals:
        _draw_differences(axes[1], rows, title)
        shown = {row.shown for row in rows if row.interval}
        entries = [(color, _MEANINGS[what]) for what, color in _COLORS.items() if what in shown]
        handles = line_handles(entries, lw=1.8, marker="o", ms=5)
        figure.legend(handles=handles, loc="outside lower right", ncols=3)
    label_rows(axes[0], [row.name for row in rows])
    for one in axes:
        one.grid(axis="x")
        one.margins(x=0.07)


def _draw_accuracies(axes: Any, rows: Sequence[PolicyRow]) -> None:
    for place, row in enumerate(rows):
        scores = [100 * score for score in row.scores]
        axes.scatter(scores, [place] * len(scores), s=22, color=PALE_BLUE, zorder=2)
        axes.plot([100 * row.mean] * 2, [place - 0.26, place + 0.26], color=INK, linewidth=2.2, zorder=3)
        axes.annotate(f"{row.mean:.2%}", (1.01, place), xycoords=("axes fraction", "data"), va="center")
    axes.set_title("points: training runs, bars: means" if any(row.scores for row in rows) else "mean accuracy")
    axes.set_xlabel("accuracy in percent")


def _draw_differences(axes: Any, rows: Sequence[PolicyRow], title: str) -> None:
    axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
    for place, row in enumerate(rows):
        if not row.interval:
            axes.annotate(" compared with", (0, place), va="center", color=FAINT)
            continue
        each = [100 * value for value in row.each]
        axes.scatter(each, [place] * len(each), s=16, color=PALE_BLUE, zorder=2)
        mean, low, high = (100 * value for value in row.interval)
        style = {"fmt": "o", "ms": 5, "capsize": 3.5, "lw": 1.8, "zorder": 3, "color": _COLORS[row.shown]}
        axes.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], **style)
    axes.set_title(title)
    axes.set_xlabel("percentage points, within a round")


def plot_schedule(schedule: Schedule, path: str | Path, title: str = "What was applied, and when") -> None:
    """Write a PNG. An operation that a policy has twice has two thin rows; the one applied most often is on top.

    Magnitudes are blank where their probability is 0, and for operations without magnitude. Raises PlotError without
    matplotlib, OSError.
    """
    policies = f"{len(schedule.segments)} {'policies' if len(schedule.segments) > 1 else 'policy'}"
    remark = f"{schedule.epochs} epochs, {policies}, magnitudes of the space {magnitudes(schedule.space).name}"
    with drawn_figure(path, *_schedule_size(schedule), title, [remark]) as figure:
        _draw_schedule(figure, schedule)


def _schedule_size(schedule: Schedule) -> tuple[float, float]:
    names = tables_of(schedule)[0]
    # By the longest name, for custom operations.
    return 9.3 + 0.075 * max(0, max(map(len, names)) - 12), 1.2 + 2 * 0.225 * len(names)


def _draw_schedule(figure: Any, schedule: Schedule) -> None:
    names, probability, magnitude = tables_of(schedule)
    order = np.argsort([-np.nanmean(p) for p in probability], kind="stable")
    names = [names[i] for i in order]
    edges = np.cumsum([0, *(segment.epochs for segment in schedule.segments)])
    panels = (
        ("probability", probability, 1.0, _OFTEN, 3),
        ("magnitude", magnitude, magnitudes(schedule.space).bins - 1, _STRONGLY, 4),
    )
    both = figure.subplots(2, sharex=True)
    for axes, (what, tables, most, colors, ticks) in zip(both, panels, strict=True):
        mesh = _map(axes, [tables[i] for i in order], edges, most, colors)
        axes.set_yticks(np.arange(len(names)) + 0.5, names)
        axes.tick_params(axis="y", labelcolor=INK, labelsize=LABEL)
        axes.set_title(what)
        marks = np.linspace(0, most, ticks).round(1)
        bar = figure.colorbar(mesh, ax=axes, ticks=marks, fraction=0.02, aspect=1.9 * len(names), pad=0.01)
        bar.outline.set_visible(False)
    both[1].set_xlabel("epoch")


def tables_of(schedule: Schedule) -> tuple[list[str], list[Float64Array], list[Float64Array]]:
    """Names, and for each: probability and magnitude [copy, segment]; NaN where there is no such tuple or it is off."""
    rows: dict[str, int] = {}
    for segment in schedule.segments:
        names = [op for op, _, _ in segment.policy]
        rows.update({op: max(rows.get(op, 1), names.count(op)) for op in names})
    size = len(schedule.segments)
    known = magnitudes(schedule.space)
    ends = {op: [known.rules[op].argument(level) for level in (0.0, known.bins - 1.0)] for op in rows}
    has_magnitude = {op for op, (first, last) in ends.items() if first != last}
    probability = {op: np.full((n, size), np.nan) for op, n in rows.items()}
    magnitude = {op: np.full((n, size), np.nan) for op, n in rows.items()}
    for s, segment in enumerate(schedule.segments):
        seen = dict.fromkeys(rows, 0)
        for op, p, level in segment.policy:
            probability[op][seen[op], s] = p
            magnitude[op][seen[op], s] = level if p > 0 and op in has_magnitude else np.nan
            seen[op] += 1
    return list(rows), [np.nan_to_num(p) for p in probability.values()], list(magnitude.values())


def _map(axes: Any, tables: list[Float64Array], edges: Int64Array, most: float, colors: tuple[str, ...]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("", colors)
    # A little air between operations, none between the copies of one.
    marks = [np.linspace(row + 0.07, row + 0.93, len(table) + 1) for row, table in enumerate(tables)]
    air = np.full((1, len(edges) - 1), np.nan)
    values = np.concatenate([part for table in tables for part in (table, air)][:-1])
    mesh = axes.pcolormesh(edges, np.concatenate(marks), np.ma.masked_invalid(values), cmap=shades, vmin=0, vmax=most)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(len(tables), 0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    return mesh


def plot_population(history: History, path: str | Path, title: str = "The population") -> None:
    """Write a PNG: a line per member, a slanted one where it copied another, the way to the best member highlighted.

    Raises PlotError without matplotlib, ValueError for a history without scores, OSError.
    """
    size = history.settings.size
    best = history.best
    way = members_of(history, best)
    score = history.steps[-1][best].score
    is_share = all(0 <= row.score <= 1 for row in history.rows if math.isfinite(row.score))
    copies = sum(row.copied_from is not None for row in history.rows)
    shown = f"{score:.1%}" if is_share else f"{score:.4g}"
    remark = f"{size} members, {history.epochs} epochs, {copies} copies; the best in the end is member {best}: {shown}"
    tall = max(1.6, 0.2 * size)
    with drawn_figure(path, 9.0, tall + 3.7, title, [remark]) as figure:
        tree, scores = figure.subplots(2, sharex=True, height_ratios=[tall, 2.5])
        _draw_tree(tree, history, way)
        _draw_scores(scores, history, way, is_share)
        for axes in (tree, scores):
            axes.set_xlim(0, history.epochs)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(axis="x")
        tree.set_title("who copied whom")
        scores.set_title("validation accuracy" if is_share else "score")
        scores.set_xlabel("epoch")
        meanings = ("the best member's way", "led to a member of the last step", "given up")
        handles = line_handles(list(zip((_BEST, _ALIVE, _DEAD), meanings, strict=True)), lw=2)
        place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0}
        tree.legend(handles=handles, ncols=3, handlelength=1.4, columnspacing=1.4, **place)


def _draw_tree(axes: Any, history: History, way: list[int]) -> None:
    """A line for each member and step, from the member whose weights it began with."""
    lines: Lines = {_DEAD: [], _ALIVE: [], _BEST: []}
    for row, before, color in _steps(history, way):
        begin = row.member if before is None else before.member
        start = history.settings.end_of(row.step - 1)
        turn = start + _TURN * (row.epoch - start)
        lines[color].append([(start, begin), (turn, row.member), (row.epoch, row.member)])
    _draw(axes, lines)
    axes.set_ylim(history.settings.size - 0.4, -0.6)
    axes.set_yticks(range(history.settings.size))
    axes.tick_params(axis="y", labelsize=7.5)
    axes.set_ylabel("member")


def _draw_scores(axes: Any, history: History, way: list[int], is_share: bool) -> None:
    lines: Lines = {_DEAD: [], _ALIVE: [], _BEST: []}
    for row, before, color in _steps(history, way):
        if before is not None and math.isfinite(before.score) and math.isfinite(row.score):
            lines[color].append([(before.epoch, before.score), (row.epoch, row.score)])
    _draw(axes, lines)
    last = history.steps[-1]
    axes.plot([row.epoch for row in last], [row.score for row in last], "o", ms=3.5, color=_ALIVE, clip_on=False)
    best = last[way[-1]]
    axes.plot([best.epoch], [best.score], "o", ms=5.5, color=_BEST, clip_on=False)
    axes.margins(y=0.05)
    axes.autoscale_view(scalex=False)
    axes.grid(axis="y")
    if is_share:
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")


def _steps(history: History, way: list[int]) -> Iterator[tuple[Row, Row | None, str]]:
    """Each row, the row whose weights it began with (None in the first step), and its color: on the way of the best,
    led to a member of the last step, or given up."""
    alive = set(range(history.settings.size))
    for step in reversed(range(len(history.steps))):
        earlier = history.steps[step - 1] if step else ()
        parents: set[int] = set()
        for row in history.steps[step]:
            before = None
            if earlier:
                donor = earlier[row.member].copied_from
                before = earlier[row.member if donor is None else donor]
            if row.member in alive and before is not None:
                parents.add(before.member)
            color = _ALIVE if row.member in alive else _DEAD
            yield row, before, _BEST if way[step] == row.member else color
        alive = parents


def _draw(axes: Any, lines: Lines) -> None:
    from matplotlib.collections import LineCollection

    for place, (color, drawn) in enumerate(lines.items()):
        width = 2.3 if color == _BEST else 1.0
        axes.add_collection(LineCollection(drawn, colors=color, linewidths=width, zorder=2 + place))

"""Report of a study: its numbers, as JSON, as rows of text and as plots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from variegate.apps.plotting import BLUE, FAINT, GREEN, INK, RED, drawn_figure, label_rows

CEILING, OURS = "synthetic batch", "Variegate"
_COLOURS = {CEILING: FAINT, OURS: GREEN}
_NOISY, _BINS_A_DECADE = 0.1, 4


@dataclass
class Span:
    """Steps in turn: seconds of all cores, of each step and of its ``next()``."""

    images: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    steps: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


class FedStep:
    """Numbers of the step with one feed, as docs/training.md explains them: times in ms, shares from 0 to 1."""

    def __init__(
        self,
        described: tuple[str, str, tuple[str, ...]],
        spans: Sequence[Span],
        ceiling: Sequence[Span],
        edges: Sequence[float],
        samples: Sequence[int] | None,
    ) -> None:
        self.name, self.how, self.left_out = described
        rates, best = ([span.images / span.seconds for span in some] for some in (spans, ceiling))
        self.images_per_second, self.spans = statistics.median(rates), tuple(rates)
        self.ceiling_share = statistics.median(rate / most for rate, most in zip(rates, best, strict=True))
        self.data_share = max(0.0, 1 - self.ceiling_share)
        used, least = (statistics.median(span.processor / span.images for span in some) for some in (spans, ceiling))
        self.processor_ms = 1e3 * used
        self.processor_share = max(0.0, 1 - least / used) if used else 0.0
        steps, waits = [[*chain.from_iterable(getattr(span, of) for span in spans)] for of in ("steps", "waits")]
        self.steps, self.step_ms = len(steps), 1e3 * statistics.median(steps)
        self.next_mean_ms, self.next_median_ms = 1e3 * statistics.fmean(waits), 1e3 * statistics.median(waits)
        self.next_95_ms = 1e3 * sorted(waits)[math.ceil(0.95 * len(waits)) - 1]
        self.next_share = sum(waits) / sum(span.seconds for span in spans)
        self.waiting = _counts(waits, edges)
        self.utilisation = _counts(samples, range(0, 101, 10)) if samples else None
        self.utilisation_mean = statistics.fmean(samples) / 100 if samples else None

    @property
    def spread(self) -> float:
        return (max(self.spans) - min(self.spans)) / self.images_per_second


@dataclass(frozen=True)
class Study:
    """Feeds, the ceiling first; ``missing``: why others were not timed; ``edges``: of ``waiting``, in ms."""

    facts: dict[str, Any]
    feeds: tuple[FedStep, ...]
    missing: dict[str, str] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "feeds": [vars(one) for one in self.feeds]}

    @property
    def is_on_cpu(self) -> bool:
        return str(self.facts["device"]).startswith("cpu")

    @property
    def is_sampled(self) -> bool:
        return any(one.utilisation for one in self.feeds)


def study_of(
    facts: dict[str, Any],
    spans: Mapping[str, Sequence[Span]],
    described: Mapping[str, tuple[str, tuple[str, ...]]],
    missing: dict[str, str],
    busy: Mapping[str, Sequence[int]],
) -> Study:
    """Sum up ``spans`` of all feeds. ``described``: ``how`` and ``left_out`` of each; ``busy``: the GPU's samples."""
    every = [max(1e-6, wait) for found in spans.values() for span in found for wait in span.waits]
    # Four bins for each power of ten: waiting is a microsecond or a second.
    low, high = (math.floor(_BINS_A_DECADE * math.log10(of(every))) for of in (min, max))
    edges = [10 ** (place / _BINS_A_DECADE) for place in range(low, high + 2)]
    feeds = tuple(
        FedStep((name, *described[name]), found, spans[CEILING], edges, busy.get(name)) for name, found in spans.items()
    )
    without = ((one.name, ", ".join(one.left_out)) for one in feeds if one.left_out)
    notes = [f"{name} does less than the training run requires: it omits {steps}" for name, steps in without]
    if (spread := feeds[0].spread) > _NOISY:
        noisy = f"spans of the ceiling differ by {spread:.0%}: other programs are running, and differences"
        notes.insert(0, f"{noisy} below that are not significant")
    return Study(facts, feeds, missing, tuple(round(1e3 * one, 6) for one in edges), tuple(notes))


def _counts(values: Sequence[float], edges: Sequence[float]) -> tuple[int, ...]:
    """Counts of the bins; values outside are in the first or the last."""
    return tuple(np.bincount(np.searchsorted(edges[1:-1], values, "right"), minlength=len(edges) - 1).tolist())


def fact_lines(found: Study) -> list[str]:
    """The training that was studied, and the machine."""
    facts = found.facts
    size, times = "x".join(map(str, facts["size"])), f" x {facts['accumulate']}" if facts["accumulate"] > 1 else ""
    batches = f"batches of {facts['batch_size']}{times}, policy {facts['policy']}, {facts['precision']}"
    machine = f"{facts['processor']}, {facts['cores']} cores; {facts['device']}; {facts['seconds']:g} s per feed"
    return [f"{facts['source']}: {facts['model']} at {size}, {batches}", machine]


def rows(found: Study) -> list[dict[str, str]]:
    """For each feed its cells of the table, by their headings."""
    listed = []
    for one in found.feeds:
        # On a CPU training and data share the cores, whose computing what else runs there hardly disturbs.
        data, share = ("CPU for data", one.processor_share) if found.is_on_cpu else ("data", one.data_share)
        cells = {"": one.name, "images/s": f"{one.images_per_second:,.0f}", "spread": f"{one.spread:.0%}"}
        cells |= {"of ceiling": f"{one.ceiling_share:.1%}", data: "" if one.name == CEILING else f"{share:.1%}"}
        cells |= {"next() ms": ms_text(one.next_mean_ms), "95 %": ms_text(one.next_95_ms)}
        cells["of step"] = f"{one.next_share:.1%}"
        if found.is_sampled:
            cells["GPU busy"] = f"{one.utilisation_mean or 0:.0%}"
        listed.append(cells)
    return listed


def summary(found: Study) -> str:
    """In words: what Variegate's loader leaves of the ceiling, and what the best peer leaves."""
    shares = {one.name: one.ceiling_share for one in found.feeds}
    said = f"Fed by Variegate, training reaches {shares[OURS]:.1%} of the ceiling, which needs no data"
    best = max((name for name in shares if name not in (CEILING, OURS)), key=shares.__getitem__, default=None)
    return f"{said}." if best is None else f"{said}; fed by {best}, {shares[best]:.1%}."


def ms_text(value: float) -> str:
    """Of milliseconds, as many digits as mean something."""
    return f"{value:.3f}" if value < 1 else f"{value:,.1f}"


def draw_throughput(found: Study, path: Path) -> None:
    """Write a PNG with a bar for each feed, as long as its share of the ceiling. Raises PlotError, OSError."""
    feeds = found.feeds
    # A span's share is of the ceiling's span beside it, so that what else runs on the machine slows both.
    shares = [[rate / most for rate, most in zip(one.spans, feeds[0].spans, strict=True)] for one in feeds]
    end = 1.3 * max(map(max, shares))
    title = "Training throughput with each feed, compared with one repeated batch"
    with drawn_figure(path, 9.6, 1.0 + 0.5 * len(feeds), title, fact_lines(found)) as figure:
        axes = figure.subplots()
        for row, one in enumerate(feeds):
            axes.barh(row, one.ceiling_share, height=0.62, color=_COLOURS.get(one.name, BLUE), zorder=2)
            axes.plot([min(shares[row]), max(shares[row])], [row, row], color=INK, lw=1.1, alpha=0.55, zorder=3)
            rate = f"{one.images_per_second:,.0f} images/s"
            text = rate if one.name == CEILING else f"{one.ceiling_share:.1%}   {rate}"
            at = max(*shares[row], 1.0) + 0.01 * end
            axes.text(at, row, text, va="center", fontweight="bold" if one.name == OURS else "normal")
        axes.axvline(1.0, color=RED, lw=1.2, zorder=4)
        label_rows(axes, [one.name for one in feeds])
        axes.set_xlim(0, end)
        axes.set_xlabel("share of the ceiling: median; thin lines: minimum to maximum")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(axis="x")


def draw_waiting(found: Study, path: Path) -> None:
    """Write a PNG of histograms: time in ``next()``, and the GPU's utilisation. Raises PlotError, OSError."""
    feeds, rows, title = found.feeds, 1 + found.is_sampled, "How long a step waits for its data"
    with drawn_figure(path, max(7.5, 3.1 * len(feeds)), 2.7 * rows, title, fact_lines(found)) as figure:
        every = figure.subplots(rows, len(feeds), squeeze=False, sharey="row", sharex="row")
        for place, one in enumerate(feeds):
            axes = every[0][place]
            _histogram(axes, one, found.edges, one.waiting)
            axes.set_xscale("log")
            axes.axvline(one.step_ms, color=RED, lw=1, ls="--")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
            waiting = f"mean {ms_text(one.next_mean_ms)} ms, {one.next_share:.1%} of a step"
            axes.set_title(f"{one.name}\n{waiting}", color=INK)
            axes.set_xlabel("ms in next(); dashed: a step")
            if found.is_sampled:
                axes = every[1][place]
                _histogram(axes, one, range(0, 101, 10), one.utilisation or (0,) * 10)
                axes.set_title(f"GPU busy {one.utilisation_mean or 0:.0%}", color=INK)
                axes.set_xlabel("utilisation, %")
        for row, of in zip(every, ("steps", "samples"), strict=False):
            row[0].set_ylabel(f"share of {of}")


def _histogram(axes: Any, one: FedStep, edges: Sequence[float], counts: Sequence[int]) -> None:
    shares = [count / (sum(counts) or 1) for count in counts]
    style: Any = {"color": _COLOURS.get(one.name, BLUE), "edgecolor": "white", "lw": 0.5}
    axes.bar(edges[:-1], shares, np.diff(edges), align="edge", **style)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y")


# By their names in the folder of a study.
PLOTS = {"throughput": draw_throughput, "waiting": draw_waiting}

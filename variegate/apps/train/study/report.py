"""Report of a study: plain data, as JSON, as rows of text, and what a reader has to know."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from variegate.apps.plotting import BLUE, FAINT, GREEN, INK, RED, drawn_figure, label_rows
from variegate.apps.train.study.timing import CEILING, OURS, Span

_NOISY = 0.1
_BINS_A_DECADE = 4


@dataclass(frozen=True)
class FedStep:
    """The step with one feed. Times in ms, shares from 0 to 1.

    ``images_per_second``: the median of ``spans``. ``ceiling_share``: the median share of the ceiling's span of that
    round; ``data_share``: the rest, the cost of data. ``processor_ms``: time of cores for an image, the median;
    ``processor_share``: its part beyond the ceiling's. ``waiting``: steps by their time in ``next()``, in the bins of
    the study's ``edges``. ``utilisation``: NVML's samples in each tenth from 0 to 100 %.
    """

    name: str
    how: str
    left_out: tuple[str, ...]
    images_per_second: float
    spans: tuple[float, ...]
    ceiling_share: float
    data_share: float
    processor_ms: float
    processor_share: float
    steps: int
    step_ms: float
    next_mean_ms: float
    next_median_ms: float
    next_95_ms: float
    next_share: float
    waiting: tuple[int, ...]
    utilisation: tuple[int, ...] | None = None
    utilisation_mean: float | None = None

    @property
    def spread(self) -> float:
        return (max(self.spans) - min(self.spans)) / self.images_per_second


@dataclass(frozen=True)
class Study:
    """Feeds, the ceiling first; ``missing``: why a feed was not timed; ``edges``: of ``waiting``, in ms; ``facts``: the
    training."""

    facts: dict[str, Any]
    feeds: tuple[FedStep, ...]
    missing: dict[str, str] = field(default_factory=dict)
    edges: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def is_on_cpu(self) -> bool:
        return str(self.facts["device"]).startswith("cpu")


def study_of(
    facts: dict[str, Any],
    spans: Mapping[str, Sequence[Span]],
    described: Mapping[str, tuple[str, tuple[str, ...]]],
    missing: dict[str, str],
    busy: Mapping[str, Sequence[int]],
) -> Study:
    """Sum up ``spans`` of all feeds. ``described``: ``how`` and ``left_out`` of each; ``busy``: the GPU's samples."""
    edges = _edges([wait for found in spans.values() for span in found for wait in span.waits])
    feeds = tuple(
        _fed_step(name, *described[name], found, spans[CEILING], edges, busy.get(name)) for name, found in spans.items()
    )
    return Study(facts, feeds, missing, tuple(round(1e3 * one, 6) for one in edges), tuple(_notes(feeds)))


def _fed_step(
    name: str,
    how: str,
    left_out: tuple[str, ...],
    spans: Sequence[Span],
    ceiling: Sequence[Span],
    edges: Sequence[float],
    busy: Sequence[int] | None,
) -> FedStep:
    rates, best = ([span.images / span.seconds for span in found] for found in (spans, ceiling))
    share = statistics.median(rate / most for rate, most in zip(rates, best, strict=True))
    steps, waits = ([one for span in spans for one in getattr(span, what)] for what in ("steps", "waits"))
    computed, least = (statistics.median(span.processor / span.images for span in found) for found in (spans, ceiling))
    tenths = None if not busy else tuple(_counts(busy, [*range(0, 100, 10), 100]))
    return FedStep(
        *(name, how, left_out, statistics.median(rates), tuple(rates), share),
        data_share=max(0.0, 1 - share),
        processor_ms=1e3 * computed,
        processor_share=max(0.0, 1 - least / computed) if computed else 0.0,
        steps=len(steps),
        step_ms=1e3 * statistics.median(steps),
        next_mean_ms=1e3 * statistics.fmean(waits),
        next_median_ms=1e3 * statistics.median(waits),
        next_95_ms=1e3 * sorted(waits)[math.ceil(0.95 * len(waits)) - 1],
        next_share=sum(waits) / sum(span.seconds for span in spans),
        waiting=tuple(_counts(waits, edges)),
        utilisation=tenths,
        utilisation_mean=statistics.fmean(busy) / 100 if busy else None,
    )


def _edges(waits: Sequence[float]) -> list[float]:
    """Four bins for each power of ten, around all of these seconds: waiting is a microsecond or a second."""
    low, high = (_BINS_A_DECADE * math.log10(max(1e-6, of(waits))) for of in (min, max))
    first = math.floor(low)
    return [10 ** (place / _BINS_A_DECADE) for place in range(first, max(math.floor(high), first) + 2)]


def _counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Counts of the bins; what lies outside is in the first or the last."""
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[max(0, sum(value >= edge for edge in edges[:-1]) - 1)] += 1
    return counts


def _notes(feeds: Sequence[FedStep]) -> list[str]:
    notes = []
    if (spread := feeds[0].spread) > _NOISY:
        notes.append(
            f"spans of the ceiling differ by {spread:.0%}: something else runs on this machine, and differences below "
            "that mean little"
        )
    for one in feeds:
        if one.left_out:
            notes.append(f"{one.name} does less than the training asks for, without {', '.join(one.left_out)}")
    return notes


def fact_lines(found: Study) -> list[str]:
    """The training that was studied, and the machine."""
    facts = found.facts
    size = "x".join(map(str, facts["size"]))
    return [
        f"{facts['source']}: {facts['model']} at {size}, batches of {facts['batch_size']}"
        + (f" x {facts['accumulate']}" if facts["accumulate"] > 1 else "")
        + f", policy {facts['policy']}, {facts['precision']}",
        f"{facts['processor']}, {facts['cores']} cores; {facts['device']}; {facts['seconds']:g} s a feed",
    ]


def headings(found: Study) -> tuple[str, ...]:
    # On a CPU training and data share the cores, and what cores compute is hardly disturbed by what else runs there.
    data = "CPU for data" if found.is_on_cpu else "data"
    busy = ("GPU busy",) if any(one.utilisation for one in found.feeds) else ()
    return ("", "images/s", "spread", "of ceiling", data, "next() ms", "95 %", "of step", *busy)


def rows(found: Study) -> list[tuple[str, ...]]:
    """A row of cells for each feed, as ``headings``."""
    listed = []
    for one in found.feeds:
        times = (ms_text(one.next_mean_ms), ms_text(one.next_95_ms), f"{one.next_share:.1%}")
        share = one.processor_share if found.is_on_cpu else one.data_share
        data = "" if one.name == CEILING else f"{share:.1%}"
        cells = (f"{one.images_per_second:,.0f}", f"{one.spread:.0%}", f"{one.ceiling_share:.1%}", data, *times)
        busy = () if len(headings(found)) == len(cells) + 1 else (f"{one.utilisation_mean or 0:.0%}",)
        listed.append((one.name, *cells, *busy))
    return listed


def summary(found: Study) -> str:
    """In words: what Variegate's loader leaves of the ceiling, and what the best peer leaves."""
    by_name = {one.name: one for one in found.feeds}
    mine = by_name[OURS]
    said = f"Fed by Variegate the training reaches {mine.ceiling_share:.1%} of what it could without any data to make"
    peers = [one for one in found.feeds if one.name not in (CEILING, OURS)]
    if not peers:
        return f"{said}."
    best = max(peers, key=lambda one: one.ceiling_share)
    return f"{said}; fed by {best.name}, {best.ceiling_share:.1%}."


def ms_text(value: float) -> str:
    """Of milliseconds, as many digits as mean something."""
    return f"{value:.3f}" if value < 1 else f"{value:,.1f}"


THROUGHPUT_NAME, WAITING_NAME = "throughput.png", "waiting.png"


def draw_throughput(found: Study, path: Path) -> None:
    """Write a PNG with a bar for each feed, as long as its share of the ceiling. Raises PlotError, OSError."""
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
    """Write a PNG of histograms: time in ``next()``, and the GPU's utilisation if sampled. Raises PlotError,
    OSError."""
    feeds = found.feeds
    is_sampled = any(one.utilisation for one in feeds)
    rows, width = 1 + is_sampled, 3.1 * len(feeds)
    title = "How long a step waits for its data"
    with drawn_figure(path, max(7.5, width), 2.7 * rows, title, fact_lines(found)) as figure:
        every = figure.subplots(rows, len(feeds), squeeze=False, sharey="row", sharex="row")
        for place, one in enumerate(feeds):
            axes = every[0][place]
            _histogram(axes, one, found.edges, one.waiting)
            axes.set_xscale("log")
            axes.axvline(one.step_ms, color=RED, lw=1, ls="--")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
            axes.set_title(
                f"{one.name}\nmean {ms_text(one.next_mean_ms)} ms, {one.next_share:.1%} of a step", color=INK
            )
            axes.set_xlabel("ms in next(); dashed: a step")
            if is_sampled:
                axes = every[1][place]
                _histogram(axes, one, range(0, 101, 10), one.utilisation or (0,) * 10)
                axes.set_title(f"GPU busy {one.utilisation_mean or 0:.0%}", color=INK)
                axes.set_xlabel("utilisation, %")
        for row, of in zip(every, ("steps", "samples"), strict=False):
            row[0].set_ylabel(f"share of {of}")


def _histogram(axes: Any, one: FedStep, edges: Sequence[float], counts: Sequence[int]) -> None:
    shares, widths = [count / (sum(counts) or 1) for count in counts], [high - low for low, high in pairwise(edges)]
    axes.bar(edges[:-1], shares, widths, align="edge", color=_colour(one), edgecolor="white", lw=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.grid(axis="y")


def _colour(one: FedStep) -> str:
    return {CEILING: FAINT, OURS: GREEN}.get(one.name, BLUE)

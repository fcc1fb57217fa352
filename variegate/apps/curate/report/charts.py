"""The numbers behind the charts of a report: histograms of measures with their thresholds, and sizes of classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.curate.report.checked import CheckedRows
from variegate.apps.curate.report.words import file_size, number

Floats = npt.NDArray[np.float64]
# Of a histogram, in the units of its drawing.
WIDTH, HEIGHT, _BINS = 300.0, 90.0, 40
# The share of images whose measures, on either side, go into the outermost bars.
_TAIL = 0.002
MOST_CLASSES = 60


class Threshold(NamedTuple):
    """A vertical line: where it stands, and what begins there."""

    x: float
    finding: str
    value: str


class Histogram(NamedTuple):
    """``bars``: by split, an SVG path; ``ticks``: x and text; ``summary``: what it shows, in words."""

    title: str
    unit: str
    bars: dict[str, str]
    ticks: list[tuple[float, str, str]]
    thresholds: list[Threshold]
    summary: str


class ChartedMeasure(NamedTuple):
    column: str
    title: str
    unit: str
    text: Callable[[float], str] = number
    is_logarithmic: bool = False


MEASURES = (
    ChartedMeasure("pixels", "Size", "pixels, height x width", lambda value: file_size(value, "px"), True),
    ChartedMeasure("aspect", "Aspect", "longer side / shorter side", number, True),
    ChartedMeasure("bytes", "File size", "bytes", file_size, True),
    ChartedMeasure("brightness", "Brightness", "mean luminance, 0 to 1"),
    ChartedMeasure("dark_end", "Dark end", "luminance that 5 % of the pixels are below"),
    ChartedMeasure("bright_end", "Bright end", "luminance that 95 % of the pixels are below"),
    ChartedMeasure("contrast", "Contrast", "standard deviation of luminance"),
    ChartedMeasure("entropy", "Entropy", "of the histogram of luminance, in bits"),
    ChartedMeasure("sharpness", "Sharpness", "how quickly luminance changes", number, True),
)


def histograms(rows: CheckedRows, thresholds: Mapping[str, Sequence[tuple[str, float]]]) -> list[Histogram]:
    """Of all measures that there are. ``thresholds``: by measure, findings and where they begin."""
    found = []
    for measure in MEASURES:
        values = {split: _values(rows, split, measure.column) for split in rows.charted}
        values = {split: one[np.isfinite(one)] for split, one in values.items()}
        if any(len(one) for one in values.values()):
            found.append(_histogram(measure, values, thresholds.get(measure.column, ())))
    return found


def _values(rows: CheckedRows, split: str, column: str) -> Floats:
    if column not in ("pixels", "aspect"):
        return rows.numbers(split, column)
    height, width = rows.numbers(split, "height"), rows.numbers(split, "width")
    if column == "pixels":
        return height * width
    shorter = np.minimum(height, width)
    return np.divide(np.maximum(height, width), shorter, out=np.full(len(shorter), np.nan), where=shorter > 0)


def _histogram(measure: ChartedMeasure, values: dict[str, Floats], limits: Sequence[tuple[str, float]]) -> Histogram:
    together = np.concatenate(list(values.values()))
    least = float(together[together > 0].min()) if measure.is_logarithmic and (together > 0).any() else 0.0

    def scaled(raw: Any) -> Any:
        return np.log10(np.maximum(raw, least or 1e-12)) if measure.is_logarithmic else raw

    inside = [value for _, value in limits if math.isfinite(value) and (value > 0 or not measure.is_logarithmic)]
    low, high = (float(one) for one in np.quantile(scaled(together), [_TAIL, 1 - _TAIL]))
    low, high = min([low, *map(scaled, inside)]), max([high, *map(scaled, inside)])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    bars = {}
    for split, one in values.items():
        counts, _ = np.histogram(np.clip(scaled(one), low, high), _BINS, (low, high))
        bars[split] = _bars(counts, is_outline=split == "test")

    def place(value: float) -> float:
        return round((float(scaled(value)) - low) / (high - low) * WIDTH, 1)

    ticks = [
        (round(share * WIDTH, 1), measure.text(_raw(low + share * (high - low), measure)), anchor)
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    ]
    drawn = [
        Threshold(place(value), finding, measure.text(value))
        for finding, value in limits
        if math.isfinite(value) and (value > 0 or not measure.is_logarithmic)
    ]
    quartiles = [measure.text(float(one)) for one in np.quantile(together, [0.25, 0.5, 0.75])]
    summary = f"half of the images between {quartiles[0]} and {quartiles[2]}, median {quartiles[1]}"
    return Histogram(measure.title, measure.unit, bars, ticks, drawn, summary)


def _raw(value: float, measure: ChartedMeasure) -> float:
    return 10.0**value if measure.is_logarithmic else value


def _bars(counts: npt.NDArray[np.int64], is_outline: bool) -> str:
    """A path of bars, or one along their tops. Few images are still seen: a bar has a height of 1 at least."""
    top, step = max(int(counts.max()), 1), WIDTH / len(counts)
    heights = [0.0 if count == 0 else max(1.0, HEIGHT * count / top) for count in counts.tolist()]
    if is_outline:
        steps = [f"V{HEIGHT - height:.1f}H{step * (place + 1):.1f}" for place, height in enumerate(heights)]
        return f"M0,{HEIGHT:.0f}" + "".join(steps) + f"V{HEIGHT:.0f}"
    return "".join(
        f"M{step * place + 0.5:.1f},{HEIGHT:.0f}v-{height:.1f}h{step - 1:.1f}v{height:.1f}z"
        for place, height in enumerate(heights)
        if height
    )


class ClassSize(NamedTuple):
    """``shares``: of the largest class's number in the split, 0 to 100."""

    name: str
    counts: dict[str, int]
    shares: dict[str, float]


class ClassSizes(NamedTuple):
    """The largest first; of very many, the largest and the smallest. ``total``: of classes."""

    largest: list[ClassSize]
    smallest: list[ClassSize]
    total: int


def class_sizes(rows: CheckedRows) -> ClassSizes | None:
    """None without classes."""
    counts: dict[str, dict[str, int]] = {}
    for split in rows.charted:
        for pair in rows.of(split, "class").drop_null().value_counts().to_pylist():
            counts.setdefault(pair["values"], {})[split] = pair["counts"]
    if not counts:
        return None
    tops = {split: max(of.get(split, 0) for of in counts.values()) or 1 for split in rows.charted}
    first = rows.charted[0]
    order = sorted(counts, key=lambda name: (-counts[name].get(first, 0), name))
    sizes = [
        ClassSize(
            name,
            {split: counts[name].get(split, 0) for split in rows.charted},
            {split: round(100 * counts[name].get(split, 0) / tops[split], 2) for split in rows.charted},
        )
        for name in order
    ]
    if len(sizes) <= MOST_CLASSES:
        return ClassSizes(sizes, [], len(sizes))
    return ClassSizes(sizes[: MOST_CLASSES // 2], sizes[-MOST_CLASSES // 2 :], len(sizes))

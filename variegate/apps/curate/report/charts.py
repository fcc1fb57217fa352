"""Numbers behind the charts of a report: histograms of measures with their thresholds, and sizes of classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variegate.apps.curate.findings import floats

Floats = npt.NDArray[np.float64]
# Of each split that loaders read and that has images, the rows of the table.
Charted = Mapping[str, pa.Table]
# Of a histogram, in the units of its drawing.
WIDTH, HEIGHT, _BINS = 300.0, 90.0, 40
# The share of images whose measures, on either side, go into the outermost bars.
_TAIL = 0.002
MOST_CLASSES = 60


def number(value: float) -> str:
    """Three digits that count: 0.0123, 1.5, 12,300."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.1e}" if "e" in text else text


def file_size(value: float, unit: str = "B") -> str:
    """1.2 MB."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.0f} {unit}"


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
# Of each threshold, the finding that begins there and the measure it is of. Sizes are given as sides of squares.
_LIMITS = {
    "tiny": ("tiny", "pixels"),
    "huge": ("huge", "pixels"),
    "aspect": ("extreme_aspect", "aspect"),
    "dark": ("dark", "bright_end"),
    "bright": ("bright", "dark_end"),
    "low_contrast": ("low_contrast", "contrast"),
    "blurred": ("blurred", "sharpness"),
}


def limits_of(thresholds: Any) -> list[tuple[str, ChartedMeasure, float]]:
    """Finding, measure and value of each threshold that images were judged by. ``thresholds``: None where they were
    not."""
    measures = {measure.column: measure for measure in MEASURES}
    found = []
    for name, (finding, column) in _LIMITS.items():
        value = getattr(thresholds, name, None)
        if value is not None and math.isfinite(value):
            found.append((finding, measures[column], value * value if column == "pixels" else value))
    return found


def histograms(charted: Charted, limits: Sequence[tuple[str, ChartedMeasure, float]]) -> list[dict[str, Any]]:
    """Of all measures that there are."""
    found = []
    for measure in MEASURES:
        values = {split: _values(table, measure.column) for split, table in charted.items()}
        values = {split: one[np.isfinite(one)] for split, one in values.items()}
        if any(len(one) for one in values.values()):
            begins = [(finding, value) for finding, of, value in limits if of is measure]
            found.append(_histogram(measure, values, begins))
    return found


def _values(table: pa.Table, column: str) -> Floats:
    if column not in ("pixels", "aspect"):
        return floats(table, column)
    height, width = floats(table, "height"), floats(table, "width")
    if column == "pixels":
        return height * width
    shorter = np.minimum(height, width)
    return np.divide(np.maximum(height, width), shorter, out=np.full(len(shorter), np.nan), where=shorter > 0)


def _histogram(
    measure: ChartedMeasure, values: dict[str, Floats], limits: Sequence[tuple[str, float]]
) -> dict[str, Any]:
    """``bars``: by split, an SVG path; ``ticks``: x, text, anchor; ``thresholds``: vertical lines, and what begins
    there; ``summary``: the histogram in words."""
    together = np.concatenate(list(values.values()))
    least = float(together[together > 0].min()) if measure.is_logarithmic and (together > 0).any() else 0.0

    def scaled(raw: Any) -> Any:
        return np.log10(np.maximum(raw, least or 1e-12)) if measure.is_logarithmic else raw

    def place(value: float) -> float:
        return round((float(scaled(value)) - low) / (high - low) * WIDTH, 1)

    def tick(share: float, anchor: str) -> tuple[float, str, str]:
        value = low + share * (high - low)
        return round(share * WIDTH, 1), measure.text(10.0**value if measure.is_logarithmic else value), anchor

    limits = [(finding, value) for finding, value in limits if value > 0 or not measure.is_logarithmic]
    inside = [scaled(value) for _, value in limits]
    low, high = (float(one) for one in np.quantile(scaled(together), [_TAIL, 1 - _TAIL]))
    low, high = min([low, *inside]), max([high, *inside])
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    bars = {}
    for split, one in values.items():
        counts, _ = np.histogram(np.clip(scaled(one), low, high), _BINS, (low, high))
        bars[split] = _bars(counts, is_outline=split == "test")
    quartiles = [measure.text(float(one)) for one in np.quantile(together, [0.25, 0.5, 0.75])]
    return {
        "title": measure.title,
        "unit": measure.unit,
        "bars": bars,
        "ticks": [tick(0.0, "start"), tick(0.5, "middle"), tick(1.0, "end")],
        "thresholds": [{"x": place(one), "finding": finding, "value": measure.text(one)} for finding, one in limits],
        "summary": f"half of the images between {quartiles[0]} and {quartiles[2]}, median {quartiles[1]}",
    }


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


def class_sizes(charted: Charted) -> dict[str, Any] | None:
    """The largest first; of very many, the largest and the smallest; ``total``: of classes; ``shares``: of the largest
    class's number in the split, 0 to 100. None without classes."""
    counts = {}
    for split, table in charted.items():
        pairs = table["class"].drop_null().value_counts().to_pylist()
        counts[split] = Counter({pair["values"]: pair["counts"] for pair in pairs})
    names = {name for some in counts.values() for name in some}
    if not names:
        return None
    tops = {split: max(some.values(), default=1) for split, some in counts.items()}
    first = next(iter(counts.values()))
    sizes = [
        {
            "name": name,
            "counts": {split: some[name] for split, some in counts.items()},
            "shares": {split: round(100 * some[name] / tops[split], 2) for split, some in counts.items()},
        }
        for name in sorted(names, key=lambda name: (-first[name], name))
    ]
    if len(sizes) <= MOST_CLASSES:
        return {"largest": sizes, "smallest": [], "total": len(sizes)}
    largest, smallest = sizes[: MOST_CLASSES // 2], sizes[-MOST_CLASSES // 2 :]
    return {"largest": largest, "smallest": smallest, "total": len(sizes)}

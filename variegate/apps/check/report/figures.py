"""Figures of a report: histograms of measures with their thresholds, sizes of classes, and thumbnails."""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from PIL import Image

from variegate.apps.check.findings import COLORS, floats
from variegate.apps.check.sample import FileFacts
from variegate.apps.check.values import Looks, clipping_of, rendered, shown_numbers
from variegate.arrays import AnyArray, Float64Array, Int64Array, UInt8Array
from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.decode.depth import own_numbers
from variegate.errors import DecodeError
from variegate.io.amounts import format_size
from variegate.threads import default_threads

# Of each split that loaders read and that has images, the rows of the table.
Charted = Mapping[str, pa.Table]
# Of a histogram, in the units of its drawing.
WIDTH = 300.0
HEIGHT = 90.0
_BINS = 40
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


class ChartedMeasure(NamedTuple):
    column: str
    title: str
    unit: str
    text: Callable[[float], str] = number
    is_logarithmic: bool = False


MEASURES = (
    ChartedMeasure("pixels", "Size", "pixels, height x width", lambda value: format_size(value, "px"), True),
    ChartedMeasure("aspect", "Aspect", "longer side / shorter side", number, True),
    ChartedMeasure("bytes", "File size", "bytes", format_size, True),
    ChartedMeasure("brightness", "Brightness", "mean luminance, 0 to 1"),
    ChartedMeasure("dark_end", "Dark end", "luminance that 5 % of the pixels are below"),
    ChartedMeasure("bright_end", "Bright end", "luminance that 95 % of the pixels are below"),
    ChartedMeasure("contrast", "Contrast", "standard deviation of luminance"),
    ChartedMeasure("entropy", "Entropy", "of the histogram of luminance, in bits"),
    ChartedMeasure("sharpness", "Sharpness", "how quickly luminance changes", number, True),
    ChartedMeasure("low", "Low values", "value that 0.1 % of the values are below, in the images' own numbers"),
    ChartedMeasure("high", "High values", "value that 0.1 % of the values are above, in the images' own numbers"),
    ChartedMeasure("clipped", "Clipping", "share of the pixels with the least or the greatest value"),
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
    "clipped": ("clipped", "clipped"),
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
    """Histograms of all available measures."""
    found = []
    for measure in MEASURES:
        values = {split: _values(table, measure.column) for split, table in charted.items()}
        values = {split: one[np.isfinite(one)] for split, one in values.items()}
        if any(len(one) for one in values.values()):
            begins = [(finding, value) for finding, of, value in limits if of is measure]
            found.append(_histogram(measure, values, begins))
    return found


def _values(table: pa.Table, column: str) -> Float64Array:
    if column == "clipped":
        return clipping_of(table)
    if column not in ("pixels", "aspect"):
        return floats(table, column)
    height = floats(table, "height")
    width = floats(table, "width")
    if column == "pixels":
        return height * width
    shorter = np.minimum(height, width)
    return np.divide(np.maximum(height, width), shorter, out=np.full(len(shorter), np.nan), where=shorter > 0)


def _histogram(
    measure: ChartedMeasure, values: dict[str, Float64Array], limits: Sequence[tuple[str, float]]
) -> dict[str, Any]:
    """``bars``: by split, an SVG path; ``ticks``: x, text, anchor; ``thresholds``: vertical lines with their findings;
    ``summary``: the histogram in words.

    The axis reaches from nearly all values to all thresholds.
    """
    together = np.concatenate(list(values.values()))
    positive = together[together > 0]
    least = float(positive.min()) if len(positive) else 1e-12

    def scaled(raw: Any) -> Any:
        return np.log10(np.maximum(raw, least)) if measure.is_logarithmic else raw

    def place_of(limit: float) -> float:
        return math.log10(limit) if measure.is_logarithmic else limit

    def threshold(finding: str, value: float) -> dict[str, Any]:
        share = (place_of(value) - low) / (high - low)
        return {"x": round(share * WIDTH, 1), "finding": finding, "value": measure.text(value)}

    def tick(share: float, anchor: str) -> tuple[float, str, str]:
        value = low + share * (high - low)
        return round(share * WIDTH, 1), measure.text(10.0**value if measure.is_logarithmic else value), anchor

    limits = [(finding, value) for finding, value in limits if value > 0 or not measure.is_logarithmic]
    inside = [place_of(value) for _, value in limits]
    low, high = (float(one) for one in np.quantile(scaled(together), [_TAIL, 1 - _TAIL]))
    low = min([low, *inside])
    high = max([high, *inside])
    if high - low < 1e-9:
        low -= 0.5
        high += 0.5
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
        "thresholds": [threshold(finding, value) for finding, value in limits],
        "summary": f"half of the images between {quartiles[0]} and {quartiles[2]}, median {quartiles[1]}",
    }


def _bars(counts: Int64Array, is_outline: bool) -> str:
    """A path of bars, or one along their tops. Few images are still seen: a bar has a height of 1 at least."""
    top = max(int(counts.max()), 1)
    step = WIDTH / len(counts)
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
    largest = sizes[: MOST_CLASSES // 2]
    smallest = sizes[-MOST_CLASSES // 2 :]
    return {"largest": largest, "smallest": smallest, "total": len(sizes)}


# Twice the pixels of the place that they are shown in, for dense screens.
SIDE = 224
_QUALITY = 72
# Of all pictures, as base64.
MOST_BYTES = 12 << 20
Data = bytes | AnyArray
# The values that are black and white: see values.Windows.
WindowsOf = Mapping[Looks, tuple[float, float]]
Place = tuple[str, int]  # split, index


class Thumbnail(NamedTuple):
    """``uri``: None where there is no picture, because of ``error``. ``is_small``: shown pixel by pixel."""

    uri: str | None
    width: int = 0
    height: int = 0
    error: str = ""

    @property
    def is_small(self) -> bool:
        return max(self.width, self.height) * 2 <= SIDE


def thumbnails(
    places: Iterable[Place], sources: Mapping[str, Samples], windows: WindowsOf | None = None, dicom: Any = None
) -> dict[Place, Thumbnail]:
    """Thumbnails of these images, which are read again. Unreadable images, and images larger than ``MOST_BYTES``, have
    an error instead."""
    wanted = list(dict.fromkeys(places))
    made: dict[Place, Thumbnail] = {}
    for split, source in sources.items():
        indices = [index for of, index in wanted if of == split]
        # The filters of warnings are the process's: threads of the pool must not change them.
        with ThreadPoolExecutor(default_threads(), "variegate-thumbnails") as pool, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # color of more than 8 bits, which the check has reported already
            found = pool.map(partial(_made, source, windows or {}, dicom), indices)
            made |= {(split, index): one for index, one in zip(indices, found, strict=True)}
    used = 0
    shown = {}
    for place in wanted:
        one = made.get(place, Thumbnail(None, error="is not in the source any more"))
        size = len(one.uri or "")
        shown[place] = one if used + size <= MOST_BYTES else Thumbnail(None, error="left out, to keep this file small")
        used += size if used + size <= MOST_BYTES else 0
    return shown


def _made(source: Samples, windows: WindowsOf, dicom: Any, index: int) -> Thumbnail:
    try:
        with own_numbers(dicom):
            return thumbnail(source.read(index).data, windows)
    except (DecodeError, SourceError, IndexError) as error:
        return Thumbnail(None, error=error.reason if isinstance(error, DecodeError) else str(error))


def thumbnail(data: Data, windows: WindowsOf) -> Thumbnail:
    """The bytes of an image file, or pixels [H, W, C] -> a JPEG of ``SIDE`` pixels at most; smaller images keep their
    size, as PNG."""

    facts = FileFacts()

    def shown(image: AnyArray) -> UInt8Array:
        numbers = shown_numbers(image)
        if numbers.dtype == np.uint8:
            return numbers
        looks = Looks(str(facts.depth), COLORS if numbers is image else image.shape[2])
        # Without a measured image of its depth, as if all are NaN, the window does not matter.
        return rendered(numbers, *windows.get(looks, (0.0, 1.0)))

    pixels = facts.read(data, "", shown)
    if pixels is None:
        return Thumbnail(None, error=facts.error or "")
    image = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
    longest = max(image.size)
    kind, options = ("jpeg", {"quality": _QUALITY}) if longest * 2 > SIDE else ("png", {})
    if longest > SIDE:
        width, height = (max(1, round(side * SIDE / longest)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)
    buffer = io.BytesIO()
    image.save(buffer, kind, optimize=True, **options)
    return Thumbnail(f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}", *image.size)

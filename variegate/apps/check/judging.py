"""Findings in single images, and in the sizes of the classes, judged by the table's measures.

Thresholds are set by the user, or follow from the data set. A bound that no ordinary photo is beyond is a start. If
more than a quarter of the data set exceeds it, such images are typical of the data set. The bound then moves to four
standard deviations from the images' median, estimated from the middle half of the images. So night photos are not dark
as a whole, and a clean set has no share of its images called odd by construction.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.check.findings import BYTE, COLORS, READ, DataFinding, channels_of, coded, floats, usual_channels
from variegate.apps.check.sample import CHANNELS, DEEP, DEEP_GRAY
from variegate.apps.check.values import Windows, clipping_of, white_of
from variegate.arrays import BoolArray, Float64Array
from variegate.data.base import summarize_names
from variegate.io.amounts import pluralize
from variegate.options.datasets import ASPECT, BRIGHT, CLIPPED, DARK, IMBALANCE, LOW_CONTRAST, ThresholdOptions

Values = Float64Array
# A kind of finding, the rows that have it, its measure by row, and the sentence of a row.
Verdict = tuple[str, BoolArray, Values | None, Callable[[int], str]]

# In a data set that is sharp throughout, outliers are a little sharper than blurred images elsewhere.
_BLURRED = (1.2, 1.5)
# Sides of squares of equal area are compared with the median: a sixteenth of its pixels, or 16 times.
_SIZE_RATIO = 4.0
_FEW = 20
_MANY_BEYOND = 0.25
_SIGMAS = 4.0
# The middle half of a normal distribution is this many standard deviations to either side of its median.
_QUARTILE = 0.6745

# Accepted extensions by Pillow's format. MPO: several JPEGs in one file, as cameras write them.
_EXTENSIONS = {
    "JPEG": {".jpg", ".jpeg", ".jpe", ".jfif"},
    "MPO": {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"},
    "PNG": {".png"},
    "GIF": {".gif"},
    "BMP": {".bmp", ".dib"},
    "PPM": {".ppm", ".pgm", ".pbm", ".pnm"},
    "WEBP": {".webp"},
    "TIFF": {".tif", ".tiff"},
}
_KNOWN = set().union(*_EXTENSIONS.values())
_USUAL_MODES = {"RGB", "L"}
_TURNS = {
    2: "mirrored",
    3: "turned by 180 degrees",
    4: "mirrored upside down",
    5: "mirrored and turned by 90 degrees",
    6: "turned by 90 degrees",
    7: "mirrored and turned by 270 degrees",
    8: "turned by 270 degrees",
}
# A single color, except for rounding, as in JPEG.
_BLANK = 1.0 / 255
# Of more than 8 bits, rounding is finer.
_BLANK_DEEP = 1e-6
# With more contrast a dark or bright image has lines on its white, or lights in its night, and is meant so.
_DRAWN = 0.12
# Of white: most values are below it if a bit or more is unused; and the part by which floats may be beyond it.
_DIM = 0.5
_OVERSHOOT = 0.1
# Smaller ones have too few edges for a verdict on their sharpness.
_LEAST_SIDE = 16


@dataclass(frozen=True)
class Thresholds:
    """An image is found fault with that lies beyond: below ``dark`` (with ``bright_end``), ``low_contrast``
    (``contrast``), ``blurred`` (``sharpness``) and ``tiny``, above ``bright`` (``dark_end``), ``huge`` and ``aspect``.
    Above ``clipped`` is the larger of ``clipped_low`` and ``clipped_high``.
    ``tiny`` and ``huge``: pixels, as the side of a square; ``aspect``: the longer side by the shorter. ``imbalance``:
    ratio of the sizes of the largest and the smallest class."""

    dark: float
    bright: float
    low_contrast: float
    blurred: float
    tiny: float
    huge: float
    aspect: float
    imbalance: float
    clipped: float


def judge(table: pa.Table, thresholds: Thresholds | None = None) -> list[DataFinding]:
    """All findings but duplicates and doubtful labels, of a table of ``MEASURED``."""
    thresholds = thresholds or thresholds_for(table)
    table = table.combine_chunks()
    names = [table[name] for name in ("split", "index", "file")]
    found = []
    for finding, holds, measure, why in [*_of_files(table), *_of_pixels(table, thresholds)]:
        for row in np.flatnonzero(holds).tolist():
            split, index, file = (column[row].as_py() for column in names)
            number = None if measure is None else float(measure[row])
            found.append(DataFinding(split, index, file, finding, number, None, why(row)))
    return [*found, *_of_depths(table), *_of_classes(table, thresholds)]


def _of_files(table: pa.Table) -> Iterator[Verdict]:
    """A file has the first of empty, truncated, corrupt, damaged that holds."""
    sizes = floats(table, "bytes")
    turns = floats(table, "orientation")
    is_empty = (sizes == 0) | (floats(table, "height") == 0) | (floats(table, "width") == 0)
    is_truncated = table["is_truncated"].fill_null(False).to_numpy(zero_copy_only=False) & ~is_empty
    is_whole = ~is_empty & ~is_truncated
    has_error, has_warning = (table[name].is_valid().to_numpy(zero_copy_only=False) for name in ("error", "warning"))

    def reason(row: int) -> str:
        named = table["error"][row].as_py() or table["warning"][row].as_py()
        return str(named or "the file ends before its image does")

    yield "corrupt", has_error & is_whole, None, reason
    yield "truncated", is_truncated, sizes, reason
    yield "damaged", has_warning & ~has_error & is_whole, None, reason
    yield "empty", is_empty, sizes, lambda row: "it has no pixels" if sizes[row] else "the file has no bytes"

    # Of a name without a known extension nothing is said.
    tails, tail_of = coded(pc.utf8_lower(pc.utf8_slice_codeunits(table["file"], -max(map(len, _KNOWN)))))
    kinds, kind_of = coded(table["kind"])
    endings = [os.path.splitext(f"name{tail}")[1] for tail in tails]
    is_wrong = [
        [kind in _EXTENSIONS and ending in _KNOWN and ending not in _EXTENSIONS[kind] for ending in [*endings, ""]]
        for kind in [*kinds, ""]
    ]
    has_wrong_extension = np.array(is_wrong)[kind_of, tail_of]
    yield (
        "wrong_extension",
        has_wrong_extension,
        None,
        lambda row: f"holds a {kinds[kind_of[row]]} image, not {endings[tail_of[row]]}",
    )
    # A mode that more than half of the images have that loaders read is the usual one of the set.
    modes, mode_of = coded(table["mode"])
    is_read = pc.is_in(table["split"], pa.array(READ)).to_numpy()
    counts = np.bincount(mode_of[is_read & (mode_of >= 0)], minlength=len(modes))
    depths = table["depth"].to_pylist()
    is_deep = _are_deep(table)
    of_deep = {mode_of[row] for row in np.flatnonzero(is_deep)}
    is_unusual = [
        mode not in _USUAL_MODES and not mode.endswith(CHANNELS) and i not in of_deep and 2 * counts[i] <= counts.sum()
        for i, mode in enumerate(modes)
    ]
    channels = channels_of(table)
    usual = usual_channels(table)
    is_mixed = is_read & (channels > 0) & (channels != usual)

    def unusual(row: int) -> str:
        return f"its pixels are {modes[mode_of[row]]}, which become RGB"

    def deep(row: int) -> str:
        if depths[row] is None:
            outcome = "which are refused" if has_error[row] else "of which 8 bits are read"
            return f"its pixels are {modes[mode_of[row]]}, {outcome}"
        return f"its numbers are {depths[row]}: {_reading_of(depths[row])}"

    def turned(row: int) -> str:
        return f"its EXIF orientation is {turns[row]:.0f}: shown {_TURNS.get(int(turns[row]), 'otherwise')}"

    def mixed(row: int) -> str:
        own, others = (f"{count} channels" if count != COLORS else "1 or 3" for count in (channels[row], usual))
        return f"it has {own}, and most train images have {others}: no batch has both"

    yield "mixed_channels", is_mixed & (usual > 0), channels.astype(np.float64), mixed
    yield "unusual_mode", np.array([*is_unusual, False])[mode_of], None, unusual
    yield "deep", is_deep & (not _is_most(is_deep, table)), None, deep
    yield "exif_turned", turns > 1, turns, turned


def _are_deep(table: pa.Table) -> BoolArray:
    """Images of more than 8 bits, even if only 8 bits are read."""
    pairs = zip(table["mode"].to_pylist(), table["depth"].to_pylist(), strict=True)
    found = [depth not in (None, BYTE) or mode in DEEP_GRAY or (mode or "").endswith(DEEP) for mode, depth in pairs]
    return np.array(found, np.bool_)


def _is_most(rows: BoolArray, table: pa.Table) -> bool:
    """True if most images that loaders read are among ``rows``."""
    is_read = pc.is_in(table["split"], pa.array(READ)).to_numpy()
    return bool(2 * (rows & is_read).sum() > is_read.sum())


def _reading_of(depth: str) -> str:
    if depth.startswith("uint"):
        return "files are read in 8 bits unless depth='uint16' or 'float32' is given"
    return "depth='float32' keeps them; without it, DICOM files are windowed, and other files refused"


def _of_depths(table: pa.Table) -> Iterator[DataFinding]:
    is_usually_deep = _is_most(_are_deep(table), table)
    for split in READ:
        rows = table.filter(pc.and_(pc.equal(table["split"], split), pc.is_valid(table["depth"])))
        counts = Counter(rows["depth"].to_pylist()).most_common()
        for depth, count in counts:
            if is_usually_deep and depth != BYTE:
                why = f"{pluralize(count, 'image')} of {depth}: {_reading_of(depth)}"
                yield DataFinding(split, None, None, "deep", float(count), None, why)
        if len(counts) > 1:
            amounts = ", ".join(f"{count:,} of {depth}" for depth, count in counts)
            files = rows.filter(pc.not_equal(rows["depth"], counts[0][0]))["file"].to_pylist()
            why = f"images have numbers of several kinds: {amounts}; not {counts[0][0]}: {summarize_names(files)}"
            yield DataFinding(split, None, None, "mixed_depths", float(len(counts)), None, why)
    train = table.filter(pc.equal(table["split"], "train"))
    windows = Windows(train)
    for looks in windows.of:
        rows = train.filter(pa.array(windows.rows_of(looks)))
        greatest = pc.max(rows["greatest"]).as_py()
        low, high = (float(np.median(floats(rows, name))) for name in ("low", "high"))
        images = f"1 {looks}".replace(" images", " image") if len(rows) == 1 else f"{len(rows):,} {looks}"
        problem = _range_problem(images, looks.depth, greatest, low, high)
        if problem is not None:
            yield DataFinding("train", None, None, "value_range", high, None, problem)


def _range_problem(images: str, depth: str, greatest: float, low: float, high: float) -> str | None:
    """A sentence on values that are not from black to white, with the window that mends it; None for others, and if
    the middle image is blank. ``low``, ``high``: of that image."""
    if low == high:
        return None
    white = white_of(depth)
    if not depth.startswith("uint"):
        window = f"T.Window({(low + high) / 2:.4g}, {high - low:.4g})"
        middle = f"the middle one of {images} has values from {low:,.4g} to {high:,.4g}"
        if low < -_OVERSHOOT or high > 1 + _OVERSHOOT:
            return f"{middle}, beyond black (0) and white (1), where many operations clip; begin with {window}"
        is_dark = high < _DIM
        return f"{middle}, and white is 1, so that images are dark; begin with {window}" if is_dark else None
    if high >= _DIM * white:
        return None
    is_limit = greatest < _DIM * white
    bits = int(greatest if is_limit else high).bit_length() or 1
    top = float((1 << bits) - 1)
    if depth != BYTE:  # loaders scale numbers of fewer bits to 16
        top *= 65535 / white
    if is_limit:
        use = f"{bits} of {depth.removeprefix('uint')} bits are used in {images}: the greatest value is {greatest:,.0f}"
    else:
        use = f"the middle one of {images} has values up to {high:,.0f}"
    return f"{use}, and white is {white:,.0f}, so that images are dark; begin with T.Window({top / 2:g}, {top:g})"


def _of_pixels(table: pa.Table, limits: Thresholds) -> Iterator[Verdict]:
    """An image has the first applicable finding of blank, dark or bright, low_contrast, blurred: a blank image has no
    contrast, and the sharpness of a hardly visible image is unknown."""
    decodes = table["error"].is_null().to_numpy(zero_copy_only=False)
    height = floats(table, "height")
    width = floats(table, "width")
    side, aspect = (np.where(decodes, values, np.nan) for values in _sizes(height, width))
    windows = Windows(table)
    means, stds = windows.shares(_by_channel(table, "mean"), _by_channel(table, "std"))
    spread = np.fmax.reduce(stds, axis=1)
    # Gray is their mean: no color is between it and the channels.
    is_mean = ~np.isin(channels_of(table), (0, COLORS))
    means[is_mean] = np.nanmean(means[is_mean], axis=1, keepdims=True)
    light = floats(table, "bright_end")
    shade = floats(table, "dark_end")
    contrast = floats(table, "contrast")
    sharpness = floats(table, "sharpness")
    clipped = clipping_of(table)
    not_finite = floats(table, "not_finite")
    with np.errstate(invalid="ignore"):
        is_blank = spread <= np.where(windows.is_deep, _BLANK_DEEP, _BLANK)
        is_clipped = (clipped > limits.clipped) & ~is_blank
        is_faint = ~is_blank & (contrast < _DRAWN)
        # A saturated blue has little luminance, and a saturated yellow much, without being under- or overexposed.
        is_dark = (light < limits.dark) & (np.fmax.reduce(means, axis=1) < limits.dark) & is_faint
        is_bright = (shade > limits.bright) & (np.fmin.reduce(means, axis=1) > limits.bright) & is_faint
        is_seen = ~is_blank & ~is_dark & ~is_bright
        is_saturated = is_seen & ((light < limits.dark) | (shade > limits.bright))
        is_flat = (np.where(is_saturated, spread, contrast) < limits.low_contrast) & is_seen
        is_blurred = (sharpness < limits.blurred) & is_seen & ~is_flat & (np.minimum(height, width) >= _LEAST_SIDE)
        is_tiny = side < limits.tiny
        is_huge = side > limits.huge
        is_long = aspect > limits.aspect

    def verdict(finding: str, holds: BoolArray, measure: Values, limit: float, text: str) -> Verdict:
        def why(row: int) -> str:
            return text.format(value=measure[row], limit=limit, width=width[row], height=height[row])

        return finding, holds, measure, why

    def why_clipped(row: int) -> str:
        is_high = table["clipped_high"][row].as_py() == clipped[row]
        end = "greatest" if is_high else "least"
        value = table[end][row].as_py()
        return f"{clipped[row]:.1%} of it has its {end} value, {value:,.6g}; more than {limits.clipped:.1%}"

    size = "{width:.0f} x {height:.0f} pixels, "
    darkness = "95 % of it has luminance up to {value:.3f}, below {limit:.3f}"
    brightness = "95 % of it has luminance from {value:.3f} on, above {limit:.3f}"
    flatness = "luminance has a standard deviation of {value:.3f}, below {limit:.3f}"
    yield verdict("tiny", is_tiny, side, limits.tiny, size + "fewer than {limit:.0f} squared")
    yield verdict("huge", is_huge, side, limits.huge, size + "more than {limit:.0f} squared")
    length = "one side is {value:.1f} times the other, more than {limit:.1f}"
    yield verdict("extreme_aspect", is_long, aspect, limits.aspect, length)
    yield verdict("blank", is_blank, spread, _BLANK, "all pixels have one color")
    yield verdict("dark", is_dark, light, limits.dark, darkness)
    yield verdict("bright", is_bright, shade, limits.bright, brightness)
    yield "clipped", is_clipped, clipped, why_clipped
    yield "not_finite", not_finite > 0, not_finite, lambda row: f"{not_finite[row]:.3%} of it is NaN or infinite"
    yield verdict("low_contrast", is_flat, contrast, limits.low_contrast, flatness)
    yield verdict("blurred", is_blurred, sharpness, limits.blurred, "sharpness is {value:.3f}, below {limit:.3f}")


def _by_channel(table: pa.Table, name: str) -> Values:
    """A column of lists [rows, most channels]; NaN for null and beyond the channels of a row."""
    channels = channels_of(table)
    most = max(COLORS, int(channels.max(initial=0)))
    found = np.full((len(table), most), np.nan)
    found[np.arange(most) < channels[:, None]] = pc.list_flatten(table[name]).to_numpy()
    return found


def _of_classes(table: pa.Table, thresholds: Thresholds) -> Iterator[DataFinding]:
    """None where images have no classes, or all have one. An image that does not decode counts: it was meant for its
    class."""
    for split in READ:
        rows = table.filter(pc.and_(pc.equal(table["split"], split), pc.greater_equal(table["label"], 0)))
        labels, first, class_of, sizes = np.unique(
            rows["label"].to_numpy(), return_index=True, return_inverse=True, return_counts=True
        )
        if len(labels) < 2:
            continue
        named = [rows["class"][row].as_py() or str(labels[i]) for i, row in enumerate(first.tolist())]
        largest = int(sizes.argmax())
        smallest = int(sizes.argmin())
        ratio = float(sizes[largest] / sizes[smallest])
        if split == "train" and ratio > thresholds.imbalance:
            why = (
                f"class {named[largest]} has {sizes[largest]:,} images, class {named[smallest]} {sizes[smallest]:,}: "
                f"{ratio:.1f} times as many, more than {thresholds.imbalance:g}"
            )
            yield DataFinding(split, None, None, "imbalance", ratio, None, why)
        for row in np.flatnonzero(sizes[class_of] == 1).tolist():
            index = rows["index"][row].as_py()
            file = rows["file"][row].as_py()
            why = f"class {named[class_of[row]]} has no other image"
            yield DataFinding(split, index, file, "lone_files", 1.0, None, why)


def thresholds_for(table: pa.Table, options: ThresholdOptions | None = None) -> Thresholds:
    """Thresholds from the train split, applied to all splits. ``table``: of ``MEASURED``."""
    names = ["height", "width", "dark_end", "bright_end", "contrast", "sharpness", "low", "clipped_low", "clipped_high"]
    columns = table.select(names)
    train = columns.filter(pc.and_(pc.equal(table["split"], "train"), pc.is_null(table["error"])))
    side, aspect = _sizes(floats(train, "height"), floats(train, "width"))
    sides = np.log(np.maximum(side, 1))
    sharpness = floats(train, "sharpness")
    found: dict[str, float] = {
        "dark": _below(floats(train, "bright_end"), DARK, _logit, _from_logit),
        "bright": 1 - _below(1 - floats(train, "dark_end"), 1 - BRIGHT, _logit, _from_logit),
        "low_contrast": _below(floats(train, "contrast"), LOW_CONTRAST, _log, math.exp),
        "blurred": _below(sharpness, _blur_start(sharpness[np.isfinite(sharpness)]), _log, math.exp),
        "tiny": math.exp(_size_fence(sides, -1)),
        "huge": math.exp(_size_fence(sides, 1)),
        "aspect": 1 / _below(1 / aspect, 1 / ASPECT, _log, math.exp),
        "imbalance": IMBALANCE,
        "clipped": 1 - _below(1 - clipping_of(train), 1 - CLIPPED, _logit, _from_logit),
    }
    set_by_user = {name: value for name in found if (value := getattr(options, name, None)) is not None}
    return Thresholds(**(found | set_by_user))


def _sizes(height: Values, width: Values) -> tuple[Values, Values]:
    """-> (the side of a square of as many pixels, the longer side by the shorter); NaN where an image has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(height * width), np.maximum(height, width) / np.minimum(height, width)


def _below(values: Values, bound: float, to_line: Any, from_line: Any) -> float:
    """``bound``, or where many are below it, a fence further down on the scale ``to_line``, on which the values are
    about normal."""
    values = values[np.isfinite(values)]
    if len(values) < _FEW or np.mean(values < bound) <= _MANY_BEYOND:
        return bound
    return float(min(bound, from_line(_fence(to_line(values), -1))))


def _fence(values: Values, sign: int) -> float:
    quarter, middle = np.quantile(values, [0.25 if sign < 0 else 0.75, 0.5])
    return float(middle + sign * _SIGMAS * abs(middle - quarter) / _QUARTILE)


def _size_fence(sides: Values, sign: int) -> float:
    """Bounds of the logarithms of sides."""
    sides = sides[np.isfinite(sides)]
    if not len(sides):
        return sign * math.inf
    ratio = sign * math.log(_SIZE_RATIO if len(sides) >= _FEW else 2 * _SIZE_RATIO)
    furthest = max if sign > 0 else min
    return furthest(float(np.median(sides)) + ratio, _fence(sides, sign))


def _blur_start(sharpness: Values) -> float:
    """Four standard deviations below the median, taken from the quarter above it, which blurred images change least."""
    least, most = _BLURRED
    if len(sharpness) < _FEW:
        return least
    values = _log(sharpness)
    return float(np.clip(math.exp(2 * float(np.median(values)) - _fence(values, 1)), least, most))


def _log(values: Values) -> Values:
    return np.log(np.maximum(values, 1e-4))


def _logit(values: Values) -> Values:
    inside = np.clip(values, 1e-3, 1 - 1e-3)
    return np.log(inside / (1 - inside))


def _from_logit(value: float) -> float:
    return 1 / (1 + math.exp(-value))

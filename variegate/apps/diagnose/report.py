"""Measurements as lines and rows of text, and as a plot: a bar for each rate, the bottleneck in a colour of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.advise import Diagnosis
from variegate.apps.diagnose.measurements import number, rate, size, times
from variegate.apps.plotting import BLUE, FAINT, GREEN, INK, PALE_BLUE, RED, drawn_figure, label_rows
from variegate.io.addresses import speakable

_PLOTTED = {
    "alone": (BLUE, (m.READ_FIRST, m.READ, m.DECODE, m.AUGMENT, m.TRANSFER)),
    "threads": (PALE_BLUE, (m.DECODE_ONE, m.DECODE, m.AUGMENT_ONE, m.AUGMENT)),
    "together": (GREEN, (m.READ_DECODE, m.DECODE_AUGMENT, m.LOADER_FIRST, m.LOADER)),
}
# Reading from memory is many times as fast as anything else: bars so many times as long as the loader's are cut off.
_CUT = 8
_LONGEST_LINE = 130


def data_lines(data: m.Measurements) -> list[str]:
    """Lines on the data and the machine of the measurements."""
    every = "a stream" if data.samples is None else f"{data.samples:,} samples"
    skipped = f", {data.skipped:,} unreadable skipped" if data.skipped else ""
    page_cache = f"{data.in_page_cache or 0:.0%} of the files were in the page cache"
    if data.in_page_cache is None:
        page_cache = "whether the files were in the page cache is not known"
    elif data.in_page_cache in (0.0, 1.0):
        page_cache = f"the files were {'' if data.in_page_cache else 'not '}in the page cache"
    return [
        f"{data.source}: {every}, {data.measured:,} of them measured{skipped}; on average {size(data.mean_bytes)}, "
        f"{data.mean_width:.0f} x {data.mean_height:.0f}",
        f"device {data.device}, {data.threads} of {data.cores} cores, batches of {data.batch_size}, cache "
        f"{data.cache or 'none'}; {page_cache}",
    ]


def rate_rows(data: m.Measurements) -> list[tuple[str, tuple[str, ...]]]:
    """(stage, cells) of what was measured: title, images/s, MB/s, threads, spread."""
    rows: list[tuple[str, tuple[str, ...]]] = []
    for stage, title in m.TITLES.items():
        found = data.rates.get(stage)
        if found is not None and stage != m.DECODE_WHOLE:
            spread = f"{found.spread:.0%}" if len(found.spans) > 1 else "once"
            cells = number(found.images_per_second), number(found.megabytes_per_second), str(found.threads), spread
            rows.append((stage, (title, *cells)))
        elif stage == m.TRANSFER:
            rows.append((stage, (title, "none", "", "", "")))
    return rows


def finding_lines(found: Diagnosis) -> list[str]:
    """The summary, then two lines for every finding: what to do and what it brings, and the numbers behind it."""
    lines = ["", found.summary]
    place = 0
    for finding in found.findings:
        advice = f"   {finding.advice}"
        if finding.images_per_second is not None:
            place += 1
            most = "at most " if finding.is_limit else ""
            is_enough = found.keeps_up is False and finding.images_per_second >= (found.consume or 0)
            enough = ", enough for the model" if is_enough else ""
            gain = f"{most}{times(finding.gain)}, {rate(finding.images_per_second)}{enough}"
            advice = f"{place}. {finding.advice}  ({gain})"
        lines += [advice, f"   because {finding.why}"]
    if not place:
        lines.append("No change is expected to gain 5% or more.")
    return lines


def draw_plot(data: m.Measurements, bottleneck: str, path: Path) -> None:
    """Plot the rates of ``data`` and its ``bottleneck`` to ``path``, a PNG.

    Raises PlotError without matplotlib, OSError if the file cannot be written.
    """
    rows = [  # a heading has no stage
        (group, stage)
        for group, (_, stages) in _PLOTTED.items()
        if group != "threads" or {m.DECODE_ONE, m.AUGMENT_ONE} & data.rates.keys()
        for stage in ("", *stages)
        if not stage or stage in data.rates
    ]
    rates = [data.rates[stage].images_per_second for _, stage in rows if stage]
    loader = data.rates[m.LOADER].images_per_second
    # Past all bars but those that are many times as long as the loader's.
    end = 1.22 * max(length for length in rates if length <= max(_CUT * loader, min(rates)))
    lines = [speakable(line) for line in data_lines(data)]
    lines = [line if len(line) <= _LONGEST_LINE else "… " + line[-_LONGEST_LINE:] for line in lines]
    with drawn_figure(path, 9.6, 0.7 + 0.36 * len(rows), f"The loader delivers {rate(loader)}", lines) as figure:
        axes = figure.subplots()
        labels = [m.TITLES.get(stage, "") for _, stage in rows]
        for row, (group, stage) in enumerate(rows):
            if not stage:
                axes.text(0, row + 0.16, group, color=FAINT, va="center", fontstyle="italic")
                continue
            if group == "threads" and stage in (m.DECODE, m.AUGMENT):
                labels[row] += f", {data.rates[stage].threads} threads"
            is_wall = stage == bottleneck and group != "threads"
            _bar(axes, row, data.rates[stage], RED if is_wall else _PLOTTED[group][0], end, is_wall)
        label_rows(axes, labels)
        axes.set_xlim(0, end)
        axes.set_xlabel("images per second; thin lines: slowest to fastest span")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="x")
        axes.spines["left"].set_visible(True)


def _bar(axes: Any, y: int, found: m.Rate, colour: str, end: float, is_wall: bool) -> None:
    length, fastest = found.images_per_second, min(max(found.spans), 0.98 * end)
    is_cut = length > 0.9 * end
    drawn = 0.84 * end if is_cut else length
    axes.barh(y, drawn, height=0.66, color=colour, zorder=2)
    if is_cut:
        # Two white strokes: the bar goes on.
        for place in (0.74, 0.755):
            axes.plot([place * end, (place + 0.012) * end], [y + 0.4, y - 0.4], color="white", lw=2, zorder=3)
    elif len(found.spans) > 1:
        axes.plot([min(found.spans), fastest], [y, y], color=INK, lw=1.1, alpha=0.55, zorder=3)
    at = drawn if is_cut else max(drawn, fastest)
    text, weight, ink = number(length), "normal", INK
    if is_wall:
        text, weight, ink = f"{text}  bottleneck", "bold", colour
    axes.text(at + 0.01 * end, y, text, va="center", color=ink, fontweight=weight, zorder=4)

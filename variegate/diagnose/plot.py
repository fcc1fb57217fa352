"""The rates as a plot: a bar for each, the bottleneck in a colour of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from variegate.diagnose import measurements as m
from variegate.diagnose.measurements import number, rate
from variegate.diagnose.report import data_lines
from variegate.outside.addresses import speakable
from variegate.plotting import BLUE, FAINT, GREEN, INK, PALE_BLUE, RED, drawn_figure, label_rows

_GROUPS = (
    ("alone", (m.READ_FIRST, m.READ, m.DECODE, m.AUGMENT, m.TRANSFER)),
    ("threads", (m.DECODE_ONE, m.DECODE, m.AUGMENT_ONE, m.AUGMENT)),
    ("together", (m.READ_DECODE, m.DECODE_AUGMENT, m.LOADER_FIRST, m.LOADER)),
)
_COLOURS = {"alone": BLUE, "threads": PALE_BLUE, "together": GREEN}
# Reading from memory is many times as fast as anything else: bars so many times as long as the loader's are cut off.
_CUT = 8


def draw_plot(data: m.Measurements, bottleneck: str, path: Path) -> None:
    """Write a PNG. Raises PlotError without matplotlib, OSError where the file cannot be written."""
    rows = _rows(data)
    end = _end(
        [data.rates[stage].images_per_second for _, stage, _, _ in rows if stage],
        data.rates[m.LOADER].images_per_second,
    )
    lines = [_shortened(speakable(line)) for line in data_lines(data)]
    with drawn_figure(path, 9.6, 0.7 + 0.36 * len(rows), _title(data), lines) as figure:
        axes = figure.subplots()
        for row, (group, stage, _, colour) in enumerate(rows):
            if not stage:
                axes.text(0, row + 0.16, group, color=FAINT, va="center", fontstyle="italic")
                continue
            is_wall = stage == bottleneck and group != "threads"
            _bar(axes, row, data.rates[stage], RED if is_wall else colour, end, is_wall)
        label_rows(axes, [label for _, _, label, _ in rows])
        axes.set_xlim(0, end)
        axes.set_xlabel("images per second; thin lines: slowest to fastest span")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="x")
        axes.spines["left"].set_visible(True)


def _rows(data: m.Measurements) -> list[tuple[str, str, str, str]]:
    """(group, stage, label, colour) from the top; a heading has no stage."""
    rows: list[tuple[str, str, str, str]] = []
    for group, stages in _GROUPS:
        there = [stage for stage in stages if stage in data.rates]
        if group == "threads" and not {m.DECODE_ONE, m.AUGMENT_ONE} & set(there):
            continue
        rows.append((group, "", "", ""))
        for stage in there:
            label = m.TITLES[stage]
            if group == "threads" and stage in (m.DECODE, m.AUGMENT):
                label = f"{label}, {data.rates[stage].threads} threads"
            rows.append((group, stage, label, _COLOURS[group]))
    return rows


def _end(rates: list[float], loader: float) -> float:
    """Where the axis ends: past all bars but those that are many times as long as the loader's."""
    return 1.22 * max(rate for rate in rates if rate <= max(_CUT * loader, min(rates)))


def _bar(axes: Any, y: int, found: m.Rate, colour: str, end: float, is_wall: bool) -> None:
    length, slowest, fastest = found.images_per_second, min(found.spans), min(max(found.spans), 0.98 * end)
    is_cut = length > 0.9 * end
    drawn = 0.84 * end if is_cut else length
    axes.barh(y, drawn, height=0.66, color=colour, zorder=2)
    if is_cut:
        # Two white strokes: the bar goes on.
        for place in (0.74, 0.755):
            axes.plot([place * end, (place + 0.012) * end], [y + 0.4, y - 0.4], color="white", lw=2, zorder=3)
    elif len(found.spans) > 1:
        axes.plot([slowest, fastest], [y, y], color=INK, lw=1.1, alpha=0.55, zorder=3)
    at = drawn if is_cut else max(drawn, fastest)
    axes.text(
        at + 0.01 * end,
        y,
        number(length) + ("  the wall" if is_wall else ""),
        va="center",
        color=colour if is_wall else INK,
        fontweight="bold" if is_wall else "normal",
        zorder=4,
    )


def _title(data: m.Measurements) -> str:
    return f"The loader gives {rate(data.rates[m.LOADER].images_per_second)}"


def _shortened(line: str, length: int = 130) -> str:
    return line if len(line) <= length else "… " + line[-length:]

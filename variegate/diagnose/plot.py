"""The rates as a plot: a bar for each, the bottleneck in a colour of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from variegate.diagnose import measurements as m
from variegate.diagnose.measurements import number, rate
from variegate.diagnose.report import data_lines
from variegate.outside.addresses import speakable
from variegate.plotting import BLUE, FAINT, FRAME, GREEN, GRID, INK, PALE_BLUE, RED, drawable, new_figure

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
    figure = new_figure(9.6, 1.9 + 0.36 * len(rows))
    axes = figure.add_axes((0.205, 0.62 / figure.get_figheight(), 0.76, 1 - 1.75 / figure.get_figheight()))
    end = _end(
        [data.rates[stage].images_per_second for _, stage, _, _ in rows if stage],
        data.rates[m.LOADER].images_per_second,
    )
    for y, (group, stage, label, colour) in enumerate(rows):
        if not stage:
            _heading(axes, y, group)
            continue
        is_wall = stage == bottleneck and group != "threads"
        _bar(axes, y, data.rates[stage], RED if is_wall else colour, end, is_wall)
        axes.text(-0.012 * end, y, label, ha="right", va="center", fontsize=9.5, color=INK)
    _finish(axes, len(rows), end)
    lines = data_lines(data)
    top = figure.get_figheight()
    figure.text(0.02, 1 - 0.32 / top, _title(data), fontsize=14, fontweight="bold", color=INK, va="center")
    for place, line in enumerate(lines):
        line = drawable(_shortened(speakable(line)))
        figure.text(0.02, 1 - (0.62 + 0.2 * place) / top, line, fontsize=8.5, color=FAINT, va="center")
    figure.savefig(path, format="png")


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
        fontsize=9.5,
        color=colour if is_wall else INK,
        fontweight="bold" if is_wall else "normal",
        zorder=4,
    )


def _heading(axes: Any, y: int, group: str) -> None:
    axes.text(0, y + 0.16, group, fontsize=9, color=FAINT, va="center", fontstyle="italic")


def _finish(axes: Any, rows: int, end: float) -> None:
    axes.set_xlim(0, end)
    axes.set_ylim(rows - 0.4, -0.5)
    axes.set_yticks([])
    axes.set_xlabel("images per second; thin lines: slowest to fastest span", fontsize=9, color=FAINT)
    axes.tick_params(axis="x", colors=FAINT, labelsize=8.5, length=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(axis="x", color=GRID, lw=0.8, zorder=0)
    for place in ("top", "right", "bottom"):
        axes.spines[place].set_visible(False)
    axes.spines["left"].set_color(FRAME)


def _title(data: m.Measurements) -> str:
    return f"The loader gives {rate(data.rates[m.LOADER].images_per_second)}"


def _shortened(line: str, length: int = 130) -> str:
    return line if len(line) <= length else "… " + line[-length:]

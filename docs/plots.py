"""Plots of the measured results, from docs/results/*.json, each for light and for dark pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

RESULTS = Path(__file__).resolve().parent / "results"
# Of ours at two levels, of peers, of what is written, of lines.
COLORS = {
    "light": ("#0a3069", "#54aeff", "#8c959f", "#1f2328", "#d0d7de"),
    "dark": ("#cae8ff", "#388bfd", "#6e7681", "#e6edf3", "#30363d"),
}
# <!-- plot: NAME --> in a page: its plot, on the site. On GitHub the tables say the same.
MARK = re.compile(r"^<!-- plot: (\w+) -->$", re.M)


def of(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return read


def rate(library: dict[str, Any]) -> float:
    return float(library.get("images_per_second") or 0)


def is_ours(key: str) -> bool:
    return key.partition(":")[0] == "ours"


def speedups(kinds: tuple[str, ...]) -> list[tuple[str, float, float]]:
    """Title, and how many times as fast as the best peer, limited to AVX2 and not, of the rows of W2o; best last."""
    found = []
    for row in of("w2o-batch64")["rows"].values():
        if row["kind"] in kinds:
            libraries = row["libraries"]
            best = max(rate(value) for key, value in libraries.items() if not is_ours(key))
            if not best:
                continue  # no other library has it
            ours = [rate(libraries[key]) / best for key in ("ours:v3", "ours:host")]
            found.append((row["title"], ours[0], ours[1]))
    return sorted(found, key=lambda row: row[1])


def draw_speedups(axes: Axes, colors: tuple[str, ...], kinds: tuple[str, ...]) -> None:
    rows = speedups(kinds)
    places = range(len(rows))
    axes.barh(places, [row[1] - 1 for row in rows], 0.62, 1, color=colors[1], label="limited to AVX2")
    axes.plot(
        [row[2] for row in rows], places, "|", color=colors[0], ms=9, mew=2.2, label="all of the processor (AVX-512)"
    )
    axes.set_yticks(places, [short(row[0]) for row in rows])
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xscale("log")
    ticks = [1, 2, 5, 10, 20, 50, 100]
    highest = max(max(row[1:]) for row in rows)
    axes.set_xlim(0.8, highest * 1.25)
    axes.set_xticks([tick for tick in ticks if tick < highest * 1.25], [f"{t}x" for t in ticks if t < highest * 1.25])
    axes.set_xticks([], minor=True)
    axes.axvline(1, color=colors[2], lw=1.5)
    axes.set_xlabel("speed, as a multiple of the fastest other library")
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()
    axes.legend(loc="lower right", frameon=False)


def short(title: str) -> str:
    for british, american in (("colour", "color"), ("centre", "center"), ("normalise", "normalize")):
        title = title.replace(british, american)
    return title if len(title) <= 62 else title[:60].rsplit(" ", 1)[0].rstrip(",:(") + " ..."


def draw_rates(axes: Axes, colors: tuple[str, ...], name: str, skip: tuple[str, ...] = ()) -> None:
    libraries = {key: value for key, value in of(name)["libraries"].items() if rate(value) and key not in skip}
    rows = sorted(libraries.items(), key=lambda item: rate(item[1]))
    places = range(len(rows))
    rates = [rate(value) for _, value in rows]
    spread = [[r - value["lowest"] for r, (_, value) in zip(rates, rows, strict=True)],
              [value["highest"] - r for r, (_, value) in zip(rates, rows, strict=True)]]  # fmt: skip
    bars = [colors[1] if is_ours(key) else colors[2] for key, _ in rows]
    axes.barh(places, rates, 0.62, color=bars, xerr=spread, ecolor=colors[3], capsize=2, error_kw={"lw": 1})
    axes.set_yticks(places, [value["library"] for _, value in rows])
    most = max(value + above for value, above in zip(rates, spread[1], strict=True))
    for place, (value, above) in enumerate(zip(rates, spread[1], strict=True)):
        axes.text(value + above + most / 80, place, f"{value:,.0f}", va="center", color=colors[3])
    axes.set_xlim(0, most * 1.12)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("images/s, median; lines: lowest to highest run")


PLOTS: dict[str, tuple[str, float, Callable[[Axes, tuple[str, ...]], None]]] = {
    "levels": (
        "Images per second of Variegate at five processor levels and of five other libraries: RandAugment",
        3.4,
        lambda axes, colors: draw_rates(axes, colors, "w2-batch64"),
    ),
    "operations": (
        "Speed of every operation as a multiple of the fastest other library",
        15,
        lambda axes, colors: draw_speedups(axes, colors, ("operation",)),
    ),
    "pipelines": (
        "Speed of pipelines as a multiple of the fastest other library",
        4.6,
        lambda axes, colors: draw_speedups(axes, colors, ("pipeline", "file pipeline")),
    ),
    "files": (
        "Images per second from JPEG files on one core, of Variegate with and without an index and of other libraries",
        2.6,
        lambda axes, colors: draw_rates(axes, colors, "w1i-batch64"),
    ),
    "loader": (
        "Images per second of whole loaders on two cores",
        2.4,
        lambda axes, colors: draw_rates(axes, colors, "loader-batch64"),
    ),
}


def save(name: str, scheme: str, path: Path) -> None:
    _, height, draw = PLOTS[name]
    colors = COLORS[scheme]
    figure = Figure(figsize=(8.2, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    draw(axes, colors)
    axes.set_facecolor("none")
    axes.grid(axis="x", color=colors[4], lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=colors[3])
    axes.xaxis.label.set_color(colors[3])
    for side in axes.spines.values():
        side.set_visible(False)
    if legend := axes.get_legend():
        for text in legend.get_texts():
            text.set_color(colors[3])
    figure.savefig(path, transparent=True, metadata={"Date": None})


def shown(text: str, folder: Path) -> str:
    """A page with its plots, which are written to ``folder``."""

    def pictures(found: re.Match[str]) -> str:
        name = found[1]
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["```{raw} html"]
        with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9.5}):
            for scheme in COLORS:
                save(name, scheme, folder / f"{name}-{scheme}.svg")
                source = f"../plots/{name}-{scheme}.svg"
                lines.append(
                    f'<div class="only-{scheme} plot"><img src="{source}" alt="{PLOTS[name][0]}" loading="lazy"></div>'
                )
        return "\n".join([*lines, "```"])

    return MARK.sub(pictures, text)

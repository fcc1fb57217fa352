"""The style of all plots, and how each is made: a heading, axes that a layout engine places, a PNG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from variegate.io.addresses import check_is_local, redact_text
from variegate.io.durable import write_atomically

# Text and lines; what matters less.
INK, FAINT = "#22303c", "#5f6b75"
# In every plot red is a limit: the stage that holds up the others, or the time that cannot be beaten. Chosen and
# recommended items are green.
RED, GREEN = "#d1495b", "#3f6b5c"
BLUE, PALE_BLUE, AMBER = "#5b8db8", "#a9bccb", "#b8791f"
GRID, FRAME = "#e4e8eb", "#c5ccd1"

# In points: the heading and the lines under it; labels of marks.
_TITLE = 14
_LINE = 9
LABEL = 9
_STYLE: Any = {
    "figure.dpi": 130,
    "savefig.dpi": "figure",
    "figure.facecolor": "white",
    "text.color": INK,
    "font.size": LABEL,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelsize": LABEL,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": FRAME,
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "xtick.labelsize": 8.5,
    "xtick.major.size": 0,
    "ytick.color": FAINT,
    "ytick.labelsize": 8.5,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.labelcolor": INK,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.1,
}


class PlotError(RuntimeError):
    """Raised when no plot can be drawn; says why, and what helps."""


@contextmanager
def drawn_figure(path: str | Path, width: float, height: float, title: str, lines: Sequence[str] = ()) -> Iterator[Any]:
    """A matplotlib ``Figure`` to put axes into, which becomes a PNG at the end, whole or not at all.

    ``width``, ``height``: in inches, of the axes with all that belongs to them; the heading and ``lines`` come on top.
    Raises PlotError without matplotlib, WriteError.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError("no plot was drawn, since matplotlib is missing: pip install 'variegate[plot]'") from None
    head = 0.55 + 0.2 * len(lines)
    high = height + head
    with rc_context(_STYLE):
        figure: Any = Figure(figsize=(width, high), layout="constrained")
        FigureCanvasAgg(figure)
        figure.get_layout_engine().set(rect=(0.1 / width, 0, 1 - 0.2 / width, height / high))
        figure.text(0.2 / width, 1 - 0.32 / high, title, fontsize=_TITLE, fontweight="bold", va="center")
        for number, line in enumerate(lines):
            place = 1 - (0.62 + 0.2 * number) / high
            figure.text(0.2 / width, place, drawable(line), fontsize=_LINE, color=FAINT, va="center")
        yield figure
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
    write_atomically(Path(path), buffer.getvalue())


def label_rows(axes: Any, labels: Sequence[str]) -> None:
    """A row for each label, from the top, named at its left."""
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_yticks(range(len(labels)), [drawable(label) for label in labels])
    axes.tick_params(axis="y", labelcolor=INK, labelsize=LABEL)


def line_handles(entries: Sequence[tuple[str, str]], **style: Any) -> list[Any]:
    """Legend entries: a line for each color and its meaning."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=color, label=meaning, **style) for color, meaning in entries]


def drawable(text: str) -> str:
    """Text with names in it: as it may be printed, and without a dollar that begins a formula."""
    return redact_text(text).replace("$", r"\$")


def check_path(path: Path, name: str = "out") -> None:
    """Check the file of a plot before the work begins. Raises ValueError unless it is a PNG in an existing folder."""
    check_is_local(name, path)
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError(f"{name}: got {path}; accepted: a file in a folder that is there")
    if path.suffix.lower() != ".png":
        raise ValueError(f"{name}: got {path}; accepted: a file that ends in .png")

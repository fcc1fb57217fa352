"""What the two plots of a search share: a figure without a window, its colours and its letters."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from variegate.outside.durable import write_atomically
from variegate.plotting import FAINT, INK
from variegate.plotting import new_figure as white_figure


def new_figure(width: float, height: float, title: str, remark: str) -> Any:
    """A white figure (inches) with a title and a line under it. Raises PlotError without matplotlib."""
    figure = white_figure(width, height)
    figure.text(0.02, 1 - 0.3 / height, title, fontsize=14, fontweight="bold", color=INK, va="center")
    figure.text(0.02, 1 - 0.58 / height, remark, fontsize=9, color=FAINT, va="center")
    return figure


def add_axes(figure: Any, left: float, top: float, width: float, height: float) -> Any:
    """Axes placed in inches from the figure's top left, with quiet ticks and no frame."""
    w, h = figure.get_size_inches()
    axes = figure.add_axes((left / w, 1 - (top + height) / h, width / w, height / h))
    axes.tick_params(colors=FAINT, labelsize=8.5, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def save(figure: Any, path: str | Path) -> None:
    """Whole or not at all. Raises WriteError."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_atomically(Path(path), buffer.getvalue())

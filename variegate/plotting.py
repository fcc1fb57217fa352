"""What the plots of all commands share: matplotlib where it is there, colours, and a file to write to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from variegate.outside.addresses import check_is_local, speakable

# Text and lines; what matters less.
INK, FAINT = "#22303c", "#7a8791"
# In every plot red is a limit: the stage that holds up the others, or the time that cannot be beaten. What was chosen,
# or is recommended, is green.
RED, GREEN = "#d1495b", "#3f6b5c"
BLUE, PALE_BLUE, AMBER = "#5b8db8", "#a9bccb", "#b8791f"
GRID, FRAME = "#e4e8eb", "#c5ccd1"


class PlotError(RuntimeError):
    """No plot can be drawn here; the line says why, and what would help."""


def new_figure(width: float, height: float) -> Any:
    """A white matplotlib ``Figure`` of so many inches. Raises PlotError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotError("no plot was drawn, since matplotlib is missing: pip install 'variegate[plot]'") from None
    figure = Figure(figsize=(width, height), dpi=130, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def drawable(text: str) -> str:
    """Text with names in it: as it may be printed, and without a dollar that begins a formula."""
    return speakable(text).replace("$", r"\$")


def check_path(path: Path) -> None:
    """Known before the work is done. Raises ValueError for a file that is no PNG, or has no folder to be in."""
    check_is_local("out", path)
    if not path.parent.is_dir() or path.is_dir():
        raise ValueError(f"out: got {path}; accepted: a file in a folder that is there")
    if path.suffix.lower() != ".png":
        raise ValueError(f"out: got {path}; accepted: a file that ends in .png")

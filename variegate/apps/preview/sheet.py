"""A contact sheet: rows of pictures, each with lines of text under it, broken where a reader would, and a heading."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from variegate.apps.plotting import FAINT, FRAME, INK
from variegate.apps.preview.overlay import TargetOverlay, draw_overlay
from variegate.apps.preview.text import Font, Key, colours_of, line_height, wrap, wrap_name

Image_HWC = npt.NDArray[np.uint8]

PAPER = (252, 252, 250)
MARGIN, GAP, TEXT_GAP, ROW_GAP, KEY_GAP = 24, 12, 6, 18, 6
TITLE_SIZE, NOTE_SIZE, CAPTION_SIZE = 22, 15, 14
# Sides of a picture's square. Captions may be wider than it, and need some room however small it is.
LARGEST_CELL, SMALLEST_CELL, _CELL_STEP = 224, 112, 8
NARROWEST_COLUMN = 160
SCREEN = (1600, 1000)
# Side by side, beside the original.
MOST_VIEWS = 6


@dataclass(frozen=True)
class Cell:
    """A picture and the lines under it; the first line is ``title`` (dark), the rest follow in grey.

    A title that ``is_name`` is the name of a file, which is broken at its separators. ``overlay`` is drawn on the
    picture. ``group``: of a view, its copy and its group, which keep together.
    """

    img_HWC: Image_HWC
    title: str
    lines: list[str] = field(default_factory=list)
    is_name: bool = False
    overlay: TargetOverlay | None = None
    group: tuple[int, int] | None = None


# What stands for the original in further lines of its views.
_BLANK = Cell(np.full((1, 1, 3), PAPER, np.uint8), "")


def lines_of(row: list[Cell]) -> list[list[Cell]]:
    """An image's row; with views as several, of whole groups where these are not too many."""
    lines = [row[:1]]
    for group, cells in groupby(row[1:], key=lambda cell: cell.group):
        views = list(cells)
        if group is None:
            lines[-1] += views
            continue
        for start in range(0, len(views), MOST_VIEWS):
            some = views[start : start + MOST_VIEWS]
            if len(lines[-1]) > 1 and len(lines[-1]) + len(some) > 1 + MOST_VIEWS:
                lines.append([_BLANK])
            lines[-1] += some
    return lines


def draw_sheet(
    rows: list[list[Cell]], title: str, notes: list[str], cell: int = LARGEST_CELL, column: int | None = None
) -> Image.Image:
    """Lay out ``rows`` on a white sheet. Pictures keep their proportions in squares of ``cell`` pixels.

    Captions are wrapped to columns of ``column`` pixels, if not given as wide as the squares.

    Small pictures grow by whole factors (their pixels stay visible); large ones are reduced with antialiasing. A row
    is as high as its highest picture and longest caption need. Classes of overlays have a key under the notes.
    """
    layout = _Layout(rows, title, notes, cell, column or cell)
    sheet = Image.new("RGB", (layout.width, layout.height), PAPER)
    draw = ImageDraw.Draw(sheet)
    y = MARGIN
    for line, ink, size in layout.heading:
        draw.text((MARGIN, y), line, ink, layout.fonts[size])
        y += line_height(size)
    layout.key.draw(draw, MARGIN, y + KEY_GAP, line_height(NOTE_SIZE))

    y = layout.top
    for row, lines_of, picture_height, row_height in zip(
        rows, layout.captions, layout.picture_heights, layout.row_heights, strict=True
    ):
        for number, (one, lines) in enumerate(zip(row, lines_of, strict=True)):
            picture = _fit(one.img_HWC, cell)
            if one.overlay is not None:
                draw_overlay(picture, one.overlay, one.img_HWC.shape[:2], layout.colours)
            x, upper = MARGIN + number * (layout.column + GAP), y + (picture_height - picture.height) // 2
            if one is _BLANK:
                continue
            draw.rectangle((x - 1, upper - 1, x + picture.width, upper + picture.height), outline=FRAME)
            sheet.paste(picture, (x, upper))
            text_y = y + picture_height + TEXT_GAP
            for line, ink in lines:
                draw.text((x, text_y), line, ink, layout.fonts[CAPTION_SIZE])
                text_y += line_height(CAPTION_SIZE)
        y += row_height + ROW_GAP
    return sheet


def sizes_for(rows: list[list[Cell]], title: str, notes: list[str]) -> tuple[int, int]:
    """The largest side of pictures with which the sheet fits on a screen, and the width of its columns.

    Where none does, the side with which the least of it is out of sight.
    """
    columns = max(len(row) for row in rows)
    room = (SCREEN[0] - 2 * MARGIN - (columns - 1) * GAP) // columns
    wrapped: dict[int, _Layout] = {}  # breaking many captions into lines takes long, and many widths come twice

    def laid_out(cell: int, column: int) -> _Layout:
        layout = wrapped[column] = _Layout(rows, title, notes, cell, column, wrapped.get(column))
        return layout

    sides = range(LARGEST_CELL, SMALLEST_CELL - 1, -_CELL_STEP)
    best = min(
        (laid_out(cell, max(cell, NARROWEST_COLUMN, min(room, LARGEST_CELL))) for cell in sides),
        key=lambda layout: (max(1.0, layout.width / SCREEN[0], layout.height / SCREEN[1]), -layout.cell),
    )
    for column in range(max(best.cell, NARROWEST_COLUMN), best.column, _CELL_STEP):
        if laid_out(best.cell, column).height <= best.height:  # short captions need no wider one
            return best.cell, column
    return best.cell, best.column


class _Layout:
    """Places of everything for one size of pictures; nothing is drawn yet."""

    def __init__(
        self, rows: list[list[Cell]], title: str, notes: list[str], cell: int, column: int, like: _Layout | None = None
    ) -> None:
        """``like``: a layout of the same with columns of the same width, whose lines are taken over."""
        self.cell, self.column = cell, column
        self.fonts = {size: ImageFont.load_default(size) for size in (TITLE_SIZE, NOTE_SIZE, CAPTION_SIZE)}
        columns = max(len(row) for row in rows)
        self.width = 2 * MARGIN + columns * column + (columns - 1) * GAP
        inner = self.width - 2 * MARGIN
        texts = [(title, INK, TITLE_SIZE), *((note, FAINT, NOTE_SIZE) for note in notes)]
        self.heading = [(line, ink, size) for text, ink, size in texts for line in wrap(text, self.fonts[size], inner)]
        # Originals first, so that other policies leave the colours as they are.
        overlays = [one.overlay for part in (slice(1), slice(1, None)) for row in rows for one in row[part]]
        self.colours = colours_of(name for overlay in overlays if overlay is not None for name in overlay.classes())
        self.key = Key(self.colours, self.fonts[NOTE_SIZE], inner)
        key_height = KEY_GAP + len(self.key.lines) * line_height(NOTE_SIZE) if self.key.lines else 0
        self.captions: list[list[list[tuple[str, str]]]] = (
            [[_caption_lines(one, self.fonts[CAPTION_SIZE], column) for one in row] for row in rows]
            if like is None
            else like.captions
        )
        self.picture_heights = [max(_fitted(one.img_HWC, cell)[1] for one in row) for row in rows]
        text_heights = [max(len(lines) for lines in row) * line_height(CAPTION_SIZE) for row in self.captions]
        self.row_heights = [a + TEXT_GAP + b for a, b in zip(self.picture_heights, text_heights, strict=True)]
        self.top = MARGIN + sum(line_height(size) for _, _, size in self.heading) + key_height + ROW_GAP
        self.height = self.top + sum(self.row_heights) + ROW_GAP * (len(rows) - 1) + MARGIN


def _caption_lines(cell: Cell, font: Font, width: int) -> list[tuple[str, str]]:
    titles = wrap_name(cell.title, font, width) if cell.is_name else wrap(cell.title, font, width)
    dark = [(line, INK) for line in titles]
    return dark + [(line, FAINT) for text in cell.lines for line in wrap(text, font, width)]


def _fitted(img_HWC: Image_HWC, cell: int) -> tuple[int, int]:
    """Width and height of a picture on the sheet."""
    height, width = img_HWC.shape[:2]
    longest = max(height, width)
    scale = cell // longest if longest <= cell else cell / longest
    return max(1, round(width * scale)), max(1, round(height * scale))


def _fit(img_HWC: Image_HWC, cell: int) -> Image.Image:
    image = Image.fromarray(img_HWC.squeeze(2) if img_HWC.ndim == 3 and img_HWC.shape[2] == 1 else img_HWC)
    is_small = max(image.size) <= cell
    resample = Image.Resampling.NEAREST if is_small else Image.Resampling.LANCZOS
    return image.convert("RGB").resize(_fitted(img_HWC, cell), resample)

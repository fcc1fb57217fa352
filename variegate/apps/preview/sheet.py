"""A contact sheet: rows of pictures, each with lines of text under it, broken where a reader would, and a heading."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from variegate.apps.plotting import FAINT, FRAME, INK
from variegate.apps.preview.overlay import TargetOverlay, draw_overlay
from variegate.apps.preview.text import RGB, Font, Key, colors_of, line_height, wrap, wrap_name
from variegate.arrays import UInt8Array

Image_HWC = UInt8Array

PAPER = (252, 252, 250)
MARGIN, GAP, TEXT_GAP, ROW_GAP, KEY_GAP = 24, 12, 6, 18, 6
TITLE_SIZE = 22
NOTE_SIZE = 15
CAPTION_SIZE = 14
# Sides of a picture's square. Captions may be wider than it, and need some room however small it is.
LARGEST_CELL = 224
SMALLEST_CELL = 112
# Lines under a picture, as a rule.
_USUAL_LINES = 5
NARROWEST_COLUMN = 160
SCREEN = (1600, 1000)
# Side by side, next to the original.
MOST_VIEWS = 6


@dataclass(frozen=True)
class Cell:
    """A picture and the lines under it; the first line is ``title`` (dark), the rest are gray.

    A title that ``is_name`` is the name of a file, which is broken at its separators. ``overlay`` is drawn on the
    picture. ``group``: of a view, its copy and its group, which keep together.
    """

    img_HWC: Image_HWC
    title: str
    lines: list[str] = field(default_factory=list)
    is_name: bool = False
    overlay: TargetOverlay | None = None
    group: tuple[int, int] | None = None


# Filler for the original in further lines of its views.
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
    column = column or cell
    fonts = {size: ImageFont.load_default(size) for size in (TITLE_SIZE, NOTE_SIZE, CAPTION_SIZE)}
    num_columns = max(map(len, rows))
    inner = num_columns * column + (num_columns - 1) * GAP
    texts = [(title, INK, TITLE_SIZE), *((note, FAINT, NOTE_SIZE) for note in notes)]
    heading = [(line, ink, size) for text, ink, size in texts for line in wrap(text, fonts[size], inner)]
    colors = _colors_of_classes(rows)
    key = Key(colors, fonts[NOTE_SIZE], inner)
    captions = [[_caption_lines(one, fonts[CAPTION_SIZE], column) for one in row] for row in rows]
    picture_heights = [max(_fitted(one.img_HWC, cell)[1] for one in row) for row in rows]
    text_heights = [max(map(len, lines)) * line_height(CAPTION_SIZE) for lines in captions]

    key_top = MARGIN + sum(line_height(size) for _, _, size in heading) + KEY_GAP
    top = key_top + len(key.lines) * line_height(NOTE_SIZE) - (0 if key.lines else KEY_GAP) + ROW_GAP
    row_heights = [a + TEXT_GAP + b + ROW_GAP for a, b in zip(picture_heights, text_heights, strict=True)]
    sheet = Image.new("RGB", (inner + 2 * MARGIN, top + sum(row_heights) - ROW_GAP + MARGIN), PAPER)
    draw = ImageDraw.Draw(sheet)
    y = MARGIN
    for line, ink, size in heading:
        draw.text((MARGIN, y), line, ink, fonts[size])
        y += line_height(size)
    key.draw(draw, MARGIN, key_top, line_height(NOTE_SIZE))

    y = top
    for row, lines_below, picture_height, row_height in zip(rows, captions, picture_heights, row_heights, strict=True):
        for number, (one, lines) in enumerate(zip(row, lines_below, strict=True)):
            if one is _BLANK:
                continue
            picture = _fit(one.img_HWC, cell)
            if one.overlay is not None:
                draw_overlay(picture, one.overlay, one.img_HWC.shape[:2], colors)
            x = MARGIN + number * (column + GAP)
            upper = y + (picture_height - picture.height) // 2
            draw.rectangle((x - 1, upper - 1, x + picture.width, upper + picture.height), outline=FRAME)
            sheet.paste(picture, (x, upper))
            for place, (line, ink) in enumerate(lines):
                text_y = y + picture_height + TEXT_GAP + place * line_height(CAPTION_SIZE)
                draw.text((x, text_y), line, ink, fonts[CAPTION_SIZE])
        y += row_height
    return sheet


def fitting_sizes(rows: list[list[Cell]]) -> tuple[int, int]:
    """The side of pictures and the width of columns with which a sheet fits on a screen; pictures stay recognizable."""
    num_columns = max(map(len, rows))
    num_rows = len(rows)
    heading = 2 * MARGIN + line_height(TITLE_SIZE) + 2 * line_height(NOTE_SIZE)
    text = _USUAL_LINES * line_height(CAPTION_SIZE) + TEXT_GAP + ROW_GAP
    by_width = (SCREEN[0] - 2 * MARGIN + GAP) // num_columns - GAP
    by_height = (SCREEN[1] - heading) // num_rows - text
    side = max(SMALLEST_CELL, min(LARGEST_CELL, by_width, by_height))
    return side, max(side, NARROWEST_COLUMN, min(LARGEST_CELL, by_width))


def _colors_of_classes(rows: list[list[Cell]]) -> dict[str, RGB]:
    """Originals first, so that their colors are the same for every policy."""
    overlays = [one.overlay for part in (slice(1), slice(1, None)) for row in rows for one in row[part]]
    return colors_of(name for overlay in overlays if overlay is not None for name in overlay.classes())


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

"""A contact sheet: rows of pictures, each with lines of text under it, and a heading."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from variegate.outside.addresses import speakable

Image_HWC = npt.NDArray[np.uint8]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

PAPER, INK, FAINT, FRAME = (252, 252, 250), (24, 26, 30), (88, 92, 100), (214, 215, 218)
MARGIN, GAP, TEXT_GAP, ROW_GAP = 28, 14, 7, 22
TITLE_SIZE, NOTE_SIZE, CAPTION_SIZE = 24, 15, 14
LINE_SPACING = 1.3
_GLUE = "\xa0"


@dataclass(frozen=True)
class Cell:
    """A picture and the lines under it; the first line is ``title`` (dark), the rest follow in grey."""

    img_HWC: Image_HWC
    title: str
    lines: list[str] = field(default_factory=list)


def draw_sheet(rows: list[list[Cell]], title: str, notes: list[str], cell: int = 224) -> Image.Image:
    """Lay out ``rows`` on a white sheet. Pictures keep their proportions in squares of ``cell`` pixels.

    Small pictures grow by whole factors (their pixels stay visible); large ones are reduced with antialiasing. A row
    is as high as its highest picture and longest caption need.
    """
    heading, note_font, caption = (ImageFont.load_default(size) for size in (TITLE_SIZE, NOTE_SIZE, CAPTION_SIZE))
    columns = max(len(row) for row in rows)
    width = 2 * MARGIN + columns * cell + (columns - 1) * GAP
    inner = width - 2 * MARGIN
    titles = wrap(title, heading, inner)
    wrapped_notes = [line for note in notes for line in wrap(note, note_font, inner)]

    prepared = [[(_fit(c.img_HWC, cell), _caption_lines(c, caption, cell)) for c in row] for row in rows]
    top = MARGIN + len(titles) * line_height(TITLE_SIZE) + len(wrapped_notes) * line_height(NOTE_SIZE) + ROW_GAP
    picture_heights = [max(picture.height for picture, _ in row) for row in prepared]
    text_heights = [max(len(lines) for _, lines in row) * line_height(CAPTION_SIZE) for row in prepared]
    row_heights = [a + TEXT_GAP + b for a, b in zip(picture_heights, text_heights, strict=True)]
    height = top + sum(row_heights) + ROW_GAP * (len(rows) - 1) + MARGIN

    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    y = MARGIN
    for line in titles:
        draw.text((MARGIN, y), line, INK, heading)
        y += line_height(TITLE_SIZE)
    for line in wrapped_notes:
        draw.text((MARGIN, y), line, FAINT, note_font)
        y += line_height(NOTE_SIZE)

    y = top
    for row, picture_height, row_height in zip(prepared, picture_heights, row_heights, strict=True):
        for column, (picture, lines) in enumerate(row):
            x = MARGIN + column * (cell + GAP)
            left, upper = x + (cell - picture.width) // 2, y + (picture_height - picture.height) // 2
            draw.rectangle((left - 1, upper - 1, left + picture.width, upper + picture.height), outline=FRAME)
            sheet.paste(picture, (left, upper))
            text_y = y + picture_height + TEXT_GAP
            for line, ink in lines:
                draw.text((x, text_y), line, ink, caption)
                text_y += line_height(CAPTION_SIZE)
        y += row_height + ROW_GAP
    return sheet


def wrap(text: str, font: Font, width: int) -> list[str]:
    """Break ``text`` between words, and inside a word only where it is wider than a line by itself."""
    lines: list[str] = []
    current = ""
    # A name stays on one line with the number after it: "Rotate -9.00".
    for word in re.sub(r" (?=-?\d)", _GLUE, speakable(" ".join(text.split()))).split(" "):
        if font.getlength(f"{current} {word}".strip()) <= width:
            current = f"{current} {word}".strip()
            continue
        if current:
            lines.append(current)
        current = word
        while font.getlength(current) > width:
            fits = max(1, next(n for n in range(len(current), 0, -1) if n == 1 or font.getlength(current[:n]) <= width))
            lines.append(current[:fits])
            current = current[fits:]
    return [line.replace(_GLUE, " ") for line in [*lines, current] if line]


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * LINE_SPACING)


def _caption_lines(cell: Cell, font: Font, width: int) -> list[tuple[str, tuple[int, int, int]]]:
    dark = [(line, INK) for line in wrap(cell.title, font, width)]
    return dark + [(line, FAINT) for text in cell.lines for line in wrap(text, font, width)]


def _fit(img_HWC: Image_HWC, cell: int) -> Image.Image:
    image = Image.fromarray(img_HWC.squeeze(2) if img_HWC.ndim == 3 and img_HWC.shape[2] == 1 else img_HWC)
    longest = max(image.size)
    scale = cell // longest if longest <= cell else cell / longest
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    resample = Image.Resampling.NEAREST if scale >= 1 else Image.Resampling.LANCZOS
    return image.convert("RGB").resize(size, resample)

"""A colour for each class on a sheet, and the key that says which is which."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping

from PIL import ImageDraw

from variegate.apps.plotting import FAINT, FRAME, INK
from variegate.apps.preview.text import Font, shorten

RGB = tuple[int, int, int]

# Far from each other, and from most of what photos show.
_FIRST: tuple[RGB, ...] = (
    (255, 77, 77),
    (0, 200, 255),
    (255, 212, 0),
    (94, 233, 90),
    (255, 108, 226),
    (255, 148, 36),
    (60, 116, 255),
    (174, 122, 255),
    (0, 226, 178),
    (190, 122, 66),
    (196, 255, 90),
    (255, 176, 190),
)
# Of what has no class.
NEUTRAL: RGB = (244, 244, 238)
_GOLDEN = 0.61803398875
# Names in the key; more say less than a number.
_MOST_NAMES = 24
_SWATCH, _AFTER_SWATCH, _BETWEEN = 12, 6, 18
_LONGEST = 400


def colours_of(names: Iterable[str]) -> dict[str, RGB]:
    """A colour for each name, in their order."""
    return {name: _colour(n) for n, name in enumerate(dict.fromkeys(names))}


def ink_on(colour: RGB) -> RGB:
    """Black or white, whichever is easier to read on it."""
    red, green, blue = colour
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else (255, 255, 255)


class Key:
    """Swatches with the names of their colours, in lines no wider than ``width``."""

    def __init__(self, colours: Mapping[str, RGB], font: Font, width: int) -> None:
        self._font = font
        entries: list[tuple[str, RGB | None]] = [
            (shorten(name, font, min(width - _SWATCH - _AFTER_SWATCH, _LONGEST)), colour)
            for name, colour in list(colours.items())[:_MOST_NAMES]
        ]
        if (more := len(colours) - _MOST_NAMES) > 0:
            entries.append((f"and {more:,} more", None))
        self.lines: list[list[tuple[int, str, RGB | None]]] = []
        x = width
        for name, colour in entries:
            taken = round(font.getlength(name)) + (0 if colour is None else _SWATCH + _AFTER_SWATCH)
            if x + taken > width:
                self.lines.append([])
                x = 0
            self.lines[-1].append((x, name, colour))
            x += taken + _BETWEEN

    def draw(self, draw: ImageDraw.ImageDraw, left: int, top: int, line_height: int) -> None:
        for line in self.lines:
            for x, name, colour in line:
                at = left + x
                if colour is not None:
                    upper = top + (line_height - _SWATCH) // 2
                    draw.rectangle((at, upper, at + _SWATCH - 1, upper + _SWATCH - 1), colour, FRAME)
                    at += _SWATCH + _AFTER_SWATCH
                ink = FAINT if colour is None else INK
                draw.text((at, top + line_height / 2), name, ink, self._font, anchor="lm")
            top += line_height


def _colour(n: int) -> RGB:
    if n < len(_FIRST):
        return _FIRST[n]
    lightness = (0.62, 0.5, 0.74)[n % 3]
    red, green, blue = colorsys.hls_to_rgb(n * _GOLDEN % 1.0, lightness, 0.9)
    return round(255 * red), round(255 * green), round(255 * blue)

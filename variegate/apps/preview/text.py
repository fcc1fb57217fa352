"""Text and colors of a sheet: broken lines, shortened names, a color for each class, and their key."""

from __future__ import annotations

import colorsys
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping

from PIL import ImageDraw, ImageFont

from variegate.apps.plotting import FAINT, FRAME, INK
from variegate.io.addresses import redact_text

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

LINE_SPACING = 1.3

_GLUE = "\xa0"
_ELLIPSIS = "..."
_LEAST_KEPT = 2
# A name may be broken after these characters.
_SEPARATOR = re.compile(r"(?<=[/_\-. )])(?=[^/_\-. )])")


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * LINE_SPACING)


def wrap(text: str, font: Font, width: int) -> list[str]:
    """Break ``text`` between words, and inside a word only if it is wider than a line."""
    lines: list[str] = []
    current = ""
    # A name stays on one line with the number after it, "Rotate -9.00", where a line has room for both.
    glued = re.sub(r" (?=-?\d)", _GLUE, redact_text(" ".join(text.split()))).split(" ")
    for word in (part for one in glued for part in (one.split(_GLUE) if font.getlength(one) > width else [one])):
        if font.getlength(f"{current} {word}".strip()) <= width:
            current = f"{current} {word}".strip()
            continue
        if current:
            lines.append(current)
        current = word
        while font.getlength(current) > width:
            fits = _fitting(current, font, width)
            lines.append(current[:fits])
            current = current[fits:]
    return [line.replace(_GLUE, " ") for line in [*lines, current] if line]


def wrap_name(name: str, font: Font, width: int) -> list[str]:
    """A file's name in at most two lines, broken behind separators; of a longer one the beginning and the end."""
    name = redact_text(name)
    lines = _break_name(name, font, width)
    if len(lines) <= 2:
        return lines
    # Names of files mostly differ at their end.
    kept = _largest(1, len(name), lambda number: font.getlength(_ELLIPSIS + name[-number:]) <= width)
    return [lines[0], _ELLIPSIS + name[-kept:]]


def shorten(text: str, font: Font, width: float) -> str:
    """The beginning of ``text`` that fits, with dots at its end; "" if too little is left."""
    text = redact_text(" ".join(text.split()))
    if font.getlength(text) <= width:
        return text
    kept = _largest(0, len(text) - 1, lambda n: font.getlength(text[:n] + _ELLIPSIS) <= width)
    return "" if kept < _LEAST_KEPT else text[:kept] + _ELLIPSIS


def _break_name(name: str, font: Font, width: int) -> list[str]:
    lines = [""]
    for part in _SEPARATOR.split(name):
        if lines[-1] and font.getlength(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
        while font.getlength(lines[-1].rstrip()) > width:
            fits = _fitting(lines[-1], font, width)
            lines[-1:] = [lines[-1][:fits], lines[-1][fits:]]
    return [line.strip() for line in lines]


def _fitting(text: str, font: Font, width: int) -> int:
    """Number of characters of ``text`` that go on a line; one at least."""
    return _largest(1, len(text), lambda n: font.getlength(text[:n]) <= width)


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest number that fits, where all below it do; ``least`` where none does."""
    return least + bisect_left(range(least + 1, most + 1), True, key=lambda number: not fits(number))


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
# Color of objects without a class.
NEUTRAL: RGB = (244, 244, 238)
_GOLDEN = 0.61803398875
# Names in the key; more say less than a number.
_MOST_NAMES = 24
_SWATCH = 12
_AFTER_SWATCH = 6
_BETWEEN = 18
_LONGEST = 400


def colors_of(names: Iterable[str]) -> dict[str, RGB]:
    """A color for each name, in their order."""
    return {name: _color(n) for n, name in enumerate(dict.fromkeys(names))}


def ink_on(color: RGB) -> RGB:
    """Black or white, whichever is easier to read on it."""
    red, green, blue = color
    return (0, 0, 0) if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else (255, 255, 255)


class Key:
    """Swatches with the names of their colors, in lines no wider than ``width``."""

    def __init__(self, colors: Mapping[str, RGB], font: Font, width: int) -> None:
        self._font = font
        entries: list[tuple[str, RGB | None]] = [
            (shorten(name, font, min(width - _SWATCH - _AFTER_SWATCH, _LONGEST)), color)
            for name, color in list(colors.items())[:_MOST_NAMES]
        ]
        if (more := len(colors) - _MOST_NAMES) > 0:
            entries.append((f"and {more:,} more", None))
        self.lines: list[list[tuple[int, str, RGB | None]]] = []
        x = width
        for name, color in entries:
            taken = round(font.getlength(name)) + (0 if color is None else _SWATCH + _AFTER_SWATCH)
            if x + taken > width:
                self.lines.append([])
                x = 0
            self.lines[-1].append((x, name, color))
            x += taken + _BETWEEN

    def draw(self, draw: ImageDraw.ImageDraw, left: int, top: int, line_height: int) -> None:
        for line in self.lines:
            for x, name, color in line:
                at = left + x
                if color is not None:
                    upper = top + (line_height - _SWATCH) // 2
                    draw.rectangle((at, upper, at + _SWATCH - 1, upper + _SWATCH - 1), color, FRAME)
                    at += _SWATCH + _AFTER_SWATCH
                ink = FAINT if color is None else INK
                draw.text((at, top + line_height / 2), name, ink, self._font, anchor="lm")
            top += line_height


def _color(n: int) -> RGB:
    if n < len(_FIRST):
        return _FIRST[n]
    lightness = (0.62, 0.5, 0.74)[n % 3]
    red, green, blue = colorsys.hls_to_rgb(n * _GOLDEN % 1.0, lightness, 0.9)
    return round(255 * red), round(255 * green), round(255 * blue)

"""Text of a sheet: broken where a reader would, shortened where it is too long."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from PIL import ImageFont

from variegate.io.addresses import speakable

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

LINE_SPACING = 1.3

_GLUE = "\xa0"
_ELLIPSIS = "..."
_LEAST_KEPT = 2
# A name may be broken behind these, and they stay with what stands before them.
_SEPARATOR = re.compile(r"(?<=[/_\-. )])(?=[^/_\-. )])")


def line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * LINE_SPACING)


def wrap(text: str, font: Font, width: int) -> list[str]:
    """Break ``text`` between words, and inside a word only where it is wider than a line by itself."""
    lines: list[str] = []
    current = ""
    # A name stays on one line with the number after it, "Rotate -9.00", where a line has room for both.
    glued = re.sub(r" (?=-?\d)", _GLUE, speakable(" ".join(text.split()))).split(" ")
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


def wrap_name(name: str, font: Font, width: int, most: int = 2) -> list[str]:
    """A file's name in at most ``most`` lines, broken behind separators; the middle of a longer one is left out."""
    name = speakable(name)
    lines = _break_name(name, font, width)
    if len(lines) <= most:
        return lines

    def shortened(kept: int) -> list[str]:
        # What tells files apart is mostly at the end.
        head, tail = kept // 3, kept - kept // 3
        return _break_name(f"{name[:head]}{_ELLIPSIS}{name[len(name) - tail :]}", font, width)

    return shortened(_largest(1, len(name) - 1, lambda kept: len(shortened(kept)) <= most))


def shorten(text: str, font: Font, width: float) -> str:
    """The beginning of ``text`` that is no wider, with dots where some is left out; "" where too little is left."""
    text = speakable(" ".join(text.split()))
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
    """How many characters of ``text`` go on a line; one at least."""
    return _largest(1, len(text), lambda n: font.getlength(text[:n]) <= width)


def _largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest number that fits, where all below it do; ``least`` where none does."""
    return least + bisect_left(range(least + 1, most + 1), True, key=lambda number: not fits(number))

"""Annotations as they are typed: a layout or a file, and options after commas, ``yolo,split=train,mask=each``."""

from __future__ import annotations

import re
from typing import Any

_OPTION = re.compile(r"\s*([a-z_]+)\s*=(.*)", re.DOTALL)
_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "yes": True, "no": False}
_SIDES = re.compile(r"(\d+)\s*x\s*(\d+)")


def split_typed(text: str) -> tuple[str, dict[str, Any]]:
    """-> what comes first, and the options. Commas that no option follows belong to what stands before them, as names
    of files may hold some.

    Values are text, but for ``none``, ``true``, ``false`` (``yes``, ``no``), and two numbers ``17x3``, a list.
    """
    first, *rest = text.split(",")
    options: dict[str, Any] = {}
    last = None
    for part in rest:
        if found := _OPTION.fullmatch(part):
            last = found[1]
            options[last] = found[2]
        elif last is None:
            first += f",{part}"
        else:
            options[last] += f",{part}"
    return first, {name: _value(value.strip()) for name, value in options.items()}


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    sides = _SIDES.fullmatch(text)
    return text if sides is None else [int(sides[1]), int(sides[2])]

"""A value of each sample in the words of the function that is traced: ``vg.uniform(0, 9) > label``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.errors import shown

_DEEPEST, _LONGEST = 6, 80
_DRAWS = {"coin": "vg.coin", "uniform": "vg.uniform", "randint": "vg.randint", "normal": "vg.normal"}


def told(definitions: Mapping[str, tuple[Any, ...]], name: str) -> str:
    text = _told(definitions, name, 0)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _told(definitions: Mapping[str, tuple[Any, ...]], value: Any, depth: int) -> str:
    if not (isinstance(value, str) and value.startswith("$")):
        return shown(value)
    if value not in definitions:
        return f"image.{value.rpartition('.')[2]}"  # a size that is measured on the way
    what, *operands = definitions[value]
    if what == "given":
        return str(operands[0])
    if depth == _DEEPEST:
        return "..."
    parts = [_told(definitions, each, depth + 1) for each in operands]
    if what == "pick":
        return f"vg.choice(..., p=[{', '.join(parts)}])"
    if what == "take":
        return f"[{', '.join(parts[1:])}][{parts[0]}]"
    if what == "where":
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if len(parts) == 2 and what not in _DRAWS and (not what.isalpha() or what in ("and", "or", "xor")):
        text = f"{parts[0]} {what} {parts[1]}"
        return text if depth == 0 else f"({text})"
    if what == "not":
        return f"not {parts[0]}"
    return f"{_DRAWS.get(what, what)}({', '.join(parts)})"

"""Functions of numbers that may differ from pixel to pixel: for pixel functions of custom operations.

On Python's own numbers they compute at once.
"""

from __future__ import annotations

from variegate.program.draws.values import (
    ceil,
    clip,
    cos,
    exp,
    floor,
    log,
    maximum,
    minimum,
    rint,
    select,
    sin,
    sqrt,
    tan,
    trunc,
)

__all__ = [
    "ceil",
    "clip",
    "cos",
    "exp",
    "floor",
    "log",
    "maximum",
    "minimum",
    "rint",
    "select",
    "sin",
    "sqrt",
    "tan",
    "trunc",
]

"""Instructions of the draw machine (``native/kernels/draws.cpp``). A register holds one float64 per image."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from variegate.program.ops import NUM_ARGS

LANES = 32
"""Number of images in a block, which the machine processes together."""

INSTRUCTION = np.dtype([(name, np.int32) for name in ("op", "to", "a", "b", "c")] + [("k", np.float64)], align=True)
"""An instruction of the machine."""

_EMISSION_HEAD = ("opcode", "flags", "where", "height", "width", "count", "label")
EMISSION = np.dtype(
    [*((name, np.int32) for name in _EMISSION_HEAD), ("args", np.int32, NUM_ARGS), ("fill", np.int32, 3)], align=True
)
"""Registers of a program's instruction, a rectangle, or an error's numbers; -1 for no register."""


class DrawFailure(IntEnum):
    """Statuses of a failed draw, in addition to the common statuses of native calls."""

    CHECK_FAILED = 16
    """Image ``failure[1]`` fails the CHECK with emission ``failure[0]``."""
    TOO_LARGE = 17
    """Emission ``failure[0]`` makes image ``failure[1]`` larger than the maximum side."""
    NO_SLOT = 18
    """A program exceeds its allocated instructions."""


class DrawOp(IntEnum):
    """Opcodes of the draw machine. ``to``, ``a``, ``b``, ``c``: registers. ``k``: a constant. Conditions are 0 or 1."""

    HEIGHT = auto()
    WIDTH = auto()
    CHANNELS = auto()
    COLUMN = auto()
    """Column ``k`` of the per-image numbers that are passed with a batch."""
    BASE = auto()
    """First index of the record's entries in side table ``k``."""
    CHAIN = auto()
    """Index of the row among the copies of its image, from 0."""
    SLOT = auto()
    """Number of the record's slot ``k``, plus ``a`` if present."""
    WORDS = auto()
    """Four random 32-bit words of slot ``k``, plus ``a`` if present."""
    UNIT = auto()
    """A random word as a number in [0, 1)."""
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    FLOOR_DIVIDE = auto()
    MODULO = auto()
    POWER = auto()
    """NaN for a negative base."""
    MINIMUM = auto()
    MAXIMUM = auto()
    LESS = auto()
    LESS_EQUAL = auto()
    EQUAL = auto()
    NOT_EQUAL = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    NEGATE = auto()
    ABSOLUTE = auto()
    RINT = auto()
    FLOOR = auto()
    CEIL = auto()
    TRUNC = auto()
    SQRT = auto()
    FLOAT32 = auto()
    EXP = auto()
    LOG = auto()
    SIN = auto()
    COS = auto()
    TAN = auto()
    SELECT = auto()
    """``b`` if ``a``, else ``c``."""
    ASSIGN = auto()
    """``b`` if ``a``, else the previous value of ``to``."""
    LOOKUP = auto()
    """Constant ``k + a``, from an array of ``b`` constants that starts at ``k``."""
    SEARCH = auto()
    """Number of constants at most ``a``, in an ascending array of ``b`` constants that starts at ``k``."""
    SORT = auto()
    """Indices that sort the ``b`` registers starting at ``a``: a permutation, in ``b`` registers."""
    RECTANGLE = auto()
    """Add a rectangle, emission ``k``. Returns its index."""
    BLEND = auto()
    """Set the row's blend weight to ``a``."""
    EMIT = auto()
    """Append emission ``k`` to the program."""
    CHECK = auto()
    """Fail unless ``a`` holds for all images for which ``b`` holds. Emission ``k`` has the error's numbers."""
    SKIP = auto()
    """Jump to instruction ``k`` if ``a`` holds for no image of the block."""

"""Instructions of the machine that draws (``native/kernels/draws.cpp``): on registers, one number per image each."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np

from variegate.program.ops import NUM_ARGS

LANES = 32
"""Images that the machine takes at once."""

INSTRUCTION = np.dtype([(name, np.int32) for name in ("op", "to", "a", "b", "c")] + [("k", np.float64)], align=True)
"""An instruction of the machine."""

_EMISSION_HEAD = ("opcode", "flags", "where", "height", "width", "count", "label")
EMISSION = np.dtype(
    [*((name, np.int32) for name in _EMISSION_HEAD), ("args", np.int32, NUM_ARGS), ("fill", np.int32, 3)], align=True
)
"""An instruction of a program, a rectangle, or the numbers of a message, as registers; -1 for none."""


class DrawFailure(IntEnum):
    """Statuses of a call that failed, beside those of all native calls."""

    CHECK_FAILED = 16
    """The image ``failure[1]`` does not satisfy the CHECK of emission ``failure[0]``."""
    TOO_LARGE = 17
    """Emission ``failure[0]`` gives the image ``failure[1]`` sides beyond the accepted ones."""
    NO_SLOT = 18
    """A program is longer than its memory."""


class DrawOp(IntEnum):
    """``to``, ``a``, ``b`` and ``c`` are registers, ``k`` is a constant. Conditions are 0 or 1."""

    HEIGHT = auto()
    WIDTH = auto()
    CHANNELS = auto()
    COLUMN = auto()
    """Column ``k`` of the numbers that come with a batch."""
    BASE = auto()
    """Where the record's entries of side table ``k`` begin."""
    CHAIN = auto()
    """The number of a row among the copies of its image, 0 for the first."""
    SLOT = auto()
    """The number of slot ``k`` of the record, or of that many slots after it as ``a`` says."""
    WORDS = auto()
    """Four random words of 32 bits of slot ``k``, or of that many slots after it as ``a`` says."""
    UNIT = auto()
    """A word as a number in [0, 1)."""
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    FLOOR_DIVIDE = auto()
    MODULO = auto()
    POWER = auto()
    """NaN for negative bases."""
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
    """``b`` if ``a``, else what ``to`` holds already."""
    LOOKUP = auto()
    """Number ``a`` of the ``b`` constants that begin at ``k``."""
    SEARCH = auto()
    """How many of the ``b`` ascending constants that begin at ``k`` are at most ``a``."""
    SORT = auto()
    """Positions of the ``b`` numbers in registers from ``a`` on, in ascending order: a random permutation."""
    RECTANGLE = auto()
    """The index of a new rectangle, emission ``k``."""
    BLEND = auto()
    """Give the row the weight ``a`` among the copies of its image."""
    EMIT = auto()
    """Append emission ``k`` to the program."""
    CHECK = auto()
    """Fail unless ``a`` holds in all images where ``b`` does; the message needs the numbers of emission ``k``."""
    SKIP = auto()
    """Go on at instruction ``k`` if ``a`` holds in no image of the block."""

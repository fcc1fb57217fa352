"""How much one transform may ask for: what costs time or memory has an end, and it is named where it is passed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.errors import PolicyError, shown

# Of transforms within one another. Sampling and descriptions call themselves for each.
MAX_DEPTH = 32
# Of transforms in one tree: a choice by label among a thousand classes, with ten operations each.
MAX_TRANSFORMS = 10_000
# Blocks of random numbers of one image, 16 bytes each: a mebibyte.
MAX_SLOTS = 65_536
# Operations one after another in a policy, where no published one has more than eight.
MAX_STEPS = 64
# Strengths of a policy: more than a byte has levels cannot be told apart.
MAX_BINS = 1024
# Of a list of operations or of sub-policies.
MAX_ENTRIES = 4096
# Sides and borders that arguments may name. What is longer than a program can address is refused when it is sampled.
MAX_LENGTH = 1 << 20
# Numbers that have no other end. In single precision products of two of them are finite still.
LARGEST = 1e9
# Taps of a blur along one axis: three deviations of 170 pixels to each side.
MAX_KERNEL = 1023
# Rectangles in one image.
MAX_RECTANGLES = 65_536

# Of a description: a transform in a list takes two levels, and a policy's own lists a few more.
_MAX_LEVELS = 2 * MAX_DEPTH + 16
_MAX_VALUES = 1_000_000


def check_tree(described: Any, where: str) -> None:
    """Raise PolicyError for a description that is nested too deeply (or holds itself), or that is too large.

    An object that is there many times counts every time, as every place makes a transform of its own.
    """
    count = 0
    stack: list[tuple[Any, int]] = [(described, 0)]
    while stack:
        value, level = stack.pop()
        count += 1
        if level > _MAX_LEVELS:
            accepted = f"at most {_MAX_LEVELS} levels of lists and objects within one another"
            raise PolicyError(where, "a description nested more deeply, or without end", accepted)
        if count + len(stack) > _MAX_VALUES:
            accepted = f"at most {_MAX_VALUES:,} values, those that are repeated by reference included"
            raise PolicyError(where, "a larger description", accepted)
        if isinstance(value, Mapping):
            stack += [(inner, level + 1) for inner in value.values()]
        elif isinstance(value, (list, tuple)):
            stack += [(inner, level + 1) for inner in value]


def check_keys(described: Mapping[Any, Any], where: str) -> None:
    """Raise PolicyError for a key that is no string."""
    for key in described:
        if not isinstance(key, str):
            raise PolicyError(f"{where}.{shown(key)}", key, "a name of an argument, which is a string")

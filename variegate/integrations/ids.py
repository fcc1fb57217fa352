"""Which random numbers a row of a table gets: the number that its column of ids stands for."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_integer

ACCEPTED_IDS = "integers from 0 to 2**64 - 1, or strings"


def id_of(text: str) -> int:
    """The id that a string stands for: 64 bits of its BLAKE2b hash, on every machine and in every version the same.

    Of a million different strings two meet with a chance of one in forty million; they would share random numbers.
    """
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def ids_of(values: npt.NDArray[Any], column: str) -> npt.NDArray[np.uint64]:
    """Integers as they are, strings by ``id_of``. Raises ValueError naming the column, the row and its value."""
    if values.ndim != 1:
        raise ValueError(f"id: column {column!r} holds arrays {list(values.shape[1:])}; accepted: {ACCEPTED_IDS}")
    if values.dtype.kind in "iu":
        negative = np.flatnonzero(values < 0)
        if len(negative):
            raise _refused(column, int(negative[0]), int(values[negative[0]]))
        return values.astype(np.uint64)
    if values.dtype.kind == "f":
        why = ", as integers become where some are missing (null)" if np.isnan(values).any() else ""
        raise ValueError(f"id: column {column!r} holds {values.dtype}{why}; accepted: {ACCEPTED_IDS}")
    return np.array([_number(value, column, row) for row, value in enumerate(values)], np.uint64)


def _number(value: Any, column: str, row: int) -> int:
    if isinstance(value, str):
        return id_of(value)
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << 64:
        raise _refused(column, row, value)
    return number


def _refused(column: str, row: int, value: Any) -> ValueError:
    return ValueError(f"id: column {column!r} holds {value!r} in row {row} of the batch; accepted: {ACCEPTED_IDS}")

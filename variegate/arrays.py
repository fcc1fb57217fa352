"""Names for the types of NumPy arrays in annotations, and arrays of several things in one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

AnyArray: TypeAlias = npt.NDArray[Any]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
# Of uint8, uint16 or float32: see program/depth.py.
ImageArray: TypeAlias = npt.NDArray[Any]
Int16Array: TypeAlias = npt.NDArray[np.int16]
UInt16Array: TypeAlias = npt.NDArray[np.uint16]
UInt32Array: TypeAlias = npt.NDArray[np.uint32]
Int32Array: TypeAlias = npt.NDArray[np.int32]
UInt64Array: TypeAlias = npt.NDArray[np.uint64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
IndexArray: TypeAlias = npt.NDArray[np.intp]
Float32Array: TypeAlias = npt.NDArray[np.float32]
Float64Array: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.integer]
RealArray: TypeAlias = npt.NDArray[np.floating]


def split(values: Any, counts: Iterable[int]) -> list[Any]:
    """Runs of an array or a list, as long as ``counts`` says, one after another. The parts of an array are views."""
    return [values[begin:end] for begin, end in pairwise(accumulate(counts, initial=0))]

"""Arrays that processes of one machine share: in memory without a name, of which nothing is left when they end."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SharedArray:
    """``descriptor``: of the memory, in the process that made it and in those that inherit it.

    The memory is freed when no process has it open or mapped, however they end.
    """

    descriptor: int
    shape: tuple[int, ...]
    dtype: str

    def map(self) -> npt.NDArray[Any]:
        """The array itself, for as long as anything refers to it."""
        count = math.prod(self.shape)
        memory = mmap.mmap(self.descriptor, count * np.dtype(self.dtype).itemsize)
        return np.frombuffer(memory, self.dtype, count).reshape(self.shape)

    def close(self) -> None:
        os.close(self.descriptor)


def share(shape: tuple[int, ...], dtype: str) -> SharedArray:
    """An array of zeros. Raises MemoryError for more than this machine has."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError(f"{size:,} bytes")
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("variegate")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return SharedArray(descriptor, shape, dtype)


def mapped(array: npt.NDArray[Any] | SharedArray) -> npt.NDArray[Any]:
    return array.map() if isinstance(array, SharedArray) else array

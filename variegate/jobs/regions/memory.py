"""Memory that all workers of a run see: arrays of one process, memory without a name, or mapped files."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from variegate.arrays import AnyArray


@dataclass(frozen=True)
class SharedArray:
    """An array in memory without a name, which is freed when no process has it open or mapped, however they end.

    ``descriptor``: of the memory, in the process that created it and in processes that inherit it.
    """

    descriptor: int
    shape: tuple[int, ...]
    dtype: str

    @classmethod
    def of(cls, shape: tuple[int, ...], dtype: str) -> SharedArray:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("variegate")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, num_bytes(shape, dtype))
        return cls(descriptor, shape, dtype)

    def map(self) -> AnyArray:
        """The array itself, for as long as anything refers to it."""
        memory = mmap.mmap(self.descriptor, num_bytes(self.shape, self.dtype))
        return np.frombuffer(memory, self.dtype, math.prod(self.shape)).reshape(self.shape)

    def close(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True)
class MappedFile:
    """An array in a file, from byte ``offset`` on."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    offset: int = 0
    mode: Literal["r", "r+"] = "r+"

    def map(self) -> AnyArray:
        return np.memmap(self.path, self.dtype, self.mode, self.offset, self.shape).view(np.ndarray)


Memory: TypeAlias = "AnyArray | SharedArray | MappedFile"


def mapped(memory: Memory) -> AnyArray:
    """The array itself."""
    return memory if isinstance(memory, np.ndarray) else memory.map()


def num_bytes(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize


def flush(array: AnyArray) -> None:
    """Write changes of a mapped file to disk, so that other machines see them. Other arrays need nothing."""
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    if isinstance(base, np.memmap) and base.mode != "r":
        base.flush()

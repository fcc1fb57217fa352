"""Side tables while a batch is sampled: what instructions point into is put there, and its place given back."""

from __future__ import annotations

import ctypes
import sys
from _ctypes import CFuncPtr
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float32Array, Int16Array, Int32Array, RealArray, UInt8Array
from variegate.checks import as_number
from variegate.errors import shown
from variegate.native.library import data_ptr
from variegate.program.channels import needs_color
from variegate.program.program import Tables
from variegate.threads import computed_once

# Of red, green and blue, uint8 each, changed in place; how many there are; and the magnitude.
_ROW_FUNCTION = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_float)


def row_address(function: Any) -> int | None:
    """The address of a compiled ``void row(uint8_t *r, uint8_t *g, uint8_t *b, int64_t n, float magnitude)``.

    ``function``: an object with an integer ``address`` (``numba.cfunc``), or a function pointer of ctypes or cffi; of
    others, the result is None.
    """
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return address
    if isinstance(function, CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    # Whoever has a pointer of cffi has loaded it.
    cffi = sys.modules.get("_cffi_backend")
    if cffi is not None and isinstance(function, cffi._CDataBase):
        return int(cffi.FFI().cast("uintptr_t", function))
    return None


@dataclass(frozen=True, eq=False)
class PointFunction:
    """A user's function of a pixel, and its compiled form for rows of pixels.

    ``function``: compiled (see ``row_address``), or a Python function ``(r, g, b, m) -> (r, g, b)``, which Numba
    compiles; its results are rounded to nearest and clipped to 0..255. ``triton_function``: the same as a
    ``@triton.jit`` function of float32 tensors, for CUDA devices.
    """

    function: Any
    name: str
    triton_function: Any = None

    @property
    def is_compiled(self) -> bool:
        return row_address(self.function) is not None

    def check(self) -> None:
        """Compile the function. Raises ValueError naming it, with what it returned or raised, if that fails."""
        if self.is_compiled:
            return
        numba_points = self._compiler()
        try:
            _ = self.address
        except numba_points.COMPILE_ERRORS as error:
            accepted = "f(r, g, b, m) -> (r, g, b), three numbers on 0..255, of what Numba compiles"
            raise ValueError(f"{self.name}.point: {self._outcome(error)}; accepted: {accepted}") from None

    def _outcome(self, error: Exception) -> str:
        """Describe what a call from Python returns or raises; else the compiler's reason."""
        plain = getattr(self.function, "py_func", self.function)
        try:
            result = plain(*(np.float32(value) for value in (64.0, 128.0, 192.0, 1.0)))
        except Exception as failure:  # the user's function may raise anything
            return f"raised {type(failure).__name__}: {shown(str(failure))}"
        is_triple = isinstance(result, tuple) and len(result) == 3
        if is_triple and all(as_number(value) is not None for value in result):
            reasons = [line.strip() for line in str(error).splitlines() if line.strip()]
            return f"does not compile: {shown(next(iter(reasons[1:]), 'no reason'))}"
        return f"returned {shown(result)}"

    def _compiler(self) -> Any:
        try:
            from variegate.program import numba_points
        except ImportError as error:
            raise ImportError(
                f"{self.name}.point is a Python function, which Numba compiles ({error}): "
                "pip install 'variegate[custom]', or give a pointer to a compiled function"
            ) from None
        return numba_points

    @computed_once
    def address(self) -> int:
        """Address of the compiled form: see ``row_address``."""
        known = row_address(self.function)
        if known is not None:
            return known
        numba_points = self._compiler()
        row = numba_points.compile_row(numba_points.compile_scalar(self.function))
        # The compiled object must outlive its address; two threads may make one each, and either be used.
        self.__dict__.setdefault("_kept_alive", []).append(row)
        return int(row.address)

    def apply(self, channels: UInt8Array, magnitude: float) -> None:
        """Run the compiled form on uint8[3, N], in C order, in place."""
        _ROW_FUNCTION(self.address)(*map(data_ptr, channels), channels.shape[1], magnitude)


_NONE = Tables()


class TableBuilder:
    """Collects the ``Tables`` of a program, and the names of its operations.

    ``num_channels``: of colors and tables of levels, 3 for gray and color images.
    """

    def __init__(self, num_channels: int = 3) -> None:
        self.num_channels = num_channels
        self._parts: dict[str, list[AnyArray]] = {}
        self._counts: dict[str, int] = {}
        self._points: list[PointFunction] = []
        self._names: list[str] = []
        if num_channels != 3:
            self.add("luts", np.empty((0, num_channels, 256)))
            self.add("colors", np.zeros((1, num_channels)))  # of instructions without a color

    def add(self, table: str, values: npt.ArrayLike) -> int:
        """-> the place of the first of ``values`` in their table."""
        like = getattr(_NONE, table)
        first = self._counts.get(table, 0)
        part = np.ascontiguousarray(values, like.dtype)
        part = part.reshape(-1, *part.shape[part.ndim - like.ndim + 1 :])
        self._parts.setdefault(table, []).append(part)
        self._counts[table] = first + len(part)
        return first

    def adopt_tables(self, other: TableBuilder) -> None:
        """Take the tables of another builder in place of its own."""
        self._parts, self._counts, self._points, self._names = other._parts, other._counts, other._points, other._names

    def table_size(self, table: str) -> int:
        """Entries of a side table so far."""
        return self._counts.get(table, 0)

    def joined(self, table: str) -> AnyArray:
        """The entries of a side table that has any."""
        parts = self._parts[table]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def is_empty_but(self, table: str) -> bool:
        """True if no other side table has entries."""
        return not (self._points or self._parts.keys() - {table})

    def name_index(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    def add_lut(self, lut: UInt8Array, name: str = "LUT") -> int:
        """uint8[256] or [3, 256] -> its index, for Op.LUT. ``name``: what errors call it.

        Raises ValueError for three tables if images have many channels.
        """
        if lut.ndim == 2 and len(lut) not in (1, self.num_channels):
            raise needs_color(name, self.num_channels)
        return self.add("luts", np.broadcast_to(lut, (self.num_channels, 256)))

    def add_matrix(self, matrix: Float32Array) -> int:
        """float[3, 4] on 0..255 RGB plus offset -> its index, for Op.COLOR_MATRIX."""
        return self.add("matrices", matrix)

    def add_filters(self, kernels: RealArray) -> int:
        """float[M, height, width] -> where their weights begin, for Op.FILTER."""
        return self.add("filters", kernels)

    def add_rectangles(self, rectangles: Int32Array) -> int:
        """int[Q, 4] of top, left, height, width -> index of the first, for Op.ERASE."""
        return self.add("rectangles", rectangles)

    def add_grids(self, displacements: Int16Array) -> int:
        """int16 dx, dy of nodes, line by line -> where they begin, for Op.DISPLACE."""
        return self.add("grids", displacements)

    def add_point(self, function: PointFunction) -> int:
        """A compiled point function -> its index, for Op.POINT."""
        for index, known in enumerate(self._points):
            if known is function:
                return index
        function.check()
        self._points.append(function)
        return len(self._points) - 1

    def tables(self) -> Tables:
        return Tables(**{name: self.joined(name) for name in self._parts}, points=self._points)

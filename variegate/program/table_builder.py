"""Side tables while a batch is sampled: what instructions point into is put there, and its place given back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from numba.core.errors import NumbaError

from variegate.checks import as_number
from variegate.errors import shown
from variegate.program.program import Tables
from variegate.threads import computed_once

PointScalar = Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]


@dataclass(frozen=True, eq=False)
class PointFunction:
    """A user's scalar function and its compiled row form. Results are rounded to nearest and clipped to 0..255.

    ``triton_function``: the same as a ``@triton.jit`` function of float32 tensors, for CUDA devices.
    """

    function: PointScalar
    name: str
    triton_function: Any = None

    def check(self) -> None:
        """Compile the function. Raises ValueError naming it, with what it returned or raised, if that fails."""
        try:
            _ = self.address
        except (NumbaError, NotImplementedError) as error:
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

    @computed_once
    def scalar(self) -> Any:
        """The function as Numba compiles it, callable from Python as well."""
        is_compiled = hasattr(self.function, "py_func")
        return self.function if is_compiled else nb.njit(self.function, nogil=True, inline="always")

    @computed_once
    def address(self) -> int:
        """Address of ``void row(uint8* r, uint8* g, uint8* b, int64 n, float32 magnitude)``."""
        scalar = self.scalar
        pointer = nb.types.CPointer(nb.uint8)

        @nb.cfunc(nb.void(pointer, pointer, pointer, nb.int64, nb.float32), nopython=True)
        def row(r_pointer: Any, g_pointer: Any, b_pointer: Any, n: Any, magnitude: Any) -> None:
            r = nb.carray(r_pointer, (n,))
            g = nb.carray(g_pointer, (n,))
            b = nb.carray(b_pointer, (n,))
            for x in range(n):
                red, green, blue = scalar(np.float32(r[x]), np.float32(g[x]), np.float32(b[x]), magnitude)
                r[x] = np.uint8(min(max(np.float32(red) + np.float32(0.5), np.float32(0)), np.float32(255)))
                g[x] = np.uint8(min(max(np.float32(green) + np.float32(0.5), np.float32(0)), np.float32(255)))
                b[x] = np.uint8(min(max(np.float32(blue) + np.float32(0.5), np.float32(0)), np.float32(255)))

        # The compiled object must outlive its address; two threads may make one each, and either be used.
        self.__dict__.setdefault("_kept_alive", []).append(row)
        return int(row.address)


_NONE = Tables()


class TableBuilder:
    """Collects the ``Tables`` of a program."""

    def _start_tables(self) -> None:
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._counts: dict[str, int] = {}
        self._points: list[PointFunction] = []

    def _add(self, table: str, values: npt.ArrayLike) -> int:
        """-> the place of the first of ``values`` in their table."""
        like, first = getattr(_NONE, table), self._counts.get(table, 0)
        part = np.ascontiguousarray(values, like.dtype).reshape(-1, *like.shape[1:])
        self._parts.setdefault(table, []).append(part)
        self._counts[table] = first + len(part)
        return first

    def add_lut(self, lut: npt.NDArray[np.uint8]) -> int:
        """uint8[256] or [3, 256] -> its index, for Op.LUT."""
        return self._add("luts", np.broadcast_to(lut, (3, 256)))

    def add_matrix(self, matrix: npt.NDArray[np.float32]) -> int:
        """float[3, 4] on 0..255 RGB plus offset -> its index, for Op.COLOR_MATRIX."""
        return self._add("matrices", matrix)

    def add_filters(self, kernels: npt.NDArray[np.floating]) -> int:
        """float[M, height, width] -> where their weights begin, for Op.FILTER."""
        return self._add("filters", kernels)

    def add_rectangles(self, rectangles: npt.NDArray[np.int32]) -> int:
        """int[Q, 4] of top, left, height, width -> index of the first, for Op.ERASE."""
        return self._add("rectangles", rectangles)

    def add_grids(self, displacements: npt.NDArray[np.int16]) -> int:
        """int16 dx, dy of nodes, line by line -> where they begin, for Op.DISPLACE."""
        return self._add("grids", displacements)

    def add_point(self, function: PointFunction) -> int:
        """A compiled point function -> its index, for Op.POINT."""
        for index, known in enumerate(self._points):
            if known is function:
                return index
        function.check()
        self._points.append(function)
        return len(self._points) - 1

    def tables(self) -> Tables:
        tables = {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in self._parts.items()}
        return Tables(**tables, points=self._points)

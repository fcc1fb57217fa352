"""Point functions that users write: ``(r, g, b, magnitude) -> (r, g, b)`` on 0..255, compiled into the fused pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

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

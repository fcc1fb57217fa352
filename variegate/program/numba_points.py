"""Python functions of a pixel, compiled by Numba. Imported only where one is given: Numba is optional."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core.errors import NumbaError

COMPILE_ERRORS = NumbaError, NotImplementedError


def compile_scalar(function: Any) -> Any:
    """The function as Numba compiles it, callable from Python as well; compiled ones stay as they are."""
    return function if hasattr(function, "py_func") else nb.njit(function, nogil=True, inline="always")


def compile_row(scalar: Any) -> Any:
    """A ``numba.cfunc`` that applies a compiled function ``(r, g, b, m) -> (r, g, b)`` to a row of pixels.

    Results are rounded to nearest and clipped to 0..255.
    """
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

    return row

"""The point operation of ``tests/programs.py`` for a GPU; not imported where Triton is missing."""

import triton
import triton.language as tl


@triton.jit
def turn(r, g, b, m):
    return g * m, b + m, tl.full(r.shape, 255.0, tl.float32) - r

"""Random words, in NumPy: the plain twin of ``native/philox.h``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.arrays import UInt32Array
from variegate.program.rng import MULTIPLIERS, ROUNDS, WEYL


def philox4x32(counter: npt.ArrayLike, key: npt.ArrayLike) -> UInt32Array:
    """Philox4x32-10 of ``counter[..., 4]`` under ``key[..., 2]`` (broadcast) -> uint32[..., 4]."""
    m0, m1 = map(np.uint64, MULTIPLIERS)
    w0, w1 = map(np.uint64, WEYL)
    c = np.asarray(counter, dtype=np.uint64)
    k = np.asarray(key, dtype=np.uint64)
    c0, c1, c2, c3 = (c[..., i] for i in range(4))
    k0 = k[..., 0]
    k1 = k[..., 1]
    mask = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    for _ in range(ROUNDS):
        product0 = c0 * m0
        product1 = c2 * m1
        c0, c1, c2, c3 = (
            (product1 >> shift) ^ c1 ^ k0,
            product1 & mask,
            (product0 >> shift) ^ c3 ^ k1,
            product0 & mask,
        )
        k0 = (k0 + w0) & mask
        k1 = (k1 + w1) & mask
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1).astype(np.uint32)

"""Counter-based randomness: Philox4x32-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405).

Every number is a function of (seed, epoch, sample id, copy, slot). Seed, epoch, copy and view are hashed into a 64-bit
*stream key*. The counter is ``(index, slot, id_low, id_high)``: ``index`` is 0 for parameters, and the pixel's index
for noise.

Normal noise uses a table of quantiles, so that all executors compute the same float32. The top bit of a random word is
the sign. The other bits form an odd number m, where ``m * 2**-32`` is the probability of a larger number. Each power
of two of m, as a float32, is divided into 2**SEGMENT_BITS segments, on which the quantile is ``base + slope * m``. The
error is below 3e-6 up to 6.2 standard deviations. With a quarter of the segments, 100 million numbers would fail a
chi-squared test.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from functools import lru_cache
from pathlib import Path

import numpy as np

from variegate.arrays import Float64Array, UInt32Array, UInt64Array
from variegate.native.library import as_c_contiguous, data_ptr, entry

_fill_words = entry("vg_fill_words", c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_void_p, result=None)
_fill_noise_words = entry("vg_fill_noise_words", c_void_p, c_void_p, c_int64, c_int64, c_int64, c_void_p, result=None)
_fill_keys = entry("vg_fill_keys", c_void_p, c_int64, c_void_p, c_void_p, result=None)

# Multipliers of the counter's words 0 and 2.
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
# Increments of the key's words after each round.
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
_MASK32 = 0xFFFFFFFF

# First counter word of the blocks that derive stream keys. Different domains never share a block.
SAMPLE_DOMAIN = 0x53414D50
SHUFFLE_DOMAIN = 0x53485546
VIEW_DOMAIN = 0x56494557


def stream_key(seed: int, epoch: int, copy: int = 0, domain: int = SAMPLE_DOMAIN) -> UInt32Array:
    """Return the key of all random numbers of (seed, epoch, copy), uint32[2]."""
    return stream_keys(seed, epoch, np.array([copy & _MASK32], np.uint32), domain)[0]


@lru_cache(maxsize=256)
def stream_of(seed: int, epoch: int, copy: int) -> tuple[int, int]:
    """Return ``stream_key`` as two Python integers, cached."""
    low, high = stream_key(seed, epoch, copy).tolist()
    return low, high


def stream_keys(seed: int, epoch: int, copies: UInt32Array, domain: int = SAMPLE_DOMAIN) -> UInt32Array:
    """Return ``stream_key`` of each copy, uint32[N, 2]."""
    counters = np.empty((len(copies), 4), np.uint32)
    counters[:] = domain, epoch & _MASK32, (epoch >> 32) & _MASK32, 0
    counters[:, 3] = copies
    key = np.array([seed & _MASK32, (seed >> 32) & _MASK32], np.uint32)
    out = np.empty((len(copies), 2), np.uint32)
    _fill_keys(data_ptr(counters), len(copies), data_ptr(key), data_ptr(out))
    return out


def view_keys(keys: UInt32Array, views: Sequence[tuple[int, int]]) -> UInt32Array:
    """Return the keys of V views (group, index in it) per sample, uint32[N, V, 2]. View (0, 0) has the sample's key."""
    packed = np.ascontiguousarray(keys).view(np.uint64)[:, 0]
    unique, inverse = (packed[:1], 0) if (packed == packed[0]).all() else np.unique(packed, return_inverse=True)
    counters = np.zeros((len(views), 4), np.uint32)
    counters[:, 0], counters[:, 1:3] = VIEW_DOMAIN, views
    made = np.empty((len(unique), len(views), 2), np.uint32)
    for key, out in zip(unique.view(np.uint32).reshape(-1, 2), made, strict=True):
        _fill_keys(data_ptr(counters), len(views), data_ptr(key), data_ptr(out))
        out[(counters[:, 1:3] == 0).all(axis=1)] = key
    return np.ascontiguousarray(np.broadcast_to(made[inverse], (len(keys), len(views), 2)))


def sample_words(ids: UInt64Array, key: UInt32Array, num_slots: int) -> UInt32Array:
    """Return the parameter words of slots 0 to ``num_slots`` - 1, uint32[N, num_slots, 4].

    ``key``: uint32[2], shared, or [N, 2].
    """
    return words_of_slots(ids, keys_of(key, len(ids)), np.arange(num_slots, dtype=np.uint32))


def words_of_slots(ids: UInt64Array, keys: UInt32Array, slots: UInt32Array) -> UInt32Array:
    """Return the parameter words of ``slots``, uint32[N, slots, 4]. ``keys``: uint32[N, 2]."""
    out = np.empty((len(ids), len(slots), 4), np.uint32)
    read = as_c_contiguous(ids)
    read_keys = as_c_contiguous(keys)
    _fill_words(data_ptr(read), data_ptr(read_keys), len(ids), data_ptr(slots), len(slots), data_ptr(out))
    return out


def noise_words(ids: UInt64Array, keys: UInt32Array, slot: int, count: int) -> UInt32Array:
    """Return the first ``count`` noise blocks of a slot, uint32[N, count, 4]. ``keys``: uint32[N, 2]."""
    read = as_c_contiguous(ids)
    read_keys = as_c_contiguous(keys)
    out = np.empty((len(ids), count, 4), np.uint32)
    _fill_noise_words(data_ptr(read), data_ptr(read_keys), len(ids), slot, count, data_ptr(out))
    return out


def keys_of(key: UInt32Array, number: int) -> UInt32Array:
    """Broadcast a shared key uint32[2], or keys [N, 2], to contiguous uint32[N, 2]."""
    return np.ascontiguousarray(np.broadcast_to(key, (number, 2)))


def to_unit(words: UInt32Array) -> Float64Array:
    """Convert uint32 words to float64 uniform in [0, 1), exact multiples of 2**-32."""
    return np.multiply(words, 2.0**-32, dtype=np.float64)


def to_normal(words: UInt32Array) -> Float64Array:
    """Convert words uint32[..., 4] to standard normal float64[..., 2], by Box-Muller on words (0, 1) and (2, 3)."""
    unit = to_unit(words)
    radius = np.sqrt(-2.0 * np.log(unit[..., 0::2] + 2.0**-32))
    return np.asarray(radius * np.cos(2.0 * np.pi * unit[..., 1::2]))


GAMMA_SLOTS = 12


def to_gamma(words: UInt32Array, alpha: float) -> Float64Array:
    """Convert words uint32[..., GAMMA_SLOTS, 4] to Gamma(alpha, 1) float64[...].

    The method is that of Marsaglia and Tsang (doi:10.1145/358407.358414). Each block is one attempt, accepted with
    probability over 0.95; the last attempt is always accepted. ``alpha < 1`` is computed from ``alpha + 1``.
    """
    shape = alpha if alpha >= 1.0 else alpha + 1.0
    d = shape - 1.0 / 3.0
    normal = to_normal(words)[..., 0]
    unit = to_unit(words[..., 2]) + 2.0**-33
    v = (1.0 + normal / np.sqrt(9.0 * d)) ** 3
    positive = v > 0.0
    log_v = np.log(np.where(positive, v, 1.0))
    accepted = positive & (np.log(unit) < 0.5 * normal**2 + d - d * v + d * log_v)
    accepted[..., -1] = True
    first = np.argmax(accepted, axis=-1)[..., None]
    drawn = d * np.abs(np.take_along_axis(v, first, axis=-1)[..., 0])
    if alpha < 1.0:
        drawn = drawn * (to_unit(words[..., 0, 3]) + 2.0**-33) ** (1.0 / alpha)
    return np.asarray(drawn)


SEGMENT_BITS = 7
# A number's segment is its float32 bit pattern shifted right by SEGMENT_SHIFT. FIRST_SEGMENT is the segment of 1.0.
SEGMENT_SHIFT = 23 - SEGMENT_BITS
FIRST_SEGMENT = 127 << SEGMENT_BITS
MAGNITUDE = 0x7FFFFFFF
SIGN = 0x80000000
# Base and slope of each segment, float32[segments, 2]; the last segment is the median. Generated by
# tests/oracle/normals.py.
SEGMENTS_FILE = Path(__file__).with_name("normal_segments.f32")
SEGMENTS = np.fromfile(SEGMENTS_FILE, "<f4").reshape(-1, 2)

"""The order of an epoch by (seed, epoch) alone: a keyed permutation, without a list's memory and time."""

from __future__ import annotations

from ctypes import c_int64, c_uint64, c_void_p
from enum import IntEnum
from typing import Any

import numpy as np

from variegate.arrays import Int64Array, UInt32Array
from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.program import rng

_permute = entry("vg_permute", c_void_p, c_int64, c_uint64, c_void_p, c_int64, c_void_p, result=None)
_permute_within = entry("vg_permute_within", c_void_p, c_void_p, c_void_p, c_int64, c_void_p, c_void_p, result=None)


class OrderPurpose(IntEnum):
    """Purposes of streams of random numbers; no two share one. The numbers must not change, because draws depend on
    them."""

    SAMPLES = 0
    SHARDS = 1
    IN_BLOCK = 2
    SUBSTITUTES = 3
    DRAWS = 4
    GROUPS = 5
    MEMBERS = 6
    START = 7
    SOURCES = 8
    BLOCKS = 9
    PASSES = 10
    BATCHES = 11


class Order:
    """The samples of an epoch by position. ``is_every``: each sample once, at the position of its index or shuffled.

    ``length``: None while it is not known.
    """

    is_every = False
    bounds: Int64Array | None = None  # positions at which batches begin, and the end, if the order has its own batches
    length: int | None
    purpose = OrderPurpose.DRAWS  # of its permutation

    def at(self, positions: Int64Array) -> tuple[Int64Array, UInt32Array]:
        """Positions 0..length-1 -> (index of the sample, number of its copy), int64[N] and uint32[N]."""
        raise NotImplementedError

    def bucket_at(self, position: int) -> int | None:
        """The aspect bucket of the batch that has a position, if batches have buckets."""
        return None

    def known(self, end: int) -> int:
        """Find the order up to position ``end`` -> up to where it is known, less only at the end of the epoch."""
        assert self.length is not None
        return self.length

    def groups_of(self, positions: Int64Array) -> tuple[Any, Any]:
        """First position and length of the group, within which samples are mixed, at each position; or of all."""
        return 0, self.length

    def replacements(self, indices: Int64Array) -> tuple[Order, Any, Any]:
        """Order, first position and number of samples that may replace each sample."""
        return self, 0, self.length

    def digest(self) -> str | None:
        """Digest of an order that does not follow from seed, epoch and arguments."""
        return None


class Permutation:
    """A permutation of 0..length-1, by a Feistel network on an even number of bits and cycle-walking.

    Black and Rogaway 2002, doi:10.1007/3-540-45760-7_9. ``length`` up to 2**63.

    >>> Permutation(10, seed=0, epoch=0)(np.arange(10)).tolist()
    [2, 3, 1, 9, 6, 5, 0, 7, 8, 4]
    """

    def __init__(self, length: int, seed: int, epoch: int, purpose: OrderPurpose = OrderPurpose.SAMPLES) -> None:
        self._length = length
        self._key = rng.stream_key(seed, epoch, int(purpose), rng.SHUFFLE_DOMAIN)

    def __call__(self, positions: Int64Array) -> Int64Array:
        """int64[N] in 0..length-1 -> the samples at these positions, int64[N]."""
        return self._map(positions, is_inverse=False)

    def inverse(self, values: Int64Array) -> Int64Array:
        """int64[N] in 0..length-1 -> at which positions they stand, int64[N]."""
        return self._map(values, is_inverse=True)

    def _map(self, values: Int64Array, is_inverse: bool) -> Int64Array:
        read = as_c_contiguous(values)
        out = np.empty(len(read), np.int64)
        _permute(data_ptr(read), len(read), self._length, data_ptr(self._key), is_inverse, data_ptr(out))
        return out


# Places between partners, a power of two: so close that both are in one batch, of 64 samples or a multiple; so far that
# among up to 32 ranks both are on the same one.
_APART = 32
# Largest number of partners of a sample.
MOST_PARTNERS = 3


def partner_positions(
    positions: Int64Array, length: int | Int64Array, number: int, start: int | Int64Array = 0
) -> Int64Array:
    """Positions int64[N, number] of the partners of samples at ``positions`` of a shuffled order, never the sample
    itself if there is another one. Both are among the ``length`` positions from ``start`` on, for all or each.

    Samples are in pairs (of ``number`` 3: in fours), mostly of one batch. Samples at the end of the order without a
    pair take the sample a quarter of the order away (half of it, three quarters).
    """
    turn = np.arange(1, number + 1)
    bits = _APART * (1 if number == 1 else MOST_PARTNERS)
    position, start, length = (np.reshape(values, (-1, 1)) for values in (positions, start, length))
    are_inside = ((position & ~bits) >= start) & ((position | bits) < start + length)
    near = position ^ (_APART * turn)
    far = start + (position - start + np.maximum(turn * length // (MOST_PARTNERS + 1), 1)) % length
    return np.where(are_inside, near, far)


def partners_of(
    indices: Int64Array,
    length: int,
    seed: int,
    epoch: int,
    number: int,
    purpose: OrderPurpose = OrderPurpose.SAMPLES,
    copies: int = 1,
) -> Int64Array:
    """The same of samples by their index, int64[N, number]: as if the epoch were shuffled, whether or not it is.

    ``copies``: consecutive copies of each sample, which are shuffled together; ``length`` counts all of them.
    """
    order = Permutation(length // copies, seed, epoch, purpose)
    samples, again = np.divmod(indices, copies)
    places = partner_positions(order.inverse(samples) * copies + again, length, number)
    samples, again = np.divmod(places.reshape(-1), copies)
    return (order(samples) * copies + again).reshape(places.shape)


def permute_within(
    positions: Int64Array,
    lengths: Int64Array,
    groups: Int64Array,
    seed: int,
    epoch: int,
    purpose: OrderPurpose = OrderPurpose.MEMBERS,
) -> Int64Array:
    """Many permutations at once, all int64[N]: that of group ``groups[n]``, of 0..lengths[n]-1, at ``positions[n]``."""
    key = rng.stream_key(seed, epoch, int(purpose), rng.SHUFFLE_DOMAIN)
    read = [as_c_contiguous(values) for values in (positions, lengths, groups)]
    out = np.empty(len(positions), np.int64)
    _permute_within(*map(data_ptr, read), len(out), data_ptr(key), data_ptr(out))
    return out


def random_words(first: int, number: int, seed: int, epoch: int, purpose: OrderPurpose) -> UInt32Array:
    """Words ``first``..``first + number - 1`` of the stream of a purpose, uint32[number, 4]."""
    counters = np.arange(first, first + number, dtype=np.uint64)
    key = rng.stream_key(seed, epoch, int(purpose), rng.SHUFFLE_DOMAIN)
    return rng.sample_words(counters, key, 1)[:, 0]

"""Find images with similar hashes, by an index per 16 bits of the hashes that lists values within a few bits.

M. Norouzi, A. Punjani, D. J. Fleet, "Fast Search in Hamming Space with Multi-Index Hashing" (CVPR 2012): of two hashes
that differ in no more than ``distance`` bits, some of the four parts of 16 bits differ in ``distance // 4`` at most.
Hashes are traversed part by part in the order of the index, so that looked-up entries are in the cache.

A flip of an image inverts whole parts of its hash (``variegate/apps/check/fingerprint.py``): the hashes of
the other flips come from that of the image.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int64, c_void_p

import numpy as np

from variegate.apps.check.fingerprint import frequencies
from variegate.apps.check.near_search import GROUP, KEPT, KINDS, NO_MATCH, Hashes, Index, Search, SearchInput
from variegate.arrays import Int64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from variegate.native.library import as_c_contiguous, data_ptr, entry
from variegate.threads import default_threads

PARTS = 4
PART_BITS = 16
# More distant parts have more neighbors than there are pairs, so that comparing all pairs would be faster.
MOST_DISTANCE = 15
# flip: 1 left to right, + 2 upside down, which together are half a turn.
FLIPS = (0, 1, 2, 3)
_BLOCK = 4096
# Hashes of one value of a part, where there are enough: about as many as are compared in the time of going to them.
_PER_KEY = 12
# Of photos, hashes of unlike ones differ in 28 bits or so, with a standard deviation of 3.
DISTANCE = 11
_SIGMAS = 5.0
_PAIRS = 100_000
_FEWEST = 20

Rows = Int64Array

_find_first_alike = entry("vg_find_first_alike", c_void_p, c_int64, c_void_p, result=None)


def flip_mask(flip: int) -> np.uint64:
    """The bits of a hash that this flip inverts."""
    return np.uint64(
        sum(1 << bit for bit, (v, u) in enumerate(frequencies()) if (v * (flip >> 1) + u * (flip & 1)) % 2)
    )


def find_partners(
    hashes: Hashes,
    signatures: UInt8Array,
    splits: UInt8Array,
    labels: Int64Array,
    distance: int,
    most_unlike: float,
    turned: tuple[Hashes, UInt8Array] | None = None,
) -> UInt32Array:
    """For every image, earlier similar images (by index) -> uint32 [n, KINDS, KEPT], ascending, then ``NO_MATCH``.
    Kind 0 is the same split, 1 the other split, 2 another class.

    Two images are similar if their ``hashes`` uint64 [n], one possibly flipped, differ in at most ``distance`` bits (up
    to ``MOST_DISTANCE``). Their ``signatures`` uint8 [n, SIGNATURE_BYTES] must also differ by at most ``most_unlike``.
    With signatures [n, 0], hashes alone decide. ``labels``: -1 for unknown, which is no other class. ``turned``: hashes
    and signatures of the images turned by 90 degrees, which are then compared with the others as well.

    Of each kind, the first ``KEPT`` are kept. The result is complete unless an image in a crowd of close hashes needs
    several times as many comparisons as usual. Such an image is compared with the first images of its crowd only, so
    that time stays proportional. The same data give the same result with any number of threads.
    """
    n = len(hashes)
    kinds = np.array([True, bool(np.any(splits != splits[:1])), bool(np.any((labels >= 0) & (labels != labels[:1])))])
    # Turned images are further rows, after all others, which look for partners among the others.
    turned_hashes, turned_signatures = (hashes[:0], signatures[:0]) if turned is None else turned
    signatures = np.concatenate([signatures, turned_signatures])
    rows = n + len(turned_hashes)
    partners = np.full((rows, KINDS, KEPT), NO_MATCH, np.uint32)
    given = SearchInput(signatures, np.tile(splits, 2), np.tile(labels, 2), kinds, np.zeros(rows, np.int32))
    bits = min(PART_BITS, max(4, (n // _PER_KEY).bit_length()))

    with ThreadPoolExecutor(default_threads()) as pool:
        for part, radius in enumerate(radii(distance)):
            index = _index(hashes, part, bits)
            masks = neighbors(radius, bits)
            searched = [index]
            if len(turned_hashes):
                searched.append(_index(turned_hashes, part, bits, first_row=n))
            limits = PART_BITS * part, distance, 512 + 2 * n * len(masks) // (1 << bits)
            for queries in searched:
                for together in _flips_of(part):
                    flips = np.array(together, np.uint8)
                    inverted = np.array([*map(flip_mask, together)], np.uint64)
                    search = Search(index, queries, masks, flips, inverted, *limits, given, partners)

                    def run(begin: int, search: Search = search) -> None:
                        search.run(begin, min(n, begin + _BLOCK), most_unlike)

                    # Blocks of one index write to different images; blocks of two indexes may not.
                    list(pool.map(run, range(0, n, _BLOCK)))
    for kind in range(KINDS):
        row, place = np.nonzero(partners[n:, kind] != NO_MATCH)
        other = partners[n:, kind][row, place].astype(np.int64)
        later = np.maximum(row, other)
        earlier = np.minimum(row, other)
        is_pair = later != earlier
        if is_pair.any():
            _add_pairs(partners[:n, kind], later[is_pair], earlier[is_pair])
    return partners[:n]


def _add_pairs(partners: UInt32Array, later: Rows, earlier: Rows) -> None:
    """Add the pairs to ``partners`` [n, KEPT] of ``find_partners``: ascending, each once, the first ``KEPT``."""
    changed = np.unique(later)
    row, place = np.nonzero(partners[changed] != NO_MATCH)
    rows = np.concatenate([changed[row], later])
    others = np.concatenate([partners[changed][row, place].astype(np.int64), earlier])
    rows, others = np.unique(np.column_stack([rows, others]), axis=0).T
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = rank < KEPT
    partners[rows[kept], rank[kept]] = others[kept]


def _flips_of(part: int) -> list[list[int]]:
    """Flips that do the same to a part, which is then searched once."""
    groups = defaultdict(list)
    for flip in FLIPS:
        groups[int(flip_mask(flip)) >> PART_BITS * part & (1 << PART_BITS) - 1].append(flip)
    return list(groups.values())


def radii(distance: int) -> list[int]:
    """Radius in bits for each part, so that every pair within ``distance`` is within the radius of some part; -1: the
    part need not be searched."""
    each, more = divmod(distance, PARTS)
    return [each if part <= more else each - 1 for part in range(PARTS)]


def neighbors(radius: int, bits: int = PART_BITS) -> UInt16Array:
    """Numbers of this many bits with at most ``radius`` bits set, fewest first."""
    values = np.arange(1 << bits, dtype=np.uint16)
    number = np.unpackbits(values.view(np.uint8)).reshape(len(values), -1).sum(1)
    order = np.argsort(number, kind="stable")
    return values[order[number[order] <= radius]]


def _index(hashes: Hashes, part: int, bits: int, first_row: int = 0) -> Index:
    """Index by the first ``bits`` of a part: with few hashes, longer keys would mostly look up missing values.
    ``first_row``: of the first hash."""
    keys = (hashes >> np.uint64(PART_BITS * part)).astype(np.uint16) & np.uint16((1 << bits) - 1)
    rows = np.argsort(keys, kind="stable").astype(np.uint32)
    starts = np.zeros((1 << bits) + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=1 << bits), out=starts[1:])
    return Index(np.append(hashes[rows], np.zeros(GROUP, np.uint64)), rows + np.uint32(first_row), starts)


def first_of_same(keys: UInt64Array) -> Rows:
    """For each row of ``keys`` [n, words], the first equal row."""
    order = np.lexsort([*reversed(keys.T)])  # stable: rows ascend among equal ones
    begins = np.ones(len(keys), bool)
    begins[1:] = np.any(keys[order[1:]] != keys[order[:-1]], 1)
    first = np.empty(len(keys), np.int64)
    first[order] = order[begins][np.cumsum(begins) - 1]
    return first


def first_of_alike(partners: UInt32Array) -> Rows:
    """For each image, the first image of its group, by ``partners`` [n, KEPT] of ``find_partners``.

    An image belongs to the earliest group whose first image it looks like itself; one that looks like no first image
    begins a group. A chain of images, each like the next, therefore does not grow into one group: every excluded image
    is similar to the first image of its group, which is kept.
    """
    first = np.arange(len(partners), dtype=np.int64)
    read = as_c_contiguous(partners)
    _find_first_alike(data_ptr(read), len(read), data_ptr(first))
    return first


def distances(one: Hashes, other: Hashes, turned_one: Hashes | None = None) -> tuple[Rows, Rows]:
    """-> (differing bits of the hashes, index of the flip in ``FLIPS``).

    ``turned_one``: hashes of the first images turned by 90 degrees; the flips of those count from ``len(FLIPS)`` on.
    """
    hashes = [one] if turned_one is None else [one, turned_one]
    differing = [(each ^ other ^ flip_mask(flip)).view(np.uint8) for each in hashes for flip in FLIPS]
    bits = np.stack([np.unpackbits(each).reshape(len(one), 64).sum(1, dtype=np.int64) for each in differing])
    return bits.min(0), bits.argmin(0)


def distance_for(hashes: Hashes) -> int:
    """``DISTANCE``, or less if images of the set are similar anyway, such as digits: five standard deviations below the
    median distance of random pairs, both estimated from quantiles, which a few true duplicates hardly move. ``hashes``:
    uint64 [n], of images with different pixels."""
    if len(hashes) < _FEWEST:
        return DISTANCE
    chance = np.random.default_rng(0)
    one, other = chance.integers(0, len(hashes), (2, _PAIRS))
    bits = distances(hashes[one], hashes[other])[0][one != other]
    # Whole numbers spread over their unit, so that quantiles lie between them.
    spread = bits + chance.uniform(-0.5, 0.5, len(bits))
    median, lower = np.quantile(spread, [0.5, 0.1587])
    return int(np.clip(median - _SIGMAS * (median - lower), 0, DISTANCE))

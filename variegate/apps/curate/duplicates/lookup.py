"""Which images have near hashes: an index of each 16 bits of the hashes, asked for what is a few bits from it.

M. Norouzi, A. Punjani, D. J. Fleet, "Fast Search in Hamming Space with Multi-Index Hashing" (CVPR 2012): of two hashes
that differ in no more than ``distance`` bits, some of the four parts of 16 bits differ in ``distance // 4`` at most.
Hashes are gone through part by part in the order of the index, so that what is asked for lies in the cache.

A flip of an image inverts whole parts of its hash (``variegate/apps/curate/measures/fingerprint.py``): the hashes of
the other flips come from that of the image.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.curate.duplicates.search import GROUP, KEPT, KINDS, NOBODY, Given, search_block
from variegate.apps.curate.measures.fingerprint import frequencies
from variegate.threads import default_threads

PARTS, PART_BITS = 4, 16
# Parts of hashes further from each other have so many neighbours that a comparison of all with all would be faster.
MOST_DISTANCE = 15
# flip: 1 left to right, + 2 upside down, which together are half a turn.
FLIPS = (0, 1, 2, 3)
_BLOCK = 4096
# Hashes of one value of a part, where there are enough: about as many as are compared in the time of going to them.
_PER_KEY = 12

Hashes = npt.NDArray[np.uint64]


class _Table(NamedTuple):
    """Hashes sorted by one part. ``starts`` int32 [values + 1]: where those of each value begin; ``rows``: whose they
    are, ascending for equal values."""

    hashes: Hashes
    rows: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int32]


def flip_mask(flip: int) -> np.uint64:
    """The bits of a hash that this flip inverts."""
    return np.uint64(
        sum(1 << bit for bit, (v, u) in enumerate(frequencies()) if (v * (flip >> 1) + u * (flip & 1)) % 2)
    )


def find_partners(
    hashes: Hashes,
    signatures: npt.NDArray[np.uint8],
    splits: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.int64],
    distance: int,
    most_unlike: float,
    flips: tuple[int, ...] = FLIPS,
) -> npt.NDArray[np.uint32]:
    """For every image, earlier ones (by index) that it looks like -> uint32 [n, KINDS, KEPT], ascending, ``NOBODY``
    where there are no more. Kind 0 are those of its own split, 1 those of the other, 2 those of another class.

    Two look alike whose ``hashes`` uint64 [n], one of them flipped or not, differ in at most ``distance`` bits (up to
    ``MOST_DISTANCE``), and of whose ``signatures`` uint8 [n, SIGNATURE_BYTES] at most ``most_unlike`` is unlike; with
    signatures [n, 0], hashes alone decide. ``labels``: -1 for unknown, which is no other class.

    Of each kind, the first ``KEPT`` are kept. Nothing is missed unless so many hashes crowd together that an image
    would be compared with several times as many as it is among evenly spread hashes, or that many of near hashes look
    different: then it is compared with the first ones of its crowd, so that the time stays in proportion. The same data
    give the same result with any number of threads.
    """
    n = len(hashes)
    partners = np.full((n, KINDS, KEPT), NOBODY, np.uint32)
    kinds = np.array([True, bool(np.any(splits != splits[:1])), bool(np.any((labels >= 0) & (labels != labels[:1])))])
    given = Given(signatures, splits, labels, kinds, np.zeros(n, np.int32))
    bits = min(PART_BITS, max(4, (n // _PER_KEY).bit_length()))

    with ThreadPoolExecutor(default_threads()) as pool:
        for part, radius in enumerate(radii(distance)):
            table, masks = _table(hashes, part, bits), neighbours(radius, bits)
            budget = 512 + 2 * n * len(masks) // (1 << bits)
            for together in _flips_of(part, flips):
                flipped = np.array(together, np.uint8)
                inverted = np.array([flip_mask(flip) for flip in together], np.uint64)

                def search(
                    begin: int,
                    table: _Table = table,
                    masks: npt.NDArray[np.uint16] = masks,
                    flipped: npt.NDArray[np.uint8] = flipped,
                    inverted: Hashes = inverted,
                    where: tuple[int, int, int] = (PART_BITS * part, distance, budget),
                ) -> None:
                    limits = np.array([*where, begin, min(n, begin + _BLOCK), table.hashes.ctypes.data], np.int64)
                    search_block(table, masks, flipped, inverted, limits, most_unlike, given, partners)

                # Two blocks of one index never write to the same image, those of two may.
                list(pool.map(search, range(0, n, _BLOCK)))
    return partners


def _flips_of(part: int, flips: tuple[int, ...]) -> list[list[int]]:
    """Flips that do the same to a part, which is then asked for once."""
    groups: dict[int, list[int]] = {}
    for flip in flips:
        groups.setdefault(int(flip_mask(flip)) >> PART_BITS * part & (1 << PART_BITS) - 1, []).append(flip)
    return list(groups.values())


def radii(distance: int) -> list[int]:
    """In how many bits each part may differ, so that one of them does for every pair within ``distance``; -1: the part
    need not be asked for."""
    each, more = divmod(distance, PARTS)
    return [each if part <= more else each - 1 for part in range(PARTS)]


def neighbours(radius: int, bits: int = PART_BITS) -> npt.NDArray[np.uint16]:
    """Numbers of so many bits of which at most ``radius`` are set, fewest first."""
    values = np.arange(1 << bits, dtype=np.uint16)
    number = np.unpackbits(values.view(np.uint8)).reshape(len(values), -1).sum(1)
    order = np.argsort(number, kind="stable")
    return values[order[number[order] <= radius]]


def _table(hashes: Hashes, part: int, bits: int) -> _Table:
    """By the first ``bits`` of a part: where there are few hashes, not to ask for many values that none has."""
    keys = (hashes >> np.uint64(PART_BITS * part)).astype(np.uint16) & np.uint16((1 << bits) - 1)
    rows = np.argsort(keys, kind="stable").astype(np.uint32)
    starts = np.zeros((1 << bits) + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=1 << bits), out=starts[1:])
    return _Table(np.append(hashes[rows], np.zeros(GROUP, np.uint64)), rows, starts)

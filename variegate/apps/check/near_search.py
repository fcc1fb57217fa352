"""The search in one index of hashes, in C++ (``native/kernels/near_search.cpp``)."""

from __future__ import annotations

from ctypes import c_double, c_int64, c_void_p
from typing import NamedTuple

import numpy as np

from variegate.arrays import BoolArray, Int32Array, Int64Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from variegate.native.library import check_status, data_ptr, entry
from variegate.native.structs import HASH_SEARCH, pack_struct

# Kinds of partners: same split, other split, other class; and the number kept of each.
KINDS = 3
KEPT = 6
NO_MATCH = np.uint32(0xFFFFFFFF)
# Hashes that are compared at once; an index has as many behind its last one.
GROUP = 8

Hashes = UInt64Array
Partners = UInt32Array

_search_hashes = entry("vg_search_hashes", c_void_p, c_int64, c_int64, c_double)


class Index(NamedTuple):
    """Hashes sorted by one part. ``starts`` int32 [values + 1]: first row of each value; ``rows``: image of each row,
    ascending for equal values."""

    hashes: Hashes
    rows: UInt32Array
    starts: Int32Array


class SearchInput(NamedTuple):
    """Data of the images: ``kinds`` bool [KINDS]: existing kinds; ``failures`` int32 [n]: failed comparisons so far."""

    signatures: UInt8Array
    splits: UInt8Array
    labels: Int64Array
    kinds: BoolArray
    failures: Int32Array


class Search:
    """A search for partners of the images in ``queries`` among the images in ``index``, which may be equal.

    ``masks`` uint16: bit differences of the searched values; ``flips`` uint8 [k], ``inverted`` uint64 [k]: the bits
    that each flip inverts, in all parts and in this part; ``shift``: the part's first bit; ``most_compared``: limit of
    comparisons per image; ``partners``: see ``find_partners``.
    """

    def __init__(
        self,
        index: Index,
        queries: Index,
        masks: UInt16Array,
        flips: UInt8Array,
        inverted: Hashes,
        shift: int,
        distance: int,
        most_compared: int,
        given: SearchInput,
        partners: Partners,
    ) -> None:
        self._held = index, queries, masks, flips, inverted, given, partners
        counts = {"num_masks": len(masks), "num_flips": len(flips), "values": len(index.starts) - 1}
        self._memory = pack_struct(
            HASH_SEARCH,
            **index._asdict(),
            **given._asdict(),
            **counts,
            query_hashes=queries.hashes,
            query_rows=queries.rows,
            signature_bytes=given.signatures.shape[1],
            masks=masks,
            flips=flips,
            inverted=inverted,
            shift=shift,
            distance=distance,
            most_compared=most_compared,
            partners=partners,
        )

    def run(self, begin: int, end: int, most_unlike: float) -> None:
        """Fill in partners of the images of queries ``begin``..``end``, which this call alone writes to."""
        check_status(_search_hashes(data_ptr(self._memory), begin, end, most_unlike))

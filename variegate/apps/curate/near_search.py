"""The search in one index of hashes, in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.apps.curate.fingerprint import SCRATCH, unlikeness
from variegate.program.compiled import kernel, pixel_kernel

KINDS, KEPT = 3, 6
NOBODY = np.uint32(0xFFFFFFFF)
# Of near hash and yet unlike: beyond so many, an image is compared with no more.
_MOST_FAILURES = 32
# Hashes that are compared at once; what is beyond the end of a value's hashes are hashes too.
GROUP = 8
_LONG = 64


class Given(NamedTuple):
    """Data of the images: ``kinds`` bool [KINDS], those that there are at all; ``failures`` int32 [n]: so
    far."""

    signatures: npt.NDArray[np.uint8]
    splits: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.bool_]
    failures: npt.NDArray[np.int32]


@intrinsic
def _near(typing_context: Any, address: Any, mine: Any, distance: Any) -> Any:
    """Bits of the ``GROUP`` hashes uint64 at an address that differ from ``mine`` in at most ``distance`` bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        group = ir.VectorType(ir.IntType(64), GROUP)
        hashes = builder.load(builder.inttoptr(args[0], group.as_pointer()), align=8)
        zero, index = ir.Constant(group, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        same = ir.Constant(ir.VectorType(ir.IntType(32), GROUP), [0] * GROUP)
        mine, distance = (
            builder.shuffle_vector(builder.insert_element(zero, value, index), zero, same) for value in args[1:]
        )
        count = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(group, [group]), f"llvm.ctpop.v{GROUP}i64"
        )
        bits = builder.call(count, [builder.xor(hashes, mine)])
        near = builder.bitcast(builder.icmp_unsigned("<=", bits, distance), ir.IntType(GROUP))
        return builder.zext(near, ir.IntType(64))

    return types.int64(types.int64, types.uint64, types.uint64), codegen


@kernel
def search_block(
    table: Any,
    queries: Any,
    masks: Any,
    flips: Any,
    inverted: Any,
    limits: Any,
    most_unlike: Any,
    given: Any,
    rows: Any,
) -> Any:
    """Fill in ``rows``, partners as in ``Partners``, of the images at some places of ``queries``, which this call alone
    writes to. Partners are images of ``table``, which may be the same.

    ``masks`` uint16: what values of the part that are asked for differ by; ``flips`` uint8 [k], ``inverted`` uint64
    [k]: the bits that each flip inverts, the same of this part; ``limits``: the part's first bit, the distance, how
    many hashes an image may be compared with, the first place, the place behind the last one, and where the hashes of
    ``table`` lie in memory.
    """
    shift, low = np.uint64(limits[0]), np.uint64(len(table.starts) - 2)
    distance, begin, end, address = np.uint64(limits[1]), limits[3], limits[4], limits[5]
    scratch = np.empty(SCRATCH, np.float64)
    left = np.empty(end - begin, np.int64)
    left[:] = limits[2]
    first = begin
    while first < end:
        key = queries.hashes[first] >> shift & low
        last = first + 1
        while last < end and queries.hashes[last] >> shift & low == key:
            last += 1
        near = key ^ (inverted[0] >> shift & low)
        for mask in masks:
            start = np.int64(table.starts[near ^ np.uint64(mask)])
            stop = np.int64(table.starts[(near ^ np.uint64(mask)) + np.uint64(1)])
            if start == stop:
                continue
            is_long = stop - start > _LONG
            for place in range(first, last):
                mine, row = queries.hashes[np.uint64(place)], queries.rows[np.uint64(place)]
                at, until = start, min(stop, start + left[np.uint64(place - begin)])
                while at < until:
                    if is_long and table.rows[np.uint64(at)] >= row:
                        break
                    goes_on = True
                    for k in range(len(inverted)):
                        found = _near(address + 8 * at, mine ^ inverted[np.uint64(k)], distance)
                        if found:
                            goes_on &= _look_at(
                                row,
                                table.rows,
                                at,
                                min(GROUP, until - at),
                                found,
                                flips[k],
                                most_unlike,
                                given,
                                rows,
                                scratch,
                            )
                    if not goes_on:
                        if given.failures[row] >= _MOST_FAILURES:
                            left[place - begin] = 0
                        break
                    at += GROUP
                left[np.uint64(place - begin)] -= at - start
        first = last
    return np.int64(0)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _look_at(
    row: Any,
    order: Any,
    at: Any,
    number: Any,
    near: Any,
    flip: Any,
    most_unlike: Any,
    given: Any,
    rows: Any,
    scratch: Any,
) -> Any:
    """Take the partners of image ``row`` from those that are near of so many hashes -> whether those after them can be
    partners too."""
    for k in range(number):
        other = order[at + k]
        if not near >> k & 1 or other >= row:
            continue
        wanted = _wanted(row, other, given.splits, given.labels, rows)
        if not wanted:
            if _is_full(row, other, given.kinds, rows):
                return False
        elif given.signatures.shape[1] == 0 or _are_alike(row, other, flip, given.signatures, most_unlike, scratch):
            _insert(wanted, row, other, rows)
        else:
            given.failures[row] += 1
            if given.failures[row] >= _MOST_FAILURES:
                return False
    return True


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _are_alike(row: Any, other: Any, flip: Any, signatures: Any, most_unlike: Any, scratch: Any) -> Any:
    """True if either explains the other: the one that shows less is all in the one that shows more."""
    if unlikeness(signatures[row], signatures[other], flip, scratch) <= most_unlike:
        return True
    return unlikeness(signatures[other], signatures[row], flip, scratch) <= most_unlike


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _wanted(row: Any, other: Any, splits: Any, labels: Any, rows: Any) -> Any:
    """The kinds, as bits, that ``other`` is a partner of ``row`` in, and is not kept yet while it would be."""
    kinds = np.int64(1) if splits[row] == splits[other] else np.int64(2)
    if labels[row] >= 0 and labels[other] >= 0 and labels[row] != labels[other]:
        kinds |= 4
    wanted = np.int64(0)
    for kind in range(KINDS):
        if kinds >> kind & 1 and rows[row, kind, KEPT - 1] > other:
            is_kept = False
            for k in range(KEPT):
                is_kept |= rows[row, kind, k] == other
            if not is_kept:
                wanted |= np.int64(1) << kind
    return wanted


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_full(row: Any, other: Any, kinds: Any, rows: Any) -> Any:
    """True if ``row`` wants no partner as late as ``other``, of any kind that there is."""
    is_full = True
    for kind in range(KINDS):
        is_full &= not kinds[kind] or rows[row, kind, KEPT - 1] <= other
    return is_full


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _insert(wanted: Any, row: Any, other: Any, rows: Any) -> Any:
    for kind in range(KINDS):
        if wanted >> kind & 1:
            k = nb.int64(KEPT - 1)
            while k > 0 and rows[row, kind, k - 1] > other:
                rows[row, kind, k] = rows[row, kind, k - 1]
                k -= 1
            rows[row, kind, k] = other
    return np.int64(0)

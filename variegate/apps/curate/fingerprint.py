"""Fingerprints that tell equal and similar images: hashes of pixels and of looks, and a small picture; and the likeness
of two images by their small pictures.

The perceptual hash has the signs of 64 low frequencies of a cosine transform of luminance on 32 x 32 areas, after
C. Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions" (2010), with signs in the place of a
median: so that a flip of the image flips known bits. All is computed in integers, which makes it exactly so, and the
same on every machine.

Images with near hashes may show different things. Their small pictures are compared pixel by pixel then, after one has
been made as bright as the other, and moved and stretched a little, which a crop does: a least-squares fit of six
numbers to the first order of what such a change does, after B. D. Lucas and T. Kanade, "An Iterative Image Registration
Technique with an Application to Stereo Vision" (1981). It is done twice, the second time without the pixels that fit
worst, such as those below a logo.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.program.compiled import pixel_kernel

AREAS = 32
# A signature: luminance on 16 x 16 areas, then Cb and Cr on 4 x 4, a byte each, by rows from the top.
LUMA_SIDE, CHROMA_SIDE = 16, 4
LUMA_BYTES, CHROMA_BYTES = LUMA_SIDE**2, 2 * CHROMA_SIDE**2
SIGNATURE_BYTES = LUMA_BYTES + CHROMA_BYTES
# Luminance of areas is an integer, 64 to a level of a byte.
_FINENESS = 64
# Frequencies that are weaker than a wave of this height, in levels, count as absent: noise of a blank image.
_LEAST_LEVELS = 0.125
_SCALE = 1 << 12


class Fingerprint(NamedTuple):
    """``pixel_hash``: 16 bytes of the SHA-256 of size and pixels. ``look_hash``, ``mirror_hash``: 64 bits, of the image
    and of the image mirrored left to right. ``signature``: ``SIGNATURE_BYTES``."""

    pixel_hash: bytes
    look_hash: int
    mirror_hash: int
    signature: bytes


def frequencies() -> list[tuple[int, int]]:
    """(v, u) of the 64 bits, from the lowest: v waves down, u waves across, in half waves over the image.

    Those of even and odd v and u have 16 bits each, one after another: a flip inverts all of them, or none.
    """
    waves = [(v, u) for v in range(8) for u in range(8) if v or u] + [(0, 8)]
    kinds = [(odd_v, odd_u) for odd_v in (0, 1) for odd_u in (0, 1)]
    return [(v, u) for kind in kinds for v, u in waves if (v % 2, u % 2) == kind]


def _cosines() -> npt.NDArray[np.int64]:
    """[9, 32]; the right half is made from the left one, so that the two mirror each other to the last bit."""
    table = np.zeros((9, AREAS), np.int64)
    for u in range(9):
        for x in range(AREAS // 2):
            table[u, x] = round(_SCALE * math.cos((2 * x + 1) * u * math.pi / (2 * AREAS)))
            table[u, AREAS - 1 - x] = -table[u, x] if u % 2 else table[u, x]
    return table


_WAVES = np.array(frequencies(), np.int64)
_COSINES = _cosines()
# A wave of height 1 across gives 16 * 32 * _SCALE^2 at fineness 1; for waves both across and down, half of that.
_LEAST = int(_LEAST_LEVELS * _FINENESS * 16 * 16 * _SCALE**2)


def fingerprint(image: npt.NDArray[np.uint8]) -> Fingerprint:
    """Of an image uint8 [H, W, 3], RGB, upright, at least one pixel. Releases the GIL for most of its time.

    Images of one size and the same pixels have one ``pixel_hash``. Images that look alike have ``look_hash`` of few
    different bits; which pairs are alike indeed, their signatures decide (``unlikeness``).
    """
    height, width = image.shape[:2]
    image = np.ascontiguousarray(image)
    digest = hashlib.sha256(b"%d %d\n" % (height, width), usedforsecurity=False)
    digest.update(image.data)
    areas = np.empty((AREAS, AREAS, 3), np.int64)
    scratch, hashes = np.empty((AREAS, AREAS + 9), np.int64), np.empty(2, np.uint64)
    signature = np.empty(SIGNATURE_BYTES, np.uint8)
    _reduce(image.reshape(height, width * 3), np.empty(width * 3, np.uint32), areas)
    _describe(areas, height * width, _WAVES, _COSINES, scratch, hashes, signature)
    return Fingerprint(digest.digest()[:16], int(hashes[0]), int(hashes[1]), signature.tobytes())


@pixel_kernel
def _reduce(rows: Any, line: Any, areas: Any) -> Any:
    """Sums of ``rows`` [H, W * 3] over 32 x 32 equal areas -> ``areas`` [32, 32, 3]. A pixel that lies in
    two areas counts by its part in each, in parts of 1 / 1024. ``line`` [W * 3]: scratch."""
    height, size = rows.shape
    width = size // 3
    for v in range(32):
        # In parts of 1 / 32 of a row, area v is from v * height to (v + 1) * height.
        begin, end = v * height, (v + 1) * height
        first, last = begin // 32, (end - 1) // 32
        for i in range(size):
            line[i] = 0
        for y in range(first, last + 1):
            part = np.uint32(min(32 * y + 32, end) - max(32 * y, begin))
            row = rows[y]
            for i in range(size):
                line[i] += part * np.uint32(row[i])
        for u in range(32):
            left, right = u * width, (u + 1) * width
            start, stop = left // 32, (right - 1) // 32
            r, g, b = np.int64(0), np.int64(0), np.int64(0)
            for x in range(start, stop + 1):
                share = np.int64(min(32 * x + 32, right) - max(32 * x, left))
                r += share * np.int64(line[3 * x])
                g += share * np.int64(line[3 * x + 1])
                b += share * np.int64(line[3 * x + 2])
            areas[v, u, 0], areas[v, u, 1], areas[v, u, 2] = r, g, b
    return np.int64(0)


@pixel_kernel
def _describe(areas: Any, pixels: Any, waves: Any, cosines: Any, scratch: Any, hashes: Any, signature: Any) -> Any:
    """The two hashes and the signature of ``areas``, whose sums are ``pixels`` * 255 at most. ``scratch`` int64
    [32, 32 + 9]."""
    luma, half = scratch[:, :32], scratch[:, 32:]
    for v in range(32):
        for u in range(32):
            gray = np.int64(299) * areas[v, u, 0] + np.int64(587) * areas[v, u, 1] + np.int64(114) * areas[v, u, 2]
            luma[v, u] = gray * _FINENESS // (1000 * pixels)
    for v in range(32):
        for u in range(9):
            total = np.int64(0)
            for x in range(32):
                total += luma[v, x] * cosines[u, x]
            half[v, u] = total
    look, mirrored = np.uint64(0), np.uint64(0)
    for bit in range(64):
        v, u = waves[bit, 0], waves[bit, 1]
        total = np.int64(0)
        for y in range(32):
            total += half[y, u] * cosines[v, y]
        look |= np.uint64(total > _LEAST) << np.uint64(bit)
        mirrored |= np.uint64((-total if u % 2 else total) > _LEAST) << np.uint64(bit)
    hashes[0], hashes[1] = look, mirrored
    for v in range(16):
        for u in range(16):
            total = np.int64(0)
            for y in range(2):
                for x in range(2):
                    total += luma[2 * v + y, 2 * u + x]
            signature[16 * v + u] = (total + 2 * _FINENESS) // (4 * _FINENESS)
    for v in range(4):
        for u in range(4):
            r, g, b = np.int64(0), np.int64(0), np.int64(0)
            for y in range(8):
                for x in range(8):
                    r += areas[8 * v + y, 8 * u + x, 0]
                    g += areas[8 * v + y, 8 * u + x, 1]
                    b += areas[8 * v + y, 8 * u + x, 2]
            # JFIF's Cb and Cr, of 64 areas.
            gray = np.int64(299) * r + np.int64(587) * g + np.int64(114) * b
            blue, red = (1000 * b - gray) // 1772, (1000 * r - gray) // 1402
            signature[LUMA_BYTES + 4 * v + u] = min(max(128 + blue // (64 * pixels), 0), 255)
            signature[LUMA_BYTES + 16 + 4 * v + u] = min(max(128 + red // (64 * pixels), 0), 255)
    return np.int64(0)


# Signatures whose turned hashes are computed at once, to bound memory.
_TURNED_AT_ONCE = 1 << 14


def turned(signatures: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Look hashes uint64 [n] and signatures [n, SIGNATURE_BYTES] of images turned by 90 degrees counterclockwise.

    They come from ``signatures`` alone. Rounding to bytes may change a few bits of the hashes.
    """
    n = len(signatures)
    luma = signatures[:, :LUMA_BYTES].reshape(n, LUMA_SIDE, LUMA_SIDE)
    chroma = signatures[:, LUMA_BYTES:].reshape(n, 2, CHROMA_SIDE, CHROMA_SIDE)
    found = np.empty_like(signatures)
    found[:, :LUMA_BYTES] = np.rot90(luma, axes=(1, 2)).reshape(n, LUMA_BYTES)
    found[:, LUMA_BYTES:] = np.rot90(chroma, axes=(2, 3)).reshape(n, CHROMA_BYTES)
    # The 32 areas of ``_describe``, two by two.
    waves = (_COSINES / _SCALE).reshape(9, LUMA_SIDE, 2).mean(axis=2).astype(np.float32)
    least = np.float32(_LEAST_LEVELS * LUMA_BYTES / 4)
    hashes = np.empty(n, np.uint64)
    for begin in range(0, n, _TURNED_AT_ONCE):
        part = found[begin : begin + _TURNED_AT_ONCE, :LUMA_BYTES].astype(np.float32).reshape(-1, LUMA_SIDE, LUMA_SIDE)
        spectrum = waves @ part @ waves.T
        bits = spectrum[:, _WAVES[:, 0], _WAVES[:, 1]] > least
        packed = np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little"))
        hashes[begin : begin + len(part)] = packed.view("<u8")[:, 0]
    return hashes, found


# float64: a picture, its residual, and a system of equations beside its solution.
_TERMS = 6
SCRATCH = 2 * LUMA_BYTES + _TERMS * (_TERMS + 1) + 2 * _TERMS
UNLIKE = 2.0
# Levels that pixels of images which look the same may differ by.
_NOISE = 1.0
# Small pictures of less standard deviation, in levels, are blank: they are alike where their colours are.
_BLANK, _SAME_COLOUR = 1.5, 3
# Mean levels of Cb and Cr: of gray images at most, and by which they may differ, or in parts of their sum.
_GRAY, _HUES, _HUES_PART = 1.5, 5.0, 0.35
# Pixels whose residual is beyond so many standard deviations of it are left out of the second fit.
_OUTLIER = 2.0


@pixel_kernel
def unlikeness(one: Any, other: Any, flip: Any, scratch: Any) -> Any:
    """The part of small picture ``other`` (a signature) that ``one``, flipped and fitted to it, does not explain: the
    standard deviation of the difference, divided by that of ``other`` where they are compared; 0 to about 1, or
    ``UNLIKE`` where colours or contrasts exclude that they are alike. ``flip``: 1 left to right, + 2 upside down.
    ``scratch``: float64 [SCRATCH]."""
    picture = scratch[:LUMA_BYTES]
    mean, mean_other, square, square_other = 0.0, 0.0, 0.0, 0.0
    for v in range(LUMA_SIDE):
        for u in range(LUMA_SIDE):
            value = np.float64(one[_place(v, u, flip, LUMA_SIDE)])
            value_other = np.float64(other[v * LUMA_SIDE + u])
            picture[v * LUMA_SIDE + u] = value
            mean += value
            square += value * value
            mean_other += value_other
            square_other += value_other * value_other
    mean, mean_other = mean / LUMA_BYTES, mean_other / LUMA_BYTES
    deviation = np.sqrt(max(square / LUMA_BYTES - mean * mean, 0.0))
    deviation_other = np.sqrt(max(square_other / LUMA_BYTES - mean_other * mean_other, 0.0))
    if min(deviation, deviation_other) < _BLANK:
        is_same = abs(mean - mean_other) <= _SAME_COLOUR and _most_chroma(one, other, flip) <= _SAME_COLOUR
        return 0.0 if is_same and max(deviation, deviation_other) < 2.0 * _BLANK else UNLIKE
    if _have_other_hues(one, other, flip):
        return UNLIKE
    return _fitted(picture, mean, other, mean_other, scratch)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _place(v: Any, u: Any, flip: Any, side: Any) -> Any:
    """Place of pixel (v, u) of a flipped picture in the picture."""
    return (side - 1 - v if flip & 2 else v) * side + (side - 1 - u if flip & 1 else u)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _most_chroma(one: Any, other: Any, flip: Any) -> Any:
    """The greatest difference of a byte of Cb or Cr."""
    most = np.int64(0)
    for begin in (LUMA_BYTES, LUMA_BYTES + CHROMA_SIDE * CHROMA_SIDE):
        for v in range(CHROMA_SIDE):
            for u in range(CHROMA_SIDE):
                a, b = one[begin + _place(v, u, flip, CHROMA_SIDE)], other[begin + v * CHROMA_SIDE + u]
                most = max(most, abs(np.int64(a) - np.int64(b)))
    return most


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _have_other_hues(one: Any, other: Any, flip: Any) -> Any:
    """True if the colours differ by much, absolutely and beside how colourful both are. A gray image may be a copy of
    one of any colours."""
    strength, strength_other, difference = np.int64(0), np.int64(0), np.int64(0)
    for begin in (LUMA_BYTES, LUMA_BYTES + CHROMA_SIDE * CHROMA_SIDE):
        for v in range(CHROMA_SIDE):
            for u in range(CHROMA_SIDE):
                a = np.int64(one[begin + _place(v, u, flip, CHROMA_SIDE)]) - 128
                b = np.int64(other[begin + v * CHROMA_SIDE + u]) - 128
                strength += abs(a)
                strength_other += abs(b)
                difference += abs(a - b)
    if min(strength, strength_other) < _GRAY * CHROMA_BYTES:
        return False
    return difference > max(_HUES * CHROMA_BYTES, _HUES_PART * (strength + strength_other))


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _fitted(picture: Any, mean: Any, other: Any, mean_other: Any, scratch: Any) -> Any:
    """Rest of ``picture`` fitted to ``other``, in parts of what the same pixels of ``other`` deviate: where a small
    thing before a plain sky is all that does not fit, nothing is left to be alike. ``UNLIKE`` for what would have to be
    inverted."""
    rest = scratch[LUMA_BYTES : 2 * LUMA_BYTES]
    system = scratch[2 * LUMA_BYTES : 2 * LUMA_BYTES + _TERMS * (_TERMS + 1)].reshape((_TERMS, _TERMS + 1))
    terms = scratch[2 * LUMA_BYTES + _TERMS * (_TERMS + 1) :]
    limit, unlike = np.inf, UNLIKE
    for _ in range(2):
        system[:] = 0.0
        for v in range(1, LUMA_SIDE - 1):
            for u in range(1, LUMA_SIDE - 1):
                at = v * LUMA_SIDE + u
                if limit < np.inf and abs(rest[at]) > limit:
                    continue
                _terms_at(picture, mean, v, u, terms)
                value = np.float64(other[at]) - mean_other
                for i in range(_TERMS):
                    for j in range(i, _TERMS):
                        system[i, j] += terms[i] * terms[j]
                    system[i, _TERMS] += terms[i] * value
        _solve(system)
        if system[1, _TERMS] <= 0.0:
            return UNLIKE
        square, kept, seen, square_seen = 0.0, 0, 0.0, 0.0
        for v in range(1, LUMA_SIDE - 1):
            for u in range(1, LUMA_SIDE - 1):
                at = v * LUMA_SIDE + u
                is_kept = limit == np.inf or abs(rest[at]) <= limit
                _terms_at(picture, mean, v, u, terms)
                level = np.float64(other[at]) - mean_other
                value = level
                for i in range(_TERMS):
                    value -= terms[i] * system[i, _TERMS]
                rest[at] = value
                if is_kept:
                    square += value * value
                    seen += level
                    square_seen += level * level
                    kept += 1
        left = np.sqrt(square / kept)
        limit = _OUTLIER * left + _NOISE
        unlike = left / (np.sqrt(max(square_seen / kept - (seen / kept) ** 2, 0.0)) + _NOISE)
    return unlike


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _terms_at(picture: Any, mean: Any, v: Any, u: Any, terms: Any) -> Any:
    """Terms of brightness, contrast, a move and a stretch: 1, the picture, its slopes, slopes by place."""
    at, middle = v * LUMA_SIDE + u, (LUMA_SIDE - 1) / 2.0
    across = (picture[at + 1] - picture[at - 1]) * 0.5
    down = (picture[at + LUMA_SIDE] - picture[at - LUMA_SIDE]) * 0.5
    terms[0], terms[1] = 1.0, picture[at] - mean
    terms[2], terms[3] = across, across * (u - middle) / middle
    terms[4], terms[5] = down, down * (v - middle) / middle
    return np.int64(0)


@pixel_kernel(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _solve(system: Any) -> Any:
    """Symmetric equations [n, n + 1], of which the upper half is filled in, by elimination; the last column becomes the
    solution. What is not determined becomes 0."""
    n = _TERMS
    for i in range(n):
        for j in range(i):
            system[i, j] = system[j, i]
    for i in range(n):
        least = 1e-9 * (abs(system[i, i]) + 1.0)
        for k in range(i):
            pivot = system[k, k]
            if pivot != 0.0:
                factor = system[i, k] / pivot
                for j in range(k, n + 1):
                    system[i, j] -= factor * system[k, j]
        if system[i, i] <= least:
            system[i, i] = 0.0
    for i in range(n - 1, -1, -1):
        value = system[i, n]
        for j in range(i + 1, n):
            value -= system[i, j] * system[j, n]
        system[i, n] = value / system[i, i] if system[i, i] != 0.0 else 0.0
    return np.int64(0)

"""Fingerprints that tell equal and similar images: hashes of pixels and of looks, and a small picture.

The perceptual hash has the signs of 64 low frequencies of a cosine transform of luminance on 32 x 32 areas, after
C. Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions" (2010), with signs in the place of a
median: so that a flip of the image flips known bits. All is computed in integers, which makes it exactly so, and the
same on every machine.
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
    different bits; which pairs are alike indeed, their signatures decide (``variegate/apps/curate/likeness.py``).
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

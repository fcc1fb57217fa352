"""Fingerprints that tell equal and similar images: hashes of pixels and of looks, and a small picture; and the likeness
of two images by their small pictures.

The perceptual hash has the signs of 64 low frequencies of a cosine transform of luminance on 32 x 32 areas, after C.
Zauner, "Implementation and Benchmarking of Perceptual Image Hash Functions" (2010). It uses signs instead of a median,
so that a flip of the image flips known bits. All is computed in integers, which makes it exactly so, and the same on
every machine.

Images with near hashes may show different things. Their thumbnails are then compared pixel by pixel, after matching
brightness and a small shift and stretch, as from a crop: a least-squares fit of six numbers to the first order of such
a change, after B. D. Lucas and T. Kanade, "An Iterative Image Registration Technique with an Application to Stereo
Vision" (1981). It is done twice, the second time without the pixels that fit worst, such as those below a logo.
"""

from __future__ import annotations

import hashlib
import math
from ctypes import c_int64, c_void_p
from typing import NamedTuple

import numpy as np

from variegate.arrays import Int64Array, UInt8Array, UInt64Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry

_describe_look = entry("vg_describe_look", c_void_p, c_int64, c_int64, c_void_p, c_void_p, c_void_p, c_void_p)

AREAS = 32
# A signature: luminance on 16 x 16 areas, then Cb and Cr on 4 x 4, a byte each, by rows from the top.
LUMA_SIDE = 16
CHROMA_SIDE = 4
LUMA_BYTES = LUMA_SIDE**2
CHROMA_BYTES = 2 * CHROMA_SIDE**2
SIGNATURE_BYTES = LUMA_BYTES + CHROMA_BYTES
# Luminance of areas is an integer, 64 to a level of a byte.
FINENESS = 64
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

    Frequencies of even and odd v and u have 16 bits each, one after another: a flip inverts all of them, or none.
    """
    waves = [(v, u) for v in range(8) for u in range(8) if v or u] + [(0, 8)]
    kinds = [(odd_v, odd_u) for odd_v in (0, 1) for odd_u in (0, 1)]
    return [(v, u) for kind in kinds for v, u in waves if (v % 2, u % 2) == kind]


def _cosines() -> Int64Array:
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
LEAST_WAVE = int(_LEAST_LEVELS * FINENESS * 16 * 16 * _SCALE**2)


def fingerprint(image: UInt8Array) -> Fingerprint:
    """The fingerprint of an image uint8 [H, W, 3], RGB, upright, at least one pixel. Releases the GIL for most of its
    time.

    Images of one size and the same pixels have one ``pixel_hash``. Images that look alike have ``look_hash`` of few
    different bits; which pairs are alike indeed, their signatures decide (``native/kernels/similarity.cpp``).
    """
    height, width = image.shape[:2]
    image = as_c_contiguous(image)
    digest = hashlib.sha256(b"%d %d\n" % (height, width), usedforsecurity=False)
    digest.update(image.data)
    hashes = np.empty(2, np.uint64)
    signature = np.empty(SIGNATURE_BYTES, np.uint8)
    tables = data_ptr(_WAVES), data_ptr(_COSINES)
    check_status(_describe_look(data_ptr(image), height, width, *tables, data_ptr(hashes), data_ptr(signature)))
    return Fingerprint(digest.digest()[:16], int(hashes[0]), int(hashes[1]), signature.tobytes())


# Signatures whose turned hashes are computed at once, to bound memory.
_TURNED_AT_ONCE = 1 << 14


def turned(signatures: UInt8Array) -> tuple[UInt64Array, UInt8Array]:
    """Look hashes uint64 [n] and signatures [n, SIGNATURE_BYTES] of images turned by 90 degrees counterclockwise.

    They come from ``signatures`` alone. Rounding to bytes may change a few bits of the hashes.
    """
    n = len(signatures)
    luma = signatures[:, :LUMA_BYTES].reshape(n, LUMA_SIDE, LUMA_SIDE)
    chroma = signatures[:, LUMA_BYTES:].reshape(n, 2, CHROMA_SIDE, CHROMA_SIDE)
    found = np.empty_like(signatures)
    found[:, :LUMA_BYTES] = np.rot90(luma, axes=(1, 2)).reshape(n, LUMA_BYTES)
    found[:, LUMA_BYTES:] = np.rot90(chroma, axes=(2, 3)).reshape(n, CHROMA_BYTES)
    # The 32 areas of a look, two by two.
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


UNLIKE = 2.0
"""How unlike images are whose colors or contrasts exclude that they are alike."""

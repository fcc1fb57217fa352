"""Likeness of two images by their signatures: the rest of one when the other is laid over it.

Images with near hashes may show different things. Their small pictures are compared pixel by pixel then, after one has
been made as bright as the other, and moved and stretched a little, which a crop does: a least-squares fit of six
numbers to the first order of what such a change does, after B. D. Lucas and T. Kanade, "An Iterative Image Registration
Technique with an Application to Stereo Vision" (1981). It is done twice, the second time without the pixels that fit
worst, such as those below a logo.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.apps.curate.fingerprint import CHROMA_BYTES, CHROMA_SIDE, LUMA_BYTES, LUMA_SIDE
from variegate.program.compiled import pixel_kernel

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

"""The table by which executors make normal numbers of words, ``rng.SEGMENTS``."""

from __future__ import annotations

import numpy as np

from variegate.arrays import Float32Array, Float64Array
from variegate.program.rng import SEGMENT_BITS, SEGMENTS_FILE

_POWERS = 31
_PARTS = 4

# Numerators and denominators of Wichura's algorithm AS 241 (PPND16, doi:10.2307/2347330), highest power first: for the
# middle, the tails, and the far tails.
_MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457, 13731.693765509461125,
     1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_TAIL = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def upper_quantile(probability: Float64Array) -> Float64Array:
    """The number that a standard normal one exceeds with this probability, of 0 < probability <= 0.5."""
    from_half = 0.5 - probability
    root = np.sqrt(-np.log(probability))
    middle = from_half * _ratio(_MIDDLE, 0.180625 - from_half**2)
    tails = np.where(root <= 5.0, _ratio(_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5.0))
    return np.where(from_half <= 0.425, middle, tails)


def _ratio(polynomials: tuple[tuple[float, ...], tuple[float, ...]], x: Float64Array) -> Float64Array:
    return np.polyval(polynomials[0], x) / np.polyval(polynomials[1], x)


def segments() -> Float32Array:
    """Base and slope of each segment, float32[segments, 2], by least squares over its odd numbers; the last is the
    median."""
    power = 2.0 ** np.arange(_POWERS)[:, None]
    part = (np.arange(_PARTS << SEGMENT_BITS) + 0.5) / (_PARTS << SEGMENT_BITS)
    odd = (np.floor(power * (1.0 + part)).astype(np.int64) | 1).reshape(-1, _PARTS).astype(np.float64)
    quantile = upper_quantile(odd * 2.0**-32)
    mean = odd.mean(axis=1)
    height = quantile.mean(axis=1)
    offset = odd - mean[:, None]
    # Segments of one number have no slope.
    slope = (offset * (quantile - height[:, None])).sum(axis=1) / np.maximum((offset**2).sum(axis=1), 1.0)
    lines = np.stack([height - slope * mean, slope], axis=1)
    return np.concatenate([lines, np.zeros((1, 2))]).astype(np.float32)


if __name__ == "__main__":
    SEGMENTS_FILE.write_bytes(segments().astype("<f4").tobytes())

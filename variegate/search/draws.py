"""Where the search's chance comes from: words that are a function of (seed, step, purpose, member) alone."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from variegate.program import rng

# Beside rng.SAMPLE_DOMAIN and rng.SHUFFLE_DOMAIN, so that a search and the trainings in it share no stream.
SEARCH_DOMAIN = 0x53524348


class Purpose(IntEnum):
    """What the words are for. The numbers are part of what is reproducible."""

    EXPLORE = 0
    EXPLOIT = 1
    MEMBER = 2
    REPEAT = 3
    SUBSET = 4


def draw(purpose: Purpose, seed: int, step: int, member: int, number: int) -> npt.NDArray[np.uint64]:
    """Words [number, 4] of 32 bits, in 64 so that products do not overflow."""
    key = rng.stream_key(seed, step, int(purpose), SEARCH_DOMAIN)
    return rng.sample_words(np.array([member], np.uint64), key, number)[0].astype(np.uint64)


def repeat_seed(seed: int, repeat: int, purpose: Purpose = Purpose.REPEAT) -> int:
    """What the trainings of a repeat follow from (or its ``SUBSET`` of the images); 64 bits with the highest set.

    That of a member's never is: no training that compares policies begins as one did that has found a policy.
    """
    words = draw(purpose, seed, 0, repeat, 1)[0]
    return 1 << 63 | int(words[0]) << 31 | int(words[1]) >> 1


def below(words: npt.NDArray[np.uint64], limit: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Words -> integers 0..limit - 1, each as likely as any other but for 2**-32."""
    return (words * np.asarray(limit, np.uint64) >> np.uint64(32)).astype(np.int64)

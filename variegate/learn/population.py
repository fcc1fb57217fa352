"""Population of a search: scores in, copies and policies out; it trains nothing and reads no clock.

Truncation selection as in Population Based Training (arXiv 1711.09846), perturbation by algorithm 2 of Population Based
Augmentation (arXiv 1905.05393). Chance is a function of (seed, step, stream, member) alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from variegate.arrays import Int64Array, UInt64Array
from variegate.learn.history import FRACTION, Row, Settings
from variegate.learn.policy import Numbers, SearchSpace
from variegate.program import rng

# Distinct from rng.SAMPLE_DOMAIN and rng.SHUFFLE_DOMAIN, so that a search and its training runs share no stream.
SEARCH_DOMAIN = 0x53524348
RESAMPLED = 0.2  # Probability of a new draw of a number.
AMOUNTS = 4  # Otherwise it moves by 0..3.


class LostPopulationError(RuntimeError):
    """Every training has diverged, so no member can be copied."""


def exploit(scores: Sequence[float], *, seed: int, step: int, fraction: float = FRACTION) -> list[tuple[int, int]]:
    """Pairs (target, donor), by target: the lowest ceil(n * fraction) each copy one of the highest as many, by chance.

    A score that is not finite (NaN: the training diverged) is the lowest of all, and its member always copies a donor,
    however many there are. No donor is a target, so that copies may be made in any order. Members with equal scores
    are ranked by chance. Where no two finite scores differ (``is_flat``) there is no ranking, and only members without
    a score are replaced. A function of its arguments alone.

    Raises LostPopulationError where no score is finite.
    """
    finite = [i for i, score in enumerate(scores) if math.isfinite(score)]
    if not finite:
        raise LostPopulationError(f"step {step}: none of {len(scores)} members has a score (all NaN)")
    words = [draw(SearchStream.EXPLOIT, seed, step, member, 1)[0] for member in range(len(scores))]
    ranked = sorted(finite, key=lambda i: (scores[i], int(words[i][1]), i))
    lost = [i for i in range(len(scores)) if i not in finite]
    share = truncated(len(scores), fraction)
    low = [] if is_flat(scores) else ranked[: max(0, share - len(lost))]
    donors = ranked[len(low) :][-share:]
    return [(target, donors[below(words[target][0], len(donors))]) for target in sorted(lost + low)]


def truncated(size: int, fraction: float = FRACTION) -> int:
    """The number of members, of ``size``, at either end."""
    # 100 * 0.07 is a little more than 7.
    return min(math.ceil(size * fraction - 1e-9), size // 2)


def is_flat(scores: Sequence[float]) -> bool:
    """True if two or more scores are finite and all of these are equal, so that they give no ranking."""
    finite = [score for score in scores if math.isfinite(score)]
    return len(finite) > 1 and min(finite) == max(finite)


def explore(space: SearchSpace, numbers: Sequence[int], *, seed: int, step: int, member: int) -> Numbers:
    """Every number for itself: with probability 0.2 any value it may have; else 0 to 3 less or more, kept in bounds.

    A function of its arguments alone. Raises PolicyError for numbers that are no policy of ``space``.
    """
    before = np.array(space.check(numbers))
    limits = np.array(space.limits)
    words = draw(SearchStream.EXPLORE, seed, step, member, len(before))
    anew = below(words[:, 1], limits + 1)
    amount = below(words[:, 2], AMOUNTS)
    moved = np.where(below(words[:, 3], 2) == 0, before - amount, before + amount)
    is_anew = rng.to_unit(words[:, 0].astype(np.uint32)) < RESAMPLED
    return tuple(np.where(is_anew, anew, np.clip(moved, 0, limits)).tolist())


class SearchStream(IntEnum):
    """Uses of random words. The numbers must not change, because draws depend on them."""

    EXPLORE = 0
    EXPLOIT = 1
    MEMBER = 2
    REPEAT = 3
    SUBSET = 4


def draw(stream: SearchStream, seed: int, step: int, member: int, number: int) -> UInt64Array:
    """Words [number, 4] of 32 bits, in 64 so that products do not overflow."""
    key = rng.stream_key(seed, step, int(stream), SEARCH_DOMAIN)
    return rng.sample_words(np.array([member], np.uint64), key, number)[0].astype(np.uint64)


def repeat_seed(seed: int, repeat: int, stream: SearchStream = SearchStream.REPEAT) -> int:
    """Seed of a repeat's training runs (or its ``SUBSET``): 64 bits with the highest bit set, which a member's seed
    never has."""
    words = draw(stream, seed, 0, repeat, 1)[0]
    return 1 << 63 | int(words[0]) << 31 | int(words[1]) >> 1


def below(words: UInt64Array, limit: npt.ArrayLike) -> Int64Array:
    """Map words to integers 0..limit - 1, uniform up to 2**-32."""
    return (words * np.asarray(limit, np.uint64) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class Copy:
    """``target`` copies the weights of ``donor``, and continues with ``policy``. No donor is a target."""

    target: int
    donor: int
    policy: Numbers


@dataclass(frozen=True)
class Step:
    """Result of a step. ``rows``: for the log. ``copies``: to be made before the next. ``is_flat``: the scores did
    not differ, so that nobody was ranked (and nobody copied, but members without a score)."""

    rows: tuple[Row, ...]
    copies: tuple[Copy, ...]
    is_flat: bool


class Population:
    """Members that all train up to ``until`` epochs, each with its of ``policies``, then ``advance`` with scores.

    ``step`` and ``policies`` are its state. Two populations with the same settings and scores are equal, wherever they
    ran.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.step = 0
        self.policies: tuple[Numbers, ...] = (settings.space.zeros(),) * settings.size

    @property
    def epoch(self) -> int:
        """The number of epochs that are over."""
        return self.settings.end_of(self.step)

    @property
    def until(self) -> int:
        """Epoch up to which members train before the next ``advance``."""
        return self.settings.end_of(self.step + 1)

    @property
    def is_done(self) -> bool:
        return self.step == self.settings.steps

    def advance(self, scores: Sequence[float]) -> Step:
        """The members have trained up to ``until``; ``scores``: of each, more is better, NaN for one that diverged.

        After the last step nothing is copied: the policies remain under which the members were scored.

        Raises LostPopulationError if no score is finite (the population is unchanged), ValueError for another number of
        scores, RuntimeError after the last step.
        """
        if self.is_done:
            raise RuntimeError(f"the search is over: all {self.settings.epochs} epochs are trained")
        if len(scores) != self.settings.size:
            raise ValueError(f"scores: got {len(scores)}; accepted: one for each of {self.settings.size} members")
        values = [float(score) if math.isfinite(score) else math.nan for score in scores]
        if all(map(math.isnan, values)):
            raise LostPopulationError(f"epoch {self.until}: none of {len(values)} members has a score (all NaN)")
        step = self.step + 1
        epoch = self.until
        seed = self.settings.seed
        donors: dict[int, int] = {}
        if step < self.settings.steps:
            donors = dict(exploit(values, seed=seed, step=step, fraction=self.settings.fraction))
        copies = tuple(
            Copy(target, donor, explore(self.settings.space, self.policies[donor], seed=seed, step=step, member=target))
            for target, donor in donors.items()
        )
        rows = tuple(
            Row(step, epoch, member, score, policy, donors.get(member))
            for member, (score, policy) in enumerate(zip(values, self.policies, strict=True))
        )
        changed = {copy.target: copy.policy for copy in copies}
        self.policies = tuple(changed.get(member, policy) for member, policy in enumerate(self.policies))
        self.step = step
        return Step(rows, copies, is_flat(values))

"""Standings of a race: scores in, who is dropped and who leads out, and the result in words.

In each round every candidate left trains once from the round's seed; then those worse than another are dropped. The
chance of ever dropping the truly best is at most the ``error``, which is spent evenly over looks and rivals (Lan and
DeMets 1983; Bonferroni), by t-intervals of differences within rounds. As two or three rounds hardly show a pair's own
spread, that of all pairs together is used, unless the pair's own is larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.search.compare import quantile

Ending = Literal["won", "no difference", "budget", "rounds", "interrupted"]


class Standing(NamedTuple):
    """A candidate at the end of a race.

    ``behind``: the mean by which the leader of its ``stage`` leads in the rounds of both, within ``low`` to ``high``;
    NaN of fewer than two rounds. ``dropped``: after this round of the stage; None for those left. ``stage``: 0 for the
    candidates given, then 1 and on for variations of the leader.
    """

    candidate: str
    mean: float
    rounds: int
    behind: float
    low: float
    high: float
    dropped: int | None
    stage: int = 0


class Standings:
    """Scores of candidates by round, and those left: a function of the scores.

    ``rounds``: the most there will be; ``error``: the chance of dropping the best; ``grain`` as for ``race``.
    """

    def __init__(self, names: Sequence[str], rounds: int, error: float, grain: float = 0.0) -> None:
        self.scores: dict[str, list[float]] = {name: [] for name in names}
        self.left, self.dropped = list(names), dict[str, int]()
        self._looks, self.error, self._grain = max(1, rounds - 1) * max(1, len(self.scores) - 1), error, grain
        # Candidates that trained together, and for how many rounds.
        self._tables: list[tuple[list[str], int]] = []
        self._spreads: dict[int, tuple[float, int]] = {}

    def end_round(self, scores: Mapping[str, float]) -> None:
        """Add a score of each that is left; drop those that diverged or are worse than another."""
        for name in self.left:
            self.scores[name].append(scores[name])
        finite = [name for name in self.left if math.isfinite(scores[name])]
        number = len(self.scores[self.left[0]])
        self._tables.append((finite, number))
        self._spreads.clear()
        kept = [one for one in finite if not any(self.interval(one, other)[1] > 0 for other in finite if other != one)]
        self.dropped |= {name: number for name in self.left if name not in kept}
        self.left = kept

    @property
    def rounds(self) -> int:
        """Whole rounds that are over."""
        return max(map(len, self.scores.values()))

    @property
    def winner(self) -> str:
        """The highest mean of those that are left; of all where every one diverged."""
        return max(self.left or self.scores, key=lambda name: _mean(self.scores[name]))

    def interval(self, one: str, other: str) -> tuple[float, float, float]:
        """The mean lead of ``other`` in the rounds of both, and its ends; NaN of fewer than two rounds."""
        number = min(len(self.scores[one]), len(self.scores[other]))
        each = np.subtract(self.scores[other][:number], self.scores[one][:number])
        if number < 2 or not np.isfinite(each).all():
            return _mean(each), math.nan, math.nan
        if number not in self._spreads:
            self._spreads[number] = self.spread(number)
        spread, freedom = self._spreads[number]
        own = max(float(each.std(ddof=1)), self._grain / math.sqrt(number))
        width = quantile(1 - self.error / self._looks, freedom) * max(own, spread) / math.sqrt(number)
        return _mean(each), _mean(each) - width, _mean(each) + width

    def rounds_needed(self, lead: float) -> float:
        """Rounds after which this test shows such a lead four times out of five, where differences spread as so far."""
        spread, freedom = self.spread(self.rounds)
        ends = quantile(1 - self.error / self._looks, freedom) + quantile(0.8, freedom)
        return float(math.ceil((ends * spread / lead) ** 2))

    def spread(self, number: int) -> tuple[float, int]:
        """Standard deviation of a difference of two, and its degrees of freedom: what is left of the largest whole
        table of candidates and rounds without the means of both."""
        tables = [(names, min(rounds, number)) for names, rounds in self._tables]
        names, rounds = max(tables, key=lambda one: (len(one[0]) - 1) * (one[1] - 1))
        table = np.asarray([self.scores[name][:rounds] for name in names])
        rest = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
        freedom = (len(names) - 1) * (rounds - 1)
        return math.sqrt(2 * float((rest**2).sum()) / freedom), freedom


def _mean(each: Sequence[float] | npt.NDArray[np.float64]) -> float:
    return float(np.mean(each)) if len(each) else math.nan


@dataclass(frozen=True)
class RaceResult:
    """The end of a race.

    ``standings``: the winner, those left by their means, then those dropped, the last first. ``ending``: "won": one is
    left; "no difference": those left lie within the margin; "budget", "rounds", "interrupted": it ended before.
    ``seconds`` and ``processor``: of all trainings, by the clock and of the processor. ``verdict``: the result in
    words, with what it takes to know more.
    """

    winner: str
    standings: tuple[Standing, ...]
    ending: Ending
    trainings: int
    seconds: float
    processor: float
    verdict: str

    @property
    def is_decided(self) -> bool:
        """True if two rounds are over, or one candidate is left: there is a verdict."""
        return math.isfinite(self.standings[0].mean) and (self.ending == "won" or self.standings[0].rounds > 1)


def rows_of(standings: Standings, leader: str, stage: int) -> list[Standing]:
    rows = []
    for name, scores in standings.scores.items():
        behind = (0.0, 0.0, 0.0) if name == leader else standings.interval(name, leader)
        rows.append(Standing(name, _mean(scores), len(scores), *behind, standings.dropped.get(name), stage))
    rows.sort(key=lambda one: (one.candidate != leader, -(one.dropped or math.inf), -one.mean))
    return rows


def verdict(
    standings: Standings, ending: Ending, error: float, margin: float, is_share: bool, round_seconds: float
) -> str:
    """Of the candidates given. ``error``: of the whole race. ``is_share``: scores are told in points."""
    rows = rows_of(standings, standings.winner, 0)
    winner, number = f'"{rows[0].candidate}"', rows[0].rounds
    left = [row for row in rows[1:] if row.dropped is None]
    if not standings.left:
        return "Every candidate diverged: no score is finite."
    if ending == "won":
        return f"{winner} is the best of {len(rows)}. The chance that a better one was dropped is at most {error:.2g}."
    if number < 2:
        why = "the race was interrupted" if ending == "interrupted" else f"the {ending} ended the race"
        takes = f"; a round takes about {round_seconds:,.0f} s" if math.isfinite(round_seconds) else ""
        return f"No verdict: {why} after {number} whole rounds, and two or more are needed{takes}."
    others = ", ".join(f'"{row.candidate}"' for row in left)
    if ending == "no difference":
        return f"No difference above {_told(margin, is_share)}: {winner} has the highest mean, ahead of {others}."
    high, lead = max(row.high for row in left), min(row.behind for row in left)
    needed = standings.rounds_needed(lead) if lead > 0 else math.inf
    takes = f"takes {'over 1,000' if needed > 1000 else f'about {needed:,.0f}'} rounds"
    more = f" To show a difference of {_told(lead, is_share)} {takes}." if lead > 0 else " Their means are equal."
    return (
        f"Undecided after {number} rounds: {winner} has the highest mean. {others} may be better, or worse by up to "
        f"{_told(high, is_share)}.{more}"
    )


def verdict_of_variations(standings: Standings, leader: str, ending: Ending, is_share: bool) -> str:
    """Of a stage in which variations of a leader, the first candidate, raced against it."""
    before, *others = standings.scores
    some = f"{len(others)} variation{'' if len(others) == 1 else 's'} of {before!r}".replace("'", '"')
    early = f"; the {ending} ended the race" if ending == "budget" else ""
    if standings.rounds < 2:
        return f"No verdict about {some}: two or more rounds are needed{early}."
    if leader == before:
        return f"Of {some}, none is shown to be better in {standings.rounds} rounds{early}."
    lead = standings.interval(before, leader)
    size, low, high = (_told(each, is_share) for each in lead)
    return f'Of {some}, "{leader}" is better than it by {size} ({low} to {high}), {standings.rounds} rounds{early}.'


def _told(score: float, is_share: bool) -> str:
    return f"{100 * score:.1f} points" if is_share else f"{score:.2g}"

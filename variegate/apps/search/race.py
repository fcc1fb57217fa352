"""A race of candidates: whole trainings on common seeds, round after round, until a sequential test decides.

In each round every candidate left trains once from the round's seed; then those worse than another are dropped. The
chance of ever dropping the truly best is at most 1 - ``confidence``: the error is spent evenly over looks and rivals
(Lan and DeMets 1983; Bonferroni), by t-intervals of differences within rounds. As two or three rounds hardly show a
pair's own spread, that of all pairs together is used, unless the pair's own is larger.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.apps.search.compare import quantile, repeats_needed
from variegate.apps.search.population import repeat_seed
from variegate.checks import integer, spelt
from variegate.formats.base import SourceError
from variegate.io.durable import AppendOnlyFile, make_folder, write_errors_name
from variegate.jobs.output.destination import locked

_FORMAT, LOG_NAME, _LOCK_NAME = "variegate-race/1", "race.jsonl", ".race.lock"
Ending = Literal["won", "no difference", "budget", "rounds", "interrupted"]


class Training(NamedTuple):
    """A candidate trained whole. ``score``: NaN where it diverged. ``elapsed``: seconds of the race so far."""

    candidate: str
    round: int
    score: float
    seconds: float
    elapsed: float


class Standing(NamedTuple):
    """A candidate at the end of a race.

    ``behind``: the mean by which the winner leads in the rounds of both, within ``low`` to ``high``; NaN of fewer than
    two rounds. ``dropped``: after this round; None for those left.
    """

    candidate: str
    mean: float
    rounds: int
    behind: float
    low: float
    high: float
    dropped: int | None


@dataclass(frozen=True)
class RaceResult:
    """The end of a race.

    ``standings``: the winner, those left by their means, then those dropped, the last first. ``ending``: "won": one is
    left; "no difference": those left lie within the margin; "budget", "rounds", "interrupted": it ended before.
    ``seconds``: of all trainings. ``verdict``: the result in words, with what it takes to know more.
    """

    winner: str
    standings: tuple[Standing, ...]
    ending: Ending
    trainings: int
    seconds: float
    verdict: str


class Standings:
    """Scores of candidates by round, and those left: a function of the scores.

    ``rounds``: the most there will be; ``error``: the chance of dropping the best; ``grain`` as for ``race``.
    """

    def __init__(self, names: Sequence[str], rounds: int, error: float, grain: float = 0.0) -> None:
        self.scores: dict[str, list[float]] = {name: [] for name in names}
        self.left, self.dropped = list(names), dict[str, int]()
        self._looks, self._error, self._grain = max(1, rounds - 1) * max(1, len(self.scores) - 1), error, grain
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
        width = quantile(1 - self._error / self._looks, freedom) * max(own, spread) / math.sqrt(number)
        return _mean(each), _mean(each) - width, _mean(each) + width

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


class _Journal:
    """The trainings of a race, a line each; those of a race that goes on are not trained again."""

    def __init__(self, folder: Path, described: Mapping[str, Any]) -> None:
        """Raises SourceError for a folder that holds something else, or another race."""
        path = folder / LOG_NAME
        others = [one.name for one in folder.glob("[!.]*") if not path.exists()]
        if others:
            raise SourceError(
                f"{folder}: holds files of something else ({min(others)}); choose an empty folder or a new name"
            )
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # a torn last line is trained again
        try:
            rows = [json.loads(line) for line in lines]
            self.done = [
                Training(**{**row, "score": math.nan if row["score"] is None else row["score"]}) for row in rows[1:]
            ]
        except (ValueError, TypeError, LookupError) as error:
            raise SourceError(f"{path}: is damaged ({error}); restore it, or choose another folder") from error
        if rows and rows[0] != described:
            name = next((one for one in described if rows[0].get(one) != described[one]), "format")
            raise SourceError(
                f"{folder}: holds a race with {name} {rows[0].get(name)!r}, this one has {described.get(name)!r}; "
                "choose another folder"
            )
        end = sum(len(line) + 1 for line in lines)
        self._file = AppendOnlyFile(path, str(path), end, json.dumps(described).encode() + b"\n")

    def append(self, row: Training) -> None:
        described = {**row._asdict(), "score": None if math.isnan(row.score) else row.score}
        self._file.append(json.dumps(described, allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        self._file.close()


@spelt()
def race(
    objective: Callable[[Any, int], float],
    candidates: Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    rounds: int = 12,
    budget: float | None = None,
    confidence: float = 0.95,
    margin: float = 0.0,
    grain: float = 0.0,
    seed: int = 0,
    workers: int = 1,
    on_training: Callable[[Training], None] | None = None,
    stop: Event | None = None,
) -> RaceResult:
    """Find the best of several policies, or of anything else to train with, in as few training runs as needed.

    Each round trains every candidate left once, all from one seed, and then drops those worse than another. The best
    candidate stays with probability ``confidence`` over all rounds, where differences within rounds are near normal.

    Args:
        objective: ``objective(candidate, seed)`` trains from ``seed`` (data split, weights, order) and returns a finite
            score, higher is better, or NaN where training diverged, which drops the candidate.
        candidates: at least two, by name, the simplest first: of equal means the first wins.
        out: folder for ``race.jsonl``, a line per training. The same call resumes from it, after a kill too.
        rounds: most rounds, 2 or more.
        budget: seconds of wall-clock time, those before a resume included; no training begins that would likely end
            later. None: no limit.
        confidence: between 0.5 and 1.
        margin: scores closer than this count as no difference, and end the race.
        grain: smallest possible difference of two scores, such as 1 / images for an accuracy.
        seed: decides the seeds of the rounds.
        workers: training runs at a time, in threads.
        on_training: called after each training run, one at a time.
        stop: once set, no training begins.

    Raises ValueError for arguments, SourceError where ``out`` holds something else, WriteError, and what ``objective``
    raises.
    """
    rounds, workers = integer("rounds", rounds, 2, 1000), integer("workers", workers, 1, 1024)
    seed = integer("seed", seed, 0, (1 << 64) - 1)
    if len(candidates) < 2:
        raise ValueError(f"candidates: got {len(candidates)}; accepted: two or more")
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence: got {confidence!r}; accepted: between 0.5 and 1")
    described = {"format": _FORMAT, "candidates": list(candidates), "rounds": rounds, "confidence": confidence}
    described |= {"margin": margin, "grain": grain, "seed": seed}
    with ExitStack() as stack:
        journal = None
        if out is not None:
            folder = Path(out)
            with write_errors_name(str(folder)):
                make_folder(folder)
            stack.enter_context(locked(folder / _LOCK_NAME, str(folder)))
            journal = _Journal(folder, described)
            stack.callback(journal.close)
        running = _Race(objective, candidates, journal, budget, seed, workers, on_training, stop or Event())
        standings = Standings(list(candidates), rounds, 1 - confidence, grain)
        ending = running.run(standings, rounds, margin)
    return _result(standings, ending, running.trainings, margin, confidence)


class _Race:
    """Trainings of a race: those of its journal, and new ones while the budget lasts."""

    def __init__(
        self,
        objective: Callable[[Any, int], float],
        candidates: Mapping[str, Any],
        journal: _Journal | None,
        budget: float | None,
        seed: int,
        workers: int,
        on_training: Callable[[Training], None] | None,
        stop: Event,
    ) -> None:
        self._objective, self._candidates, self._journal = objective, candidates, journal
        self._budget, self._seed, self._workers = budget, seed, workers
        self._on_training, self._stop, self._lock = on_training, stop, Lock()
        self.trainings = [] if journal is None else journal.done
        self._done = {(one.round, one.candidate): one for one in self.trainings}
        self._began = time.perf_counter() - max((one.elapsed for one in self.trainings), default=0.0)

    def run(self, standings: Standings, rounds: int, margin: float) -> Ending:
        with ThreadPoolExecutor(self._workers, "variegate-race") as pool:
            for number in range(rounds):
                names = [name for name in standings.left if (number, name) not in self._done]
                if self._fits(math.ceil(len(names) / self._workers)):
                    list(pool.map(partial(self._train, number), names))
                scores = {
                    name: self._done[number, name].score for name in standings.left if (number, name) in self._done
                }
                if len(scores) < len(standings.left):
                    return "interrupted" if self._stop.is_set() else "budget"
                standings.end_round(scores)
                if len(standings.left) < 2:
                    return "won"
                winner = standings.winner
                if number and all(
                    standings.interval(one, winner)[2] <= margin for one in standings.left if one != winner
                ):
                    return "no difference"
        return "rounds"

    def _fits(self, trainings: int) -> bool:
        if not trainings or self._budget is None or not self.trainings:
            return True
        mean = statistics.fmean(one.seconds for one in self.trainings)
        return time.perf_counter() - self._began + trainings * mean <= self._budget

    def _train(self, number: int, name: str) -> None:
        if self._stop.is_set() or not self._fits(1):
            return
        started = time.perf_counter()
        score = float(self._objective(self._candidates[name], repeat_seed(self._seed, number)))
        if math.isinf(score):
            raise ValueError(
                f"objective: got {score} for {name!r}; accepted: a finite score, or NaN where training diverged"
            )
        ended = time.perf_counter()
        row = Training(name, number, score, round(ended - started, 3), round(ended - self._began, 3))
        with self._lock:
            if self._journal is not None:
                self._journal.append(row)
            self.trainings.append(row)
            self._done[number, name] = row
            if self._on_training is not None:
                self._on_training(row)


def _result(
    standings: Standings, ending: Ending, trainings: Sequence[Training], margin: float, confidence: float
) -> RaceResult:
    winner = standings.winner
    rows = []
    for name, scores in standings.scores.items():
        behind = (0.0, 0.0, 0.0) if name == winner else standings.interval(name, winner)
        rows.append(Standing(name, _mean(scores), len(scores), *behind, standings.dropped.get(name)))
    rows.sort(key=lambda one: (one.candidate != winner, -(one.dropped or math.inf), -one.mean))
    seconds = sum(one.seconds for one in trainings)
    return RaceResult(
        winner, tuple(rows), ending, len(trainings), seconds, _verdict(rows, standings, ending, margin, confidence)
    )


def _verdict(rows: Sequence[Standing], standings: Standings, ending: Ending, margin: float, confidence: float) -> str:
    winner, number = f'"{rows[0].candidate}"', rows[0].rounds
    left = [row for row in rows[1:] if row.dropped is None]
    if not standings.left:
        return "Every candidate diverged: no score is finite."
    if ending == "won":
        error = f"{1 - confidence:.2g}"
        return f"{winner} is the best of {len(rows)}. The chance that a better one was dropped is at most {error}."
    if number < 2:
        why = "the race was interrupted" if ending == "interrupted" else f"the {ending} ended the race"
        return f"No verdict: {why} after {number} whole rounds, and two or more are needed."
    others = ", ".join(f'"{row.candidate}"' for row in left)
    if ending == "no difference":
        return f"No difference above {margin:.2g}: {winner} has the highest mean, ahead of {others}."
    high, lead = max(row.high for row in left), min(row.behind for row in left)
    needed = repeats_needed(lead, standings.spread(number)[0]) if lead > 0 else None
    rounds = "over 1,000" if needed is None else f"about {needed:,}"
    return (
        f"Undecided after {number} rounds: {winner} has the highest mean. {others} may be better, or worse by up to "
        f"{high:.2g}. To show a difference of {lead:.1g} takes {rounds} rounds."
    )

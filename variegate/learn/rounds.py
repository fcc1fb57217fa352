"""Rounds and stages of a race, for any training, and the folder that it resumes from.

``Standings`` is the test of a stage. A race of images continues with variations of its winner, on rounds of their own.
The first stage spends half of the error probability, and each further stage half of the rest, so that the total stays
within the bound. Rounds are numbered across stages: a stage begins at ``stage * MAX_ROUNDS``, so that a race that
resumes with more rounds trains nothing again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from variegate.events import OnEvent
from variegate.jobs.output.run_folder import locked
from variegate.learn.events import Round
from variegate.learn.standings import (
    MAX_ROUNDS,
    Ending,
    RaceResult,
    Standings,
    rows_of,
    verdict,
    verdict_of_variations,
)
from variegate.learn.trainings import TrainingJournal, TrainingRunner, check_folder, locked_folder, read_json

FORMAT = "variegate-race/2"
LOG_NAME = "race.jsonl"
# Accuracies that are closer than a point count as no difference: to show that takes hundreds of rounds.
MARGIN = 0.01


@dataclass(frozen=True)
class RaceRules:
    """Decide when a race ends. ``budget``: seconds; ``grain``: see ``race``; ``is_share``: scores are reported in
    points.

    ``variations``: function of a winner that returns new candidates to race against it; None: only one stage.
    ``drops``: False for an evaluation, whose candidates all train in all rounds.
    """

    rounds: int = 12
    budget: float | None = None
    confidence: float = 0.95
    margin: float = 0.0
    grain: float = 0.0
    is_share: bool = False
    variations: Callable[[str], list[str]] | None = None
    drops: bool = True

    def describe(self) -> dict[str, Any]:
        """Settings that determine the result besides the candidates and the training runs. A race may resume with
        another budget and number of rounds."""
        return {"confidence": self.confidence, "margin": self.margin, "grain": self.grain}


def run_race(names: Sequence[str], rules: RaceRules, runner: TrainingRunner, on_event: OnEvent) -> RaceResult:
    """Race the candidates, then variations of the winner, until no variation wins."""
    error = 1 - rules.confidence
    share = error if rules.variations is None else error / 2
    stages: list[tuple[Standings, str, Ending]] = []
    names = list(names)
    while True:
        standings = Standings(names, share, rules.grain)
        number = len(stages)
        ending = _run_stage(standings, number, rules, runner, on_event)
        is_kept = number > 0 and (names[0] in standings.left or not standings.left)
        leader = names[0] if is_kept else standings.winner
        stages.append((standings, leader, ending))
        if rules.variations is None or is_kept or not standings.left or ending in ("budget", "interrupted"):
            break
        if not (more := rules.variations(leader)):
            break
        names = [leader, *more]
        share /= 2
    # A stage with fewer than two rounds says nothing.
    told = [(n, one, best) for n, (one, best, _) in enumerate(stages) if n == 0 or one.rounds > 1]
    ordered = [row for stage, one, best in reversed(told) for row in rows_of(one, best, stage)]
    first = stages[0][0]
    seconds = [one.seconds for one in runner.all]
    said = [verdict(first, stages[0][2], error, rules.margin, rules.is_share)]
    said += [verdict_of_variations(one, best, end, rules.is_share) for one, best, end in stages[1:]]
    last = stages[-1][2]
    ending = last if last == "interrupted" else stages[0][2]
    return RaceResult(leader, tuple(ordered), ending, len(runner.all), sum(seconds), " ".join(said))


def _run_stage(standings: Standings, stage: int, rules: RaceRules, runner: TrainingRunner, on_event: OnEvent) -> Ending:
    first = stage * MAX_ROUNDS

    def fits(trainings: int) -> bool:
        if not trainings or rules.budget is None or not runner.all:
            return True
        mean = statistics.fmean(one.seconds for one in runner.all)
        return runner.elapsed + trainings * mean <= rules.budget

    def holds_two_rounds() -> bool:
        """True if the first two rounds fit the budget at the speed of the fastest training so far."""
        if rules.budget is None or not runner.all or (stage, standings.rounds) > (0, 1):
            return True
        jobs = [(number, name) for number in range(standings.rounds, 2) for name in standings.left]
        trainings = math.ceil(sum(job not in runner.done for job in jobs) / runner.workers)
        least = min(one.seconds for one in runner.all)
        return not trainings or runner.elapsed + trainings * least <= rules.budget

    # A later stage has rounds of its own: the earlier ones chose its leader, and would favor it.
    for number in range(first, first + rules.rounds):
        jobs = [(number, name) for name in standings.left]
        if fits(math.ceil(sum(job not in runner.done for job in jobs) / runner.workers)):
            runner.run(jobs, lambda: fits(1) and holds_two_rounds())
        scores = {name: runner.done[number, name].score for name in standings.left if (number, name) in runner.done}
        if len(scores) < len(standings.left):
            return "interrupted" if runner.stop.is_set() else "budget"
        before = standings.left
        standings.end_round(scores)
        winner = standings.winner
        left = standings.left
        dropped = tuple(name for name in before if name not in left)
        on_event(Round(stage, number - first + 1, winner, standings.mean(winner), tuple(left), dropped))
        if len(left) < 2:
            return "won" if left else "rounds"
        if standings.rounds > 1 and all(
            standings.interval(one, winner)[2] <= rules.margin for one in left if one != winner
        ):
            return "no difference"
    return "rounds"


@dataclass(frozen=True)
class RaceFiles:
    """Files of a race: the journal that it resumes from, and the result. ``what``: names the race in errors."""

    journal: Path
    result: Path
    lock: Path
    what: str

    @classmethod
    def in_folder(cls, folder: Path) -> RaceFiles:
        """The files of a race in its folder."""
        return cls(folder / LOG_NAME, folder / "race.json", folder / ".race.lock", "a race")

    @classmethod
    def beside(cls, plot: Path) -> RaceFiles:
        """The files of an evaluation, which are next to its plot."""
        lock = plot.with_name(f".{plot.stem}.lock")
        return cls(plot.with_suffix(".jsonl"), plot.with_suffix(".json"), lock, "an evaluation")

    @contextmanager
    def open(self, described: Mapping[str, Any]) -> Iterator[TrainingJournal]:
        """The journal, locked. One of an evaluation with other settings is replaced once it is complete.

        Raises SourceError for other files, another race, and one that runs.
        """
        has_folder = self.journal.name == LOG_NAME
        place = str(self.journal.parent if has_folder else self.journal)
        is_replaced = read_json(self.result).get("is_complete") is True
        with ExitStack() as stack:
            if has_folder:
                check = partial(check_folder, self.journal.parent, LOG_NAME)
                stack.enter_context(locked_folder(self.journal.parent, self.lock.name, check))
            else:
                stack.enter_context(locked(self.lock, place, "name"))
            journal = TrainingJournal(self.journal, described, self.what, place=place, is_replaced=is_replaced)
            yield stack.enter_context(closing(journal))

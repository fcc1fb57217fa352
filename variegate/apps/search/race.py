"""A race of candidates: whole trainings on common seeds, round after round, until a sequential test decides.

``Standings`` is the test. A race of images goes on with variations of its winner, on rounds of their own: the first
stage spends half of the error, and each further one half of what is left, so that all together never spend more.
"""

from __future__ import annotations

import math
import os
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, TypeAlias

from variegate.apps.search.candidates import candidates_of
from variegate.apps.search.objective import checked_score, is_training, step_of, takes_seed
from variegate.apps.search.population import repeat_seed
from variegate.apps.search.standings import (
    Ending,
    RaceResult,
    Standings,
    rows_of,
    verdict,
    verdict_of_variations,
)
from variegate.apps.search.trainings import Journal, Meter, Outcome, Runner, Train, Training
from variegate.checks import integer, refused, spelt
from variegate.formats.base import SourceError
from variegate.io.durable import make_folder, write_errors_name
from variegate.jobs.output.destination import locked
from variegate.options.search import RaceOptions, seconds_in

FORMAT, LOG_NAME, _LOCK_NAME = "variegate-race/1", "race.jsonl", ".race.lock"
# Accuracies that are closer than a point count as no difference: to show that takes hundreds of rounds.
MARGIN = 0.01
# Without images, crops have no size.
_DEFAULT_POLICIES = ("none", "flip", "randaugment-1-5", "randaugment-2-9", "trivialaugment")


class Round(NamedTuple):
    """A round that is over: of ``number`` from 1 in its ``stage``. ``leader``: so far, with its mean score."""

    stage: int
    number: int
    leader: str
    mean: float
    left: tuple[str, ...]
    dropped: tuple[str, ...]


OnRound: TypeAlias = Callable[[Round], object]


@dataclass(frozen=True)
class RaceRules:
    """Decide when a race ends. ``budget``: seconds; ``grain``: as of ``race``; ``is_share``: scores are told in points.

    ``variations``: of a winner, those that are to race against it and have not yet; None: only one stage.
    """

    rounds: int = 12
    budget: float | None = None
    confidence: float = 0.95
    margin: float = 0.0
    grain: float = 0.0
    is_share: bool = False
    variations: Callable[[str], list[str]] | None = None

    @classmethod
    def of(cls, options: RaceOptions) -> RaceRules:
        """Of a race on images."""
        return cls(options.rounds, seconds_in("budget", options.budget), margin=MARGIN)

    def describe(self) -> dict[str, Any]:
        """All that decides the result besides the candidates and the trainings; a longer budget may go on."""
        return {"rounds": self.rounds, "confidence": self.confidence, "margin": self.margin, "grain": self.grain}


def run_race(names: Sequence[str], rules: RaceRules, runner: Runner, on_round: OnRound | None = None) -> RaceResult:
    """Race the candidates, and then variations of the winner while one of them takes its place."""
    error = 1 - rules.confidence
    share = error if rules.variations is None else error / 2
    stages: list[tuple[Standings, str, Ending]] = []
    names = list(names)
    while True:
        standings, number = Standings(names, rules.rounds, share, rules.grain), len(stages)
        ending = _run_stage(standings, number, rules, runner, on_round or (lambda one: None))
        is_kept = number > 0 and (names[0] in standings.left or not standings.left)
        leader = names[0] if is_kept else standings.winner
        stages.append((standings, leader, ending))
        if rules.variations is None or is_kept or not standings.left or ending in ("budget", "interrupted"):
            break
        if not (more := rules.variations(leader)):
            break
        names, share = [leader, *more], share / 2
    # A stage with fewer than two rounds says nothing.
    told = [(n, one, best) for n, (one, best, _) in enumerate(stages) if n == 0 or one.rounds > 1]
    rows = {row.candidate: row for n, one, best in told for row in rows_of(one, best, n)}
    ordered = sorted(rows.values(), key=lambda row: (row.candidate != leader, -row.stage))
    first = stages[0][0]
    seconds = [one.seconds for one in runner.all]
    of_round = statistics.fmean(seconds) * math.ceil(len(first.scores) / runner.workers) if seconds else math.nan
    said = [verdict(first, stages[0][2], error, rules.margin, rules.is_share, of_round)]
    said += [verdict_of_variations(one, best, end, rules.is_share) for one, best, end in stages[1:]]
    processor = sum(one.processor for one in runner.all)
    last = stages[-1][2]
    ending = last if last == "interrupted" else stages[0][2]
    return RaceResult(leader, tuple(ordered), ending, len(runner.all), sum(seconds), processor, " ".join(said))


def _run_stage(standings: Standings, stage: int, rules: RaceRules, runner: Runner, on_round: OnRound) -> Ending:
    def fits(trainings: int) -> bool:
        if not trainings or rules.budget is None or not runner.all:
            return True
        mean = statistics.fmean(one.seconds for one in runner.all)
        return runner.elapsed + trainings * mean <= rules.budget

    # A later stage has rounds of its own: the earlier ones chose its leader, and would favor it.
    for number in range(stage * rules.rounds, (stage + 1) * rules.rounds):
        jobs = [(number, name) for name in standings.left]
        if fits(math.ceil(sum(job not in runner.done for job in jobs) / runner.workers)):
            runner.run(jobs, lambda: fits(1))
        scores = {name: runner.done[number, name].score for name in standings.left if (number, name) in runner.done}
        if len(scores) < len(standings.left):
            return "interrupted" if runner.stop.is_set() else "budget"
        before = standings.left
        standings.end_round(scores)
        winner, left = standings.winner, standings.left
        dropped = tuple(name for name in before if name not in left)
        mean = statistics.fmean(standings.scores[winner])
        on_round(Round(stage, standings.rounds, winner, mean, tuple(left), dropped))
        if len(left) < 2:
            return "won"
        if standings.rounds > 1 and all(
            standings.interval(one, winner)[2] <= rules.margin for one in left if one != winner
        ):
            return "no difference"
    return "rounds"


@spelt(RaceOptions)
def race(
    objective: Any,
    policies: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    rounds: int = RaceOptions.rounds,
    budget: float | str | None = None,
    confidence: float = 0.95,
    margin: float | None = None,
    grain: float | None = None,
    seed: int = 0,
    epochs: int | None = None,
    workers: int | None = None,
    on_training: Callable[[Training], object] | None = None,
    stop: Event | None = None,
    **options: Any,
) -> RaceResult:
    """Find the best of several policies, or of anything else to train with, in as few training runs as needed.

    Each round trains every candidate left once, all from one seed, and then drops those worse than another. The best
    candidate stays with probability ``confidence`` over all rounds, where differences within rounds are near normal.

    On images, rounds differ in the images that train, and the rest of them scores. While ``budget`` lasts, variations
    of the winner (number and magnitude of operations, crop, flip, cutout) then race against it. ``out`` gets
    ``policy.json``, which ``load_policy`` reads.

    Args:
        objective: labeled images, as anything that ``open_source`` takes; or training of your own. That is
            ``objective(policy, seed)``, which trains from ``seed`` (data split, weights, order) and returns a score,
            higher is better, or NaN where training diverged; or ``step(policy, epochs, checkpoint, seed)``, a function
            or a method, which returns a score and a checkpoint and is called with ``epochs`` and no checkpoint.
        policies: at least two, the simplest first: of equal means the first wins. A list of names, files and
            transforms, or a mapping from names to these (for training of your own: to anything). None: flip, crop,
            RandAugment and others.
        out: folder for ``race.jsonl``, a line per training, and ``race.json``, the result. The same call resumes from
            it, after a kill too.
        rounds: most rounds of a stage, 2 or more.
        budget: seconds of wall-clock time, or a text such as "30m", those before a resume included; no training begins
            that would likely end later. None: no limit.
        confidence: between 0.5 and 1.
        margin: scores closer than this count as no difference, and end the race. By default 0.01 for images, else 0.
        grain: smallest possible difference of two scores, such as 1 / images for an accuracy; known for images.
        seed: decides the seeds of the rounds.
        epochs: of a training; by default what fits the images. Required for a ``step``.
        workers: training runs at a time, in threads. On images, one on each of ``devices``.
        on_training: called after each training run, one at a time.
        stop: once set, no training begins.
        options: for images: fields of ``RaceOptions``, such as model, batch_size, lr, train and devices.

    Raises ValueError for arguments, SourceError where ``out`` holds something else, WriteError, and what ``objective``
    raises.
    """
    rounds = integer("rounds", rounds, 2, 1000)
    seed = integer("seed", seed, 0, (1 << 64) - 1)
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence: got {confidence!r}; accepted: between 0.5 and 1")
    seconds = None if budget is None else seconds_in("budget", budget)
    if not is_training(objective):
        from variegate.apps.search.image_race import race_images

        for name, value in (("grain", grain), ("workers", workers)):
            if value is not None:
                raise refused(name, value, "none for a source: its images and devices decide")
        rules = RaceRules(rounds, seconds, confidence, MARGIN if margin is None else margin)
        chosen = RaceOptions(rounds=rounds, seed=seed, epochs=epochs, **options)
        return race_images(objective, policies, chosen, rules, out, on_training, stop)
    if options:
        name, value = next(iter(options.items()))
        raise refused(name, value, "with a source of images as objective")
    candidates = (
        policies
        if isinstance(policies, Mapping)
        else {
            name: row.without_images()
            for name, row in candidates_of(_DEFAULT_POLICIES if policies is None else policies).items()
        }
    )
    if len(candidates) < 2:
        raise refused("policies", len(candidates), "two or more")
    rules = RaceRules(rounds, seconds, confidence, margin or 0.0, grain or 0.0)
    train = _training(objective, candidates, seed, epochs)
    described = {"format": FORMAT, "policies": list(candidates), **rules.describe(), "seed": seed}
    described |= {} if epochs is None else {"epochs": epochs}
    with ExitStack() as stack:
        journal = None if out is None else stack.enter_context(claimed(Path(out), described))
        runner = Runner(
            train, journal, integer("workers", 1 if workers is None else workers, 1, 1024), on_training, stop
        )
        return run_race(list(candidates), rules, runner)


@contextmanager
def claimed(folder: Path, described: Mapping[str, Any]) -> Iterator[Journal]:
    """The journal of the race in a folder, made and locked. Raises SourceError for a folder that holds something else,
    another race, or one that runs."""
    check_folder(folder)
    with write_errors_name(str(folder)):
        make_folder(folder)
    with locked(folder / _LOCK_NAME, str(folder)):
        check_folder(folder)
        with closing(Journal(folder / LOG_NAME, described, "a race", place=str(folder))) as journal:
            yield journal


def check_folder(folder: Path) -> None:
    """Raises SourceError for what no race can be in: known before images are decoded."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise SourceError(f"{folder}: is a file; accepted: a folder, or a name that is still free")
    others = [one.name for one in folder.glob("[!.]*") if not (folder / LOG_NAME).exists()]
    if others:
        raise SourceError(
            f"{folder}: holds files of something else ({min(others)}); choose an empty folder or a new name"
        )


def _training(objective: Any, candidates: Mapping[str, Any], seed: int, epochs: int | None) -> Train:
    """Training of a user's own. Raises ValueError for an objective that is none, and for ``epochs`` without a step."""
    step = step_of(objective)
    if (step is None) != (epochs is None):
        raise refused("epochs", epochs, "1 or more with a step, and none with objective(policy, seed)")
    if step is not None and not takes_seed(objective):
        warnings.warn("objective: its step takes no seed, so rounds may differ in nothing but chance", stacklevel=4)

    meter = Meter()

    def train(name: str, number: int) -> Outcome:
        end, drawn, policy = meter.begin(), repeat_seed(seed, number), candidates[name]
        score = objective(policy, drawn) if step is None else step(policy, epochs or 1, None, drawn)[0]
        try:
            return checked_score(score), *end()
        except ValueError as error:
            raise ValueError(f"{error}, from {name!r}") from error

    return train

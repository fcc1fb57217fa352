"""A race on labeled images: candidates, variations of the winner, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

from variegate import transforms as T
from variegate.learn.candidates import Candidate, describe_rows, variations
from variegate.learn.evaluate import Evaluation, WholeTrainings
from variegate.learn.images import BaselineAugmentation
from variegate.learn.rounds import FORMAT, OnRound, RaceRules, claimed, run_race
from variegate.learn.run import ORIGINALS_NAME, digest_of, digests, write_digests
from variegate.learn.standings import RaceResult
from variegate.learn.trainings import Outcome, Training, TrainingRunner, cost, write_json
from variegate.policies.whole import is_whole
from variegate.threads import computed_once

POLICY_NAME = "policy.json"
RESULT_NAME = "race.json"


@dataclass(frozen=True)
class ImageRace:
    """A race of ``rows``, trained as ``plan`` says. ``is_resized``: the images were, so their policy begins with it.

    Raises ValueError for fewer than two rows, and for two that are the same.
    """

    plan: Evaluation
    rows: dict[str, Candidate]
    rules: RaceRules
    is_resized: bool = False
    _raced: list[tuple[Any, ...]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.plan.check(list(self.rows.values()))
        if len(self.rows) < 2:
            raise ValueError(f"policies: got {len(self.rows)}; accepted: two or more")
        for row in self.rows.values():
            if (content := self._content(row)) in self._raced:
                other = list(self.rows)[self._raced.index(content)]
                raise ValueError(f"policies: got {row.name!r}, which is the same as {other!r}; accepted: each once")
            self._raced.append(content)
        rules = replace(self.rules, grain=1 / self.plan.subsets.scored, is_share=True, variations=self._variations)
        object.__setattr__(self, "rules", rules)

    @computed_once
    def baseline(self) -> BaselineAugmentation:
        return self.plan.baseline(self.plan.subsets.images)

    @computed_once
    def images(self) -> dict[str, str]:
        """Digests of the images, by their names."""
        return digests(self.plan.subsets.images)

    def run(
        self,
        out: Path | None,
        on_training: Callable[[Training], object] | None = None,
        on_round: OnRound | None = None,
        stop: Event | None = None,
    ) -> RaceResult:
        """Run or resume it. Unless ``stop`` was set, the result is written to ``out``.

        Raises SourceError for a folder with anything else, WriteError, and what training raises.
        """
        with ExitStack() as stack:
            journal = None
            if out is not None:
                journal = stack.enter_context(claimed(out, self._described))
                if not (out / ORIGINALS_NAME).exists():
                    write_digests(out, self.images)
            trainings = stack.enter_context(WholeTrainings(self.plan))

            def train(name: str, number: int) -> Outcome | None:
                return trainings.train(self.rows[name], number, runner.is_over)

            runner = TrainingRunner(train, journal, len(self.plan.devices), on_training, stop, self.rules.budget)
            result = run_race(list(self.rows), self.rules, runner, on_round)
            if out is not None and result.ending != "interrupted":
                if result.is_decided:
                    write_json(out / POLICY_NAME, self.policy(result.winner).to_dict())
                standings = [one._asdict() for one in result.standings]
                settings = {**self._described, "rounds": self.rules.rounds}
                described = {"settings": settings, **asdict(result), "standings": standings}
                write_json(out / RESULT_NAME, {**described, "cost": self.cost(result)})
        return result

    def cost(self, result: RaceResult) -> str:
        """Of all trainings, in words."""
        return cost(result.trainings, result.seconds)

    def policy(self, name: str) -> T.Transform:
        """A row as one transform, with its crop, flip and cutout: training adds nothing to it."""
        row = self.rows[name]
        size = self.baseline.size
        around = row.around(self.baseline)
        policy = row.loaded(self.plan.recipe.epochs)
        steps: list[T.Transform] = [T.Resize(size)] if self.is_resized else []
        steps += [] if policy is None else [policy]
        if not is_whole(policy):
            flip = T.RandomHorizontalFlip(0.5 if around.flip else 0.0)
            steps += [T.RandomCrop(size, padding=around.padding), flip]
            steps += [T.Cutout(around.cutout, fill=around.fill)] if around.cutout else []
        return T.Compose(steps)

    def _content(self, row: Candidate) -> tuple[Any, ...]:
        around = row.around(self.baseline)
        policy = row.loaded()
        parts = None if is_whole(policy) else (around.padding, around.flip, around.cutout)
        return policy, row.is_adaptive, parts

    def _variations(self, name: str) -> list[str]:
        found = []
        for row in variations(self.rows[name], self.baseline):
            if (content := self._content(row)) not in self._raced:
                self._raced.append(content)
                self.rows[row.name] = row
                found.append(row.name)
        return found

    @computed_once
    def _described(self) -> dict[str, Any]:
        named = {"format": FORMAT, **describe_rows(list(self.rows.values())), **self.rules.describe()}
        return {**named, **self.plan.describe(), "images": digest_of(self.images)}

"""A synchronous search as a state machine: scores in, copies and policies out. It trains nothing and reads no clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from variegate.checks import integer
from variegate.errors import PolicyError
from variegate.search.evolution import LostPopulationError, exploit, explore, is_flat
from variegate.search.history import Row
from variegate.search.policy import Numbers, fields
from variegate.search.settings import Settings

FORMAT = "variegate-population/1"


@dataclass(frozen=True)
class Copy:
    """``target`` takes over the weights that ``donor`` has, and goes on with ``policy``. No donor is a target."""

    target: int
    donor: int
    policy: Numbers


@dataclass(frozen=True)
class Step:
    """What a step came to. ``rows``: for the log. ``copies``: to be made before the next. ``is_flat``: the scores did
    not differ, so that nobody was ranked (and nobody copied, but members without a score)."""

    rows: tuple[Row, ...]
    copies: tuple[Copy, ...]
    is_flat: bool


class Population:
    """Members that all train up to ``until`` epochs, each with its of ``policies``, then ``advance`` with scores.

    From the state of ``to_dict`` a search goes on exactly as it would have. Two populations with the same settings and
    scores are equal, wherever they ran.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.step = 0
        self.policies: tuple[Numbers, ...] = (settings.space.zeros(),) * settings.size

    @property
    def epoch(self) -> int:
        """How many epochs are over."""
        return self.settings.end_of(self.step)

    @property
    def until(self) -> int:
        """Up to how many epochs the members train before the next ``advance``."""
        return self.settings.end_of(self.step + 1)

    @property
    def is_done(self) -> bool:
        return self.step == self.settings.steps

    def advance(self, scores: Sequence[float]) -> Step:
        """The members have trained up to ``until``; ``scores``: of each, more is better, NaN for one that diverged.

        After the last step nothing is copied: the policies stay what the members were scored with.

        Raises LostPopulationError where no score is finite (and leaves the population as it was), ValueError for
        another number of scores, RuntimeError where the search is over.
        """
        if self.is_done:
            raise RuntimeError(f"the search is over: all {self.settings.epochs} epochs are trained")
        if len(scores) != self.settings.size:
            raise ValueError(f"scores: got {len(scores)}; accepted: one for each of {self.settings.size} members")
        values = [float(score) if math.isfinite(score) else math.nan for score in scores]
        if all(map(math.isnan, values)):
            raise LostPopulationError(f"epoch {self.until}: none of {len(values)} members has a score (all NaN)")
        step, epoch, seed = self.step + 1, self.until, self.settings.seed
        pairs = (
            []
            if step == self.settings.steps
            else exploit(values, seed=seed, step=step, fraction=self.settings.fraction)
        )
        copies = tuple(
            Copy(target, donor, explore(self.settings.space, self.policies[donor], seed=seed, step=step, member=target))
            for target, donor in pairs
        )
        donors = dict(pairs)
        rows = tuple(
            Row(step, epoch, member, score, policy, donors.get(member))
            for member, (score, policy) in enumerate(zip(values, self.policies, strict=True))
        )
        changed = {copy.target: copy.policy for copy in copies}
        self.policies = tuple(changed.get(member, policy) for member, policy in enumerate(self.policies))
        self.step = step
        return Step(rows, copies, is_flat(values))

    def to_dict(self) -> dict[str, Any]:
        """For a checkpoint; JSON. The members' weights belong beside it."""
        return {
            "format": FORMAT,
            "settings": self.settings.to_dict(),
            "step": self.step,
            "policies": [list(policy) for policy in self.policies],
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Population:
        """Raises ValueError (PolicyError among them): for another format, values out of range, and what is missing."""
        form, settings, step, policies = fields(described, "population", ("format", "settings", "step", "policies"))
        if form != FORMAT:
            raise PolicyError("format", form, repr(FORMAT))
        population = cls(Settings.from_dict(settings))
        step = integer("step", step, 0, population.settings.steps, error=PolicyError)
        if not isinstance(policies, (list, tuple)) or len(policies) != population.settings.size:
            got = f"{len(policies)} policies" if isinstance(policies, (list, tuple)) else policies
            raise PolicyError("policies", got, f"{population.settings.size}, one per member")
        population.step = step
        checked = (population.settings.space.check(p, f"policies[{i}]") for i, p in enumerate(policies))
        population.policies = tuple(checked)
        return population

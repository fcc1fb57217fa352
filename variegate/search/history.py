"""What has happened in a search so far: a row for every member and step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from variegate.search.policy import Numbers
from variegate.search.settings import Settings


@dataclass(frozen=True)
class Row:
    """One member over one step. ``epoch``: the epochs that were over at its end. ``score``: at its end, NaN if lost.
    ``policy``: what it trained with during the step. ``copied_from``: whose weights (and policy, perturbed) it goes on
    with in the next step; None: its own."""

    step: int
    epoch: int
    member: int
    score: float
    policy: Numbers
    copied_from: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, which knows no NaN: a lost score is null."""
        score = self.score if math.isfinite(self.score) else None
        return {**asdict(self), "score": score, "policy": list(self.policy)}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Row:
        named = {one.name: described[one.name] for one in fields(cls)}
        score = math.nan if named["score"] is None else float(named["score"])
        return cls(**named | {"score": score, "policy": tuple(named["policy"])})


def best_score(rows: Sequence[Row]) -> float:
    """The highest; NaN where none is finite."""
    return max((row.score for row in rows if math.isfinite(row.score)), default=math.nan)


@dataclass(frozen=True)
class History:
    """The steps that are over: ``steps[k][m]`` is the row of member m in step k + 1. Raises ValueError for others."""

    settings: Settings
    steps: tuple[tuple[Row, ...], ...]

    def __post_init__(self) -> None:
        members = range(self.settings.size)
        for number, rows in enumerate(self.steps, start=1):
            epoch = self.settings.end_of(number)
            expected = [(number, epoch, member) for member in members]
            if number > self.settings.steps or [(row.step, row.epoch, row.member) for row in rows] != expected:
                raise ValueError(f"step {number}: got {len(rows)} rows; accepted: one per member, after epoch {epoch}")
            for row in rows:
                self.settings.space.check(row.policy, f"step {number}, member {row.member}: policy")
                if row.copied_from is not None and row.copied_from not in members:
                    where = f"step {number}, member {row.member}: copied_from"
                    raise ValueError(f"{where}: got {row.copied_from!r}; accepted: 0 to {len(members) - 1}, or null")

    @classmethod
    def of(cls, settings: Settings, rows: Sequence[Row]) -> History:
        """Rows one after another; a last step of which some are missing is left out."""
        size = settings.size
        steps = tuple(tuple(rows[i : i + size]) for i in range(0, len(rows) - size + 1, size))
        return cls(settings, steps)

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.steps for row in rows]

    @property
    def epochs(self) -> int:
        """How many epochs are over."""
        return self.settings.end_of(len(self.steps))

    @property
    def best(self) -> int:
        """The member with the highest score of the last step; of equals, the first. Raises ValueError without any."""
        scored = [row for row in self.steps[-1] if math.isfinite(row.score)] if self.steps else []
        if not scored:
            raise ValueError(f"best: got no score after {len(self.steps)} steps; accepted: a history with scores")
        return max(scored, key=lambda row: (row.score, -row.member)).member

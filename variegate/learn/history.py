"""Settings of a search, its history and log on disk, and the schedule that the best member lived through."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from variegate.checks import integer, number, refused
from variegate.io.durable import AppendOnlyFile
from variegate.io.files import StrPath
from variegate.learn.policy import Numbers, SearchSpace, values_of
from variegate.options.search import SearchOptions
from variegate.policies import Schedule, Segment

FRACTION = 0.25
_FRACTIONS = "a number over 0, up to 0.5"


@dataclass(frozen=True)
class Settings:
    """``size`` members train for ``epochs`` epochs; after every ``interval`` of them the worst copy the best.

    The defaults are the paper's for CIFAR-10. Raises ValueError.
    """

    size: int = SearchOptions.population
    space: SearchSpace = field(default_factory=SearchSpace)
    seed: int = 0
    interval: int = SearchOptions.interval
    epochs: int = 200
    fraction: float = FRACTION

    def __post_init__(self) -> None:
        for name, least in (("size", 2), ("interval", 1), ("epochs", 1)):
            object.__setattr__(self, name, integer(name, getattr(self, name), least))
        object.__setattr__(self, "seed", integer("seed", self.seed, 0, 2**64 - 1))
        if not number("fraction", self.fraction, 0, 0.5, accepted=_FRACTIONS):
            raise refused("fraction", self.fraction, _FRACTIONS)

    @property
    def steps(self) -> int:
        return -(-self.epochs // self.interval)

    def end_of(self, step: int) -> int:
        """Epochs that are over when ``step`` (from 1; 0: the beginning) is. The last may be a shorter one."""
        return min(step * self.interval, self.epochs)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "space": self.space.to_dict()}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Settings:
        """Raises ValueError (PolicyError among them), also where something is missing."""
        names = ("size", "seed", "interval", "epochs", "fraction")
        space, *numbers = values_of(described, "settings", ("space", *names))
        return cls(space=SearchSpace.from_dict(space), **dict(zip(names, numbers, strict=True)))


@dataclass(frozen=True)
class Row:
    """A log row: one member over one step. ``epoch``: the epochs that were over at its end. ``score``: at its end, NaN
    if lost. ``policy``: the policy during the step. ``copied_from``: the member whose weights (and perturbed policy) it
    continues with in the next step; None: its own."""

    step: int
    epoch: int
    member: int
    score: float
    policy: Numbers
    copied_from: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON fields; NaN, a lost score, is null."""
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
        for step, rows in enumerate(self.steps, start=1):
            epoch = self.settings.end_of(step)
            expected = [(step, epoch, member) for member in members]
            if step > self.settings.steps or [(row.step, row.epoch, row.member) for row in rows] != expected:
                raise ValueError(f"step {step}: got {len(rows)} rows; accepted: one per member, after epoch {epoch}")
            for row in rows:
                self.settings.space.check(row.policy, f"step {step}, member {row.member}: policy")
                if row.copied_from is not None and row.copied_from not in members:
                    where = f"step {step}, member {row.member}: copied_from"
                    raise ValueError(f"{where}: got {row.copied_from!r}; accepted: 0 to {len(members) - 1}, or null")

    @classmethod
    def of(cls, settings: Settings, rows: Sequence[Row]) -> History:
        """Group consecutive rows into steps; an incomplete last step is dropped."""
        size = settings.size
        steps = tuple(tuple(rows[i : i + size]) for i in range(0, len(rows) - size + 1, size))
        return cls(settings, steps)

    @property
    def rows(self) -> list[Row]:
        return [row for rows in self.steps for row in rows]

    @property
    def epochs(self) -> int:
        """The number of epochs that are over."""
        return self.settings.end_of(len(self.steps))

    @property
    def best(self) -> int:
        """The member with the highest score of the last step; of equals, the first. Raises ValueError without a
        score."""
        scored = [row for row in self.steps[-1] if math.isfinite(row.score)] if self.steps else []
        if not scored:
            raise ValueError(f"best: got no score after {len(self.steps)} steps; accepted: a history with scores")
        return max(scored, key=lambda row: (row.score, -row.member)).member


FORMAT = "variegate-population-log/1"


class LogError(ValueError):
    """A file that is no log of this search; the line says which, and why."""


def read_log(path: StrPath) -> History:
    """Read a log's complete steps; a torn last line, and a last step with missing members, are dropped.

    Raises LogError for other files, and for damage before the end; OSError where it cannot be read.
    """
    lines = Path(path).read_bytes().split(b"\n")[:-1]  # The text after the last newline is torn or empty.
    try:
        described = json.loads(lines[0])
        if described.pop("format") != FORMAT:
            raise ValueError
        settings = Settings.from_dict(described)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise LogError(f"{path}: line 1: accepted: the settings of a search, in format {FORMAT}") from error
    rows = []
    for place, line in enumerate(lines[1:], start=2):
        try:
            rows.append(Row.from_dict(json.loads(line)))
        except (ValueError, LookupError, TypeError) as error:
            accepted = "step, epoch, member, score, policy and copied_from of one member"
            raise LogError(f"{path}: line {place}: got {line[:80]!r}; accepted: {accepted}") from error
    try:
        return History.of(settings, rows)
    except ValueError as error:
        raise LogError(f"{path}: {error}") from error


class PopulationLog:
    """The log of a running search. Usable as a context manager.

    A new file gets the settings. The first ``steps`` steps of an existing log of this search, checked by ``read_log``,
    are kept; later lines are cut off. Raises WriteError (``append`` too).
    """

    def __init__(self, path: StrPath, settings: Settings, steps: int = 0) -> None:
        header = _line({"format": FORMAT, **settings.to_dict()})
        end = 0
        if steps:
            lines = Path(path).read_bytes().split(b"\n")[: 1 + steps * settings.size]
            end = sum(len(line) + 1 for line in lines)
        self._file = AppendOnlyFile(path, str(path), end, header)

    def append(self, rows: Sequence[Row]) -> None:
        """A step, as ``Population.advance`` gives it; it lasts when this returns."""
        self._file.append(b"".join(_line(row.to_dict()) for row in rows))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> PopulationLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(described: dict[str, Any]) -> bytes:
    return json.dumps(described, allow_nan=False, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True)
class LineageSpan:
    """Epochs ``start`` to ``end - 1``, in which ``member`` trained with ``policy``, and copied nobody."""

    member: int
    start: int
    end: int
    policy: Numbers


def lineage(history: History, member: int | None = None) -> list[LineageSpan]:
    """Segments from epoch 0 to the last weights of ``member`` (None: the best), without gaps. Raises ValueError for
    others."""
    path = members_of(history, member)
    spans: list[LineageSpan] = []
    for rows, current in zip(history.steps, path, strict=True):
        row = rows[current]
        start = spans[-1].end if spans else 0
        if spans and spans[-1].member == current and history.steps[row.step - 2][current].copied_from is None:
            spans[-1] = replace(spans[-1], end=row.epoch)
        else:
            spans.append(LineageSpan(current, start, row.epoch, row.policy))
    return spans


def members_of(history: History, member: int | None = None) -> list[int]:
    """For every step, the ancestor at that time of ``member`` (None: the best)."""
    current = history.best if member is None else member
    if not history.steps or not 0 <= current < history.settings.size:
        got = f"{member!r} of a history of {len(history.steps)} steps"
        raise ValueError(f"member: got {got}; accepted: 0 to {history.settings.size - 1} after at least one step")
    path = [current]
    for rows in reversed(history.steps[:-1]):
        donor = rows[current].copied_from
        current = current if donor is None else donor
        path.append(current)
    return path[::-1]


def schedule_of(history: History, member: int | None = None, source: str = "") -> Schedule:
    """The schedule that ``member`` (None: the best) has lived through, as long as the history; see ``lineage``."""
    return schedule_of_spans(lineage(history, member), history.settings.space, source)


def schedule_of_spans(spans: Sequence[LineageSpan], space: SearchSpace, source: str = "") -> Schedule:
    """Epochs with equal policies, one after another, are one segment (a perturbation may change nothing)."""
    segments: list[Segment] = []
    for span in spans:
        segment = Segment(span.end - span.start, space.from_numbers(span.policy))
        if segments and segments[-1].policy == segment.policy:
            segments[-1] = replace(segment, epochs=segments[-1].epochs + segment.epochs)
        else:
            segments.append(segment)
    return Schedule(tuple(segments), space=space.magnitudes, source=source, fill=space.fill)

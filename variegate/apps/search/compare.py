"""Comparison of trainings with several policies: means, and differences with intervals that hold what they promise.

Every repeat trains with every policy on the same images, from the same weights, in the same order. So policies are
compared by their differences within a repeat, from which all that a repeat has in common falls out.

The question is whether a policy of one's own, learnt or written, is better than *all* that can be had without a search,
hence than the best of those, and which is the best is itself only known from the same trainings. Of the difference to
the best, whichever it truly is, the interval goes from the lowest lower end of the t-intervals of the differences to
each rival (who is better than the best is better than each; that needs no correction) to the lowest upper end of
t-intervals that hold for all rivals at once (Bonferroni). With a single rival it is the plain t-interval.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

CONFIDENCE = 0.95
_HALVINGS = 80
_SUFFIXES = (".json", ".yaml", ".yml")

Accuracies = Mapping[str, Sequence[float]]


class Trial(NamedTuple):
    """One training. ``accuracy``: NaN where it diverged."""

    policy: str
    repeat: int
    accuracy: float
    seconds: float


class Summary(NamedTuple):
    """Of a policy. ``spread``: the standard deviation of the accuracies; NaN of a single one."""

    policy: str
    accuracies: tuple[float, ...]
    mean: float
    spread: float
    seconds: float  # of a training, on average


class Difference(NamedTuple):
    """Difference of a policy's accuracy to that of the best of ``rivals``, as shares: 0.01 is a percentage point.

    ``to``: the rival with the highest mean; ``each``: the differences to it by repeat; ``low``, ``high``: the interval
    of the difference to the truly best rival; NaN of a single repeat.
    """

    to: str
    rivals: tuple[str, ...]
    each: tuple[float, ...]
    mean: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def shown(self) -> str | None:
        """ "better" or "worse" where the interval leaves out 0, else None."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else None


@dataclass(frozen=True)
class Comparison:
    """Summaries of the repeats in which every policy has trained, and differences to ``reference``.

    ``free``: policies that need no search; ``own``: files. ``reference``: the free policy with the highest mean, or the
    highest of all. ``judged``: policies whose intervals hold together.
    """

    summaries: list[Summary]
    repeats: int
    free: tuple[str, ...]
    own: tuple[str, ...]
    reference: str | None
    differences: dict[str, Difference]
    judged: tuple[str, ...]
    grain: float


def compare(trials: Sequence[Trial], policies: Sequence[str], scored: int) -> Comparison:
    """``policies``: all that were to be trained with; ``scored``: the number of images that score a training."""
    by_repeat: dict[int, set[str]] = {}
    for trial in trials:
        by_repeat.setdefault(trial.repeat, set()).add(trial.policy)
    whole = {repeat for repeat, names in by_repeat.items() if names >= set(policies)}
    found = summarize([trial for trial in trials if trial.repeat in whole] or trials)
    titles = [one.policy for one in found]
    names = list(dict.fromkeys(trial.policy for trial in trials))
    own = tuple(title for title, name in zip(titles, names, strict=True) if is_own(name))
    free = tuple(title for title in titles if title not in own)
    if not whole or len(found) < 2:
        return Comparison(found, len(whole), free, own, None, {}, (), 1 / scored)
    accuracies = {one.policy: one.accuracies for one in found}
    means = {one.policy: one.mean for one in found}
    group = free if free and own else tuple(titles)
    reference = max(group, key=lambda title: means[title])
    judged = own if free and own else (reference,)
    # Several answers: together they err no more often than one. To call the highest of n the best is to have compared
    # it with n - 1.
    answers = len(own) if free and own else len(group) - 1
    differences = {}
    for title in titles:
        rivals = tuple(rival for rival in group if rival != title)
        if rivals:
            error = (1 - CONFIDENCE) / (answers if title in judged else 1)
            differences[title] = lead(accuracies, title, rivals, error, 1 / scored)
    return Comparison(found, len(whole), free, own, reference, differences, judged, 1 / scored)


def lead(accuracies: Accuracies, policy: str, rivals: Sequence[str], error: float, grain: float) -> Difference:
    """Difference of a policy to the best of its rivals, by an interval that is wrong with probability ``error`` at
    most."""
    pairs = [[a - b for a, b in zip(accuracies[policy], accuracies[rival], strict=True)] for rival in rivals]
    low = min(_end(each, error / 2, grain, -1) for each in pairs)
    high = min(_end(each, error / 2 / len(rivals), grain, 1) for each in pairs)
    place = min(range(len(rivals)), key=lambda n: statistics.fmean(pairs[n]))
    each = tuple(pairs[place])
    return Difference(rivals[place], tuple(rivals), each, statistics.fmean(each), low, high, 1 - error)


def spread_of(each: Sequence[float], grain: float) -> float:
    """Standard deviation of differences; where all are equal, of repeats of which one differs by one image."""
    is_flat = max(each) - min(each) < grain / 2
    return grain / math.sqrt(len(each)) if is_flat else statistics.stdev(each)


def _end(each: Sequence[float], error: float, grain: float, side: int) -> float:
    """One end of the t-interval of the mean difference, which is beyond it with this probability."""
    if len(each) < 2:
        return math.nan
    width = quantile(1 - error, len(each) - 1) * spread_of(each, grain) / math.sqrt(len(each))
    # No two accuracies differ by more than all.
    return min(max(statistics.fmean(each) + side * width, -1.0), 1.0)


def is_own(policy: str) -> bool:
    """A file: what somebody has learnt or written. Names stand for what needs no search of one's own."""
    return policy.lower().endswith(_SUFFIXES)


def summarize(trials: Sequence[Trial]) -> list[Summary]:
    """Summaries in the order of the policies. Diverged trainings count as 0; files go by their names if these are
    unique."""
    names = list(dict.fromkeys(trial.policy for trial in trials))
    short = [short_name(name) for name in names]
    unique = [one if short.count(one) == 1 else name for name, one in zip(names, short, strict=True)]
    return [_summary(s, [t for t in trials if t.policy == name]) for name, s in zip(names, unique, strict=True)]


def _summary(title: str, trials: Sequence[Trial]) -> Summary:
    ordered = sorted(trials, key=lambda trial: trial.repeat)
    accuracies = tuple(0.0 if math.isnan(trial.accuracy) else trial.accuracy for trial in ordered)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else math.nan
    seconds = statistics.fmean(trial.seconds for trial in trials)
    return Summary(title, accuracies, statistics.fmean(accuracies), spread, seconds)


def short_name(name: str) -> str:
    """A policy's name in tables: of a file its own, without folders."""
    return Path(name).name if is_own(name) else name


def cumulative(t: float, freedom: int) -> float:
    """The distribution of Student's t (Abramowitz and Stegun 1972, 26.7.3 and 26.7.4). ``freedom``: 1 or more."""
    return _at(math.atan(t / math.sqrt(freedom)), freedom)


@functools.cache
def quantile(probability: float, freedom: int) -> float:
    """The value that is not exceeded with this ``probability`` (over 0, below 1). Raises ValueError."""
    if freedom < 1 or not 0 < probability < 1:
        raise ValueError(f"quantile: got {probability!r}, {freedom!r}; accepted: over 0 and below 1; 1 or more")
    if probability == 0.5:
        return 0.0
    # By the angle, which is bounded where t is not.
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _at(angle: float, freedom: int) -> float:
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom % 2:
        term, total = sine * cosine, 0.0
        for k in range(1, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = 2 / math.pi * (angle + total)
    else:
        term, total = sine, 0.0
        for k in range(0, freedom - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        within = total
    return 0.5 + within / 2

"""Comparison of policies by repeated training: means, and differences with intervals of proven coverage.

Every repeat trains with every policy on the same images, from the same weights, in the same order. So policies are
compared by their differences within a repeat, from which all that a repeat has in common falls out.

The question is whether a custom policy, learned or written, is better than *all* policies without a search. It must be
better than the best of them, which is known only from the same training runs. For the difference to the best rival, the
interval starts at the lowest lower end of the t-intervals of the differences to each rival. A policy better than the
best is better than each, so that no correction is needed. It ends at the lowest upper end of t-intervals that hold for
all rivals at once (Bonferroni). With a single rival it is the plain t-interval.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from variegate.learn.events import Training

CONFIDENCE = 0.95
_HALVINGS = 80

Accuracies = Mapping[str, Sequence[float]]


class Summary(NamedTuple):
    """Scores of a policy. ``spread``: the standard deviation of the accuracies; NaN of a single one."""

    policy: str
    accuracies: tuple[float, ...]
    mean: float
    spread: float
    seconds: float  # per training, on average


class Difference(NamedTuple):
    """Difference of a policy's accuracy to that of the best of ``rivals``, as shares: 0.01 is a percentage point.

    ``to``: the rival with the highest mean; ``each``: the differences to it by repeat; ``low``, ``high``: the interval
    of the difference to the truly best rival, which of a single one is the plain t-interval; NaN of a single repeat.
    """

    to: str
    rivals: tuple[str, ...]
    each: tuple[float, ...]
    mean: float
    low: float
    high: float
    confidence: float = CONFIDENCE

    @property
    def is_identical(self) -> bool:
        """True where all of several repeats have equal results: the same policy under another name, as a rule."""
        return len(self.each) > 1 and not any(self.each)

    @property
    def shown(self) -> str | None:
        """ "better" or "worse" if the interval excludes 0, else None."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else None


@dataclass(frozen=True)
class Comparison:
    """Summaries of the repeats in which every policy has trained, and ``differences`` to ``reference``, one by one.

    ``free``: policies that need no search; ``own``: files. ``reference``: the free policy with the highest mean, or the
    highest of all. ``leads``: of policies in question to the best of their rivals, whose intervals hold together.
    """

    summaries: list[Summary]
    repeats: int
    free: tuple[str, ...]
    own: tuple[str, ...]
    reference: str | None
    differences: dict[str, Difference]
    leads: dict[str, Difference]
    grain: float


def compare(trials: Sequence[Training], policies: Sequence[str], scored: int) -> Comparison:
    """``policies``: all planned policies; ``scored``: the number of images that score a training."""
    trained = {(trial.round, trial.candidate) for trial in trials}
    whole = {repeat for repeat, _ in trained if all((repeat, name) in trained for name in policies)}
    found = summarize([trial for trial in trials if trial.round in whole] or trials)
    titles = [one.policy for one in found]
    own = tuple(filter(is_custom, titles))
    free = tuple(title for title in titles if title not in own)
    grain = 1 / scored
    if not whole or len(found) < 2:
        return Comparison(found, len(whole), free, own, None, {}, {}, grain)
    accuracies = {one.policy: one.accuracies for one in found}
    means = {one.policy: one.mean for one in found}
    group = free if free and own else tuple(titles)
    reference = max(group, key=lambda title: means[title])
    judged = own if free and own else (reference,)
    # Several answers: together they err no more often than one. To call the highest of n the best is to have compared
    # it with n - 1.
    answers = len(own) if free and own else len(group) - 1
    error = (1 - CONFIDENCE) / answers
    leads = {one: lead(accuracies, one, [other for other in group if other != one], error, grain) for one in judged}
    others = [title for title in titles if title != reference]
    differences = {one: lead(accuracies, one, [reference], 1 - CONFIDENCE, grain) for one in others}
    return Comparison(found, len(whole), free, own, reference, differences, leads, grain)


def lead(accuracies: Accuracies, policy: str, rivals: Sequence[str], error: float, grain: float) -> Difference:
    """Difference to the best of the rivals, by an interval that is wrong with probability ``error`` at most."""
    pairs = [[a - b for a, b in zip(accuracies[policy], accuracies[rival], strict=True)] for rival in rivals]
    low = min(_end(each, error / 2, grain, -1) for each in pairs)
    high = min(_end(each, error / 2 / len(rivals), grain, 1) for each in pairs)
    place = min(range(len(rivals)), key=lambda n: statistics.fmean(pairs[n]))
    each = tuple(pairs[place])
    return Difference(rivals[place], tuple(rivals), each, statistics.fmean(each), low, high, 1 - error)


def spread_of(each: Sequence[float], grain: float) -> float:
    """Standard deviation of differences; if all are equal, of repeats in which one differs by one image."""
    is_flat = max(each) - min(each) < grain / 2
    return grain / math.sqrt(len(each)) if is_flat else statistics.stdev(each)


def _end(each: Sequence[float], error: float, grain: float, side: int) -> float:
    """One end of the t-interval of the mean difference, exceeded with this probability."""
    if len(each) < 2:
        return math.nan
    width = quantile(1 - error, len(each) - 1) * spread_of(each, grain) / math.sqrt(len(each))
    # No two accuracies differ by more than all.
    return min(max(statistics.fmean(each) + side * width, -1.0), 1.0)


def is_custom(policy: str) -> bool:
    """True for a file: a learned or written policy. Names are policies that need no search."""
    return re.search(r"\.(json|ya?ml)(\+[a-z0-9+]+)?$", policy.lower()) is not None


def summarize(trials: Sequence[Training]) -> list[Summary]:
    """Summaries in the order of the policies. Diverged training runs count as 0; files get unique names."""
    names = list(dict.fromkeys(trial.candidate for trial in trials))
    short = [short_name(name) for name in names]
    unique = [one if short.count(one) == 1 else name for name, one in zip(names, short, strict=True)]
    found = []
    for name, title in zip(names, unique, strict=True):
        own = sorted((trial for trial in trials if trial.candidate == name), key=lambda trial: trial.round)
        accuracies = tuple(0.0 if math.isnan(trial.score) else trial.score for trial in own)
        spread = statistics.stdev(accuracies) if len(accuracies) > 1 else math.nan
        seconds = statistics.fmean(trial.seconds for trial in own)
        found.append(Summary(title, accuracies, statistics.fmean(accuracies), spread, seconds))
    return found


def short_name(name: str) -> str:
    """A policy's name in tables: of a file its own, without folders."""
    return Path(name).name if is_custom(name) else name


@functools.cache
def quantile(probability: float, freedom: int) -> float:
    """The value that Student's t exceeds with 1 - ``probability`` (Abramowitz and Stegun 1972, 26.7.3 and 26.7.4)."""
    # By the angle, which is bounded where t is not.
    low = -math.pi / 2
    high = math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _at(angle: float, freedom: int) -> float:
    """The distribution of t, by the arc tangent of t / sqrt(freedom)."""
    cosine = math.cos(angle)
    sine = math.sin(angle)
    is_odd = freedom % 2
    total = 0.0
    term = sine * cosine if is_odd else sine
    for k in range(is_odd, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    within = 2 / math.pi * (angle + total) if is_odd else total
    return 0.5 + within / 2


# Power: probability that a visible difference is detected.
_POWER = 0.8
_MOST_REPEATS = 1000


def verdicts(comparison: Comparison) -> list[str]:
    """A sentence or two for every policy in question; none where a single policy was trained with."""
    if len(comparison.summaries) < 2:
        return []
    if comparison.repeats < 2:
        whole = "no whole repeat is" if comparison.repeats == 0 else "a single repeat is"
        return [f"No verdict: {whole} complete; differences may be chance. Two or more give intervals (--repeats 5)."]
    return [_verdict(name, comparison) for name in comparison.leads]


def _verdict(name: str, comparison: Comparison) -> str:
    found = comparison.leads[name]
    if found.is_identical:
        return f"{name} and {found.to} gave identical results in all {comparison.repeats} repeats."
    kind = "policies that need no search" if name in comparison.own and comparison.free else "others"
    number = len(found.rivals)
    rival = f"{found.to}, the highest of the {number} {kind}" if number > 1 else found.to
    size = points(abs(found.mean), found)
    if found.shown is not None:
        comma = "," if number > 1 else ""
        return f"{name} is {found.shown} than {rival}{comma} by {size} points, {_interval(found, comparison)}."
    side = "above" if found.mean >= 0 else "below"
    takes = _what_it_takes(found, comparison)
    return f"No difference shown: {name} is {size} points {side} {rival}, {_interval(found, comparison)}. {takes}"


def points(share: float, found: Difference) -> str:
    """Format with a second digit if the interval is narrower than a point."""
    return f"{100 * share:.{2 if found.high - found.low < 0.01 else 1}f}"


def _interval(found: Difference, comparison: Comparison) -> str:
    ends = f"{points(found.low, found)} to {points(found.high, found)}"
    return f"{100 * found.confidence:.3g} % interval {ends}, {comparison.repeats} repeats"


def _what_it_takes(found: Difference, comparison: Comparison) -> str:
    spread = spread_of(found.each, comparison.grain)
    repeats = comparison.repeats
    seen = visible_difference(spread, repeats)
    now = f"{repeats} repeats show a difference of about {points(seen, found)} points"
    if float(points(abs(found.mean), found)) == 0:
        return f"{now}; more repeats are needed to see a smaller one."
    needed = repeats_needed(abs(found.mean), spread)
    many = f"about {needed:,}" if needed is not None else f"more than {_MOST_REPEATS:,}"
    return f"{now}; to see one of {points(abs(found.mean), found)} points takes {many}."


def visible_difference(spread: float, repeats: int) -> float:
    """The true difference that this many repeats detect four times out of five, at this spread of differences."""
    error = 1 - CONFIDENCE
    return (quantile(1 - error / 2, repeats - 1) + quantile(_POWER, repeats - 1)) * spread / math.sqrt(repeats)


def repeats_needed(difference: float, spread: float) -> int | None:
    """The least number of repeats that show this difference four times out of five; None for more than 1,000."""
    repeats = range(2, _MOST_REPEATS + 1)
    place = bisect.bisect_left(repeats, True, key=lambda number: visible_difference(spread, number) <= difference)
    return repeats[place] if place < len(repeats) else None


def describe(comparison: Comparison) -> dict[str, Any]:
    """The comparison for a file: every policy, and the difference of every pair with its plain 95 % interval."""
    accuracies = {one.policy: one.accuracies for one in comparison.summaries}
    pairs = [
        {"policy": one, "is_identical": found.is_identical, "shown": found.shown, **found._asdict()}
        for one, other in itertools.permutations(accuracies, 2)
        if comparison.repeats
        for found in (lead(accuracies, one, [other], 1 - CONFIDENCE, comparison.grain),)
    ]
    policies = [{**one._asdict(), "needs_search": one.policy in comparison.own} for one in comparison.summaries]
    said = {"reference": comparison.reference, "repeats": comparison.repeats, "verdicts": verdicts(comparison)}
    return {"policies": policies, "pairs": pairs, **said}


def cells(one: Summary, comparison: Comparison) -> tuple[str, str, str]:
    """A row's accuracy, spread and difference with its interval, as text; empty if missing."""
    spread = "" if math.isnan(one.spread) else f"{100 * one.spread:.2f}"
    found = comparison.differences.get(one.policy)
    if found is None:
        difference = ""
    elif found.is_identical:
        difference = "identical"
    else:
        ends = "" if math.isnan(found.low) else f" ({100 * found.low:+.2f} to {100 * found.high:+.2f})"
        difference = f"{100 * found.mean:+.2f}{ends}"
    return f"{one.mean:.2%}", spread, difference

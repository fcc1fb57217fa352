"""What is said about differences: intervals that hold what they promise, by simulation, and words that follow them."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from variegate.learn.events import Training
from variegate.learn.verdict import (
    Comparison,
    cells,
    compare,
    lead,
    quantile,
    repeats_needed,
    spread_of,
    summarize,
    verdicts,
    visible_difference,
)

FINE = 1e-6


def comparison(scored: int = 10_000, **accuracies: Sequence[float]) -> Comparison:
    """``own``: stands for a file."""
    names = {name: f"{name}.json" if name.startswith("own") else name.replace("_", "-") for name in accuracies}
    trials = [
        Training(names[name], repeat, value, 1.0)
        for name, values in accuracies.items()
        for repeat, value in enumerate(values)
    ]
    return compare(trials, list(names.values()), scored)


def test_quantiles_are_those_of_the_tables() -> None:
    table = {1: 12.7062047, 2: 4.30265273, 3: 3.18244631, 4: 2.77644511, 9: 2.26215716, 29: 2.04522964, 100: 1.98397152}
    for freedom, value in table.items():
        assert quantile(0.975, freedom) == pytest.approx(value, abs=1e-6)
        assert quantile(0.025, freedom) == pytest.approx(-value, abs=1e-6)
    assert quantile(0.995, 4) == pytest.approx(4.60409487, abs=1e-6)
    assert quantile(0.8, 1) == pytest.approx(1.37638192, abs=1e-6)
    assert quantile(0.975, 100_000) == pytest.approx(1.959988, abs=1e-5)


def drawn(
    rng: np.random.Generator, means: Sequence[float], repeats: int, spread: float = 0.01
) -> dict[str, list[float]]:
    """Accuracies that share what a repeat has in common, five times what is each policy's own."""
    common = rng.normal(0, 5 * spread, repeats)
    values = np.asarray(means)[:, None] + common + rng.normal(0, spread, (len(means), repeats))
    return {str(n): row.tolist() for n, row in enumerate(values)}


def missed(
    times: int, means: Sequence[float], repeats: int, interval: Callable[..., tuple[float, float]]
) -> list[float]:
    """How often the difference of the first policy to the best of the others is below, and above, its interval."""
    rng = np.random.default_rng(7)
    truth = means[0] - max(means[1:])
    below = above = 0
    for _ in range(times):
        low, high = interval(drawn(rng, means, repeats))
        below += truth < low
        above += truth > high
    return [below / times, above / times]


def ours(accuracies: dict[str, list[float]]) -> tuple[float, float]:
    found = lead(accuracies, "0", list(accuracies)[1:], 0.05, FINE)
    return found.low, found.high


@pytest.mark.parametrize("repeats", [2, 3, 5, 12])
def test_the_interval_of_one_difference_holds_in_95_of_100(repeats: int) -> None:
    misses = missed(4000, [0.9, 0.88], repeats, ours)
    # Four standard deviations of a share of 4,000 around 0.025.
    assert misses == pytest.approx([0.025, 0.025], abs=0.01)


@pytest.mark.parametrize("means", [[0.9] * 5, [0.9, 0.9, 0.895, 0.89, 0.7], [0.88, 0.9, 0.9, 0.9, 0.9]])
def test_choosing_the_best_rival_by_the_same_trainings_costs_no_confidence(means: list[float]) -> None:
    assert max(missed(3000, means, 5, ours)) < 0.025 + 4 * math.sqrt(0.025 * 0.975 / 3000)


def test_equal_differences_are_not_certainty() -> None:
    assert spread_of([0.25, 0.25], 0.25) == pytest.approx(0.25 / math.sqrt(2))
    assert spread_of([0.25, 0.5], 0.25) == statistics.stdev([0.25, 0.5])
    found = comparison(scored=4, none=[0.5, 0.5], own=[0.75, 0.75]).differences["own.json"]
    assert found.low < 0 < found.mean == 0.25


@pytest.mark.parametrize("times", [500, pytest.param(1500, marks=pytest.mark.slow)])
def test_verdicts_about_equals_are_wrong_in_no_more_than_5_of_100(times: int) -> None:
    rng = random.Random(5)
    free = ("none", "randaugment", "augmix")
    for names in (("own_a", *free), free, ("own_a", "own_b", "none")):
        wrong = 0
        for _ in range(times):
            found = comparison(10**9, **{name: [rng.gauss(0.9, 0.01) for _ in range(5)] for name in names})
            wrong += any(one.shown for one in found.leads.values())
        assert wrong / times < 0.05 + 4 * math.sqrt(0.05 * 0.95 / times), names


def test_a_learnt_policy_against_those_that_need_no_search() -> None:
    free = {"none": [0.80, 0.81, 0.79, 0.80, 0.80], "trivialaugment": [0.90, 0.92, 0.91, 0.93, 0.89]}
    better = comparison(**free, own=[0.915, 0.93, 0.921, 0.945, 0.903])
    assert (better.reference, list(better.leads)) == ("trivialaugment", ["own.json"])
    found = better.leads["own.json"]
    each = [0.015, 0.01, 0.011, 0.015, 0.013]
    assert found.each == pytest.approx(each)
    width = 2.77644511 * statistics.stdev(each) / math.sqrt(5)
    assert (found.mean, found.low) == (pytest.approx(0.0128), pytest.approx(0.0128 - width))
    assert found.high == pytest.approx(0.0128 + quantile(1 - 0.025 / 2, 4) / 2.77644511 * width)
    assert verdicts(better) == [
        "own.json is better than trivialaugment, the highest of the 2 policies that need no search, by 1.28 points, "
        "95 % interval 1.00 to 1.64, 5 repeats."
    ]
    worse = comparison(none=[0.80, 0.81, 0.79], trivialaugment=[0.90, 0.91, 0.92], own=[0.70, 0.72, 0.71])
    assert verdicts(worse) == [
        "own.json is worse than trivialaugment, the highest of the 2 policies that need no search, by 20.0 points, "
        "95 % interval -22.5 to -16.4, 3 repeats."
    ]
    alone = comparison(trivialaugment=free["trivialaugment"], own=[0.93, 0.93, 0.935, 0.955, 0.92])
    assert verdicts(alone)[0].startswith("own.json is better than trivialaugment by 2.4 points, 95 % interval 1.")


def test_what_is_not_shown_is_said_with_what_it_would_take() -> None:
    found = comparison(
        none=[0.80, 0.80, 0.80, 0.80, 0.80], augmix=[0.90, 0.92, 0.91, 0.90, 0.90], own=[0.91, 0.90, 0.93, 0.91, 0.90]
    )
    assert verdicts(found) == [
        "No difference shown: own.json is 0.4 points above augmix, the highest of the 2 policies that need no search, "
        "95 % interval -1.5 to 2.8, 5 repeats. 5 repeats show a difference of about 2.5 points; to see one of 0.4 "
        "points takes about 115."
    ]
    equal = comparison(none=[0.9, 0.91, 0.92], own=[0.91, 0.9, 0.92])
    assert verdicts(equal)[0].endswith(
        "3 repeats show a difference of about 3.1 points; more repeats are needed to see a smaller one."
    )


def test_the_repeats_that_it_takes_are_enough_four_times_in_five() -> None:
    needed = repeats_needed(0.01, 0.012)
    assert needed == 14
    assert visible_difference(0.012, needed) <= 0.01 < visible_difference(0.012, needed - 1)
    rng = np.random.default_rng(0)
    seen = [
        lead({"0": each.tolist(), "1": [0.0] * needed}, "0", ["1"], 0.05, FINE).low > 0
        for each in rng.normal(0.01, 0.012, (2000, needed))
    ]
    assert statistics.fmean(seen) == pytest.approx(0.8, abs=0.04)
    assert repeats_needed(1e-6, 0.1) is None


def test_without_files_the_question_is_which_is_best() -> None:
    found = comparison(
        none=[0.80, 0.81, 0.79, 0.80, 0.80],
        augmix=[0.90, 0.92, 0.91, 0.9, 0.9],
        randaugment=[0.85, 0.86, 0.85, 0.84, 0.86],
    )
    assert (found.reference, list(found.leads)) == ("augmix", ["augmix"])
    # The highest of three was chosen by these trainings: held against two, the error is shared.
    assert found.leads["augmix"].confidence == pytest.approx(0.975)
    assert verdicts(found)[0].startswith(
        "augmix is better than randaugment, the highest of the 2 others, by 5.4 points, 97.5 % interval"
    )


def test_several_files_share_the_error() -> None:
    found = comparison(none=[0.8, 0.81, 0.79], own_a=[0.9, 0.91, 0.89], own_b=[0.7, 0.72, 0.75])
    assert [one.confidence for one in found.leads.values()] == pytest.approx([0.975, 0.975])
    assert len(verdicts(found)) == 2


def test_a_single_repeat_claims_nothing() -> None:
    found = comparison(none=[0.8], own=[0.9])
    difference = found.differences["own.json"]
    assert difference.mean == pytest.approx(0.1)
    assert math.isnan(difference.low)
    assert difference.shown is None
    assert verdicts(found) == [
        "No verdict: a single repeat is complete; differences may be chance. Two or more give intervals (--repeats 5)."
    ]
    assert verdicts(comparison(none=[0.8, 0.9])) == []


def test_only_whole_repeats_are_compared() -> None:
    trials = [Training(name, repeat, 0.5 + repeat / 10, 1.0) for repeat in range(3) for name in ("a", "b.json")]
    found = compare(trials[:-1], ("a", "b.json"), 100)
    assert found.repeats == 2
    assert [one.accuracies for one in found.summaries] == [(0.5, 0.6), (0.5, 0.6)]
    begun = compare(trials[:1], ("a", "b.json"), 100)
    assert (begun.repeats, begun.differences, [one.policy for one in begun.summaries]) == (0, {}, ["a"])


def test_means_and_spreads() -> None:
    trials = [
        Training("a", 0, 0.5, 1.0),
        Training("b", 0, math.nan, 2.0),
        Training("a", 1, 0.7, 3.0),
        Training("b", 1, 0.4, 2.0),
    ]
    a, b = summarize(trials)
    assert (a.mean, a.spread, a.seconds) == (pytest.approx(0.6), pytest.approx(0.1414, abs=1e-4), 2.0)
    assert (b.accuracies, b.mean) == ((0.0, 0.4), 0.2)
    assert math.isnan(summarize(trials[:1])[0].spread)
    found = compare(trials, ("a", "b"), 10)
    assert [cells(one, found) for one in found.summaries] == [
        ("60.00%", "14.14", ""),
        ("20.00%", "28.28", "-40.00 (-100.00 to +87.06)"),
    ]


def test_a_row_is_compared_with_the_policy_that_its_column_names() -> None:
    """One by one: neither the rivals nor their number widen it. The verdict is about the best of them."""
    accuracies = {"none": [0.70, 0.72, 0.71], "augmix": [0.80, 0.83, 0.82], "own": [0.81, 0.82, 0.84]}
    found = comparison(**accuracies)
    each = np.subtract(accuracies["own"], accuracies["augmix"])
    width = quantile(0.975, 2) * each.std(ddof=1) / math.sqrt(3)
    row = found.differences["own.json"]
    assert (found.reference, row.to, row.rivals) == ("augmix", "augmix", ("augmix",))
    assert (row.low, row.high) == pytest.approx((each.mean() - width, each.mean() + width))
    assert found.leads["own.json"].high > row.high
    assert "augmix" not in found.differences
    table = {one.policy: cells(one, found)[2] for one in found.summaries}
    assert table["augmix"] == ""
    assert table["own.json"] == f"{100 * row.mean:+.2f} ({100 * row.low:+.2f} to {100 * row.high:+.2f})"


def test_equal_results_in_every_repeat_are_called_identical() -> None:
    found = comparison(scored=100, none=[0.5, 0.6, 0.55], augmix=[0.7, 0.8, 0.75], own=[0.7, 0.8, 0.75])
    assert cells(found.summaries[2], found)[2] == "identical"
    assert verdicts(found) == ["own.json and augmix gave identical results in all 3 repeats."]
    assert not comparison(own=[0.5], none=[0.5]).differences["own.json"].is_identical  # one repeat may be chance
    assert not comparison(own=[0.5, 0.5], none=[0.5, 0.4]).differences["own.json"].is_identical


def test_files_with_one_name_are_told_apart() -> None:
    names = ("none", "one/schedule.json", "other/schedule.json", "one/best.json")
    shown = [one.policy for one in summarize([Training(name, 0, 0.5, 1.0) for name in names])]
    assert shown == ["none", "one/schedule.json", "other/schedule.json", "best.json"]

"""Perturbing a policy: bounds, what it depends on, and how often each outcome comes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.learn.search.searches import policies
from variegate.errors import PolicyError
from variegate.learn.policy import SearchSpace
from variegate.learn.population import SearchStream, draw, explore

SPACE = SearchSpace()
keys = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(0, 2**20))


@given(policies(SPACE), keys)
def test_stays_a_policy_and_depends_on_its_arguments_alone(numbers: tuple[int, ...], key: tuple[int, int, int]) -> None:
    seed, step, member = key
    found = explore(SPACE, numbers, seed=seed, step=step, member=member)
    assert SPACE.check(found) == found
    assert {type(number) for number in found} == {int}
    assert explore(SPACE, list(numbers), seed=seed, step=step, member=member) == found


def test_seed_step_and_member_all_matter() -> None:
    middle = (5, 5) * 30
    keys = [(seed, step, member) for seed in (0, 1, 2**63) for step in range(8) for member in range(16)]
    found = {explore(SPACE, middle, seed=a, step=b, member=c) for a, b, c in keys}
    assert len(found) == len(keys)


def outcomes(value: int, limit: int) -> dict[int, Fraction]:
    """Algorithm 2 of the paper, written out."""
    chances = dict.fromkeys(range(limit + 1), Fraction(2, 10) / (limit + 1))
    for amount in range(4):
        for moved in (max(0, value - amount), min(limit, value + amount)):
            chances[moved] += Fraction(8, 10) * Fraction(1, 4) * Fraction(1, 2)
    return chances


@pytest.mark.parametrize(("probability", "magnitude"), [(0, 0), (10, 9), (1, 8), (5, 4)])
def test_outcomes_come_as_often_as_the_paper_says(probability: int, magnitude: int) -> None:
    numbers = (probability, magnitude) * 30
    drawn = np.array([explore(SPACE, numbers, seed=11, step=1, member=m) for m in range(700)])
    for parity, (value, limit) in enumerate([(probability, 10), (magnitude, 9)]):
        columns = drawn[:, parity::2].ravel()
        for outcome, chance in outcomes(value, limit).items():
            # Of 21,000 numbers; five standard deviations.
            bound = 5 * float(chance * (1 - chance) / len(columns)) ** 0.5
            assert np.mean(columns == outcome) == pytest.approx(float(chance), abs=bound)


def test_drawn_values_are_pinned() -> None:
    """A change of these is a change of every search with a seed."""
    assert draw(SearchStream.EXPLORE, 0, 0, 0, 1).tolist() == [[3084082254, 3368025350, 538745534, 1555186922]]
    assert draw(SearchStream.EXPLOIT, 2**63, 5, 1, 1).tolist() == [[3236846048, 2017274770, 619527932, 4031697867]]
    first = explore(SPACE, SPACE.zeros(), seed=0, step=1, member=0)
    assert first == (
        *(0, 3, 2, 0, 0, 1, 4, 5, 3, 0, 0, 0, 0, 0, 1, 2, 2, 2, 0, 0, 1, 0, 10, 0, 0, 0, 0, 0, 0, 0),
        *(0, 4, 6, 2, 0, 2, 2, 1, 0, 0, 3, 0, 2, 0, 0, 0, 0, 8, 1, 0, 3, 1, 2, 0, 2, 2, 0, 0, 3, 1),
    )
    later = explore(SPACE, (5, 4) * 30, seed=7, step=12, member=3)
    assert later[:20] == (7, 1, 6, 2, 3, 3, 6, 5, 3, 3, 3, 3, 2, 7, 7, 9, 6, 3, 5, 7)


def test_foreign_numbers_are_refused() -> None:
    with pytest.raises(PolicyError, match="policy: got '59 numbers'; accepted: 60 integers"):
        explore(SPACE, (0,) * 59, seed=0, step=1, member=0)

"""The population from its first step to its last, stopped and continued anywhere."""

from __future__ import annotations

import hashlib
import json
import math

import pytest
from hypothesis import given, settings

from tests.learn.search.searches import SMALL, run, searches
from variegate.errors import PolicyError
from variegate.learn.history import History, Settings
from variegate.learn.population import LostPopulationError, Population, explore


def test_the_epochs_of_the_paper() -> None:
    population = Population(Settings(size=4, space=SMALL, epochs=200, interval=3))
    ends = []
    while not population.is_done:
        ends.append(population.until)
        population.advance([0.1, 0.2, 0.3, 0.4])
        assert population.epoch == ends[-1]
    assert ends == [*range(3, 199, 3), 200]


def test_a_search_starts_without_augmentation() -> None:
    assert Population(Settings()).policies == ((0,) * 60,) * 16


def test_a_step() -> None:
    population = Population(Settings(size=4, space=SMALL, seed=8))
    population.policies = ((1,) * 8, (2,) * 8, (3,) * 8, (4,) * 8)
    step = population.advance([0.4, math.nan, 0.3, 0.1])
    # Of four, one is replaced; the one without a score is it.
    (copy,) = step.copies
    assert (copy.target, copy.donor) == (1, 0)
    assert copy.policy == explore(SMALL, (1,) * 8, seed=8, step=1, member=1)
    assert population.policies == ((1,) * 8, copy.policy, (3,) * 8, (4,) * 8)
    assert not step.is_flat
    # What is logged is what was trained with, not what comes next.
    assert [row.policy for row in step.rows] == [(1,) * 8, (2,) * 8, (3,) * 8, (4,) * 8]
    assert [row.copied_from for row in step.rows] == [None, 0, None, None]
    assert step.rows[1].to_dict() == {
        "step": 1, "epoch": 3, "member": 1, "score": None, "policy": [2] * 8, "copied_from": 0
    }  # fmt: skip


def test_after_the_last_step_nobody_copies() -> None:
    population = Population(Settings(size=4, space=SMALL, epochs=5))
    assert population.advance([1, 2, 3, 4]).copies
    before = population.policies
    last = population.advance([1, math.nan, 3, 4])
    assert last.copies == ()
    assert {row.copied_from for row in last.rows} == {None}
    assert population.policies == before
    assert population.is_done
    with pytest.raises(RuntimeError, match="the search is over: all 5 epochs are trained"):
        population.advance([1, 2, 3, 4])


def test_scores_that_do_not_differ_are_told() -> None:
    population = Population(Settings(size=8, space=SMALL))
    step = population.advance([0.1] * 8)
    assert step.is_flat
    assert step.copies == ()


def test_a_lost_population_stays_as_it_was() -> None:
    for epochs in (3, 6):
        population = Population(Settings(size=4, space=SMALL, epochs=epochs))
        before = population.step, population.policies
        with pytest.raises(LostPopulationError, match="epoch 3: none of 4 members has a score"):
            population.advance([math.nan] * 4)
        assert (population.step, population.policies) == before


@given(searches)
@settings(max_examples=40)
def test_every_copy_is_of_the_donors_policy_perturbed(history: History) -> None:
    s = history.settings
    for rows, later in zip(history.steps[:-1], history.steps[1:], strict=True):
        for row in rows:
            policy = row.policy
            if row.copied_from is not None:
                donor = rows[row.copied_from]
                assert donor.copied_from is None
                policy = explore(s.space, donor.policy, seed=s.seed, step=row.step, member=row.member)
            assert later[row.member].policy == policy
    assert history.epochs == s.epochs


def test_a_search_is_pinned() -> None:
    """A change of this is a change of every search with a seed."""
    history = run(Settings(seed=3), lambda p: [sum(policy) + m / 100 for m, policy in enumerate(p.policies)])
    digest = hashlib.sha256(json.dumps([row.to_dict() for row in history.rows]).encode()).hexdigest()
    assert digest[:16] == "669601392fddd1f1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "size: got 1; accepted: an integer from 2 on"),
        ({"interval": 0}, "interval: got 0"),
        ({"epochs": 1.5}, "epochs: got 1.5"),
        ({"seed": -1}, r"seed: got -1; accepted: an integer from 0 to 2\*\*64 - 1"),
        ({"fraction": 0.6}, "fraction: got 0.6; accepted: a number over 0, up to 0.5"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("seed",), "settings: seed: got 'nothing'; accepted: settings with"),
        (("space",), "settings: space: got 'nothing'"),
        (("space", "copies"), "space: copies: got 'nothing'; accepted: space with operations, copies"),
    ],
)
def test_what_is_missing_is_named_and_so_is_what_is_no_mapping(path: tuple[str, ...], message: str) -> None:
    described = Settings(size=2, space=SMALL, epochs=6).to_dict()
    inner = described
    for name in path[:-1]:
        inner = inner[name]
    kept = inner.pop(path[-1])
    with pytest.raises(PolicyError, match=message):
        Settings.from_dict(described)
    wrong: tuple[object, ...] = (None, [], "x", {"x": 1})
    for other in wrong:
        inner[path[-1]] = other
        with pytest.raises(ValueError, match="accepted"):
            Settings.from_dict(described)
    inner[path[-1]] = kept
    assert Settings.from_dict(described).to_dict() == described


def test_as_many_scores_as_members() -> None:
    with pytest.raises(ValueError, match="scores: got 3; accepted: one for each of 4 members"):
        Population(Settings(size=4)).advance([1, 2, 3])

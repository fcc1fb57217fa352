"""Searches without training: scores are drawn, or follow from policies."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from variegate.learn.history import History, Row, Settings
from variegate.learn.policy import Numbers, SearchSpace
from variegate.learn.population import Population

Scores = Callable[[Population], Sequence[float]]
SMALL = SearchSpace(("Rotate", "Invert"))


def drawn(seed: int = 0, lost: float = 0.0) -> Scores:
    """Scores by chance, a share of them NaN, but never all. A function of the step."""

    def scores(population: Population) -> list[float]:
        generator = random.Random(1000 * seed + population.step)
        found = [math.nan if generator.random() < lost else generator.random() for _ in population.policies]
        return [0.5, *found[1:]] if all(map(math.isnan, found)) else found

    return scores


def run(settings: Settings, scores: Scores) -> History:
    population, rows = Population(settings), list[Row]()
    while not population.is_done:
        rows += population.advance(scores(population)).rows
    return History.of(settings, rows)


def policies(space: SearchSpace) -> st.SearchStrategy[Numbers]:
    return st.tuples(*(st.integers(0, limit) for limit in space.limits))


searches = st.builds(
    lambda size, interval, epochs, seed, fraction, lost: run(
        Settings(size, SMALL, seed, interval, epochs, fraction), drawn(seed % 100, lost)
    ),
    size=st.integers(2, 9),
    interval=st.integers(1, 4),
    epochs=st.integers(1, 20),
    seed=st.integers(0, 2**64 - 1),
    fraction=st.floats(0.05, 0.5),
    lost=st.sampled_from([0.0, 0.2]),
)

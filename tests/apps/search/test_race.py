"""A race drops what is worse, keeps the best as often as it promises, and resumes from its log."""

from __future__ import annotations

import json
import math
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from variegate.apps.search.race import LOG_NAME, race
from variegate.apps.search.standings import Standings
from variegate.apps.search.trainings import Training
from variegate.formats.base import SourceError

SKILLS = {"none": 0.60, "flip": 0.68, "flip-crop": 0.80, "ra": 0.70, "heavy": 0.45}


def noisy(skill: float, seed: int) -> float:
    """Rounds differ a lot, candidates within a round by a point of chance."""
    level = np.random.default_rng(seed).normal(0, 0.05)
    return skill + level + np.random.default_rng((seed, int(1e6 * skill))).normal(0, 0.01)


def test_the_best_wins_and_the_hopeless_train_little() -> None:
    found = race(noisy, SKILLS, rounds=12)
    assert (found.winner, found.ending) == ("flip-crop", "won")
    assert found.standings[0].dropped is None
    assert {row.candidate for row in found.standings} == set(SKILLS)
    heavy = next(row for row in found.standings if row.candidate == "heavy")
    assert heavy.rounds <= 3
    assert heavy.low < 0.35 < heavy.high
    assert found.trainings <= 20 < 12 * len(SKILLS)
    assert '"flip-crop" is the best of 5' in found.verdict


@pytest.mark.parametrize(("spreads", "draw"), [([0.3, 0.3, 0.5, 1, 2, 3], "normal"), ([1.0] * 6, "heavy")])
def test_the_best_is_dropped_no_more_often_than_promised(spreads: list[float], draw: str) -> None:
    """Of equal candidates, the worst case: whoever is first counts as the best, and as good as any."""
    rng = np.random.default_rng(5)
    races, rounds, dropped = 200, 6, 0
    for _ in range(races):
        standings = Standings(list("abcdef"), rounds, 0.05)
        for _ in range(rounds):
            chance = rng.normal(size=6) if draw == "normal" else rng.standard_t(4, 6)
            scores = rng.normal(0, 3) + np.asarray(spreads) * chance
            standings.end_round(dict(zip("abcdef", scores, strict=True)))
            if len(standings.left) < 2:
                break
        dropped += "a" not in standings.left
    # Of 200 races 10 are expected at most, and 18 are exceeded in less than one of 100 suites.
    assert dropped <= 18


def test_equal_candidates_end_with_no_difference() -> None:
    found = race(noisy, {"a": 0.7001, "b": 0.7002}, margin=0.05)
    assert found.ending == "no difference"
    assert found.standings[0].rounds < 12
    undecided = race(noisy, {"a": 0.700, "b": 0.701}, rounds=3)
    assert undecided.ending == "rounds"
    assert "Undecided after 3 rounds" in undecided.verdict


def test_what_diverges_is_dropped() -> None:
    found = race(lambda one, seed: math.nan if one == "bad" else 0.5 + seed % 7 / 100, {"bad": "bad", "good": "good"})
    assert (found.winner, found.ending, found.trainings) == ("good", "won", 2)
    lost = race(lambda one, seed: math.nan, {"a": 1, "b": 2})
    assert lost.verdict == "Every candidate diverged: no score is finite."


def test_common_seeds_within_a_round() -> None:
    seeds: dict[str, list[int]] = {"a": [], "b": []}

    def objective(one: str, seed: int) -> float:
        seeds[one].append(seed)
        return noisy(0.7 if one == "a" else 0.701, seed)

    race(objective, {"a": "a", "b": "b"}, rounds=3, seed=4)
    assert seeds["a"] == seeds["b"]
    assert len(set(seeds["a"])) == 3


@pytest.mark.parametrize("workers", [1, 3])
def test_resumes_after_any_training(tmp_path: Path, workers: int) -> None:
    whole = race(noisy, SKILLS, rounds=6)
    for most in range(whole.trainings + 1):
        trained: list[tuple[float, int]] = []

        def objective(skill: float, seed: int, trained: list[tuple[float, int]] = trained, most: int = most) -> float:
            if len(trained) >= most:
                raise KeyboardInterrupt
            trained.append((skill, seed))
            return noisy(skill, seed)

        folder = tmp_path / f"{most}"
        if most < whole.trainings:
            with pytest.raises(KeyboardInterrupt):
                race(objective, SKILLS, rounds=6, out=folder, workers=workers)
            with (folder / LOG_NAME).open("ab") as log:
                log.write(b'{"candidate": "no')
        again = race(noisy, SKILLS, rounds=6, out=folder, workers=workers)
        assert again.standings == whole.standings
        assert again.verdict == whole.verdict
        lines = (folder / LOG_NAME).read_text().splitlines()
        assert len(lines) == 1 + whole.trainings
        assert len({(row["candidate"], row["round"]) for row in map(json.loads, lines[1:])}) == whole.trainings


def test_a_budget_ends_it_in_time_and_resuming_counts_what_was_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("variegate.apps.search.trainings.time.perf_counter", lambda: now)

    def slow(skill: float, seed: int) -> float:
        nonlocal now
        now += 1.0
        return noisy(skill, seed)

    two = {"a": 0.5, "b": 0.501}
    assert race(slow, two, budget=0.5).trainings == 1  # how long one takes is not known before
    found = race(slow, two, budget=7.5, out=tmp_path / "r")
    assert (found.ending, found.trainings) == ("budget", 6)
    assert "Undecided after 3 rounds" in found.verdict
    now += 1000.0
    again = race(slow, two, budget=7.5, out=tmp_path / "r")
    assert (again.ending, again.trainings) == ("budget", 6)
    assert race(slow, two, budget=10.5, out=tmp_path / "r").trainings == 10


def test_stop_ends_it_between_trainings() -> None:
    stop, seen = Event(), list[Training]()

    def on_training(row: Training) -> None:
        seen.append(row)
        if len(seen) == 3:
            stop.set()

    found = race(noisy, SKILLS, on_training=on_training, stop=stop)
    assert (found.ending, found.trainings, len(seen)) == ("interrupted", 3, 3)
    assert found.verdict.startswith("No verdict")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"policies": {"a": 1}}, "policies: got 1"),
        ({"confidence": 0.4}, "confidence: got 0.4"),
        ({"rounds": 1}, "rounds"),
        ({"workers": 0}, "workers"),
        ({"objective": lambda one, seed: math.inf}, "objective: got the score inf; .* from 'a'"),
    ],
)
def test_bad_arguments(wrong: dict[str, object], words: str) -> None:
    given: dict[str, object] = {"objective": noisy, "policies": {"a": 0.1, "b": 0.2}, **wrong}
    with pytest.raises(ValueError, match=words):
        race(given.pop("objective"), given.pop("policies"), **given)  # type: ignore[arg-type]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    two = {"a": 0.1, "b": 0.9}
    race(noisy, two, out=tmp_path / "r", rounds=2)
    with pytest.raises(SourceError, match="holds a race with rounds 2, this one has 3"):
        race(noisy, two, out=tmp_path / "r", rounds=3)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(SourceError, match=r"files of something else \(cat.jpg\)"):
        race(noisy, two, out=tmp_path / "photos")
    log = tmp_path / "r" / LOG_NAME
    log.write_bytes(log.read_bytes().replace(b'"score"', b'"scroe"', 1))
    with pytest.raises(SourceError, match=r"race.jsonl: is damaged"):
        race(noisy, two, out=tmp_path / "r", rounds=2)

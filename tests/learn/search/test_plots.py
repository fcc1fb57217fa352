"""Plots: written, of a size that fits what they show, and right about it where that can be read off."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.learn.search.searches import SMALL, drawn, run
from variegate.apps.plotting import PlotError
from variegate.learn.events import Training
from variegate.learn.history import History, Settings, schedule_of
from variegate.learn.plots import plot_comparison, plot_population, plot_race, plot_schedule, plot_search, tables_of
from variegate.learn.policy import SearchSpace
from variegate.learn.race import race
from variegate.learn.verdict import compare
from variegate.policies import Schedule, Segment
from variegate.policies.schedule import published_schedule

GREEN, RED, AMBER = (63, 107, 92), (209, 73, 91), (184, 121, 31)


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.format == "PNG"
        return np.asarray(image.convert("RGB")).astype(int)


def share_of(img_HWC: np.ndarray, colour: tuple[int, int, int]) -> float:
    return float(np.mean(np.abs(img_HWC - colour).max(axis=-1) < 12))


def test_a_schedule_shows_what_is_on(tmp_path: Path) -> None:
    on = Schedule((Segment(5, (("Rotate", 1.0, 9),)),))
    off = Schedule((Segment(5, (("Rotate", 0.0, 9),)),))
    plot_schedule(on, tmp_path / "on.png")
    plot_schedule(off, tmp_path / "off.png")
    darkest, strongest = (18, 57, 63), (110, 31, 26)
    for colour in (darkest, strongest):
        assert share_of(pixels(tmp_path / "on.png"), colour) > 0.05
        assert share_of(pixels(tmp_path / "off.png"), colour) < 0.01


def test_a_schedule_as_tables() -> None:
    policies = ((("Rotate", 0.2, 3), ("Invert", 0.5, 1), ("Rotate", 0.0, 7)), (("Invert", 0.1, 0),))
    names, probability, magnitude = tables_of(Schedule(tuple(Segment(2, policy) for policy in policies)))
    assert names == ["Rotate", "Invert"]
    assert probability[0].tolist() == [[0.2, 0], [0, 0]]
    assert probability[1].tolist() == [[0.5, 0.1]]
    assert np.array_equal(magnitude[0], [[3, np.nan], [np.nan, np.nan]], equal_nan=True)


@pytest.mark.parametrize(
    ("size", "epochs", "lost"),
    [(16, 40, 0.0), (2, 12, 0.4), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((5, 9, 0.3), (2, 2, 0.0)))],
)
def test_a_population_shows_the_best_way(tmp_path: Path, size: int, epochs: int, lost: float) -> None:
    history = run(Settings(size=size, space=SearchSpace(), epochs=epochs), drawn(2, lost))
    plot_population(history, tmp_path / "p.png")
    assert share_of(pixels(tmp_path / "p.png"), GREEN) > 0.001
    # Red is for limits (see plotting.py), and there are none here.
    assert share_of(pixels(tmp_path / "p.png"), RED) == 0
    plot_schedule(schedule_of(history), tmp_path / "s.png")


def test_scores_that_never_move_are_drawn(tmp_path: Path) -> None:
    plot_population(run(Settings(size=3, space=SMALL, epochs=9), lambda _: [4.0] * 3), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5000


def test_a_history_without_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="best: got no score after 0 steps"):
        plot_population(History(Settings(), ()), tmp_path / "p.png")


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PlotError, match=r"pip install 'variegate\[plot\]'"):
        plot_schedule(published_schedule("pba-svhn"), tmp_path / "s.png")


def test_a_race_shows_what_was_dropped(tmp_path: Path) -> None:
    for name, margin in (("decided", 0.0), ("even", 1.0)):
        skills = {"best": 0.9, "other": 0.5}
        found = race(lambda skill, seed: skill + seed % int(20 * skill) / 1000, skills, rounds=4, margin=margin)
        plot_race(found, tmp_path / f"{name}.png")
    assert share_of(pixels(tmp_path / "decided.png"), AMBER) > 0.0001
    assert share_of(pixels(tmp_path / "even.png"), AMBER) < 0.0001


@pytest.mark.parametrize(
    ("offset", "repeats", "has_green", "has_amber"),
    [(0.1, 5, True, False), (-0.1, 5, False, True), (0.0, 5, False, False), (0.1, 1, False, False)],
)
def test_amber_and_green_are_for_what_is_shown(
    tmp_path: Path, offset: float, repeats: int, has_green: bool, has_amber: bool
) -> None:
    noise = [0.0, 0.011, -0.012, 0.004, 0.0][:repeats]
    trials = [Training("augmix", n, 0.8, 1.0) for n in range(repeats)]
    trials += [Training("own.json", n, 0.8 + offset + change, 1.0) for n, change in enumerate(noise)]
    plot_comparison(compare(trials, ("augmix", "own.json"), 1000), tmp_path / "e.png", "a remark")
    image = pixels(tmp_path / "e.png")
    assert (share_of(image, GREEN) > 0.0001) == has_green
    assert (share_of(image, AMBER) > 0.0001) == has_amber
    found = compare(trials, ("augmix", "own.json"), 1000)
    plot_search(published_schedule("pba-svhn"), found, tmp_path / "s.png", "a verdict")
    assert (share_of(pixels(tmp_path / "s.png"), AMBER) > 0.0001) == has_amber
    # Without intervals there is nothing to show beside the accuracies.
    assert (image.shape[1] > image.shape[0] * 3) == (repeats > 1)

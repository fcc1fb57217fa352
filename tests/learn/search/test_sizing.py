"""Sizes of a race that fit its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from variegate.learn.prepare import open_race
from variegate.learn.rounds import LOG_NAME, RaceRules
from variegate.learn.sizes import measure
from variegate.options.search import RaceOptions

SOURCE = (np.random.default_rng(0).integers(0, 256, (600, 8, 8, 3)).astype(np.uint8), [n % 10 for n in range(600)])


def sizes(
    monkeypatch: pytest.MonkeyPatch, per_image: float, budget: float, folder: Path | None = None, **chosen: Any
) -> tuple[int, int, int, list[str]]:
    monkeypatch.setattr("variegate.learn.sizes.measure", lambda plan, rows: per_image)
    events: list[Any] = []
    options = RaceOptions(model="wrn-10-1", **chosen)
    open_race(SOURCE, None, options, RaceRules(budget=budget), ["cpu"] * 2, events.append, folder)
    *notes, found = events
    assert found.score == 600 - found.train
    return found.train, found.epochs, found.batch_size, [note.text for note in notes]


def test_three_rounds_fit_into_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine candidates on two devices are 15 trainings, one after another."""
    assert sizes(monkeypatch, 1e-6, 60) == (480, 200, 32, [])
    train, epochs, batch, told = sizes(monkeypatch, 1e-4, 60)
    assert (train, batch) == (480, 32)
    assert 15 * 1e-4 * (480 * epochs + 40) == pytest.approx(48, rel=0.05)
    assert told == [
        f"trainings have 480 images and {epochs} epochs, so that three rounds of 9 candidates fit into 60 s"
    ]
    train, epochs, batch, told = sizes(monkeypatch, 8e-4, 60)
    assert (epochs, batch) == (10, 32)
    assert 256 < train < 480
    assert 15 * 8e-4 * (train * 10 + (600 - train) / 3) <= 48
    assert sizes(monkeypatch, 2e-3, 60)[:2] == (256, 5)


def test_a_budget_without_room_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    train, epochs, _, told = sizes(monkeypatch, 0.1, 60)
    assert (train, epochs) == (256, 4)
    assert told == [
        "three rounds of 9 candidates take about 1,708 s with 256 images and 4 epochs per training, more than 60 s; "
        "a higher --budget or fewer --policies help"
    ]


def test_what_the_options_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes(monkeypatch, 0.1, 60, train=300)[:2] == (300, 4)
    assert sizes(monkeypatch, 0.1, 60, epochs=20)[:2] == (256, 20)
    assert sizes(monkeypatch, 0.1, 60, epochs=20, train=300) == (300, 20, 32, [])


def test_a_race_that_goes_on_has_the_sizes_of_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / LOG_NAME).write_text('{"train": 300, "epochs": 7, "batch_size": 16, "model": "os:system"}\n')
    assert sizes(monkeypatch, 0.1, 60, tmp_path) == (300, 7, 16, [])
    (tmp_path / LOG_NAME).write_text('{"train": 600, "epochs": 1e9, "batch_size": "x"}\n')
    assert sizes(monkeypatch, 0.1, 60, tmp_path) == (480, 200, 32, [])


def test_an_epoch_is_measured() -> None:
    options = RaceOptions(model="wrn-10-1", train=64, epochs=1, batch_size=32)
    race = open_race(SOURCE, ["none", "crop1"], options, RaceRules(), ["cpu"], lambda text: None)
    assert 0 < measure(race.plan, list(race.rows.values())) < 1

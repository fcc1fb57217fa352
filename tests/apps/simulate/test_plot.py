"""The plot is drawn, for few and for many."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from variegate.apps.scenario import STRATEGIES, RandomInputs, describe, ideal_seconds, seconds
from variegate.apps.simulate import BINS, BusyTimes, Outcome, simulate
from variegate.options.measurement import Scenario


def test_who_was_at_work_when() -> None:
    spans = BusyTimes(2)
    spans.add(0, 0, 60)
    spans.add(0, 60, 120)
    spans.add(1, 180, 240)
    assert spans.utilisation(240).tolist() == [0.5, 0.25]
    at_work = spans.at_work(240)
    assert len(at_work) == BINS
    assert at_work[: BINS // 2] == pytest.approx(0.5)
    assert at_work[BINS // 2 : 3 * BINS // 4] == pytest.approx(0.0)
    assert at_work[3 * BINS // 4 :] == pytest.approx(0.5)


@pytest.mark.parametrize(("devices", "chosen"), [(1, STRATEGIES[:1]), (3, STRATEGIES)])
def test_a_plot_of_few(devices: int, chosen: tuple[object, ...], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    scenario = Scenario(devices=devices, tasks=30, speeds=(1.0, 0.5))
    inputs = RandomInputs(scenario)
    ideal = ideal_seconds(scenario, inputs)
    outcomes = [simulate(scenario, strategy, inputs) for strategy in STRATEGIES if strategy in chosen]
    assert drawn(outcomes, ideal, describe(scenario, inputs.speeds, ideal), tmp_path)


def test_a_plot_of_many(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    outcomes = [
        Outcome(strategy, 1e6 + number, np.ones(1024), np.linspace(1, 0, BINS), 5, 0, 0.0, 0, 16)
        for number, strategy in enumerate(STRATEGIES)
    ]
    assert drawn(outcomes, 9.9e5, ["1,024 devices", ""], tmp_path)


def drawn(outcomes: list[Outcome], ideal: float, lines: list[str], folder: Path) -> bool:
    """In a size that fits a page, with something of every colour."""
    from variegate.apps.simulate import draw_plot

    draw_plot(outcomes, ideal, lines, folder / "plot.png")
    image = np.asarray(Image.open(folder / "plot.png").convert("RGB")).reshape(-1, 3)
    colours = {"#3f6b5c"} | ({"#a9bccb"} if len(outcomes) > 1 else set())
    wanted = [tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in colours]
    return all((image == colour).all(axis=1).sum() > 1000 for colour in wanted)


def test_scenarios_in_words() -> None:
    scenario = Scenario(devices=3, tasks=1000, speeds=(1.0, 0.5), failure_rate=6.0, queue=None)
    assert describe(scenario, [1.0, 0.5, 1.0], 400.0) == [
        "3 devices of speeds 0.5 to 1; 1,000 tasks of 16 items, 1 s each at speed 1, varying by 20%",
        "all waiting at once, 2 in flight; a worker is lost 6 times an hour, back after 10 s; ideal 400 s",
    ]
    assert describe(Scenario(devices=1), [2.0], 5000.0) == [
        "1 device of speed 2; 10,000 tasks of 16 items, 1 s each at speed 1, varying by 20%",
        "8 waiting per device, 2 in flight; no failures; ideal 5,000 s",
    ]
    assert [seconds(value) for value in (0.5, 1.5, 15.0, 1500.0)] == ["0.500 s", "1.50 s", "15.0 s", "1,500 s"]

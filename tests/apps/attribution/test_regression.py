"""Effects of operations: those of least squares with a dummy for each image and epoch, and intervals that hold."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.apps.attribution.regression import Panel, fit

EFFECTS = np.linspace(0, 1, 5)


def simulated(seed: int, images: int = 100, epochs: int = 8, is_one_of: bool = False) -> Panel:
    """Losses with other effects for each image, unequal noise with heavy tails, and a tenth of the draws missing."""
    rng = np.random.default_rng(seed)
    image, epoch = np.repeat(np.arange(images), epochs), np.tile(np.arange(epochs), images)
    if is_one_of:
        has = np.eye(5, dtype=bool)[rng.integers(0, 5, len(image))]
    else:
        has = rng.random((len(image), 5)) < 0.3
    slopes = (EFFECTS + 0.3 * rng.normal(size=(images, 5)))[image]
    noise = np.exp(rng.normal(size=images))[image] * rng.standard_t(4, len(image))
    loss = (has * slopes).sum(1) + 3 * rng.normal(size=images)[image] - 0.1 * epoch + noise
    return Panel(image, epoch, loss, *np.nonzero(has)).of(rng.random(len(image)) > 0.1)


def test_effects_are_those_of_dummies() -> None:
    panel = simulated(0)
    found = fit(panel, 5)
    columns = np.zeros((len(panel.loss), 5))
    columns[panel.draw, panel.column] = 1
    design = np.concatenate([columns, np.eye(100)[panel.image], np.eye(8)[panel.epoch][:, 1:]], 1)
    solution = np.linalg.lstsq(design, panel.loss, rcond=None)[0]
    assert found.added == pytest.approx(solution[:5], abs=1e-10)
    design = design[:, 5:]
    alone = panel.loss - design @ np.linalg.lstsq(design, panel.loss, rcond=None)[0]
    assert found.excess == pytest.approx(alone, abs=1e-9)
    assert not found.is_relative.any()
    assert found.counts.tolist() == columns.sum(0).tolist()


@pytest.mark.parametrize("is_one_of", [False, True])
def test_intervals_of_95_percent_hold_the_effect_that_often(is_one_of: bool) -> None:
    """The first effect is 0: an operation that does nothing."""
    covered = []
    for seed in range(150):
        found = fit(simulated(seed, is_one_of=is_one_of), 5)
        true = EFFECTS - (found.counts @ EFFECTS / found.counts.sum() if is_one_of else 0)
        covered.append(np.abs(found.added - true) < 1.96 * found.error)
    assert np.mean(covered, 0) == pytest.approx(np.full(5, 0.95), abs=0.05)


def test_of_operations_of_which_every_draw_has_one_only_differences_are_known() -> None:
    found = fit(simulated(1, is_one_of=True), 5)
    assert found.is_relative.all()
    assert found.counts @ found.added == pytest.approx(0, abs=1e-9)


def test_what_all_draws_have_or_all_of_an_epoch_has_no_effect_of_its_own() -> None:
    panel = simulated(2)
    always, late = np.arange(len(panel.loss)), np.flatnonzero(panel.epoch >= 5)
    draws = np.concatenate([panel.draw, always, late])
    columns = np.concatenate([panel.column, np.full(len(always), 5), np.full(len(late), 6)])
    found, alone = fit(panel._replace(draw=draws, column=columns), 7), fit(panel, 5)
    assert np.isnan(found.added[5:]).all()
    assert found.added[:5] == pytest.approx(alone.added, abs=1e-9)
    assert found.error[:5] == pytest.approx(alone.error, abs=1e-9)

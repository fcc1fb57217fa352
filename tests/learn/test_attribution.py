"""Planted culprits come first, operations that do nothing have an interval that covers 0, and intervals hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import variegate as vg
from tests.learn.train.digits import PLAIN, digits, options
from tests.needed import needs
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.learn import attribution as module
from variegate.learn.attribution import Attribution, Effect, attribution, fit
from variegate.learn.trainer import train
from variegate.program.describe import operations_of

pytestmark = needs("sklearn")

EFFECTS = np.linspace(0, 1, 5)


class Idle(vg.transforms.CustomOp):
    """Every value stays."""

    def lut(self, m: float) -> npt.NDArray[np.uint8]:
        return np.arange(256, dtype=np.uint8)


def policy_file(folder: Path, *transforms: T.Transform) -> str:
    """Each transform for a quarter of the images."""
    path = folder / "policy.json"
    path.write_text(json.dumps(T.Compose([T.RandomApply([one], 0.25) for one in transforms]).to_dict()))
    return str(path)


def named(found: Attribution, name: str) -> Effect:
    return next(effect for effect in found.operations if effect.operation == name)


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Attribution]:
    """Digits that are turned by half a turn or so."""
    folder = tmp_path_factory.mktemp("turned")
    source, _ = digits(400)
    policy = policy_file(folder, T.RandomRotation((160, 200)), T.ShearX((0.0, 0.2)), T.Brightness((0.8, 1.2)), Idle())
    train(source, options(folder / "run", policy=policy, epochs=8, lr=0.1))
    return folder / "run", source, attribution(folder / "run", source, model=PLAIN)


def test_half_turns_of_digits_come_first(turned: tuple[Path, Any, Attribution]) -> None:
    _, _, found = turned
    assert (found.images, found.draws) == (400, 3200)
    assert found.operations[0].operation == "Rotate"
    assert found.operations[0].t > 8
    assert found.operations[0].t > 2 * found.operations[1].t
    assert named(found, "Rotate").low >= 160
    assert abs(named(found, "Idle").t) < 1.96
    assert len([effect for effect in found.strengths if effect.operation == "Rotate"]) == 4
    text = str(found).splitlines()
    assert text[0].startswith("Loss added by each operation: 3,200 draws of 400 images, mean loss ")
    assert text[2].startswith("Rotate  ")
    assert text[-1].startswith("A diagnostic")
    told = json.loads(json.dumps(found.to_dict()))
    assert told["operations"][0]["operation"] == "Rotate"


def test_known_effects_are_found_by_operation_and_strength(
    turned: tuple[Path, Any, Attribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Losses that are made: rotations cost 2, and shears their strength."""
    run, source, _ = turned
    settings = json.loads((run / "augmentation.json").read_text())
    augmenter = vg.Augmenter(T.from_dict(settings["transform"]), "cpu", seed=settings["seed"])
    rng = np.random.default_rng(0)
    hardness = np.linspace(0, 3, 400)

    def losses_of(batch: dict[str, Any]) -> npt.NDArray[np.float64]:
        program = augmenter.program([(8, 8, 1)] * len(batch["ids"]), **batch)
        losses = hardness[batch["ids"]] + 0.1 * rng.normal(size=len(batch["ids"]))
        for row in range(len(losses)):
            for operation in operations_of(program, row):
                losses[row] += 2.0 * (operation["op"] == "Rotate")
                losses[row] += 10 * operation["shear"] if operation["op"] == "ShearX" else 0
        return losses

    calls: list[dict[str, Any]] = []
    decode_and_run = vg.Augmenter.decode_and_run

    def noted(self: vg.Augmenter, files: Any, **call: Any) -> Any:
        calls.append(call)
        return decode_and_run(self, files, **call)

    def made(scores: torch.Tensor, target: torch.Tensor, reduction: str) -> torch.Tensor:
        return torch.from_numpy(losses_of(calls[-1]))

    monkeypatch.setattr(vg.Augmenter, "decode_and_run", noted)
    monkeypatch.setattr(module, "cross_entropy", made)
    found = attribution(run, source, model=PLAIN)
    assert named(found, "Rotate").added == pytest.approx(2, abs=0.1)
    assert named(found, "ShearX").added == pytest.approx(1, abs=0.1)
    assert [named(found, name).added for name in ("Brightness", "Idle")] == pytest.approx([0, 0], abs=0.06)
    shears: list[Any] = [effect for effect in found.strengths if effect.operation == "ShearX"]
    assert [one.added for one in shears] == pytest.approx([5 * (one.low + one.high) for one in shears], abs=0.1)


def test_bad_input_is_refused_in_a_line(turned: tuple[Path, Any, Attribution], tmp_path: Path) -> None:
    run, source, _ = turned
    with pytest.raises(ValueError, match=r"^source: got None for a run on data without a place; accepted: the images"):
        attribution(run, model=PLAIN)
    with pytest.raises(SourceError, match=r"^source: holds other images than the run was trained on"):
        attribution(run, digits(40)[0], model=PLAIN)
    with pytest.raises(ValueError, match=r"^draws: got 1; accepted: an integer from 2 on$"):
        attribution(run, source, draws=1, model=PLAIN)
    with pytest.raises(FileNotFoundError):
        attribution(tmp_path / "nothing", source)
    train(digits(64)[0], options(tmp_path, policy="none", epochs=1))
    with pytest.raises(ValueError, match=r"^run: got .*, which draws no operations; accepted: a training with augment"):
        attribution(tmp_path, digits(64)[0], model=PLAIN)


def test_adaptive_magnitudes_and_mixed_images(tmp_path: Path) -> None:
    """Magnitudes are the last mean of the log; mixing is left out."""
    source, _ = digits(128)
    train(source, options(tmp_path, policy="randaugment+flip", adapt="entropy", mixup=1.0, epochs=2))
    found = attribution(tmp_path, source, model=PLAIN, images=100, draws=4)
    names = {effect.operation for effect in found.operations}
    assert {"HorizontalFlip", "Rotate"} <= names
    assert "MixUp" not in names
    assert found.draws == 400


def simulated(seed: int, is_one_of: bool = False) -> tuple[Any, Any]:
    """Losses with other effects for each image, and unequal noise with heavy tails; and the operations."""
    rng = np.random.default_rng(seed)
    shape = images, _ = 100, 8
    has = np.eye(5)[rng.integers(0, 5, shape)] if is_one_of else (rng.random((*shape, 5)) < 0.3) * 1.0
    slopes = (EFFECTS + 0.3 * rng.normal(size=(images, 5)))[:, None]
    noise = np.exp(rng.normal(size=(images, 1))) * rng.standard_t(4, shape)
    return (has * slopes).sum(-1) + 3 * rng.normal(size=(images, 1)) + noise, has


def test_effects_are_those_of_a_dummy_for_each_image() -> None:
    losses, has = simulated(0)
    added, _, is_relative = fit(losses, has)
    design = np.concatenate([has.reshape(-1, 5), np.repeat(np.eye(100), 8, axis=0)], 1)
    assert added == pytest.approx(np.linalg.lstsq(design, losses.reshape(-1), rcond=None)[0][:5], abs=1e-10)
    assert not is_relative.any()


@pytest.mark.parametrize("is_one_of", [False, True])
def test_intervals_of_95_percent_hold_the_effect_that_often(is_one_of: bool) -> None:
    """The first effect is 0: an operation that does nothing."""
    covered = []
    for seed in range(150):
        losses, has = simulated(seed, is_one_of)
        added, error, is_relative = fit(losses, has)
        counts = has.sum((0, 1))
        true = EFFECTS - (counts @ EFFECTS / counts.sum() if is_one_of else 0)
        covered.append(np.abs(added - true) < 1.96 * error)
        assert is_relative.all() == is_one_of
        assert not is_one_of or counts @ added == pytest.approx(0, abs=1e-9)
    assert np.mean(covered, 0) == pytest.approx(np.full(5, 0.95), abs=0.05)


def test_an_operation_of_all_draws_has_no_effect() -> None:
    losses, has = simulated(2)
    added, error, _ = fit(losses, np.concatenate([has, np.ones((100, 8, 1))], -1))
    assert np.isnan(added[5])
    assert np.isnan(error[5])
    assert added[:5] == pytest.approx(fit(losses, has)[0], abs=1e-9)

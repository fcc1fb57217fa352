"""Planted culprits come first, what does nothing has an interval that covers 0, and the report says both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import variegate as vg
from tests.apps.train.digits import digits, options
from tests.needed import needs
from variegate import transforms as T
from variegate.apps.attribution import Attribution, attribution
from variegate.apps.train import train
from variegate.apps.train.magnitudes import RecordedMagnitudes
from variegate.formats.base import SourceError
from variegate.program.describe import operations_of

pytestmark = needs("sklearn")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Idle(vg.transforms.CustomOp):
    """Every level stays."""

    def lut(self, m: float) -> npt.NDArray[np.uint8]:
        return np.arange(256, dtype=np.uint8)


def of_three_channels(num_classes: int) -> torch.nn.Module:
    layers = (torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, num_classes))


def policy_file(folder: Path, *transforms: T.Transform) -> str:
    """Each of them for a quarter of the images."""
    path = folder / "policy.json"
    path.write_text(json.dumps(T.Compose([T.RandomApply([one], 0.25) for one in transforms]).to_dict()))
    return str(path)


def named(found: Attribution, name: str) -> Any:
    return next(one for one in found.operations if one.operation == name)


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Attribution]:
    """Digits that are turned by half a turn or so."""
    folder = tmp_path_factory.mktemp("turned")
    source, _ = digits(400)
    policy = policy_file(folder, T.RandomRotation((160, 200)), T.ShearX((0.0, 0.2)), T.Brightness((0.8, 1.2)), Idle())
    train(source, options(folder / "run", policy=policy, epochs=12, lr=0.1, report=True))
    return folder / "run", source, attribution(folder / "run", source)


def test_half_turns_of_digits_come_first(turned: tuple[Path, Any, Attribution]) -> None:
    _, _, found = turned
    assert (found.epochs, found.images, found.draws) == ((6, 12), 400, 2400)
    assert found.operations[0].operation == "Rotate"
    assert found.operations[0].t > 8
    assert found.operations[0].t > 2 * found.operations[1].t
    assert named(found, "Rotate").low >= 160
    assert abs(named(found, "Idle").t) < 1.96
    assert len([one for one in found.strengths if one.operation == "Rotate"]) == 4
    assert len({one.id for one in found.worst}) == 12
    assert sum(any(line.startswith("Rotate") for line in one.operations) for one in found.worst) >= 9
    assert [one.excess for one in found.worst] == sorted((one.excess for one in found.worst), reverse=True)


def test_hues_come_first_where_color_is_the_class(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    images = rng.integers(0, 90, (300, 12, 12, 3)).astype(np.uint8)
    images[np.arange(300), :, :, labels] += 60
    policy = policy_file(tmp_path, T.Hue((0.2, 0.5)), T.RandomRotation(90), T.Brightness((0.8, 1.2)), Idle())
    chosen: dict[str, Any] = {"model": f"{__name__}:of_three_channels", "policy": policy, "epochs": 10, "lr": 0.3}
    train((images, labels), options(tmp_path / "run", report=True, **chosen))
    found = attribution(tmp_path / "run", (images, labels))
    assert found.operations[0].operation == "Hue"
    assert found.operations[0].t > 8
    assert abs(named(found, "Idle").t) < 1.96


def test_known_effects_are_found_by_operation_strength_and_class(
    turned: tuple[Path, Any, Attribution], tmp_path: Path
) -> None:
    """Losses that are made: rotations cost 2, of class 3 twice as much, and shears their strength."""
    run, source, _ = turned
    losses_folder = tmp_path / "report" / "losses"
    shutil.copytree(run / "report", tmp_path / "report")
    augmenter = vg.Augmenter(vg.load_policy(tmp_path / "report" / "transform.json"), "cpu", seed=0)
    rng, hardness = np.random.default_rng(0), np.linspace(0, 3, 400)
    for epoch in range(12):
        program = augmenter.program([(8, 8, 1)] * 400, np.arange(400), epoch)
        losses = hardness + 1 / (epoch + 1) + 0.1 * rng.normal(size=400)
        for row in range(400):
            for one in operations_of(program, row):
                losses[row] += 2.0 * (1 + (source[1][row] == 3)) * (one["op"] == "Rotate")
                losses[row] += 10 * one["shear"] if one["op"] == "ShearX" else 0
        np.save(losses_folder / f"{epoch:04d}.npy", losses.astype(np.float16)[None])
    found = attribution(tmp_path, source, epochs=(0, 12))
    share = (source[1] == 3).mean()
    assert named(found, "Rotate").added == pytest.approx(2 + 2 * share, abs=0.1)
    assert named(found, "ShearX").added == pytest.approx(1, abs=0.1)
    assert [named(found, name).added for name in ("Brightness", "Idle")] == pytest.approx([0, 0], abs=0.06)
    shears: list[Any] = [one for one in found.strengths if one.operation == "ShearX"]
    assert [one.added for one in shears] == pytest.approx([5 * (one.low + one.high) for one in shears], abs=0.1)
    clearest = found.classes[0]
    assert (clearest.label, clearest.operation) == ("3", "Rotate")
    assert clearest.added == pytest.approx(4, abs=0.1)
    assert found.comparisons > 10


def test_a_draw_is_made_again_by_its_line(turned: tuple[Path, Any, Attribution]) -> None:
    run, (pixels, _), found = turned
    hardest = found.worst[0]
    again = eval(hardest.replay, {"vg": vg, "image": pixels[hardest.id]})
    augmenter = vg.Loader((pixels, np.zeros(len(pixels), np.int64)), vg.load_policy(run / "report/transform.json"), 400)
    augmenter.set_epoch(hardest.epoch)
    batch = next(iter(augmenter))
    assert torch.equal(again[0], batch.images[int(np.flatnonzero(batch.ids == hardest.id)[0])])


def test_a_report_is_written(turned: tuple[Path, Any, Attribution]) -> None:
    run, _, found = turned
    folder = found.write()
    assert folder == run / "report"
    assert {"report.json", "report.txt", "worst.png"} <= {one.name for one in folder.iterdir()}
    told = json.loads((folder / "report.json").read_text())
    assert told["operations"][0]["operation"] == "Rotate"
    assert told["worst"][0]["replay"] == found.worst[0].replay
    text = (folder / "report.txt").read_text()
    assert text == f"{found}\n"
    assert text.splitlines()[2].startswith("Rotate  ")
    assert "A diagnostic" in text


def test_what_is_wrong_is_said_in_a_line(turned: tuple[Path, Any, Attribution], tmp_path: Path) -> None:
    run, source, _ = turned
    with pytest.raises(ValueError, match=r"^source: got None for a run on data without a place; accepted: the images"):
        attribution(run)
    with pytest.raises(SourceError, match=r"^source: holds other images than the run was trained on"):
        attribution(run, digits(40)[0])
    with pytest.raises(
        ValueError, match=r"^epochs: got \(3, 4\), in which no image was trained on twice; accepted: more"
    ):
        attribution(run, source, epochs=(3, 4))
    train(digits(64)[0], options(tmp_path, padding=0, report=True))
    with pytest.raises(ValueError, match=r"^run: got .*, which draws no operations; accepted: one with augmentation"):
        attribution(tmp_path, digits(64)[0])


def test_magnitudes_that_followed_the_training_are_those_of_the_report(tmp_path: Path) -> None:
    (pixels, labels), _ = digits(128)
    train((pixels, labels), options(tmp_path, policy="randaugment", adapt="entropy", epochs=4, report=True))
    found = attribution(tmp_path, (pixels, labels))
    hardest = found.worst[0]
    assert f"{hardest.epoch}, conditions={{'magnitude': [" in hardest.replay
    given = RecordedMagnitudes(tmp_path)(hardest.epoch)(np.array([hardest.id], np.uint64))
    assert eval(hardest.replay.partition("conditions=")[2].removesuffix(")")) == {
        "magnitude": given["magnitude"].tolist()
    }
    assert eval(hardest.replay, {"vg": vg, "image": pixels[hardest.id]}).shape == (1, 1, 8, 8)


def test_mixed_images_count_and_are_not_among_the_worst(tmp_path: Path) -> None:
    source, _ = digits(128)
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(T.Compose([T.RandomRotation(30), T.RandomChoice([T.CutMix(), T.Identity()])]).to_dict()))
    train(source, options(tmp_path / "some", policy=str(path), epochs=4, report=True))
    found = attribution(tmp_path / "some", source)
    assert found.draws == 256
    assert named(found, "CutMix").added > 0
    assert len(found.worst) == 12
    assert found.worst[0].replay.endswith(", partners='batch')")
    mixed = {operation for one in found.worst for operation in one.operations if "CutMix" in operation}
    assert mixed == set()
    train(source, options(tmp_path / "all", mixup=1.0, policy="flip+crop", epochs=4, report=True))
    found = attribution(tmp_path / "all", source)
    assert {one.operation for one in found.operations} >= {"HorizontalFlip", "Crop"}
    assert len([one for one in found.strengths if one.operation == "MixUp"]) == 4
    assert found.worst == ()
    assert not (found.write() / "worst.png").exists()

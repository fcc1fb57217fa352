"""Magnitudes that follow a training: what moves them, how they are kept, and that they can be used again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.apps.train.digits import digits, lines, options
from tests.formats.tars import write_shards
from tests.needed import needs
from variegate import transforms as T
from variegate.apps.train import Trainer, TrainOptions, train
from variegate.apps.train.adaptation import EntropyAdaptation, GapAdaptation, confidence_codes
from variegate.apps.train.checkpoints import ResumeError
from variegate.apps.train.magnitudes import MagnitudeTable, RecordedMagnitudes
from variegate.apps.train.step import TrainingStep

pytestmark = needs("sklearn")

ADAPTED: dict[str, Any] = {"policy": "randaugment", "model": "tests.apps.train.test_trainer:with_dropout", "epochs": 3}


@pytest.fixture(autouse=True)
def _tell_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.apps.train.progress._TELL_SECONDS", 0.0)


def steps(out: Path) -> list[dict[str, Any]]:
    return [line for line in lines(out) if "step" in line]


def test_the_gap_moves_the_magnitude_within_its_bounds() -> None:
    controller = GapAdaptation(0.3, target=0.5, step=0.1)
    assert controller.end_epoch(1.0, 1.9) == {"loss_train": 1.0, "loss_validation": 1.9, "next_magnitude": 0.2}
    found = [controller.end_epoch(1.0, loss)["next_magnitude"] for loss in (2.1, 2.1, 2.0, 0.9, 0.9, 0.9, 0.9)]
    assert found == [0.3, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0]
    assert [controller.end_epoch(0.1, 1.0)["next_magnitude"] for _ in range(12)][-3:] == [1.0, 1.0, 1.0]
    assert controller.of_epoch(4)(np.arange(3, dtype=np.uint64))["magnitude"].tolist() == [1.0] * 3
    assert controller.end_epoch(0.0, 0.0)["next_magnitude"] == 0.9
    assert controller.end_epoch(0.1, math.nan) == {"loss_train": 0.1, "loss_validation": None, "next_magnitude": 0.8}
    other = GapAdaptation()
    other.load(controller.tensors())
    assert other.magnitude == 0.8


def test_confidence_by_hand() -> None:
    half = 1 - math.log(2) / math.log(4)
    scores = torch.tensor([[0.0, 0, 0, 0], [100, 0, 0, 0], [50, 50, 0, 0], [math.nan] * 4])
    assert confidence_codes(scores).tolist() == [0, 255, round(255 * half), 0]
    probabilities = np.array([0.7, 0.2, 0.1])
    by_hand = 1 + (probabilities * np.log(probabilities)).sum() / np.log(3)
    assert confidence_codes(torch.tensor(np.log(probabilities))[None]).item() == round(255 * by_hand)


def test_the_entropy_in_the_loss_by_hand(tmp_path: Path) -> None:
    probabilities = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    model = torch.nn.Linear(3, 3)
    torch.nn.init.eye_(model.weight)
    torch.nn.init.zeros_(model.bias)
    scores, labels = torch.tensor(np.log(probabilities), dtype=torch.float32), torch.tensor([0, 0])
    step = TrainingStep("m", model, 3, torch.optim.SGD(model.parameters()), entropy_loss=0.5)
    entropy = -(probabilities * np.log(probabilities)).sum(1) / np.log(3)
    assert step.add_gradients(scores, labels, 2).item() == pytest.approx((-np.log([0.7, 0.1]) + entropy / 2).sum())
    source, _ = digits(64)
    train(source, options(tmp_path / "one", epochs=1))
    train(source, options(tmp_path / "other", epochs=1, entropy_loss=1.0))
    assert lines(tmp_path / "other")[0]["loss"] - lines(tmp_path / "one")[0]["loss"] == pytest.approx(1.0, abs=0.02)


def test_each_sample_gets_what_the_model_knew_of_it_an_epoch_before() -> None:
    adaptation = EntropyAdaptation(np.array([30, 10, 20], np.uint64))
    ids = np.array([10, 20, 30], np.uint64)
    assert adaptation.of_epoch(0)(ids)["magnitude"].tolist() == [0, 0, 0]
    assert adaptation.noting is not None
    adaptation.noting(torch.tensor([[100.0, 0], [0, 0]]))
    adaptation.trained(np.array([20, 30], np.uint64), np.array([True, False]))
    assert adaptation.of_epoch(0)(ids)["magnitude"].tolist() == [0, 0, 0]
    assert adaptation.told(1, adaptation.end_step()) == [{"magnitude": 0.0}]
    before = adaptation.of_epoch(0)
    adaptation.settle()
    adaptation.end_epoch()
    assert before(ids)["magnitude"].tolist() == [0, 0, 0], "threads may still use it"
    assert adaptation.of_epoch(1)(ids)["magnitude"].tolist() == [0, 1, 0]
    # Another rank has trained with the rest; who has not trained with a sample keeps what there was.
    adaptation.noting(torch.tensor([[100.0, 0]]))
    adaptation.trained(np.array([10], np.uint64))
    adaptation.settle(lambda mine: np.maximum(mine, np.array([51, -1, -1], np.int32)))
    adaptation.end_epoch()
    assert adaptation.of_epoch(2)(ids)["magnitude"].tolist() == [1, 1, 0.2]
    other = EntropyAdaptation(adaptation.table.ids)
    other.load(adaptation.tensors())
    assert other.of_epoch(2)(ids)["magnitude"].tolist() == [1, 1, 0.2]
    with pytest.raises(LookupError, match="sample 11 has no magnitude"):
        adaptation.of_epoch(2)(np.array([11], np.uint64))


@pytest.mark.parametrize("way", ["gap", "entropy"])
def test_a_log_makes_the_same_training_again(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, validation = digits(150)
    seen: list[torch.Tensor] = []
    parts = Trainer._parts

    def watched(trainer: Trainer) -> Any:
        for batch, seconds in parts(trainer):
            seen.append(batch.images)
            yield batch, seconds

    monkeypatch.setattr(Trainer, "_parts", watched)
    train(source, options(tmp_path / "first", adapt=way, ema=0.5, **ADAPTED), validation=validation)
    first, log = list(seen), tmp_path / "first" / "log.jsonl"
    seen.clear()
    train(source, options(tmp_path / "again", adapt_from=str(log), ema=0.5, **ADAPTED), validation=validation)
    assert all(torch.equal(one, other) for one, other in zip(first, seen, strict=True))
    assert steps(tmp_path / "first") == steps(tmp_path / "again")
    recorded, again = RecordedMagnitudes(log), RecordedMagnitudes(tmp_path / "again")
    ids = np.arange(150, dtype=np.uint64)
    assert all(np.array_equal(recorded(e)(ids)["magnitude"], again(e)(ids)["magnitude"]) for e in range(3))
    # And without a training, in a loader of one's own, the images that the step saw.
    trainer_transform = T.Compose(
        [T.AdaptiveRandAugment(), T.RandomCrop((8, 8), padding=1), T.Normalize((0.449,), (0.226,))]
    )
    loader = vg.Loader(source, trainer_transform, 32, "cpu", conditions=recorded, layout="NHWC")
    loader.set_epoch(2)
    for batch, image in zip(loader, first[-5:], strict=True):
        assert torch.equal(batch.images, image)
    # A fixed policy makes other images.
    seen.clear()
    train(source, options(tmp_path / "fixed", **ADAPTED), validation=validation)
    assert not any(torch.equal(one, other) for one, other in zip(first[5:], seen[5:], strict=True))


@pytest.mark.parametrize("way", ["gap", "entropy"])
def test_a_stop_anywhere_changes_no_magnitude(tmp_path: Path, way: str) -> None:
    source, validation = digits(150)
    chosen = {"adapt": way, "ema": 0.9, "accumulate": 2, **ADAPTED, "batch_size": 16}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    for step in (3, 5, 8):  # in the middle, at the end of an epoch, and once more
        stop = Event()

        def tell(line: dict[str, Any], stop: Event = stop, step: int = step) -> None:
            if line.get("step") == step:
                stop.set()

        last = train(source, options(tmp_path / "parts", **chosen), validation=validation, tell=tell, stop=stop)
        assert not last["is_done"]
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert RecordedMagnitudes(tmp_path / "parts").fingerprint(3) == RecordedMagnitudes(tmp_path / "whole").fingerprint(
        3
    )


def test_what_the_log_says(tmp_path: Path) -> None:
    source, validation = digits(96)
    train(
        source,
        options(tmp_path / "gap", adapt="gap", adapt_step=0.25, adapt_target=0.0, **ADAPTED),
        validation=validation,
    )
    scored = [line for line in lines(tmp_path / "gap") if "top1" in line]
    keys = ["epoch", "top1", "top5", "loss_train", "loss_validation", "next_magnitude"]
    assert [list(line) for line in scored] == [keys] * 3
    used = [0.3]
    for line in scored:
        up = line["loss_train"] < line["loss_validation"]
        used.append(min(1.0, max(0.0, round(used[-1] + (0.25 if up else -0.25), 6))))
        assert line["next_magnitude"] == used[-1]
    assert [line["magnitude"] for line in steps(tmp_path / "gap")] == np.repeat(used[:3], 3).tolist()
    train(source, options(tmp_path / "entropy", adapt="entropy", **ADAPTED))
    ids, tables = (
        np.load(tmp_path / "entropy" / "magnitudes" / "ids.npy"),
        [np.load(tmp_path / "entropy" / "magnitudes" / f"000{epoch}.npy") for epoch in range(3)],
    )
    assert ids.tolist() == list(range(96))
    assert [table.dtype for table in tables] == [np.uint8] * 3
    means = [line["magnitude"] for line in steps(tmp_path / "entropy")]
    assert np.reshape(means, (3, 3)).mean(1) == pytest.approx([table.mean() / 255 for table in tables], abs=1e-6)
    assert means[:3] == [0, 0, 0]


def test_a_file_with_policies_at_given_magnitudes_trains(tmp_path: Path) -> None:
    policy = T.Compose([T.RandomApply([T.RandAugment(1, 15)], p=0.5), T.AdaptiveRandAugment(1, operations=["Rotate"])])
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy.to_dict()))
    source, validation = digits(64)
    train(source, options(tmp_path / "out", **{**ADAPTED, "policy": str(path), "adapt": "gap"}), validation=validation)
    assert steps(tmp_path / "out")[0]["magnitude"] == 0.5
    with pytest.raises(ValueError, match=r"policy: got an AdaptiveRandAugment, .* with adapt='gap'"):
        train(source, options(tmp_path / "not", policy=str(path)))


def test_images_that_are_mixed_or_cannot_be_read(tmp_path: Path) -> None:
    (pixels, labels), validation = digits(80)
    policy = T.Compose([T.RandAugment(1), T.RandomChoice([T.MixUp(alpha=0.2), T.CutMix()])])
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(policy.to_dict()))
    for way in ("gap", "entropy"):
        chosen = {**ADAPTED, "policy": str(path), "adapt": way}
        train((pixels, labels), options(tmp_path / way, **chosen), validation=validation)
        assert len(steps(tmp_path / way)) == 9
    files = tmp_path / "files"
    for number in range(40):
        (files / str(labels[number])).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number, ..., 0]).save(files / str(labels[number]) / f"{number}.png")
    bad = sorted(files.glob("*/*.png"))[5]
    bad.write_bytes(b"nothing")
    chosen = {**ADAPTED, "adapt": "entropy", "batch_size": 8, "model": "wrn-10-1"}
    last = train(str(files), options(tmp_path / "out", **chosen))
    assert len(last["unread"]) == 1
    table = np.load(tmp_path / "out" / "magnitudes" / "0002.npy")
    assert table[5] == 0
    assert (table > 0).sum() > 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entropy_loss": -1.0}, "entropy_loss: got -1.0; accepted: 0 or more"),
        ({"adapt": "much"}, "adapt: got 'much'; accepted: 'none', 'gap', 'entropy'"),
        ({"adapt_target": 0.1}, "adapt_target: got 0.1 with adapt='none'; accepted: with adapt='gap'"),
        ({"adapt": "entropy", "adapt_step": 0.1}, "adapt_step: got 0.1 with adapt='entropy'"),
        ({"adapt": "gap", "adapt_step": 0.0}, "adapt_step: got 0.0; accepted: from more than 0 to 1"),
        ({"adapt": "gap", "adapt_target": 1.5}, "adapt_target: got 1.5; accepted: from 0 to 1"),
        ({"adapt": "gap", "adapt_from": "run"}, "adapt_from: got 'run' with adapt='gap'; accepted: either"),
    ],
)
def test_bad_options(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainOptions(**changes)


def test_what_cannot_adapt_is_refused(tmp_path: Path) -> None:
    source, validation = digits(64)

    def refused(message: str, others: Any = validation, images: Any = source, **changes: Any) -> None:
        with pytest.raises(ValueError, match=message):
            train(images, options(tmp_path / "out", **{**ADAPTED, **changes}), validation=others)

    refused("adapt: got 'gap' without validation images; accepted: with validation", None, adapt="gap")
    refused(
        "adapt: got 'gap' with policy 'trivialaugment', which has no magnitude", adapt="gap", policy="trivialaugment"
    )
    refused("adapt: got 'entropy' with policy 'none', which has no magnitude to give", adapt="entropy", policy="none")
    shards = [vg.open_source(one, stream=True, classes="ab") for one in write_shards(tmp_path, 1)]
    refused("adapt: got 'entropy' with a stream, whose samples are not known", images=shards[0], adapt="entropy")
    refused(r"adapt_from: .*nowhere: no log of a training \(", adapt_from=str(tmp_path / "nowhere"))
    train(source, options(tmp_path / "fixed", **ADAPTED))
    refused(
        "adapt_from: .*fixed: has no magnitudes; accepted: the folder, or the log", adapt_from=str(tmp_path / "fixed")
    )
    train(source, options(tmp_path / "run", adapt="entropy", **ADAPTED))
    run = str(tmp_path / "run")
    refused("adapt_from: .*run has the magnitudes of 3 epochs, not of epoch 3", adapt_from=run, epochs=4)
    refused(r"adapt_from: .*run is of other images \(sample 64 has no", images=digits(65)[0], adapt_from=run)
    with pytest.raises(ResumeError, match="holds a training run with --adapt 'entropy', this one has 'none'"):
        train(source, options(tmp_path / "run", **ADAPTED))
    (tmp_path / "run" / "magnitudes" / "0001.npy").write_bytes(b"nothing")
    refused("adapt_from: .*0001.npy: no file of magnitudes", adapt_from=run)


def test_tables_are_looked_up_by_id() -> None:
    table = MagnitudeTable(np.array([7, 2**63, 3], np.uint64), np.array([255, 0, 51], np.uint8))
    assert table.given()(np.array([3, 7, 7, 2**63], np.uint64))["magnitude"].tolist() == [0.2, 1, 1, 0]

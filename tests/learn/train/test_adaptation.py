"""Magnitudes by the model's confidence: what they are, how they are recorded, and that they can be used again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.learn.train.digits import digits, lines, options, stopped_after
from tests.needed import needs
from variegate import transforms as T
from variegate.learn.adaptation import confidence_codes
from variegate.learn.fit import Fit
from variegate.learn.magnitudes import RecordedMagnitudes
from variegate.learn.trainer import train

pytestmark = needs("sklearn")

ADAPTED: dict[str, Any] = {"policy": "randaugment", "adapt": "entropy", "epochs": 3}
ADAPTED |= {"model": "tests.learn.train.test_trainer:with_dropout"}


@pytest.fixture(autouse=True)
def _tell_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.learn.progress._TELL_SECONDS", 0.0)


def test_confidence_by_hand() -> None:
    half = 1 - math.log(2) / math.log(4)
    scores = torch.tensor([[0.0, 0, 0, 0], [100, 0, 0, 0], [50, 50, 0, 0], [math.nan] * 4])
    assert confidence_codes(scores).tolist() == [0, 255, round(255 * half), 0]
    probabilities = np.array([0.7, 0.2, 0.1])
    by_hand = 1 + (probabilities * np.log(probabilities)).sum() / np.log(3)
    assert confidence_codes(torch.tensor(np.log(probabilities))[None]).item() == round(255 * by_hand)


def test_a_stop_anywhere_changes_no_magnitude(tmp_path: Path) -> None:
    source, validation = digits(150)
    chosen = {"ema": 0.9, "accumulate": 2, **ADAPTED, "batch_size": 16}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    for step in (3, 5, 8):  # in the middle, at the end of an epoch, and once more
        parts = options(tmp_path / "parts", **chosen)
        last = train(source, parts, validation=validation, **stopped_after(step))
        assert not last["is_done"]
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    for epoch in range(3):
        one, other = (np.load(tmp_path / name / "magnitudes" / f"000{epoch}.npy") for name in ("whole", "parts"))
        assert np.array_equal(one, other)


def test_a_loader_makes_the_images_of_recorded_magnitudes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = digits(96)
    seen: list[torch.Tensor] = []
    add_gradients = Fit._add_gradients

    def watched(fit: Fit, batch: Any, *more: Any) -> torch.Tensor:
        seen.append(batch.images)
        return add_gradients(fit, batch, *more)

    monkeypatch.setattr(Fit, "_add_gradients", watched)
    train(source, options(tmp_path, **{**ADAPTED, "policy": "randaugment+crop1"}))
    steps = [T.AdaptiveRandAugment(), T.RandomCrop((8, 8), padding=1), T.Normalize((0.449,), (0.226,))]
    recorded = RecordedMagnitudes(tmp_path)
    loader = vg.Loader(source, T.Compose(steps), 32, "cpu", conditions=recorded, layout="NHWC")
    loader.set_epoch(2)
    for batch, images in zip(loader, seen[-3:], strict=True):
        assert torch.equal(batch.images, images)
    (tmp_path / "magnitudes" / "0001.npy").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"0001.npy: no magnitudes of a training with --adapt entropy"):
        recorded(1)


def test_the_log_has_mean_magnitudes(tmp_path: Path) -> None:
    train(digits(96)[0], options(tmp_path, **ADAPTED))
    ids = np.load(tmp_path / "magnitudes" / "ids.npy")
    tables = [np.load(tmp_path / "magnitudes" / f"000{epoch}.npy") for epoch in range(3)]
    assert ids.tolist() == list(range(96))
    assert [table.dtype for table in tables] == [np.uint8] * 3
    means = [line["magnitude"] for line in lines(tmp_path) if "step" in line]
    assert np.reshape(means, (3, 3)).mean(1) == pytest.approx([table.mean() / 255 for table in tables], abs=1e-6)
    assert means[:3] == [0, 0, 0]


def test_images_that_are_mixed_or_cannot_be_read(tmp_path: Path) -> None:
    (pixels, labels), _ = digits(80)
    policy = T.Compose([T.RandAugment(1), T.RandomChoice([T.MixUp(alpha=0.2), T.CutMix()])])
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(policy.to_dict()))
    train((pixels, labels), options(tmp_path / "mixed", **{**ADAPTED, "policy": str(path)}))
    files = tmp_path / "files"
    for number in range(40):
        (files / str(labels[number])).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number, ..., 0]).save(files / str(labels[number]) / f"{number}.png")
    bad = sorted(files.glob("*/*.png"))[5]
    bad.write_bytes(b"nothing")
    last = train(str(files), options(tmp_path / "out", **{**ADAPTED, "batch_size": 8, "model": "wrn-10-1"}))
    assert len(last["unread"]) == 1
    table = np.load(tmp_path / "out" / "magnitudes" / "0002.npy")
    assert table[5] == 0
    assert (table > 0).sum() > 30


def test_what_cannot_adapt_is_refused(tmp_path: Path) -> None:
    source, _ = digits(64)

    def refused(message: str, images: Any = source, **changes: Any) -> None:
        with pytest.raises(ValueError, match=message):
            train(images, options(tmp_path / "out", **{**ADAPTED, **changes}))

    refused("adapt: got 'entropy' with policy 'trivialaugment', which has no magnitude", policy="trivialaugment")
    refused("adapt: got 'entropy' with policy 'none', which has no magnitude to give", policy="none")
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(T.AdaptiveRandAugment(1, operations=["Rotate"]).to_dict()))
    refused(r"policy: got an AdaptiveRandAugment, .* with adapt='entropy'", policy=str(path), adapt="none")

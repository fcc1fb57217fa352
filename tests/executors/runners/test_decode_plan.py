"""What is decoded as planned for a whole batch is what is decoded when each row decides for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.decode.jpegs import KINDS, jpeg
from variegate import transforms as T
from variegate.errors import DecodeError
from variegate.executors.runners import encoded_batch
from variegate.executors.runners.decode_plan import plan_rows
from variegate.executors.runners.encoded_batch import EncodedBatch

SIZES = ((61, 75), (1, 1), (2, 300), (130, 17), (420, 500))
TRANSFORMS = {
    "crops": T.RandomResizedCrop(32),
    "large crops": T.RandomResizedCrop(24, scale=(0.5, 1.0)),
    "nearest": T.RandomResizedCrop(32, interpolation="nearest"),
    "bicubic": T.RandomResizedCrop(32, interpolation="bicubic"),
    "whole": T.Resize((20, 30)),
    "blend": T.Compose([T.RandomResizedCrop(32), T.AugMix()]),
}


def run(
    transform: T.Transform, files: list[bytes], failures: dict[int, DecodeError] | None = None, fast: bool = True
) -> Any:
    batch = EncodedBatch(files, failures=failures)
    aug = vg.Augmenter(transform, seed=3, num_threads=1, fast_decode=fast)
    return aug.decode_and_run(batch, ids=range(len(files)))


def without_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_batch, "plan_rows", lambda fused, *rest: [None] * fused.num_rows)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_planned_rows_equal_those_that_decide_for_themselves(
    name: str, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [jpeg(*size, **options) for options in KINDS.values() for size in SIZES]
    plans: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(encoded_batch, "plan_rows", lambda *args: plans.extend(plan_rows(*args)) or plans)
        planned = run(TRANSFORMS[name], files, fast=fast)
    assert (name == "blend") == all(plan is None for plan in plans)
    if "crops" in name:
        assert any(plan is not None and plan.height_offset for plan in plans)
        assert fast == any(plan is not None and plan.divisor > 1 for plan in plans)
    without_plans(monkeypatch)
    assert torch.equal(planned, run(TRANSFORMS[name], files, fast=fast))


@pytest.mark.parametrize("damage", ["end", "middle"])
def test_damaged_files_are_noted_as_without_a_plan(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, good = np.random.default_rng(0), jpeg(200, 160)
    files = []
    for _ in range(24):
        at = int(rng.integers(700, len(good)))
        files.append(good[:at] if damage == "end" else good[:at] + bytes(9) + good[at + 9 :])
    found: list[dict[int, DecodeError]] = [{}, {}]
    outputs = [run(T.RandomResizedCrop(32), [good, *files], found[0])]
    without_plans(monkeypatch)
    outputs.append(run(T.RandomResizedCrop(32), [good, *files], found[1]))
    assert {i: str(error) for i, error in found[0].items()} == {i: str(error) for i, error in found[1].items()}
    assert bool(found[0]) == (damage == "end")
    assert torch.equal(*outputs)

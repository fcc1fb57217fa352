"""Draws that are sampled again in bulk are those that trained, and strengths are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.apps.attribution.draws import Operations, Samples, binned, sample_again
from variegate.augmenter.planner import Planner, RunningCount
from variegate.program.describe import operations_of
from variegate.program.program import Output

MIX = T.RandomChoice([T.MixUp(alpha=0.2), T.CutMix()])
JITTER = T.Compose([T.RandomAffine(30, (0.1, 0.1)), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomPerspective(0.5)])
CHOSEN = T.Compose([T.RandomResizedCrop(32), T.Cond("label", {"3": T.Invert()}), T.RandomErasing(0.5)])
NUMBER, EPOCHS = 40, range(150, 153)
SAMPLES = Samples(
    np.arange(NUMBER).astype(np.uint64) * 7, np.full((NUMBER, 3), (40, 50, 3), np.int32), np.arange(NUMBER) % 5
)


def again(transform: T.Transform, places: Any) -> Operations:
    return sample_again(
        Planner(transform, 3, Output(), RunningCount()), SAMPLES, places, EPOCHS, lambda _: lambda ids: {}
    )


def own_names(operations: list[dict[str, Any]]) -> Iterator[str]:
    for one in operations:
        if "chains" in one:
            yield from (name for part in one["chains"] if "id" not in part for name in own_names(part["operations"]))
        else:
            yield one["op"]


@pytest.mark.parametrize(
    "policy",
    [
        T.TrivialAugmentWide(),
        vg.load_policy("pba-cifar10"),
        vg.load_policy("augmix"),
        T.Compose([T.RandAugment(), MIX]),
        JITTER,
        CHOSEN,
    ],
    ids=["trivialaugment", "schedule", "augmix", "mixed", "jitter", "chosen"],
)
def test_they_are_those_of_the_augmenter(policy: T.Transform) -> None:
    is_known = np.random.default_rng(0).random((NUMBER, 3, 1)) < 0.8
    places = np.where(is_known, np.cumsum(is_known).reshape(is_known.shape) - 1, -1)
    found = again(policy, places)
    draws, operations, _ = found.sorted()
    augmenter = vg.Augmenter(policy, "cpu", seed=3)
    partners: Any = {"partners": "batch"} if policy._mixers else {}
    for number, epoch in enumerate(EPOCHS):
        rows = np.flatnonzero(is_known[:, number, 0])
        given = {"label": SAMPLES.labels[rows]}
        program = augmenter.program(SAMPLES.shapes[rows], SAMPLES.ids[rows], epoch, 0, given, **partners)
        for output, row in enumerate(rows.tolist()):
            mine = {found.names[one] for one in operations[draws == places[row, number, 0]]} - {"MixUp", "CutMix"}
            assert mine == set(own_names(operations_of(program, output)))
        if program.mixture is not None:
            mixed = [name is not None for name in program.mixture.names]
            assert found.mixed(int(is_known.sum()))[places[rows, number, 0]].tolist() == mixed


def test_strengths_are_thirds_on_either_side_of_what_changes_nothing() -> None:
    places = np.arange(NUMBER * 3).reshape(NUMBER, 3, 1)
    found = again(T.Compose([T.RandomRotation(90), T.Brightness((1.0, 2.0)), T.Posterize((4, 7)), T.Invert()]), places)
    _, columns, bins = binned(found)
    strengths = {(found.names[one.operation], one.strength): (one.low, one.high) for one in bins}
    sides = [f"{sign}{word}" for sign in "-+" for word in ("low", "middle", "high")]
    assert [strength for name, strength in strengths if name == "Rotate"] == sides
    assert (
        -90 <= strengths["Rotate", "-high"][0] < strengths["Rotate", "-high"][1] < strengths["Rotate", "-middle"][0] < 0
    )
    assert [strength for name, strength in strengths if name == "Brightness"] == ["low", "middle", "high"]
    # Fewer bits change more.
    assert strengths["Posterize", "low"][0] > strengths["Posterize", "high"][1]
    assert np.isnan(strengths["Invert", ""]).all()
    counts = np.bincount(columns)
    assert counts.sum() == NUMBER * 3 * 4
    assert counts[[one.strength.endswith("middle") for one in bins]].min() >= 15


@pytest.mark.parametrize(
    ("transform", "name", "low", "high"),
    [
        (T.RandomResizedCrop(32, (0.25, 0.5)), "ResizedCrop", 0.24, 0.52),
        (T.Cutout(10), "Cutout", 0.0, 0.05),
        (T.RandomCrop((40, 50), padding=4), "Crop", 0.0, 5.7),
        (T.RandomAffine(0, translate=(0.1, 0.0)), "Affine", 0.0, 5.0),
        (T.RandomApply([T.GaussianBlur(5, (0.5, 2.0))], 0.5), "GaussianBlur", 0.5, 2.0),
    ],
)
def test_what_is_strong_is_a_number_that_users_know(transform: T.Transform, name: str, low: float, high: float) -> None:
    found = again(transform, np.arange(NUMBER * 3).reshape(NUMBER, 3, 1))
    _, operations, values = found.sorted()
    own = values[operations == found.names.index(name)]
    assert low <= own.min() < own.max() <= high

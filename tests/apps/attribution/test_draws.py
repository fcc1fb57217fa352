"""Draws that are sampled again in bulk are those that trained, and strengths are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
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


def again(transform: T.Transform, is_known: Any = True) -> Operations:
    sample, epoch = np.nonzero(np.broadcast_to(is_known, (NUMBER, 3)))
    planner = Planner(transform, 3, Output(), RunningCount())
    return sample_again(planner, SAMPLES, (sample, epoch + EPOCHS[0], 0 * epoch), lambda _: lambda ids: {})


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
    is_known = np.random.default_rng(0).random((NUMBER, 3)) < 0.8
    places = np.cumsum(is_known).reshape(is_known.shape) - 1
    found = again(policy, is_known)
    augmenter = vg.Augmenter(policy, "cpu", seed=3)
    partners: Any = {"partners": "batch"} if policy._mixers else {}
    for number, epoch in enumerate(EPOCHS):
        rows = np.flatnonzero(is_known[:, number])
        given = {"label": SAMPLES.labels[rows]}
        program = augmenter.program(SAMPLES.shapes[rows], SAMPLES.ids[rows], epoch, 0, given, **partners)
        for output, row in enumerate(rows.tolist()):
            mine = {found.names[one] for one in found.operations[found.draws == places[row, number]]} - {
                "MixUp",
                "CutMix",
            }
            assert mine == set(own_names(operations_of(program, output)))
        if program.mixture is not None:
            mixed = [name is not None for name in program.mixture.names]
            assert found.is_mixed[places[rows, number]].tolist() == mixed


def test_strengths_are_an_arguments_values_or_quarters_of_the_draws() -> None:
    found = again(T.Compose([T.RandomRotation(90), T.Posterize((4, 7)), T.Invert()]))
    columns: Any
    bins: Any
    _, columns, bins = binned(found)
    turns, bits, inverted = (
        [one for one in bins if one.operation == name] for name in ("Rotate", "Posterize", "Invert")
    )
    assert turns[0].low >= -90
    assert all(one.low < one.high < other.low for one, other in pairwise(turns))
    assert [(one.low, one.high) for one in bits] == [(4, 4), (5, 5), (6, 6), (7, 7)]
    assert inverted == [("Invert", None, None)]
    assert np.bincount(columns)[:4] == pytest.approx([NUMBER * 3 / 4] * 4, abs=1)
    assert np.bincount(columns).sum() == NUMBER * 3 * 3
    draws, columns, bins = binned(found, 1)
    assert [one.operation for one in bins] == found.names
    assert draws.tolist() == np.repeat(np.arange(NUMBER * 3), 3).tolist()


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
    found = again(transform)
    own = found.arguments[found.operations == found.names.index(name)]
    assert low <= own.min() < own.max() <= high

"""Containers: probabilities, subsets, orders, and draws that do not move when a branch is not taken."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.program.ops import Op
from variegate.program.program import Program

A, B, C = T.Brightness(1.1), T.Contrast(1.2), T.Color(1.3)
OPS = (int(Op.BRIGHTNESS), int(Op.CONTRAST), int(Op.SATURATION))


def counts(program: Program) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for row in range(program.num_rows):
        key = tuple(program.opcode[row, : program.length[row]].tolist())
        found[key] = found.get(key, 0) + 1
    return found


def assert_shares(found: dict[tuple[int, ...], int], expected: dict[tuple[int, ...], float]) -> None:
    n = sum(found.values())
    assert set(found) == {key for key, share in expected.items() if share > 0}
    for key, share in expected.items():
        assert abs(found.get(key, 0) - n * share) <= 5 * math.sqrt(n * share)


def test_compose_keeps_the_order(draw: Any) -> None:
    assert counts(draw(T.Compose([A, B, C]), 10)) == {OPS: 10}


def test_random_apply_takes_all_or_nothing(draw: Any) -> None:
    assert_shares(counts(draw(T.RandomApply([A, B], p=0.3), 10_000)), {OPS[:2]: 0.3, (): 0.7})


def test_random_choice_follows_its_weights(draw: Any) -> None:
    weighted = T.RandomChoice([A, B, C], p=[1, 0, 3])
    assert_shares(counts(draw(weighted, 10_000)), {OPS[:1]: 0.25, OPS[1:2]: 0.0, OPS[2:]: 0.75})
    assert_shares(counts(draw(T.RandomChoice([A, B, C]), 9000)), {(op,): 1 / 3 for op in OPS})


def test_one_of_may_take_none(draw: Any) -> None:
    chosen = T.OneOf([A, B], p=0.5, weights=(3, 1))
    assert_shares(counts(draw(chosen, 10_000)), {(): 0.5, OPS[:1]: 0.375, OPS[1:2]: 0.125})


def test_some_of_takes_subsets_in_the_order_listed(draw: Any) -> None:
    pairs = dict.fromkeys(itertools.combinations(OPS, 2), 1 / 3)
    assert_shares(counts(draw(T.SomeOf([A, B, C], 2), 9000)), pairs)
    subsets: list[tuple[int, ...]] = [(op,) for op in OPS]
    any_number = {(): 1 / 4, OPS: 1 / 4, **dict.fromkeys([*subsets, *pairs], 1 / 12)}
    assert_shares(counts(draw(T.SomeOf([A, B, C], (0, 3)), 12_000)), any_number)


def test_random_order_takes_every_order_alike(draw: Any) -> None:
    expected = dict.fromkeys(itertools.permutations(OPS), 1 / 6)
    assert_shares(counts(draw(T.RandomOrder([A, B, C]), 9000)), expected)


def test_random_order_of_more_than_four(draw: Any) -> None:
    found = counts(draw(T.RandomOrder([A, B, C, T.Invert(), T.Posterize(3)]), 2000))
    assert len(found) == 120
    assert all(len(order) == 5 for order in found)


def test_choices_are_independent_of_each_other(draw: Any) -> None:
    program = draw(T.Compose([T.RandomApply([A]), T.RandomApply([B])]), 20_000)
    has = np.stack([(program.opcode == op).any(axis=1) for op in OPS[:2]])
    assert abs(np.corrcoef(has)[0, 1]) < 0.04


def test_a_branch_not_taken_moves_no_later_number(draw: Any) -> None:
    tail = T.Rotate((-30, 30))

    def angles(p: float) -> list[float]:
        program = draw(T.Compose([T.RandomApply([T.Brightness((0.5, 1.5)), T.GaussianNoise()], p=p), tail]), 50)
        return [float(program.args[row, program.length[row] - 1, 0]) for row in range(50)]

    assert angles(0.0) == angles(0.5) == angles(1.0)


def test_slots_are_the_sum_of_the_parts() -> None:
    inner = T.OneOf([T.RandomHorizontalFlip(), T.RandomResizedCrop(8)])
    assert inner.num_slots == 1 + 1 + 10
    assert T.Compose([inner, T.Invert(), T.GaussianNoise()]).num_slots == 12 + 0 + 2
    assert T.RandomOrder([A] * 5).num_slots == 2 + 5
    assert T.SomeOf([A] * 5, 1).num_slots == 1 + 2 + 5
    assert T.Cond("label", {0: inner, 1: A}).num_slots == 13
    assert T.Cond("uniform", {0: inner, 1: A}).num_slots == 14


def test_sizes_flow_through_choices(draw: Any) -> None:
    program = draw(T.Compose([T.OneOf([T.Pad(2), T.RandomRotate90(p=1.0)]), T.RandomCrop(4)]), 200, size=(5, 7, 3))
    assert all(program.final_size(row) == (4, 4) for row in range(200))
    assert {tuple(s) for s in program.out_size[:, 0].tolist()} == {(9, 11), (7, 5), (5, 7)}

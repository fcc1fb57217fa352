"""Containers: probabilities, subsets, orders, and draws that do not move when a branch is not taken."""

from __future__ import annotations

from typing import Any

from variegate import transforms as T

A, B, C = T.Brightness(1.1), T.Contrast(1.2), T.Color(1.3)


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

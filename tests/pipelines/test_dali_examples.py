"""The examples of DALI's tutorials on conditional execution, as written but for names and for readers."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.program.ops import Op
from variegate.transforms import functional as F


def op_magnitude_range(mag_lo: float, mag_hi: float, steps: int = 10) -> Callable[..., Any]:
    """Convert the function from taking a generic parameter to taking magnitude in [0, steps) range."""

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(imgs: Any, magnitude: int) -> Any:
            param_range = np.linspace(mag_lo, mag_hi, steps)
            parameter = param_range[magnitude]
            return function(imgs, parameter)

        return wrapper

    return decorator


@op_magnitude_range(-0.3, 0.3)
def shearX(img: Any, parameter: float) -> Any:
    return F.shear_x(img, parameter)


@op_magnitude_range(-0.3, 0.3)
def shearY(img: Any, parameter: float) -> Any:
    return F.shear_y(img, parameter)


@op_magnitude_range(-150, 150)
def translateX(img: Any, parameter: float) -> Any:
    return F.translate_x(img, parameter)


@op_magnitude_range(-150, 150)
def translateY(img: Any, parameter: float) -> Any:
    return F.translate_y(img, parameter)


@op_magnitude_range(-30, 30)
def rotate(img: Any, parameter: float) -> Any:
    return F.rotate(img, angle=parameter, fill=0)


@op_magnitude_range(-0.1, 1.9)
def brightness(img: Any, parameter: float) -> Any:
    return F.adjust_brightness(img, brightness_factor=parameter)


@op_magnitude_range(-0.1, 1.9)
def contrast(img: Any, parameter: float) -> Any:
    return F.adjust_contrast(img, contrast_factor=parameter)


def subpolicy(op0: Any, p0: float, mag0: int, op1: Any, p1: float, mag1: int) -> Callable[..., Any]:
    def subpolicy_impl(images: Any, rand0: Any, rand1: Any) -> Any:
        if rand0 < p0:
            images = op0(images, mag0)
        if rand1 < p1:
            images = op1(images, mag1)
        return images

    return subpolicy_impl


policies = [
    subpolicy(rotate, 0.7, 2, translateX, 0.3, 9),
    subpolicy(contrast, 0.3, 3, rotate, 0.8, 4),
    subpolicy(shearX, 0.7, 2, contrast, 0.3, 7),
    subpolicy(translateY, 0.7, 2, shearX, 0.3, 6),
    subpolicy(brightness, 0.5, 7, translateY, 0.8, 3),
    subpolicy(rotate, 0.7, 2, rotate, 0.7, 3),
    subpolicy(translateY, 0.8, 8, contrast, 0.8, 2),
    subpolicy(shearY, 0.1, 3, shearX, 0.6, 9),
]


def auto_augment_seq_pipe(images: Any) -> Any:
    policy_id = vg.choice(list(range(len(policies))))

    rand0 = vg.uniform()
    rand1 = vg.uniform()

    for i in range(len(policies)):
        if policy_id == i:
            print(f"Running `if policy_id == {i}`")
            images = policies[i](images, rand0, rand1)
    resized = F.resize(images, (40, 40))
    return resized, policy_id


def apply_policies(imgs: Any, policy_id: Any, policies: Any) -> Any:
    """To each sample in `imgs` apply the corresponding `policies[policy_id]`"""

    rand0 = vg.uniform()
    rand1 = vg.uniform()

    def recursive_split(imgs: Any, rand0: Any, rand1: Any, policy_id: Any, start_offset: int, elems: int) -> Any:
        if elems == 1:
            policy = policies[start_offset]
            return policy(imgs, rand0, rand1)
        half_size = elems // 2
        if policy_id < start_offset + half_size:
            return recursive_split(imgs, rand0, rand1, policy_id, start_offset, half_size)
        else:
            return recursive_split(imgs, rand0, rand1, policy_id, start_offset + half_size, elems - half_size)

    return recursive_split(imgs, rand0, rand1, policy_id, 0, len(policies))


def auto_augment_pipe(images: Any) -> Any:
    policy_id = vg.choice(list(range(len(policies))))

    result = apply_policies(images, policy_id, policies)

    resized = F.resize(result, (40, 40))
    return resized, policy_id


def _operations(transform: T.Transform, ids: range) -> list[list[tuple[Any, ...]]]:
    labels = {"labels": [0] * len(ids)}
    program = vg.Augmenter(transform).program([(60, 50)] * len(ids), ids=list(ids), conditions=labels)
    return [
        [(op, *np.nan_to_num(args[:2]).tolist()) for op, args in program.operations(row)] for row in range(len(ids))
    ]


def test_two_ways_to_write_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    """Draws belong to the calls, so that the two draw other numbers."""
    sequence = vg.pipeline(auto_augment_seq_pipe)
    tree = vg.pipeline(auto_augment_pipe)
    for rows in (_operations(sequence, range(500)), _operations(tree, range(500))):
        assert {len(row) for row in rows} == {1, 2, 3}
        twice = [row for row in rows if [op for op, *_ in row[:2]] == [Op.ROTATE, Op.ROTATE]]
        assert {(row[0][1], row[1][1]) for row in twice} == {(-30 + 60 / 9 * 2, -10.0)}
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 500
    assert set(printed) == {f"Running `if policy_id == {i}`" for i in range(8)}


def select_pipe(images: Any, labels: Any) -> Any:
    """Select of DALI's auto_aug.core: the operations, and which of them."""
    ops = [lambda data: F.invert(data), lambda data: F.solarize(data, 128), F.equalize]
    images = vg.select(ops, vg.randint(len(ops)), images)
    return images, labels


def test_select_takes_the_arguments_in_their_order_as_well() -> None:
    rows = _operations(vg.pipeline(select_pipe), range(300))
    count = {op: sum(row[0][0] is op for row in rows) for op in (Op.INVERT, Op.SOLARIZE, Op.EQUALIZE)}
    assert sum(count.values()) == 300
    assert min(count.values()) > 70

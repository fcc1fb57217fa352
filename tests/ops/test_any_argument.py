"""Any value for any argument of any class: it is refused by name at once, or what it makes can be sampled, soon."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import photo
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES
from variegate import transforms as T
from variegate.errors import PolicyError

NAN, INF = float("nan"), float("inf")
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 64, 10**6, 2**31, 2**63, 10**400, -(10**400)),
    *(0.0, 0.5, -0.5, 1.5, 1e-300, 1e30, 1e308, -1e308, NAN, INF, -INF, 1 + 2j),
    *("", "x", "nearest", "random", b"x", [], (), {}, set(), object(), int, ...),
    *([0], [1, 2], [2, 1], [0, 10**9], [1e-300, 1e300], [NAN, NAN], [INF, INF], [1, 2, 3], [1, 2, 3, 4], ["a", "b"]),
    *([[1], [2]], [[]], [None], [10**400] * 2, (0.1, 10**9), {"a": 1}, [T.Invert()], T.Invert(), [T.Invert] * 5000),
    *(np.float64(0.5), np.int64(3), np.array([1, 2]), np.array([]), torch.zeros(2, requires_grad=True)),
]
EVERY = {**EXAMPLES, **MIXERS, **BY_BOXES, **{type(policy).__name__: [policy] for policy in POLICIES}}
SOON = 5.0
SIZES = [(20, 30), (1, 1), (7, 5, 1)]


def arguments_of(transform: T.Transform) -> dict[str, Any]:
    return {field.name: getattr(transform, field.name) for field in dataclasses.fields(transform)}


def changes(name: str) -> Iterator[tuple[T.Transform, str, Any]]:
    """Every value for every argument, beside those of the first example that has it."""
    transform = EVERY[name][0]
    for field in dataclasses.fields(transform):
        if field.init:
            yield from ((transform, field.name, value) for value in VALUES)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_it_is_refused_by_name_or_can_be_sampled(name: str) -> None:
    given: dict[str, Any] = {"conditions": {"label": [1, 2, 3]}, "partners": "batch"}
    if name in (*BY_BOXES, "CopyPaste"):
        given["boxes"] = [[[0, 0, 1, 1]], [], [[0, 1, 5, 3.5], [1, 1, 2, 2]]]
    for transform, argument, value in changes(name):
        arguments = arguments_of(transform)
        start = time.process_time()
        try:
            made = type(transform)(**{**arguments, argument: value})
        except (T.ArgumentError, PolicyError) as error:
            _check_message(error, arguments)
            continue
        try:
            program = vg.Augmenter(made).program(SIZES, ids=[0, 1, 2], **given)
        except ValueError as error:
            _check_message(error)
        else:
            assert program.num_rows >= 3
        assert time.process_time() - start < SOON, (argument, value)


@pytest.mark.parametrize("name", EVERY)
def test_a_description_is_refused_by_the_path_to_its_key(name: str) -> None:
    for transform, argument, value in changes(name):
        paths = [f"p.{field}" for field in arguments_of(transform)]
        try:
            T.from_dict({**transform.to_dict(), argument: value}, "p")
        except PolicyError as error:
            _check_message(error, paths)


def _check_message(error: Exception, names: Iterable[str] = ("",)) -> None:
    """One short line that names an argument: this one, or one that it does not go with."""
    message = str(error)
    assert "\n" not in message
    assert len(message) < 3000
    assert any(name in message for name in names)


def test_a_transform_that_draws_without_end_is_refused() -> None:
    schedule = {"format": "variegate-schedule/1", "segments": [{"epochs": 1, "policy": [["Rotate", 0.5, 3]] * 300_000}]}
    with pytest.raises(ValueError, match=r"transform: got one that draws 75,\d+ blocks of random numbers for an image"):
        vg.Augmenter(T.PBA(schedule))


def test_nesting_has_an_end() -> None:
    nested: T.Transform = T.Invert()
    for _ in range(31):
        nested = T.RandomApply([nested], p=1.0)
    assert vg.Augmenter(nested)([photo(4, 5)])[0].shape == (3, 4, 5)
    for build in (lambda: T.Compose([nested]), lambda: T.Cond("epoch", [(0, 1, nested)])):
        with pytest.raises(T.ArgumentError, match=r"=33 transforms within one another; accepted: at most 32"):
            build()


def test_a_grid_too_fine_for_an_image_is_refused_when_it_is_met() -> None:
    fine = vg.Augmenter(T.GridMask(2, 0.5))
    fine.program([(500, 500)], ids=[0])
    message = r"GridMask: unit=2 makes \d,\d{3},\d{3} squares on an image of 4000x4000; accepted: at most 65,536"
    with pytest.raises(ValueError, match=message):
        fine.program([(8, 8), (4000, 4000)], ids=[0, 1])

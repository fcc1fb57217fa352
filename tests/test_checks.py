"""Checks of arguments: what is accepted, in which form it comes back, and how a refusal reads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from variegate import checks, transforms
from variegate.errors import PolicyError


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.array(3), torch.tensor(3)])
def test_integers_of_any_library_come_back_plain(value: Any) -> None:
    assert type(checks.integer("n", value)) is int


@pytest.mark.parametrize(
    "value", [True, np.bool_(True), torch.tensor(True), 3.0, "3", None, [3], np.array([3, 4]), torch.zeros(2), object()]
)
def test_nothing_else_is_an_integer(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^n: got .*; accepted: an integer$"):
        checks.integer("n", value)


@pytest.mark.parametrize(
    ("value", "plain"), [(2, 2), (0.5, 0.5), (np.float32(0.5), 0.5), (np.int8(2), 2), (Fraction(1, 2), 0.5)]
)
def test_numbers_of_any_library_come_back_plain(value: Any, plain: float) -> None:
    number = checks.number("x", value)
    assert number == plain
    assert type(number) is type(plain)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, 10**400, 1j, "1", None, [1]])
def test_nothing_else_is_a_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^x: got .*; accepted: a finite number$"):
        checks.number("x", value)


def test_sequences_of_numbers_come_back_as_tuples() -> None:
    assert checks.as_numbers(np.array([1, 2])) == checks.as_numbers([1, 2]) == checks.as_numbers(range(1, 3)) == (1, 2)
    for value in ("12", b"12", {1: 2}, {1, 2}, np.array(3), list, [1, None], [[1], [2]], [1, math.nan], (math.inf,)):
        assert checks.as_numbers(value) is None


REFUSED: list[tuple[Callable[..., Any], Any, str]] = [
    (partial(checks.integer, low=1), 0, "n: got 0; accepted: an integer from 1 on"),
    (partial(checks.integer, low=0, high=2**64 - 1), -1, "n: got -1; accepted: an integer from 0 to 2**64 - 1"),
    (partial(checks.integer, low=2, high=1024), 1, "n: got 1; accepted: an integer from 2 to 1024"),
    (partial(checks.integer, low=0, high=1 << 20), -1, "n: got -1; accepted: an integer from 0 to 1,048,576"),
    (partial(checks.integer, low=1, accepted="a side"), 0, "n: got 0; accepted: a side"),
    (partial(checks.number, low=0), -1, "n: got -1; accepted: a finite number of 0 or more"),
    (partial(checks.number, low=0, high=0.5), 2, "n: got 2; accepted: a number from 0 to 0.5"),
    (partial(checks.one_of, choices=(True, False)), 1, "n: got 1; accepted: one of True, False"),
    (partial(checks.one_of, choices=("a", None)), "b", "n: got 'b'; accepted: one of 'a', None"),
]


@pytest.mark.parametrize(("check", "value", "message"), REFUSED)
def test_refusals_name_the_argument_its_value_and_what_is_accepted(
    check: Callable[..., Any], value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check("n", value)
    with pytest.raises(PolicyError, match=re.escape(message)):
        check("n", value, error=PolicyError)


def test_a_word_that_is_near_is_asked_about() -> None:
    with pytest.raises(ValueError, match=r"^x: got 'Hots'; accepted: one of 'host', 'Device'; did you mean 'host'\?$"):
        checks.one_of("x", "Hots", ("host", "Device"))
    assert checks.did_you_mean("device", ("host", "Device")) == "; did you mean 'Device'?"
    assert checks.did_you_mean("far", ("host", "Device", 7)) == checks.did_you_mean(7, ("host",)) == ""


def test_transforms_outside_of_a_list_are_refused() -> None:
    flip, crop = transforms.RandomHorizontalFlip(), transforms.RandomCrop(8)
    message = (
        r"^Compose: got 2 positional arguments; accepted: transforms; put all .* one list: Compose\(\[first, second\]"
    )
    with pytest.raises(TypeError, match=message):
        transforms.Compose(flip, crop)  # type: ignore[arg-type]

"""Numbers are finite: NaN and infinities are refused for every argument of every class, in Python and descriptions."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES
from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.policies.uniform import AdaptiveRandAugment

EVERY = [example for examples in (EXAMPLES | MIXERS | BY_BOXES).values() for example in examples]
CLASSES = {type(each).__name__: each for each in [*EVERY, *POLICIES, AdaptiveRandAugment()]}
# "infinity draws uniformly", as their documentation has it.
INFINITE = {("AutoAugment", "magnitude_std"), ("TimmRandAugment", "magnitude_std"), ("TimmAugMix", "magnitude_std")}


def with_number(value: Any, number: float) -> Iterator[Any]:
    """``value`` with each of its numbers replaced in turn."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield number
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: changed} for changed in with_number(inner, number))
    elif isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            yield from ([*value[:at], changed, *value[at + 1 :]] for changed in with_number(inner, number))


def accepted_by(transform: T.Transform, argument: str, value: Any) -> bool:
    fields = [field.name for field in dataclasses.fields(transform) if field.init]  # type: ignore[arg-type]
    arguments = {field: getattr(transform, field) for field in fields}
    ways: tuple[Callable[[], Any], ...] = (
        lambda: type(transform)(**{**arguments, argument: value}),
        lambda: T.from_dict({**transform.to_dict(), argument: value}),
    )
    for make in ways:
        with contextlib.suppress(T.ArgumentError, PolicyError):
            make()
            return True
    return False


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_they_are_refused(number: float) -> None:
    accepted = set()
    for name, transform in CLASSES.items():
        described = transform.to_dict()
        for field in dataclasses.fields(transform):  # type: ignore[arg-type]
            values = (
                number,
                [number],
                [number, number],
                [0.0, number],
                *with_number(described.get(field.name), number),
            )
            if field.init and any(accepted_by(transform, field.name, value) for value in values):
                accepted.add((name, field.name))
    assert accepted == (accepted & INFINITE if number == math.inf else set())

"""Chance that is not the samples' own, the clock, and what Python says of a value by its identity, are refused."""

from __future__ import annotations

import datetime
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.pipelines.oracle import assert_refused_here
from variegate.transforms import functional as F

own = np.random.default_rng(3)
THREE = 3
token = secrets.token_bytes
SOURCES: list[Callable[[], Any]] = [
    random.random,
    lambda: random.choice([1, 2]),
    lambda: random.Random(3).random(),
    lambda: np.random.rand(),
    lambda: own.random(),
    lambda: torch.rand(1),
    lambda: torch.zeros(2).normal_(),
    lambda: torch.nn.functional.dropout(torch.ones(9)),
    lambda: list(map(random.uniform, [1], [2])),
    lambda: [*map(random.uniform, [1], [2])],
    lambda: sorted([3, 1, 2], key=lambda _: random.random()),
    lambda: secrets.randbelow(4),
    lambda: secrets.choice([1, 2]),
    lambda: secrets.randbits(3),
    lambda: token(2),
    lambda: random.SystemRandom().random(),
    lambda: os.urandom(1),
    lambda: uuid.uuid4().int,
    lambda: time.time(),
    lambda: time.monotonic_ns(),
    lambda: time.perf_counter(),
    lambda: time.localtime().tm_sec,
    lambda: time.strftime("%S"),
    lambda: datetime.datetime.now().second,
    lambda: datetime.datetime.now(datetime.timezone.utc).second,
    lambda: datetime.date.today().day,
]


@pytest.mark.parametrize("number", range(len(SOURCES)))
def test_others_chance_and_the_clock(number: int) -> None:
    source = SOURCES[number]
    with pytest.raises(
        vg.PipelineError, match=rf"{__file__}:\d+: .*(this draws|this reads the clock).*all samples; acc"
    ):
        vg.pipeline(lambda image: (source(), image)[1])


def test_what_is_no_chance() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        when = time.strftime("%Y", time.gmtime(0))
        known = uuid.uuid5(uuid.NAMESPACE_DNS, "a").int % 3
        return F.translate_x(image, int(when) + known + len(datetime.date(2000, 1, 1).isoformat()) + sorted([2, 1])[0])

    assert vg.Augmenter(augment).program([(9, 9)], ids=[0]).args[0, 0, 0] > 1970


def in_a_set(image: Any) -> Any:
    return F.translate_x(image, len({vg.coin(), vg.coin()}))  # here


def as_a_key(image: Any) -> Any:
    return F.translate_x(image, {vg.randint(2): 3}.get(1, 2))  # here


def looked_up(image: Any, x: Any) -> Any:
    return F.translate_x(image, {1: 3}.get(x, 2))  # here


def hashed(image: Any) -> Any:
    return F.translate_x(image, hash(vg.coin()) % 2)  # here


def identity(image: Any) -> Any:
    return F.translate_x(image, id(vg.coin()) % 2)  # here


def kind(image: Any, x: Any) -> Any:
    return F.translate_x(image, 3) if type(x) is int else image  # here


def instance(image: Any, x: Any) -> Any:
    return F.translate_x(image, 3) if isinstance(x, int) else image  # here


def same_number(image: Any, x: Any) -> Any:
    return F.translate_x(image, 3) if x is THREE else image  # here


def within_a_text(image: Any, x: Any) -> Any:
    return F.translate_x(image, 3) if x in "cat, dog" else image  # here


def length_of_a_text(image: Any, x: Any) -> Any:
    return F.translate_x(image, len(f"{x}"))  # here


def compared_text(image: Any, x: Any) -> Any:
    return F.translate_x(image, 3) if f"{x}" == "3" else image  # here


def looked_up_text(image: Any, x: Any) -> Any:
    return F.translate_x(image, {"3": 4}.get(str(x), 5))  # here


CONSTANTS = [in_a_set, as_a_key, looked_up, hashed, identity, kind, instance, same_number, within_a_text]
CONSTANTS += [length_of_a_text, compared_text, looked_up_text]


@pytest.mark.parametrize("function", CONSTANTS, ids=[function.__name__ for function in CONSTANTS])
def test_what_would_be_a_constant(function: Callable[..., Any]) -> None:
    assert_refused_here(function, "accepted: ", __file__)

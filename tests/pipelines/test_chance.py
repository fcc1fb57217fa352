"""Chance that is not the samples' own, and the clock, are refused where a function names them."""

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
from variegate.transforms import functional as F

own = np.random.default_rng(3)
token = secrets.token_bytes
SOURCES: list[Callable[[], Any]] = [
    random.random,
    lambda: random.choice([1, 2]),
    lambda: np.random.rand(),
    lambda: own.random(),
    lambda: torch.rand(1),
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
    lambda: datetime.datetime.now().second,
    lambda: datetime.datetime.now(datetime.timezone.utc).second,
    lambda: datetime.date.today().day,
]


@pytest.mark.parametrize("number", range(len(SOURCES)))
def test_others_chance_and_the_clock(number: int) -> None:
    source = SOURCES[number]
    with pytest.raises(
        vg.PipelineError, match=rf"{__file__}:\d+: .*(draws numbers that do not|reads the clock).*; accepted: vg.coin"
    ):
        vg.pipeline(lambda image: (source(), image)[1])


def test_what_is_no_chance() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        when = time.strftime("%Y", time.gmtime(0))
        known = uuid.uuid5(uuid.NAMESPACE_DNS, "a").int % 3
        seeded = random.Random(3).random() * 0
        when_made = len(datetime.date(2000, 1, 1).isoformat())
        return F.translate_x(image, int(when) + known + seeded + when_made + sorted([2, 1])[0])

    assert vg.Augmenter(augment).program([(9, 9)], ids=[0]).args[0, 0, 0] > 1970

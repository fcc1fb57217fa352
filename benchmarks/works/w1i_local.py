"""W1i of small crops, as DINO's local ones: 96 pixels a side, of 5 to 40 % of the picture."""

from __future__ import annotations

from functools import partial

from benchmarks.works import w1
from benchmarks.works.base import Work

WORK = Work(
    name="w1i_local",
    title="JPEG bytes -> RandomResizedCrop(96, scale=(0.05, 0.4)), then as W1; with an entropy index",
    target=None,
    level_targets={"index": 4.0},
    peers=w1.WORK.peers,
    make_inputs=w1.make_inputs,
    check=partial(w1.check, work="w1i_local"),
    is_indexed=True,
)

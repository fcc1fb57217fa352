"""W1i: W1 where an entropy index of the files was made before, beside W1 as it is; no peer has such an index."""

from __future__ import annotations

from functools import partial

from benchmarks.works import w1
from benchmarks.works.base import Work

WORK = Work(
    name="w1i",
    title=f"{w1.WORK.title}; with an entropy index",
    target=None,
    level_targets={"index": 2.5},
    peers=w1.WORK.peers,
    make_inputs=w1.make_inputs,
    check=partial(w1.check, work="w1i"),
    is_indexed=True,
)

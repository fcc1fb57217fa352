"""W1 and its like where an entropy index of the files was made before, beside the same without; no peer has such an
index."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.inputs import Inputs
from benchmarks.works import w1
from benchmarks.works.base import Work


def indexed_work(
    name: str, title: str, target: float, make_inputs: Callable[[Path | None], tuple[Inputs, str]] = w1.make_inputs
) -> Work:
    """``target``: of the process with the index; of the one without nothing is asked."""
    return Work(
        name=name,
        title=f"{title}; with an entropy index",
        target=None,
        level_targets={"index": target},
        peers=w1.WORK.peers,
        make_inputs=make_inputs,
        check=partial(w1.check, work=name),
        is_indexed=True,
    )

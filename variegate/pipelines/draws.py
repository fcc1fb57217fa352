"""What a pipeline may draw: a number of its own for every sample, from the seed, the epoch and the sample's id.

Every call is a draw of its own, wherever it stands; a number that is used twice is the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.checks import as_number, spelt
from variegate.pipelines.choosing import entry_of, select_one
from variegate.pipelines.graph import graph_for
from variegate.pipelines.refusals import refuse
from variegate.pipelines.scalar import Scalar, operand


@spelt()
def coin(p: Any = 0.5) -> Any:
    """True with probability ``p``."""
    if not isinstance(p, Scalar) and not (as_number(p) is not None and 0 <= p <= 1):
        refuse(f"vg.coin: p={p!r}", "a number from 0 to 1")
    return _drawn("coin", p)


@spelt()
def uniform(low: Any = 0.0, high: Any = 1.0) -> Any:
    """A number from [low, high), all equally likely."""
    _check("uniform", low=low, high=high)
    if not isinstance(low, Scalar) and not isinstance(high, Scalar) and low > high:
        refuse(f"vg.uniform: low={low!r}, high={high!r}", "low <= high")
    return _drawn("uniform", low, high)


@spelt()
def randint(low: Any, high: Any = None) -> Any:
    """A whole number from ``low`` up to, but not including, ``high``; ``randint(n)`` is one of 0 .. n - 1."""
    first, end = (0, low) if high is None else (low, high)
    _check("randint", low=first, high=end)
    if isinstance(first, Scalar) or isinstance(end, Scalar):
        return _drawn("randint", first, end)
    if first != int(first) or end != int(end) or not first < end:
        refuse(f"vg.randint: low={first!r}, high={end!r}", "whole numbers low < high")
    drawn = _drawn("randint", int(first), int(end))
    drawn.count = int(end) if first >= 0 else None
    return drawn


@spelt()
def normal(mean: Any = 0.0, std: Any = 1.0) -> Any:
    """A normal number."""
    _check("normal", mean=mean, std=std)
    if not isinstance(std, Scalar) and std < 0:
        refuse(f"vg.normal: std={std!r}", "a number of 0 or more")
    return _drawn("normal", mean, std)


@spelt()
def choice(values: Sequence[Any], p: Sequence[float] | None = None) -> Any:
    """One of ``values`` (numbers, texts or values of each sample), with probabilities proportional to ``p``."""
    entries = list(values) if isinstance(values, (list, tuple, range, np.ndarray)) else []
    if not entries:
        refuse(f"vg.choice: values={values!r}", "a list of at least one value")
    if p is None:
        return entry_of(entries, randint(len(entries)))
    weights = [as_number(weight) for weight in p]
    if len(weights) != len(entries) or any(w is None or w < 0 for w in weights) or not sum(filter(None, weights)):
        refuse(f"vg.choice: p={p!r}", f"{len(entries)} numbers of 0 or more, not all 0")
    drawn = _drawn("pick", *weights)
    drawn.count = len(entries)
    return entry_of(entries, drawn)


def select(index: Any, options: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """``options[index](*args, **kwargs)`` by a value of each sample, such as ``vg.randint(3)``.

    ``options``: functions, transforms and pipelines; without further arguments also plain values. An index that is
    computed and lies beyond the end takes the last.
    """
    return select_one(index, options, args, kwargs)


def _drawn(what: str, *operands: Any) -> Any:
    graph = graph_for(f"vg.{'choice' if what == 'pick' else what}")
    name = graph.define(what, *map(operand, operands))
    return Scalar(graph, name, is_bool=what == "coin")


def _check(function: str, **numbers: Any) -> None:
    for name, value in numbers.items():
        if not isinstance(value, Scalar) and as_number(value) is None:
            refuse(f"vg.{function}: {name}={value!r}", "a finite number, or a value of each sample")

"""Draws of a pipeline, one for every sample and every call, from the seed, the epoch and the sample's id."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from variegate.checks import as_number
from variegate.pipelines.calling import call
from variegate.pipelines.graph import graph_for, refuse
from variegate.pipelines.image import Missing, merge
from variegate.pipelines.reach import Branches
from variegate.pipelines.scalar import Scalar, is_plain, make, operand

_INDEX = "vg.randint(...), a value given with the batch, or a plain integer"


def entry_of(entries: Any, index: Any) -> Any:
    """``entries[index]``."""
    if not isinstance(index, Scalar):
        return entries[index]
    listed = _listed(entries)
    if all(map(is_plain, listed)):
        _check_index(index, len(listed))
        plain = [entry for entry in listed if not isinstance(entry, Scalar)]
        if len({isinstance(entry, str) for entry in plain}) > 1:
            refuse(f"one of {listed!r}", "a list of numbers, or one of texts")
        return make("take", index, *listed)
    return _merged(index, listed)


def _merged(index: Scalar, values: list[Any]) -> Any:
    _check_index(index, len(values))
    result = values[-1]
    for number in range(len(values) - 2, -1, -1):
        result = merge(make("==", index, number), values[number], result, "the one selected")
    if isinstance(result, Missing):
        result.refused()
    return result


def _listed(entries: Any) -> list[Any]:
    if isinstance(entries, np.ndarray):
        entries = entries.tolist()
    if not isinstance(entries, (list, tuple, range)) or not len(entries):
        refuse(f"one of {entries!r} by a value of each sample", "a list of at least one")
    return list(entries)


def _check_index(index: Scalar, count: int) -> None:
    if index.count is not None and index.count > count:
        refuse(f"{index!r} is below {index.count}, and there are only {count} to choose from", f"vg.randint({count})")


def coin(p: Any = 0.5) -> Any:
    """Draw True with probability ``p``."""
    if not isinstance(p, Scalar) and not (as_number(p) is not None and 0 <= p <= 1):
        refuse(f"vg.coin: p={p!r}", "a number from 0 to 1")
    return _drawn("coin", p)


def uniform(low: Any = 0.0, high: Any = 1.0) -> Any:
    """Draw a number uniformly from [``low``, ``high``)."""
    _check("uniform", low=low, high=high)
    if not isinstance(low, Scalar) and not isinstance(high, Scalar) and low > high:
        refuse(f"vg.uniform: low={low!r}, high={high!r}", "low <= high")
    return _drawn("uniform", low, high)


def randint(low: Any, high: Any = None) -> Any:
    """Draw an integer from ``low`` to ``high`` - 1, uniformly; ``randint(n)`` draws from 0 .. n - 1."""
    first, end = (0, low) if high is None else (low, high)
    _check("randint", low=first, high=end)
    if isinstance(first, Scalar) or isinstance(end, Scalar):
        return _drawn("randint", first, end)
    if first != int(first) or end != int(end) or not first < end:
        refuse(f"vg.randint: low={first!r}, high={end!r}", "whole numbers low < high")
    drawn = _drawn("randint", int(first), int(end))
    drawn.count = int(end) if first >= 0 else None
    return drawn


def normal(mean: Any = 0.0, std: Any = 1.0) -> Any:
    """Draw a normal number with ``mean`` and standard deviation ``std``."""
    _check("normal", mean=mean, std=std)
    if not isinstance(std, Scalar) and std < 0:
        refuse(f"vg.normal: std={std!r}", "a number of 0 or more")
    return _drawn("normal", mean, std)


def choice(values: Sequence[Any], p: Sequence[float] | None = None) -> Any:
    """Draw one of ``values`` (numbers, strings or values of each sample), in proportion to ``p`` (None: uniformly)."""
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
    """Call one of ``options`` by a value of each sample: ``options[index](*args, **kwargs)``.

    ``index`` is such as ``vg.randint(3)``; a computed one beyond the end takes the last option. ``options`` are
    functions, transforms and pipelines; without further arguments also plain values. ``args`` and ``kwargs`` are passed
    to the option.
    """
    entries: Any = options
    if isinstance(entries, Scalar) and isinstance(index, (list, tuple)):
        index, entries = entries, index  # as DALI has them
    listed = _listed(entries)
    are_called = bool(args or kwargs)
    if not isinstance(index, Scalar):
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)):
            refuse(f"vg.select: index={index!r}", _INDEX)
        chosen = listed[int(index)]
        return call(chosen, *args, **kwargs) if are_called else chosen
    _check_index(index, len(listed))
    if not are_called:
        return entry_of(listed, index)
    branches = Branches(index.graph, (*listed, *args, *kwargs.values()))
    return _merged(index, [branches.run(partial(call, option, *args, **kwargs)) for option in listed])


def _drawn(what: str, *operands: Any) -> Any:
    graph = graph_for(f"vg.{'choice' if what == 'pick' else what}")
    name = graph.define(what, *map(operand, operands))
    return Scalar(graph, name, is_bool=what == "coin")


def _check(function: str, **numbers: Any) -> None:
    for name, value in numbers.items():
        if not isinstance(value, Scalar) and as_number(value) is None:
            refuse(f"vg.{function}: {name}={value!r}", "a finite number, or a value of each sample")

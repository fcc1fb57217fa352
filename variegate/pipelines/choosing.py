"""One of several by an index that differs from sample to sample: ``vg.select``, ``vg.choice``, ``angles[index]``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from variegate.pipelines.calling import call
from variegate.pipelines.merging import Missing, merge
from variegate.pipelines.reach import Branches
from variegate.pipelines.refusals import refuse
from variegate.pipelines.scalar import Scalar, is_plain, make

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


def select_one(index: Any, options: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if isinstance(options, Scalar) and isinstance(index, (list, tuple)):
        index, options = options, index  # as DALI has them
    listed = _listed(options)
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

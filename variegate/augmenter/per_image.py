"""Checks of what a call says of each of its images: ids, copies, and values for ``Cond``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.checks import as_integer, integer
from variegate.errors import shown
from variegate.threads import at_fork

Conditions = Mapping[str, npt.ArrayLike] | None
Copies = int | Sequence[int] | npt.ArrayLike
Ids = Sequence[int] | npt.ArrayLike | None


class RunningCount:
    """Ids of images that have none: how many there have been before. A copy goes on from here."""

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self.after_fork()
        at_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        with self._lock:
            first = self._next
            self._next += number
        return np.arange(first, first + number, dtype=np.uint64)

    def __reduce__(self) -> tuple[type[RunningCount], tuple[int]]:
        return RunningCount, (self._next,)


def check_ids(ids: Any, number: int) -> npt.NDArray[np.uint64]:
    array = _one_each("ids", ids, number, "one integer per image")
    if array.dtype.kind in "fO" and isinstance(ids, (list, tuple)) and None not in map(as_integer, ids):
        # Integers on both sides of 2**63 have no common type but float; those of 2**64 and more, none at all.
        array = np.array([i if 0 <= i < 1 << 64 else -1 for i in ids], dtype=object)
        array = array.astype(np.int64 if (array < 0).any() else np.uint64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "i" and number and int(array.min()) < 0):
        raise ValueError(f"ids: got {shown(ids)}; accepted: integers from 0 to 2**64 - 1")
    return array.astype(np.uint64)


def check_id(ids: Any) -> int:
    """Of a batch of one."""
    if type(ids) is list and len(ids) == 1 and type(ids[0]) is int and 0 <= ids[0] < 1 << 64:
        return ids[0]
    return int(check_ids(ids, 1)[0])


def check_conditions(conditions: Conditions, number: int) -> dict[str, npt.NDArray[Any]]:
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping) or not all(isinstance(name, str) for name in conditions):
        accepted = 'a dict from name to one value per image, such as {"label": labels}'
        raise TypeError(f"conditions: got {shown(conditions)}; accepted: {accepted}")
    return {
        name: _one_each(f"conditions[{name!r}]", values, number, "one value per image", scalar=False)
        for name, values in conditions.items()
    }


def of_one_sample(conditions: Conditions, number: int) -> dict[str, npt.NDArray[Any]]:
    """The conditions of one sample, each in a list or as it is, for ``number`` that are alike."""
    if isinstance(conditions, Mapping):
        conditions = {name: np.atleast_1d(np.asarray(value)) for name, value in conditions.items()}
    return {name: np.repeat(values, number) for name, values in check_conditions(conditions, 1).items()}


def with_labels(conditions: Conditions, labels: Any) -> Conditions:
    """The conditions, and the labels as ``label`` where they are classes and nothing else is."""
    if labels is None or (isinstance(conditions, Mapping) and "label" in conditions):
        return conditions
    array = labels.detach().cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
    return {**(conditions or {}), "label": array} if array.dtype.kind in "iu" and array.ndim == 1 else conditions


def check_copies(copy: Any, number: int) -> npt.NDArray[np.uint32]:
    """One for all, uint32[1], or uint32[number]."""
    if isinstance(copy, Integral):
        accepted = "an integer from 0 to 2**32 - 1, or one per image"
        return np.array([integer("copy", copy, 0, 2**32 - 1, accepted=accepted)], np.uint32)
    array = _one_each("copy", copy, number, "one integer, or one per image")
    if array.dtype.kind not in "iu" or (number and not 0 <= int(array.min()) <= int(array.max()) < 1 << 32):
        raise ValueError(f"copy: got {shown(copy)}; accepted: integers from 0 to 2**32 - 1")
    return array.astype(np.uint32)


def _one_each(name: str, values: Any, number: int, accepted: str, scalar: bool = True) -> npt.NDArray[Any]:
    """``number`` values as an array of the host, those of tensors too; each a number, unless ``scalar`` is False."""
    accepted = f"accepted: {accepted}, {number} here"
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = values.float() if values.dtype == torch.bfloat16 else values  # which NumPy does not read
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:  # NumPy's word for lists of several lengths
        raise ValueError(f"{name}: got {shown(values)}; {accepted}") from error
    if (array.shape if scalar else array.shape[:1]) != (number,):
        raise ValueError(f"{name}: got shape {array.shape}; {accepted}")
    return array

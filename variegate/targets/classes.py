"""Classes of what images show, for ``Cond(by="objects")``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.arrays import AnyArray
from variegate.checks import did_you_mean
from variegate.errors import short_repr


def objects_of(wanted: Sequence[int | str], labels: Sequence[Any], classes: Sequence[str] = ()) -> AnyArray:
    """Sets of the labels in each image, object[N]: numbers, and their names where ``classes`` are known.

    ``labels``: of each image's objects, None for none that are known. Raises TypeError without them, ValueError for
    ``wanted`` names that no label can have.
    """
    if any(each is None for each in labels):
        raise TypeError("Cond: got objects without classes, by which it chooses; accepted: samples with 'labels'")
    found = np.empty(len(labels), object)
    for n, each in enumerate(labels):
        known = set(each.tolist() if hasattr(each, "tolist") else each)
        found[n] = known | {classes[label] for label in known if isinstance(label, int) and 0 <= label < len(classes)}
    names = [label for label in wanted if isinstance(label, str)]
    if classes and (unknown := [name for name in names if name not in classes]):
        accepted = f"the source's classes, {short_repr(list(classes))}{did_you_mean(unknown[0], classes)}"
        raise ValueError(f"Cond: got the class {unknown[0]!r}; accepted: {accepted}")
    if names and not classes and any(not isinstance(label, str) for each in found for label in each):
        raise ValueError(f"Cond: got the class {names[0]!r} for labels that are numbers; accepted: numbers of classes")
    return found

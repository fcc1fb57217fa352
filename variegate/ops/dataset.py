"""``Normalize("dataset")`` and its numbers: they are put in its place where a data set is at hand, before anything is
sampled, so that programs and executors see numbers alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from variegate.ops.base import Transform
from variegate.ops.output import Normalize


def wants_statistics(transform: Transform) -> bool:
    """Whether there is a ``Normalize("dataset")`` in it."""
    return _wants(transform)


def with_statistics(transform: Transform, mean: tuple[float, ...], std: tuple[float, ...]) -> Transform:
    """The same transform with these numbers; parts that want none are the same objects."""
    return cast(Transform, _replaced(transform, mean, std))


def _wants(value: Any) -> bool:
    if isinstance(value, Normalize):
        return value.is_of_dataset
    return any(map(_wants, _parts(value)))


def _parts(value: Any) -> list[Any]:
    if isinstance(value, Transform):
        fields = dataclasses.fields(value) if hasattr(value, "__dataclass_fields__") else ()  # type: ignore[arg-type]
        return [getattr(value, field.name) for field in fields if field.init]
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else []


def _replaced(value: Any, mean: tuple[float, ...], std: tuple[float, ...]) -> Any:
    if not _wants(value):
        return value
    if isinstance(value, Normalize):
        return Normalize(mean, std, value.inplace)
    if isinstance(value, Transform):
        fields = [field.name for field in dataclasses.fields(value) if field.init]  # type: ignore[arg-type]
        changed = {name: getattr(value, name) for name in fields if _wants(getattr(value, name))}
        made = {name: _replaced(part, mean, std) for name, part in changed.items()}
        return dataclasses.replace(value, **made)  # type: ignore[type-var]
    if isinstance(value, Mapping):
        return {name: _replaced(part, mean, std) for name, part in value.items()}
    return type(value)(_replaced(part, mean, std) for part in value)

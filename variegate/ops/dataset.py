"""Walks through a transform's parts; the numbers of ``Normalize("dataset")``, set before anything is sampled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from variegate.ops.base import Transform
from variegate.ops.output import Normalize


def walk(value: Any) -> Iterator[Any]:
    """A transform, its arguments and all that is within them."""
    yield value
    if isinstance(value, Transform):
        parts = list(_arguments(value).values())
    elif isinstance(value, Mapping):
        parts = list(value.values())
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else []
    for part in parts:
        yield from walk(part)


def substituted(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change(part)`` for each part within it where that is not None; else the same object."""
    if (made := change(value)) is not None:
        return made
    if isinstance(value, (Transform, Mapping)):
        parts = _arguments(value) if isinstance(value, Transform) else value
        new = {name: made for name, part in parts.items() if (made := substituted(part, change)) is not part}
        if not new:
            return value
        return {**value, **new} if isinstance(value, Mapping) else dataclasses.replace(value, **new)  # type: ignore[type-var]
    if isinstance(value, (list, tuple)):
        items = [substituted(part, change) for part in value]
        return value if all(map(lambda a, b: a is b, items, value)) else type(value)(items)
    return value


def _arguments(transform: Transform) -> dict[str, Any]:
    fields: tuple[Any, ...] = dataclasses.fields(transform) if dataclasses.is_dataclass(transform) else ()
    return {field.name: getattr(transform, field.name) for field in fields if field.init}


def wants_statistics(transform: Transform) -> bool:
    """True if there is a ``Normalize("dataset")`` in it."""
    return any(isinstance(part, Normalize) and part.is_of_dataset for part in walk(transform))


def with_statistics(transform: Transform, mean: tuple[float, ...], std: tuple[float, ...]) -> Transform:
    """The same transform with these numbers; parts that want none are the same objects."""

    def change(part: Any) -> Any:
        is_asked = isinstance(part, Normalize) and part.is_of_dataset
        return Normalize(mean, std, part.inplace) if is_asked else None

    return cast(Transform, substituted(transform, change))

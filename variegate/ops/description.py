"""Creation of transforms from descriptions: dicts as in JSON and YAML files, the output of ``Transform.to_dict``.

Descriptions are untrusted input: every error names the path of the invalid value. The module also traverses trees of
transforms, to set the numbers of ``Normalize("dataset")`` before sampling.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from variegate.checks import did_you_mean
from variegate.errors import PolicyError, short_repr
from variegate.ops.arguments import MAX_DEPTH, ArgumentError
from variegate.ops.base import Transform
from variegate.ops.compose import Compose
from variegate.ops.output import Normalize, ToDtype
from variegate.removed import removal_message

# Nesting depth of a description: a transform in a list has two levels, and the lists of policies a few more.
_MAX_LEVELS = 2 * MAX_DEPTH + 16
_MAX_VALUES = 1_000_000


def from_dict(described: Any, where: str = "transform") -> Transform:
    """Create a transform from its description, the inverse of ``Transform.to_dict``.

    Args:
        described: the description, a dict.
        where: name of the description, with which paths in messages begin.

    Raises:
        PolicyError: with the path to the first invalid key; also for a description that is recursive or larger than any
            policy (limits in ``variegate/ops/arguments.py``).
    """
    check_tree(described, where)
    return _from_dict(described, where)


def _from_dict(described: Any, where: str) -> Transform:
    if not isinstance(described, Mapping):
        raise PolicyError(where, described, 'an object with a "type", such as {"type": "RandomHorizontalFlip"}')
    check_keys(described, where)
    name = described.get("type")
    cls = Transform.registry.get(name) if isinstance(name, str) else None
    if cls is None:
        if "__version__" in described or "__class_fullname__" in described:
            accepted = "a transform's to_dict(), as vg.from_albumentations(...).to_dict() makes it of Albumentations'"
            raise PolicyError(where, list(described), accepted)
        removal = removal_message(f"transforms.{name}")
        if removal is not None:
            raise PolicyError(f"{where}.type", name, f"another class, as {removal}")
        accepted = f"a class of variegate.transforms, such as 'Rotate'{did_you_mean(name, Transform.registry)}"
        raise PolicyError(f"{where}.type", name, accepted)
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for key, value in described.items():
        if key == "type":
            continue
        if key not in fields:
            accepted = f"arguments of {name}: {', '.join(fields) or 'none'}{did_you_mean(key, fields)}"
            raise PolicyError(f"{where}.{key}", value, accepted)
        if key in cls._path_args and _names_file(value):
            accepted = f"what to_dict() says of the images; only a Python call, {name}({key}=...), opens files"
            raise PolicyError(f"{where}.{key}", value, accepted)
        arguments[key] = _revive(value, f"{where}.{key}")
    try:
        return cls(**arguments)
    except PolicyError:
        raise
    except ArgumentError as error:
        raise PolicyError(f"{where}.{error.argument}", error.got, error.accepted) from error
    except TypeError as error:
        missing = [
            f.name
            for f in fields.values()
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in arguments
        ]
        if missing:
            raise PolicyError(f"{where}.{missing[0]}", None, f"a value: {name} requires it") from error
        raise PolicyError(where, dict(described), str(error)) from error


def _names_file(value: Any) -> bool:
    """Return whether a value, or an entry of it, is a path or an address."""
    entries = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(entry, (str, bytes, os.PathLike)) for entry in entries)


def _revive(value: Any, where: str) -> Any:
    if isinstance(value, Mapping) and "type" in value:
        return _from_dict(value, where)
    if isinstance(value, list):
        return tuple(_revive(item, f"{where}[{i}]") for i, item in enumerate(value))
    if isinstance(value, Mapping):
        return {k: _revive(v, f"{where}.{k}") for k, v in value.items()}
    return value


def check_tree(described: Any, where: str) -> None:
    """Raise PolicyError for a description that is nested too deeply (or contains itself), or that is too large.

    An object that occurs several times counts each time, because each occurrence creates a transform.
    """
    count = 0
    stack: list[tuple[Any, int]] = [(described, 0)]
    while stack:
        value, level = stack.pop()
        count += 1
        if level > _MAX_LEVELS:
            accepted = f"at most {_MAX_LEVELS} levels of lists and objects within one another"
            raise PolicyError(where, "a description nested more deeply, or without end", accepted)
        if count + len(stack) > _MAX_VALUES:
            accepted = f"at most {_MAX_VALUES:,} values, those that are repeated by reference included"
            raise PolicyError(where, "a larger description", accepted)
        if isinstance(value, Mapping):
            stack += [(inner, level + 1) for inner in value.values()]
        elif isinstance(value, (list, tuple)):
            stack += [(inner, level + 1) for inner in value]


def check_keys(described: Mapping[Any, Any], where: str) -> None:
    """Raise PolicyError for a key that is not a string."""
    for key in described:
        if not isinstance(key, str):
            raise PolicyError(f"{where}.{short_repr(key)}", key, "a name of an argument, which is a string")


def walk(value: Any) -> Iterator[Any]:
    """Yield a transform, its arguments, and their contents, recursively."""
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
    """Replace each part of ``value`` for which ``change(part)`` is not None. Returns ``value`` itself if unchanged."""
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
    """Return whether the tree of ``transform`` contains a ``Normalize("dataset")``."""
    return any(isinstance(part, Normalize) and part.is_of_dataset for part in walk(transform))


def with_statistics(transform: Transform, mean: tuple[float, ...], std: tuple[float, ...]) -> Transform:
    """Return the transform with ``mean`` and ``std`` in each ``Normalize("dataset")``. Other parts are not copied."""

    def change(part: Any) -> Any:
        is_asked = isinstance(part, Normalize) and part.is_of_dataset
        return normalize_by(mean, std, part.inplace) if is_asked else None

    return cast(Transform, substituted(transform, change))


def normalize_by(mean: tuple[float, ...], std: tuple[float, ...], inplace: bool = False) -> Transform:
    """Return a ``Normalize`` with measured statistics. Those above 1 are of floats in units of their own, which are not
    scaled before."""
    normalize = Normalize(mean, std, inplace)
    if max(*mean, *std) <= 1:
        return normalize
    return Compose([ToDtype("float32", scale=False), normalize])

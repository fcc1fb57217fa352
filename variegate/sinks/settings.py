"""The settings of a run as a file, and in what two runs differ."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from variegate.data.sources.base import SourceError

_SHOWN_DIFFERENCES = 3
_LONGEST_VALUE = 40
_MISSING = object()


def as_json(settings: dict[str, Any]) -> dict[str, Any]:
    """What reading them back gives: lists for tuples, and keys that are strings. Raises TypeError, ValueError for what
    JSON cannot hold."""
    return dict(json.loads(json.dumps(settings)))


def to_bytes(settings: dict[str, Any]) -> bytes:
    return (json.dumps(settings, indent=2) + "\n").encode()


def from_bytes(data: bytes, place: str) -> dict[str, Any]:
    """Raises SourceError naming ``place``."""
    try:
        settings = json.loads(data)
    except ValueError as error:
        raise SourceError(f"{place}: not JSON ({' '.join(str(error).split())}); choose another folder") from None
    if not isinstance(settings, dict):
        raise SourceError(f"{place}: not the settings of a run; choose another folder")
    return settings


def digest(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def describe_differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """``with seed 0, this one has seed 1``; "" where they are equal. Of many differences, the first few."""
    found = _differences("", there, here)
    if not found:
        return ""
    some = found[:_SHOWN_DIFFERENCES]
    more = f" (and {len(found) - len(some)} differences more)" if len(found) > len(some) else ""
    sides = [" and ".join(_named(name, pair[side], pair[1 - side]) for name, *pair in some) for side in (0, 1)]
    return f"with {sides[0]}, this one has {sides[1]}{more}"


def _differences(name: str, there: Any, here: Any) -> list[tuple[str, Any, Any]]:
    """The innermost values that differ: their names (transform.ops[2].angle) and both values."""
    if isinstance(there, dict) and isinstance(here, dict):
        prefix = f"{name}." if name else ""
        parts = [(prefix + key, there.get(key, _MISSING), here.get(key, _MISSING)) for key in {**here, **there}]
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        parts = [(f"{name}[{index}]", *pair) for index, pair in enumerate(zip(there, here, strict=True))]
    else:
        # As text: NaN equals itself there, and true is not 1.
        is_same = _MISSING not in (there, here) and json.dumps(there) == json.dumps(here)
        return [] if is_same else [(name, there, here)]
    return [found for part in parts for found in _differences(*part)]


def _named(name: str, value: Any, other: Any) -> str:
    if value is _MISSING:
        return f"no {name}"
    text = json.dumps(value)
    if len(text) <= _LONGEST_VALUE:
        return f"{name} {text}"
    length = _LONGEST_VALUE - 3
    begins_alike = other is not _MISSING and json.dumps(other)[:length] == text[:length]
    return f"{name} ...{text[-length:]}" if begins_alike else f"{name} {text[:length]}..."

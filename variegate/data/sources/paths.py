"""Names of files: local paths and addresses, their parts, and brace notation."""

from __future__ import annotations

import os
import re
from itertools import product
from urllib.parse import urlsplit
from urllib.request import url2pathname

from variegate.data.sources.base import SourceError
from variegate.outside.addresses import is_url, protocols, shown, without_secrets

__all__ = ["base_name", "expand_braces", "is_url", "plain", "protocols", "relative_names", "shown", "without_secrets"]

_RANGE = re.compile(r"^(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?$")
_MOST_NAMES = 1_000_000


def plain(path: str | os.PathLike[str]) -> str:
    """A path as text; ``file://`` addresses and ``~`` become ordinary local paths."""
    text = os.fspath(path)
    if text.startswith(("file://", "local://")) and "::" not in text:
        return url2pathname(urlsplit(text).path)
    return text if is_url(text) else os.path.expanduser(text)


def base_name(path: str) -> str:
    """The last part of a path or address, without secrets; of a chained address, that of the outermost file."""
    return shown(path).partition("::")[0].replace(os.sep, "/").rstrip("/").rpartition("/")[2]


def relative_names(paths: list[str]) -> list[str]:
    """The paths below the folder that they share, with forward slashes: the same wherever that folder stands."""
    names = [shown(path).replace(os.sep, "/").split("/") for path in paths]
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == names[0][shared] for name in names):
        shared += 1
    return ["/".join(name[shared:]) for name in names]


def expand_braces(pattern: str) -> list[str]:
    """WebDataset's notation: ``x-{000..002}`` -> x-000, x-001, x-002; ``{a,b}.tar`` -> a.tar, b.tar. Braces nest.

    A range keeps the zeros that either of its ends is padded with, and takes a step (``{0..8..4}``). Braces that hold
    neither a range nor a comma stand for themselves.
    """
    names = _expand(pattern)
    if len(names) > _MOST_NAMES:
        raise SourceError(f"{shown(pattern)}: {len(names):,} names; at most {_MOST_NAMES:,} are accepted")
    return names


def _expand(pattern: str) -> list[str]:
    at = pattern.find("{")
    while at >= 0:
        end = _closing(pattern, at)
        choices = _choices(pattern[at + 1 : end], pattern) if end > 0 else None
        if choices is not None:
            return [pattern[:at] + middle + rest for middle, rest in product(choices, _expand(pattern[end + 1 :]))]
        at = pattern.find("{", at + 1)
    return [pattern]


def _closing(pattern: str, at: int) -> int:
    depth = 0
    for index in range(at, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[index], 0)
        if depth == 0:
            return index
    return -1


def _choices(inside: str, pattern: str) -> list[str] | None:
    """What one pair of braces stands for; None where it stands for itself."""
    found = _RANGE.match(inside)
    if found:
        first, last = int(found[1]), int(found[2])
        step = abs(int(found[3] or 1)) or 1
        if abs(last - first) // step >= _MOST_NAMES:
            raise SourceError(f"{shown(pattern)}: {{{inside}}} is more than {_MOST_NAMES:,} names; check the range")
        is_padded = any(len(end.lstrip("-")) > 1 and end.lstrip("-").startswith("0") for end in found.group(1, 2))
        width = max(len(found[1]), len(found[2])) if is_padded else 0
        sign = 1 if last >= first else -1
        return [f"{number:0{width}d}" for number in range(first, last + sign, sign * step)]
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(inside[start:index])
            start = index + 1
    if not parts:
        return None
    return [name for part in [*parts, inside[start:]] for name in _expand(part)]

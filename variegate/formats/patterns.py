"""Braces and globs to lists of files, locally and through fsspec; words for a path that is not there."""

from __future__ import annotations

import difflib
import glob
import os
import re
from itertools import product

from variegate.formats.base import SourceError
from variegate.formats.reading import filesystem, named_errors
from variegate.io.location import Location

_RANGE = re.compile(r"^(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?$")
_MOST_NAMES = 1_000_000


def expand(location: Location) -> list[Location]:
    """The files that a pattern (globs, braces) stands for, sorted. What is no pattern, or simply the name of something,
    stands for itself. Raises SourceError where a glob matches nothing, or cannot be looked up."""
    if not location.is_url and os.path.lexists(location.address()):
        return [location]
    found: list[str] = []
    for one in expand_braces(location):
        if not _has_glob(one):
            found.append(one.address())
            continue
        matches = _remote_glob(one) if one.is_url else glob.glob(one.address(), recursive=True)
        if not matches:
            raise SourceError(f"{one}: matches nothing{_where(one)}")
        found += matches
    return [Location.of(path) for path in sorted(found)] if found != [location.address()] else [location]


def check_there(spec: str) -> None:
    """Raises SourceError where a path, or all that a pattern stands for, is not on this machine; addresses are not
    asked."""
    location = Location.parse(spec)
    if not location.is_url and not os.path.lexists(first := expand(location)[0].address()):
        raise missing(first)


def expand_braces(location: Location) -> list[Location]:
    """WebDataset's notation: ``x-{000..002}`` -> x-000, x-001, x-002; ``{a,b}.tar`` -> a.tar, b.tar. Braces nest.

    A range keeps the zeros that either of its ends is padded with, and takes a step (``{0..8..4}``). Braces that hold
    neither a range nor a comma stand for themselves.
    """
    names = _expand(location.address(), location)
    if len(names) > _MOST_NAMES:
        raise SourceError(f"{location}: {len(names):,} names; at most {_MOST_NAMES:,} are accepted")
    return [Location.of(name) for name in names]


def missing(path: str) -> SourceError:
    """The error for a local path that is not there, with the name that may have been meant."""
    folder, name = os.path.split(path.rstrip(os.sep))
    lost = name
    while folder and not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder, lost = os.path.split(folder)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        names = []
    lowered = {name.lower(): name for name in sorted(names, reverse=True)}
    close = difflib.get_close_matches(lost.lower(), lowered, n=1)
    if close:
        return SourceError(f"{path}: no such file or folder; did you mean {os.path.join(folder, lowered[close[0]])}?")
    where = f"; there is no {lost} in {folder or 'the current folder'}" if lost != name else ""
    return SourceError(f"{path}: no such file or folder{where}")


def _expand(text: str, pattern: Location) -> list[str]:
    at = text.find("{")
    while at >= 0:
        end, parts = _split_at_commas(text, at)
        choices = _choices(parts, pattern)
        if choices is not None:
            return [text[:at] + middle + rest for middle, rest in product(choices, _expand(text[end + 1 :], pattern))]
        at = text.find("{", at + 1)
    return [text]


def _split_at_commas(text: str, begin: int) -> tuple[int, list[str]]:
    """Where the brace that opens at ``begin`` closes, and the parts between its commas; none where it stays open."""
    depth, parts, start = 0, [], begin + 1
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0 or (depth == 1 and text[at] == ","):
            parts.append(text[start:at])
            start = at + 1
        if depth == 0:
            return at, parts
    return begin, []


def _choices(parts: list[str], pattern: Location) -> list[str] | None:
    """What one pair of braces stands for; None where it stands for itself."""
    if len(parts) > 1:
        return [name for part in parts for name in _expand(part, pattern)]
    match = _RANGE.match(parts[0]) if parts else None
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step >= _MOST_NAMES:
        raise SourceError(f"{pattern}: {{{parts[0]}}} is more than {_MOST_NAMES:,} names; check the range")
    is_padded = any(len(end.lstrip("-")) > 1 and end.lstrip("-").startswith("0") for end in match.group(1, 2))
    width = max(len(match[1]), len(match[2])) if is_padded else 0
    sign = 1 if last >= first else -1
    return [f"{number:0{width}d}" for number in range(first, last + sign, sign * step)]


def _has_glob(location: Location) -> bool:
    if not location.is_url:
        return glob.has_magic(location.address())
    # A question mark in a web address begins its query.
    return any(letter in location.address() for letter in ("*[" if location.is_web else "*?["))


def _remote_glob(location: Location) -> list[str]:
    if location.is_web:
        raise SourceError(
            f"{location}: http servers cannot list their files; name them, with braces: shard-{{000..012}}.tar"
        )
    fs, inner = filesystem(location)
    with named_errors(location):
        matches = sorted(fs.glob(inner))
    outer, chain, rest = location.address().partition("::")
    protocol, _, path = outer.partition("://")
    leading = "/" if path.startswith("/") else ""
    # Not fs.unstrip_protocol, which of the many names of a protocol gives the first, and knows no chains.
    bare = [match.partition("://")[2] if "://" in match else match for match in matches]
    return [f"{protocol}://{leading}{match.lstrip('/')}{chain}{rest}" for match in bare]


def _where(location: Location) -> str:
    """The innermost folder that is there, and what it has, so that a slip is seen at once."""
    if location.is_url:
        return ""
    folder = os.path.dirname(location.address())
    while folder and (glob.has_magic(folder) or not os.path.isdir(folder)):
        folder = os.path.dirname(folder) if os.path.dirname(folder) != folder else ""
    try:
        names = sorted(entry for entry in os.listdir(folder or ".") if not entry.startswith("."))
    except OSError:
        return ""
    some = f" ({len(names):,} entries, the first: {', '.join(names[:3])})" if names else " (which is empty)"
    return f" in {folder or 'the current folder'}{some}"

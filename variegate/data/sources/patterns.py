"""Braces and globs to lists of files, locally and through fsspec."""

from __future__ import annotations

import glob
import os

from variegate.data.sources.base import SourceError
from variegate.data.sources.paths import expand_braces, is_url, protocols, shown
from variegate.data.sources.remote import filesystem, reason_for


def is_pattern(path: str) -> bool:
    """True where a path stands for many: it has a glob or braces, and is not simply the name of something."""
    if not is_url(path) and os.path.lexists(path):
        return False
    names = expand_braces(path)
    return names != [path] or has_glob(path)


def has_glob(path: str) -> bool:
    if is_url(path):
        # A question mark in a web address begins its query.
        return any(letter in path for letter in ("*[" if _is_web(path) else "*?["))
    return glob.has_magic(path)


def expand(pattern: str) -> list[str]:
    """The files that a pattern stands for, sorted. A name without a pattern stands for itself, whether it is there or
    not. Raises SourceError where a glob matches nothing, or cannot be looked up."""
    if not is_pattern(pattern):
        return [pattern]
    found: list[str] = []
    for name in expand_braces(pattern):
        if not has_glob(name):
            found.append(name)
            continue
        matches = _remote_glob(name) if is_url(name) else glob.glob(name, recursive=True)
        if not matches:
            raise SourceError(f"{shown(name)}: matches nothing{_where(name)}")
        found += matches
    return sorted(found)


def _remote_glob(url: str) -> list[str]:
    if _is_web(url):
        raise SourceError(
            f"{shown(url)}: http servers cannot list their files; name them, with braces: shard-{{000..012}}.tar"
        )
    fs, inner = filesystem(url)
    try:
        matches = sorted(fs.glob(inner))
    except Exception as error:
        raise SourceError(f"{shown(url)}: {reason_for(error, url)}") from None
    return [as_url(fs, url, match) for match in matches]


def as_url(fs: object, url: str, path: str) -> str:
    """The address of ``path`` in the file system that ``url`` lies in."""
    outer, chain, rest = url.partition("::")
    protocol = outer.partition("://")[0]
    # Not fs.unstrip_protocol, which of the many names of a protocol gives the first, and knows no chains.
    bare = path.partition("://")[2] if "://" in path else path
    leading = "/" if outer.startswith(f"{protocol}:///") else ""
    return f"{protocol}://{leading}{bare.lstrip('/')}{chain}{rest}"


def _is_web(url: str) -> bool:
    return protocols(url)[0] in ("http", "https")


def _where(name: str) -> str:
    """The innermost folder that is there, and what it has, so that a slip is seen at once."""
    if is_url(name):
        return ""
    folder = os.path.dirname(name)
    while folder and (glob.has_magic(folder) or not os.path.isdir(folder)):
        folder = os.path.dirname(folder) if os.path.dirname(folder) != folder else ""
    try:
        names = sorted(entry for entry in os.listdir(folder or ".") if not entry.startswith("."))
    except OSError:
        return ""
    some = f" ({len(names):,} entries, the first: {', '.join(names[:3])})" if names else " (which is empty)"
    return f" in {folder or 'the current folder'}{some}"

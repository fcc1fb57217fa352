"""Resolve addresses and patterns to formats and files, before any file is opened."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from variegate.data.annotated.options import split_typed
from variegate.data.base import SourceError
from variegate.data.kinds import (
    ACCEPTED,
    FILE_KINDS,
    FORMATS,
    SIDECARS,
    Format,
    file_kind,
    is_image_name,
    is_system_name,
    is_system_path,
)
from variegate.data.reading import filesystem, listable_filesystem, named_errors, reason_for
from variegate.io.files import check_regular
from variegate.io.location import Location

# Innermost ones with a comma or a range; others stand for themselves.
_BRACES = re.compile(r"\{([^{}]*,[^{}]*|\d+\.\.\d+)\}")
_MOST_NAMES = 1_000_000
_ACCEPTED_ANNOTATIONS = (
    'a COCO .json file, "voc", "yolo", "masks", each with options after commas ("yolo,split=train"), or a dict with '
    '"format" ("coco", "voc", "yolo", "masks") and options of that; "columns" for .parquet files, "members" for .tar '
    "shards (docs/targets.md)"
)
# Of a folder that the commands write.
_MANIFEST = "manifest.parquet"
_SETTINGS = "variegate.json"


class Resolved(NamedTuple):
    """The format and files, or the folder, of a source; ``annotations``: the options of their layout, unchanged."""

    format: Format
    files: list[Location]
    annotations: Mapping[str, Any] | None = None


def is_place(spec: Any) -> bool:
    return isinstance(spec, (str, os.PathLike, Location))


def are_places(spec: Any) -> bool:
    return isinstance(spec, (list, tuple)) and bool(spec) and all(isinstance(one, (str, os.PathLike)) for one in spec)


def resolve(spec: Any, annotations: Any = None) -> Resolved:
    """Resolve an address or a list with patterns to a format and files; nothing is opened. Raises SourceError,
    TypeError for annotations of other types."""
    places = [spec] if is_place(spec) else spec
    files = [file for place in places for file in expand(Location.parse(place, chain=True))]
    place = files[0]
    if len(files) > 1:
        return _of_files(files, annotations)
    if not place.address():
        raise SourceError(f"an empty path; accepted: {ACCEPTED}")
    is_folder = not place.is_url and os.path.isdir(place.address())
    if file_kind(place) is not None and not is_folder:
        return _of_files(files, annotations)
    if annotations is not None and (place.is_web or not (place.is_url or is_folder)):
        return _annotated_folder(place, annotations)  # web servers list no folders
    if not place.is_url and not is_folder:
        _check_file(place)
        if not is_image_name(place.name):
            raise SourceError(f"{place}: a file of a kind that is not read; accepted: {ACCEPTED}")
        return Resolved(FORMATS["image"], files)
    names = _names_at(place)
    if found := files_of_folder(place, names):
        return _of_files(found, annotations)
    if annotations is not None:
        return _annotated_folder(place, annotations)
    if (layout := layout_of(names)) is not None:
        return Resolved(FORMATS[layout], files, {"format": layout})
    return Resolved(FORMATS["folder"], files)


def _of_files(files: list[Location], annotations: Any) -> Resolved:
    kinds: dict[Format | None, Location] = {}
    for file in files:
        kinds.setdefault(file_kind(file), file)
    kind = next(iter(kinds))
    if annotations is not None and not (len(kinds) == 1 and kind is not None and kind.annotated):
        if len(files) > 1:
            raise SourceError("annotations: they are for one folder of images, or for .parquet files or .tar shards")
        return _annotated_folder(files[0], annotations)
    if len(kinds) > 1:
        few = " and ".join(map(str, list(kinds.values())[:2]))
        accepted = " or ".join(f"{kind.suffix} files" for kind in FILE_KINDS)
        raise SourceError(f"{few}: files of different kinds; accepted: {accepted}, not both")
    for file in files:
        if not file.is_url:
            _check_file(file)
    if kind is None:
        accepted = ", ".join(kind.suffix for kind in FILE_KINDS)
        raise SourceError(f"{files[0]}: in a list or pattern, {accepted} files are accepted")
    files = sorted(files, key=Location.address)
    return Resolved(kind, files) if annotations is None else _annotated_files(kind, files, annotations)


def _annotated_files(kind: Format, files: list[Location], annotations: Any) -> Resolved:
    name = kind.annotated
    values = {"format": None} if annotations == name else _options_of(annotations)
    if values["format"] not in (None, name):
        accepted = f"{name!r}, or a dict with options of that (docs/targets.md)"
        raise SourceError(f"annotations: got {annotations!r} with {kind.suffix} files; accepted: {accepted}")
    return Resolved(FORMATS[name], files, {**values, "format": name})


def _annotated_folder(place: Location, annotations: Any) -> Resolved:
    if not place.is_url and not os.path.isdir(place.address()):
        raise SourceError(f"{place}: annotations= is for a folder of images, and there is no such folder")
    values = _options_of(annotations)
    format = FORMATS.get(values["format"]) if isinstance(values["format"], str) else None
    if format is None or format.suffixes or "annotations" not in format.options:
        raise SourceError(f"annotations: got {annotations!r}; accepted: {_ACCEPTED_ANNOTATIONS}")
    return Resolved(format, [place], values)


def _options_of(annotations: Any) -> dict[str, Any]:
    """Annotations as options, "format" among them, None if they do not say. Raises SourceError, TypeError."""
    if isinstance(annotations, Mapping):
        return {"format": "coco" if "file" in annotations else None, **annotations}
    if not isinstance(annotations, (str, os.PathLike)):
        raise TypeError(f"annotations: got {annotations!r}; accepted: {_ACCEPTED_ANNOTATIONS}")
    first, options = (annotations, {}) if isinstance(annotations, os.PathLike) else split_typed(annotations)
    values: dict[str, Any] = {"format": first}
    if first not in FORMATS:
        if not any(name.lower().endswith(".json") for name in Location.parse(first, chain=True).names):
            raise SourceError(f"annotations: got {os.fspath(annotations)!r}; accepted: {_ACCEPTED_ANNOTATIONS}")
        values = {"format": "coco", "file": first}
    if twice := values.keys() & options.keys():
        raise SourceError(f"annotations: got {min(twice)}= after {first!r}, which says it; leave one out")
    return values | options


def layout_of(names: Sequence[str]) -> str | None:
    """The layout of annotations of a folder with these entries (folders end in a slash), if it is sure."""
    if "Annotations/" in names and "JPEGImages/" in names:
        return "voc"
    return "yolo" if {"images/", "labels/", "data.yaml"}.issubset(names) else None


def files_of_folder(folder: Location, names: Sequence[str]) -> list[Location]:
    """The shards or Parquet files of a folder with these entries; empty if any entry is an image or a folder."""
    names = sorted(name for name in names if not is_system_name(name.rstrip("/")))
    if any(name.endswith("/") or is_image_name(name) for name in names):
        return []
    found = {name: kind for name in names if (kind := file_kind(Location.of(name))) is not None}
    shards = {name: kind for name, kind in found.items() if name not in SIDECARS}
    if shards:
        found = shards
    elif _MANIFEST in found and _SETTINGS in names:
        raise SourceError(f"{folder}: its shards are gone; variegate verify names them")
    suffixes = [kind.suffix for kind in FILE_KINDS if kind in found.values()]
    if len(suffixes) > 1:
        inside = str(folder).rstrip("/")
        choices = " or ".join(f"{inside}/*{suffix}" for suffix in suffixes)
        raise SourceError(f"{inside}: holds {' and '.join(suffixes)} files; say which: {choices}")
    # Parsed again, so that names with a question mark are shown as in a pattern or a list.
    return [Location.of(folder.child(name).address()) for name in found]


def _names_at(location: Location) -> list[str]:
    """The entries of a folder, sub-folders with a slash at their ends; sorted at an address. Raises SourceError."""
    if not location.is_url:
        path = location.address()
        return [name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path)]
    fs, root = listable_filesystem(location)
    with named_errors(location):
        if not fs.isdir(root):
            what = "is a file, not a folder" if fs.exists(root) else "no such file or folder"
            raise SourceError(f"{location}: {what}")
        entries = fs.ls(root, detail=True)
    paths = [(entry["name"].rstrip("/"), entry["type"] == "directory") for entry in entries]
    own = root.rstrip("/")
    return sorted(path.rpartition("/")[2] + "/" * is_folder for path, is_folder in paths if path != own)


def _check_file(location: Location) -> None:
    """Raises SourceError for a missing path, and unless it is a folder or a regular file."""
    try:
        check_regular(location.address())
    except FileNotFoundError:
        raise missing(location.address()) from None
    except IsADirectoryError:
        pass
    except (OSError, ValueError) as error:
        raise SourceError(f"{location}: {reason_for(error, location)}") from None


def expand(location: Location) -> list[Location]:
    """The files that a pattern (globs, braces) stands for, sorted. A literal, and a pattern that is the name of an
    existing file, expand to themselves. Raises SourceError where a glob matches nothing, or cannot be looked up."""
    if not location.is_url and os.path.lexists(location.address()):
        return [location]
    found: list[str] = []
    matched: list[str] = []
    for one in expand_braces(location):
        # A question mark in a web address begins its query.
        letters = "*[" if one.is_web else "*?["
        if not any(letter in one.address() for letter in letters):
            found.append(one.address())
            continue
        matches = _remote_glob(one) if one.is_url else glob.glob(one.address(), recursive=True)
        matches = _without_system_paths(one, matches)
        if not matches:
            raise SourceError(f"{one}: matches nothing")
        matched += matches
    found += [path for path in matched if Location.of(path).name not in SIDECARS]
    found = found or matched
    return [Location.of(path) for path in sorted(found)] if found != [location.address()] else [location]


def _without_system_paths(pattern: Location, matches: list[str]) -> list[str]:
    """Drop paths in which a wildcard matched a system name; names that a user typed are kept."""
    begin = re.split(r"[*?\[]", pattern.address(), maxsplit=1)[0].rpartition("/")[0]
    return [path for path in matches if not is_system_path(path.removeprefix(begin).replace(os.sep, "/"))]


def check_there(spec: str) -> None:
    """Raises SourceError where a path, or a pattern's files, are not on this machine; addresses are not asked."""
    location = Location.parse(spec, chain=True)
    if not location.is_url and not os.path.lexists(first := expand(location)[0].address()):
        raise missing(first)


def expand_braces(location: Location) -> list[Location]:
    """WebDataset's notation: ``x-{000..002}`` -> x-000, x-001, x-002; ``{a,b}.tar`` -> a.tar, b.tar. A range keeps
    padding zeros; braces without range or comma stand for themselves."""
    names = list(dict.fromkeys(_expand(location.address(), location)))
    if len(names) > _MOST_NAMES:
        raise SourceError(f"{location}: {len(names):,} names; at most {_MOST_NAMES:,} are accepted")
    return [Location.of(name) for name in names]


def missing(path: str) -> SourceError:
    """The error for a local path that is not there, with the name that may have been meant."""
    folder, name = os.path.split(path.rstrip(os.sep))
    try:
        lowered = {entry.lower(): entry for entry in sorted(os.listdir(folder or "."), reverse=True)}
    except OSError:
        lowered = {}
    close = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f"; did you mean {os.path.join(folder, lowered[close[0]])}?" if close else ""
    return SourceError(f"{path}: no such file or folder{hint}")


def _expand(text: str, pattern: Location) -> list[str]:
    braces = _BRACES.search(text)
    if braces is None:
        return [text]
    inside = braces[1]
    choices = inside.split(",") if "," in inside else _numbers(inside, pattern)
    before = text[: braces.start()]
    after = text[braces.end() :]
    return [name for choice in choices for name in _expand(f"{before}{choice}{after}", pattern)]


def _numbers(inside: str, pattern: Location) -> list[str]:
    """The numbers of a range ``000..012``, padded to the same width."""
    begin, _, end = inside.partition("..")
    first = int(begin)
    last = int(end)
    if abs(last - first) >= _MOST_NAMES:
        raise SourceError(f"{pattern}: {{{inside}}} is more than {_MOST_NAMES:,} names; check the range")
    is_padded = begin.startswith("0") or end.startswith("0")
    width = max(len(begin), len(end)) if is_padded else 0
    step = 1 if last >= first else -1
    return [f"{number:0{width}d}" for number in range(first, last + step, step)]


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

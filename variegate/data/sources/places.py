"""What a path is by its name, what a folder holds, and words for a path that is not there."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from enum import Enum

from variegate.data.sources.base import SourceError
from variegate.data.sources.folder import EXTENSIONS
from variegate.data.sources.paths import base_name, is_url, shown

_TAR = (".tar", ".tar.gz", ".tgz")
_MANIFEST = "manifest.parquet"


class Kind(Enum):
    TAR = "tar"
    PARQUET = "parquet"
    IMAGE = "image"
    OTHER = "other"


def kind_of(path: str) -> Kind:
    """By the extension, whatever its case; of an address, without its query."""
    kind = _kind_of_name(base_name(path).lower())
    if kind == Kind.OTHER and is_url(path):  # so much of it may be secret that nothing is left to be shown
        kind = _kind_of_name(re.split("[?#;]", path.partition("::")[0])[0].lower())
    return kind


def _kind_of_name(name: str) -> Kind:
    if name.endswith(_TAR):
        return Kind.TAR
    if name.endswith(".parquet"):
        return Kind.PARQUET
    return Kind.IMAGE if name.endswith(EXTENSIONS) else Kind.OTHER


def shards_of_folder(folder: str, names: Sequence[str]) -> list[str]:
    """The shards or Parquet files of a folder that holds such files and neither images nor folders; else none.

    ``names`` are its entries, folders with a slash at the end. Files of other kinds (a README, indexes) do not count,
    nor does the manifest that ``variegate augment`` puts beside shards.
    """
    names = sorted(name for name in names if not name.startswith("."))
    if any(kind_of(name) in (Kind.TAR, Kind.PARQUET) for name in names if name != _MANIFEST):
        names = [name for name in names if name != _MANIFEST]
    of_kind = {kind: [name for name in names if kind_of(name) == kind and not name.endswith("/")] for kind in Kind}
    if of_kind[Kind.IMAGE] or any(name.endswith("/") for name in names):
        return []
    if of_kind[Kind.TAR] and of_kind[Kind.PARQUET]:
        inside = shown(folder).rstrip("/")
        raise SourceError(f"{inside}: holds .tar and .parquet files; say which: {inside}/*.tar or {inside}/*.parquet")
    outer, chain, rest = folder.partition("::")
    return [f"{outer.rstrip('/')}/{name}{chain}{rest}" for name in of_kind[Kind.TAR] or of_kind[Kind.PARQUET]]


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

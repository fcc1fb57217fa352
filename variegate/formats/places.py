"""What lies in a folder or at an address, before any of it is opened."""

from __future__ import annotations

import os
from collections.abc import Sequence

from variegate.formats.base import SourceError
from variegate.formats.file_kinds import FILE_KINDS, file_kind, is_image_name
from variegate.formats.patterns import missing
from variegate.formats.reading import listable_filesystem, named_errors, reason_for
from variegate.io.files import check_regular
from variegate.io.location import Location

# What ``variegate augment`` puts beside shards, and is none of them.
_MANIFEST, _SETTINGS = "manifest.parquet", "variegate.json"


def names_in(folder: Location) -> list[str]:
    """The entries of a folder of this machine, sub-folders with a slash at their ends."""
    path = folder.address()
    return [name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path)]


def files_of_folder(folder: Location, names: Sequence[str]) -> list[Location]:
    """The shards or Parquet files of a folder that holds such files and neither images nor folders; else none.

    ``names`` are its entries, folders with a slash at the end. Files of other kinds (a README, indexes) do not count,
    nor does the manifest that ``variegate augment`` puts beside shards.
    """
    names = sorted(name for name in names if not name.startswith("."))
    if any(name.endswith("/") or is_image_name(name) for name in names):
        return []
    found = {name: kind for name in names if (kind := file_kind(Location.of(name))) is not None}
    if len(found) > 1:
        found.pop(_MANIFEST, None)
    elif _MANIFEST in found and _SETTINGS in names:
        raise SourceError(f"{folder}: its shards are gone; variegate verify names them")
    suffixes = [kind.suffix for kind in FILE_KINDS if kind in found.values()]
    if len(suffixes) > 1:
        inside = str(folder).rstrip("/")
        choices = " or ".join(f"{inside}/*{suffix}" for suffix in suffixes)
        raise SourceError(f"{inside}: holds {' and '.join(suffixes)} files; say which: {choices}")
    # Parsed again, so that names with a question mark are shown as in a pattern or a list.
    return [Location.of(folder.child(name).address()) for name in found]


def names_at(location: Location) -> list[str]:
    """The files right in a remote folder, and its sub-folders with a slash at their ends; sorted.

    Raises SourceError where it cannot be listed, or is a file.
    """
    fs, root = listable_filesystem(location)
    with named_errors(location):
        if not fs.isdir(root):
            what = "is a file, not a folder" if fs.exists(root) else "no such file or folder"
            raise SourceError(f"{location}: {what}")
        entries = fs.ls(root, detail=True)
    paths = [(entry["name"].rstrip("/"), entry["type"] == "directory") for entry in entries]
    own = root.rstrip("/")
    return sorted(path.rpartition("/")[2] + "/" * is_folder for path, is_folder in paths if path != own)


def check_file(location: Location) -> None:
    """Raises SourceError for a path where nothing is, and for what is neither a folder nor a file that ends."""
    try:
        check_regular(location.address())
    except FileNotFoundError:
        raise missing(location.address()) from None
    except IsADirectoryError:
        pass
    except (OSError, ValueError) as error:
        raise SourceError(f"{location}: {reason_for(error, location)}") from None

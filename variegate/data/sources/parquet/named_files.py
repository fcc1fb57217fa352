"""Image files that rows of a Parquet file name instead of holding their bytes."""

from __future__ import annotations

import os

from variegate.data.decode import read_bytes
from variegate.data.sources.base import SourceError
from variegate.errors import DecodeError
from variegate.outside.location import Location

_LONGEST_NAME = 200


def check_root(image_root: str | os.PathLike[str]) -> str:
    """The folder that named files are read from. Raises SourceError for what is none of this machine."""
    location = Location.parse(image_root)
    if location.is_url or not os.path.isdir(location.address()):
        what = "an address" if location.is_url else "no such folder"
        raise SourceError(f"image_root: got {str(location)!r}, {what}; accepted: a folder of this machine")
    return os.path.abspath(location.address())


def read_named_file(path: str, table: Location, root: str | None, name: str) -> bytes:
    """The file that row ``name`` of a table names by ``path``: one below ``root``, the folder that the user says, or
    below that of the table, where it is on this machine. Raises DecodeError."""
    quoted = repr(path if len(path) <= _LONGEST_NAME else path[: _LONGEST_NAME - 3] + "...")
    if root is None and not table.is_url:
        root = os.path.dirname(table.address()) or "."
    if not path or root is None:
        what = f", and {quoted} is on another machine; accepted: image_root=, a folder of this one" if path else ""
        raise DecodeError(name, f"no image: its bytes are null{what}")
    try:
        # What links and ".." come to, so that neither leads out.
        place, top = os.path.realpath(os.path.join(root, path)), os.path.realpath(root)
        is_inside = os.path.splitdrive(place)[0] == os.path.splitdrive(top)[0]
        is_inside = is_inside and os.path.commonpath([place, top]) == top
    except (OSError, ValueError):  # NUL in it
        raise DecodeError(name, f"no image: its bytes are null, and {quoted} is no name of a file") from None
    if not is_inside:
        raise DecodeError(
            name,
            f"no image: its bytes are null, and it names {quoted}, which is outside of {root}; accepted: files "
            "below it, or below image_root= of open_source",
        )
    if not os.path.lexists(place):
        raise DecodeError(name, f"no image: its bytes are null, and there is no file {quoted} in {root}")
    return read_bytes(place, f"{name}: {path}")

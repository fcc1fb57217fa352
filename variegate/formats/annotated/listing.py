"""What lies below a folder of images with annotations, of this machine or at an address: its images by their names
without extension, and its text files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from variegate.errors import DecodeError
from variegate.formats.base import SourceError
from variegate.formats.file_kinds import is_image_name
from variegate.formats.folder import walk, walk_remote
from variegate.formats.reading import filesystem, named_errors, read_file
from variegate.io.location import Location

ReadT = TypeVar("ReadT")
_THREADS, _REMOTE_THREADS = 8, 32


def place_in(root: Location, below: str) -> Location:
    """``below`` a folder, or an absolute path of this machine where the folder is of this machine."""
    if os.path.isabs(below) and not root.is_url:
        return Location.of(below)
    return root if below in ("", ".") else root.child(below)


def is_file(place: Location) -> bool:
    """Raises SourceError for an address that cannot be reached."""
    if not place.is_url:
        return os.path.isfile(place.address())
    fs, path = filesystem(place)
    with named_errors(place):
        return bool(fs.isfile(path))


def names_below(folder: Location) -> set[str] | None:
    """The paths of all files below it; None where there is no such folder. Raises SourceError for addresses that cannot
    be listed."""
    if not folder.is_url and not os.path.isdir(folder.address()):
        return None
    walked = walk_remote(folder) if folder.is_url else walk(folder.address())
    found = {f"{inside}/{name}" if inside else name for inside, names in walked.files.items() for name in names}
    # At addresses folders may be but what the names of files begin with: without any, there is none.
    return None if folder.is_url and not found and not walked.irregular else found


def images_by_stem(root: Location, below: str) -> dict[str, str]:
    """Name without extension, with its folders below ``below`` -> path below ``root``, of all images in there.

    Raises SourceError where the folder or images are missing, and where two images differ in their extension alone.
    """
    folder = place_in(root, below)
    paths = names_below(folder)
    if paths is None:
        raise SourceError(f"{root}: no folder {below} in it")
    found: dict[str, str] = {}
    for path in sorted(filter(is_image_name, paths)):
        stem = os.path.splitext(path)[0]
        full = path if below in ("", ".") else f"{below}/{path}"
        if stem in found:
            raise SourceError(f"{root}: {found[stem]} and {full} would have the same annotations")
        found[stem] = full
    if not found:
        raise SourceError(f"{folder}: no images in it")
    return dict(sorted(found.items()))


def read_each(folder: Location, names: Sequence[str], read: Callable[[Location], ReadT]) -> list[ReadT | None]:
    """What ``read`` makes of these files below a folder, many at a time; None of those that are not there."""
    # At an address one listing answers for all.
    there = (names_below(folder) or set()) if folder.is_url else None

    def read_one(name: str) -> ReadT | None:
        place = folder.child(name)
        is_there = os.path.lexists(place.address()) if there is None else name in there
        return read(place) if is_there else None

    threads = _THREADS if there is None else _REMOTE_THREADS
    with ThreadPoolExecutor(threads, "variegate-annotations") as pool:
        return list(pool.map(read_one, names))


def read_lines(place: Location) -> list[str]:
    """Of a text file. Raises SourceError naming it."""
    try:
        return read_file(place).decode("utf-8-sig").splitlines()
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except UnicodeDecodeError:
        raise SourceError(f"{place}: not UTF-8; accepted: a text file") from None

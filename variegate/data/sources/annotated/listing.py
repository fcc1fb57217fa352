"""Which images lie in a folder, by their names without extension, and lines of text files."""

from __future__ import annotations

import os
from pathlib import Path

from variegate.data.decode import read_bytes
from variegate.data.sources.base import SourceError
from variegate.data.sources.file_kinds import is_image_name
from variegate.data.sources.folder import walk
from variegate.errors import DecodeError


def images_by_stem(root: Path, below: str) -> dict[str, str]:
    """Name without extension, with its folders below ``below`` -> path below ``root``, of all images in there.

    Raises SourceError where the folder or images are missing, and where two images differ in their extension alone.
    """
    folder = root / below
    if not folder.is_dir():
        raise SourceError(f"{root}: no folder {below} in it")
    found: dict[str, str] = {}
    for inside, names in walk(folder).files.items():
        for name in filter(is_image_name, names):
            path = f"{inside}/{name}" if inside else name
            stem = os.path.splitext(path)[0]
            full = path if below in ("", ".") else f"{below}/{path}"
            if stem in found:
                raise SourceError(f"{root}: {found[stem]} and {full} would have the same annotations")
            found[stem] = full
    if not found:
        raise SourceError(f"{folder}: no images in it")
    return dict(sorted(found.items()))


def read_lines(path: Path) -> list[str]:
    """Of a text file. Raises SourceError naming it."""
    try:
        return read_bytes(path).decode("utf-8-sig").splitlines()
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except UnicodeDecodeError:
        raise SourceError(f"{path}: not UTF-8; accepted: a text file") from None

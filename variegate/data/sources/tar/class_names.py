"""The names of classes beside WebDataset shards: ``classnames.txt``, a class a line, by label."""

from __future__ import annotations

import os
from collections.abc import Sequence

from variegate.data.sources.base import SourceError
from variegate.data.sources.reading import read_file
from variegate.errors import DecodeError
from variegate.outside.files import MOST_TEXT_BYTES
from variegate.outside.location import Location

CLASS_NAMES = "classnames.txt"


def is_a_line(name: str) -> bool:
    """Whether such a file can hold that name."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return bool(name) and "\n" not in name and "\r" not in name


def class_names_bytes(classes: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in classes).encode("utf-8", "surrogateescape")


def class_names_beside(shards: Sequence[Location]) -> tuple[str, ...] | None:
    """The classes that the folder of the shards names; None where it names none, or the shards lie in several.

    Web servers are not asked: most of their folders hold no such file, and each has its own way to say so. Raises
    SourceError for a file that is there and cannot be read.
    """
    files = {_beside(shard) for shard in shards}
    if len(files) != 1 or shards[0].is_web or len(shards[0].protocols) > 1:
        return None
    (file,) = files
    if not file.is_url and not os.path.exists(file.address()):
        return None
    try:
        data = read_file(file, MOST_TEXT_BYTES)
    except DecodeError as error:
        if file.is_url:  # some answer "forbidden" for what is not there
            return None
        raise SourceError(str(error)) from None
    names = data.decode("utf-8", "surrogateescape").rstrip("\r\n").split("\n")
    return tuple(name.rstrip("\r") for name in names) if names != [""] else None


def _beside(shard: Location) -> Location:
    if shard.is_url:
        return Location.of(f"{shard.address().rpartition('/')[0]}/{CLASS_NAMES}")
    return Location.of(os.path.join(os.path.dirname(shard.address()), CLASS_NAMES))

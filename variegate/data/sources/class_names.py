"""The names of classes beside WebDataset shards: ``classnames.txt``, a class a line, by label."""

from __future__ import annotations

import os
from collections.abc import Sequence

from variegate.data.sources.base import SourceError
from variegate.data.sources.paths import is_url, protocols
from variegate.data.sources.remote import read_file
from variegate.errors import DecodeError
from variegate.outside.files import MOST_TEXT_BYTES

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


def class_names_beside(shards: Sequence[str]) -> tuple[str, ...] | None:
    """The classes that the folder of the shards names; None where it names none, or the shards lie in several.

    Web servers are not asked: most of their folders hold no such file, and each has its own way to say so. Raises
    SourceError for a file that is there and cannot be read.
    """
    folders = {shard.rpartition("/")[0] if is_url(shard) else os.path.dirname(shard) for shard in shards}
    if len(folders) != 1:
        return None
    (folder,) = folders
    if not is_url(shards[0]):
        place = os.path.join(folder, CLASS_NAMES)
        if not os.path.exists(place):
            return None
    elif "::" in shards[0] or protocols(shards[0])[0] in ("http", "https"):
        return None
    else:
        place = f"{folder}/{CLASS_NAMES}"
    try:
        data = read_file(place, MOST_TEXT_BYTES)
    except DecodeError as error:
        if is_url(place):  # some answer "forbidden" for what is not there
            return None
        raise SourceError(str(error)) from None
    names = data.decode("utf-8", "surrogateescape").rstrip("\r\n").split("\n")
    return tuple(name.rstrip("\r") for name in names) if names != [""] else None

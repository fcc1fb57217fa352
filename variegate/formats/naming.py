"""What a sample is called in tables, findings and lists: a line of text, the same wherever the data stands.

Of a folder's images that is the path below the folder; of others the name of the file that holds them, without its
folder, and the name within it: ``train-000.tar: 0017.jpg``, ``train.parquet: row 12``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from variegate.formats.base import SampleName
from variegate.formats.stamps import printable
from variegate.io.location import Location


def sample_key(source: Any, index: int) -> str:
    """Of a Source's sample. Samples may share one: a tar may hold a member twice, and shards of one name may lie in
    different folders."""
    path = getattr(source, "relative_path", None)  # a FileSource's
    return stream_key(source.name(index)) if path is None else as_line(path(index))


def sample_keys(source: Any) -> list[str]:
    """``sample_key`` of all."""
    path = getattr(source, "relative_path", None)
    if path is not None:
        return [as_line(path(index)) for index in range(len(source))]
    name = source.name
    return [stream_key(name(index)) for index in range(len(source))]


def stream_key(name: SampleName) -> str:
    """Of a sample whose name is known: a StreamItem's, or a Source's that is no FileSource."""
    if name.member is None:
        return as_line(name.file)
    return as_line(f"{_last_part(name.file)}: {name.member}")


def as_line(name: str) -> str:
    """A name as UTF-8 on one line: bytes that are not UTF-8 as ``\\udcff``, ends of lines as ``\\n`` and ``\\r``."""
    if "\n" in name or "\r" in name:
        name = name.replace("\n", "\\n").replace("\r", "\\r")
    return printable(name)


@lru_cache(256)
def _last_part(file: str) -> str:
    return Location.of(file).name or file

"""What is in a shard: its own checksum, and that of every image in it, whether the rest of it can be read or not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from variegate.data.sources.parquet.file import reason_for
from variegate.data.sources.tar.members import TarDamage, TarWalk
from variegate.data.sources.tar.readers import StreamReader

_CHUNK = 1 << 20
_ROWS_AT_ONCE = 64


class ShardContent(NamedTuple):
    """``members``: sha256 (hex) by name, as far as the shard could be read; ``damage``: why no further, or "". ``size``
    and ``sha256`` are of the file."""

    members: dict[str, str]
    damage: str
    size: int
    sha256: str


def read_shard(name: str, file: BinaryIO) -> ShardContent:
    """``name`` ends in .tar or .parquet. Raises what reading the file raises."""
    hashed = _Hashed(file)
    members: dict[str, str] = {}
    damage = ""
    if name.endswith(".tar"):
        try:
            members.update(_members_of_tar(hashed))
        except TarDamage as error:
            damage = error.reason
        hashed.read_on()
    else:
        hashed.read_on()
        file.seek(0)
        try:
            for member, digest in _rows_of_parquet(file):
                members[member] = digest
        except OSError as error:
            if error.errno is not None:
                raise
            damage = reason_for(error)
        except Exception as error:  # of pyarrow, of a damaged file: nearly any
            damage = reason_for(error)
    return ShardContent(members, damage, hashed.size, hashed.digest.hexdigest())


class _Hashed:
    """Of everything that is read through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size, self.digest = 0, hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.size += len(data)
        self.digest.update(data)
        return data

    def read_on(self) -> None:
        while self.read(_CHUNK):
            pass


def _members_of_tar(hashed: _Hashed) -> Iterator[tuple[str, str]]:
    walk = TarWalk(StreamReader(hashed))
    while (member := walk.next()) is not None:
        yield member.name, hashlib.sha256(walk.content()).hexdigest()


def _rows_of_parquet(file: BinaryIO) -> Iterator[tuple[str, str]]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, columns=["image.bytes", "image.path"]):
        data, paths = batch.column(0).flatten()
        for value, path in zip(data, paths.to_pylist(), strict=True):
            yield str(path), hashlib.sha256(value.as_buffer() or b"").hexdigest()

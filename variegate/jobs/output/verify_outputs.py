"""Outputs compared with their rows of the manifest: files one by one, shards with every image in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import BinaryIO, NamedTuple

from variegate.formats.parquet.columns import is_image_column
from variegate.formats.parquet.file import reason_for
from variegate.formats.raw import SUFFIX, TAIL_SIZE, DamagedRawError, read_index, read_tail
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage
from variegate.formats.tar.members import StreamReader, TarDamage, TarWalk
from variegate.jobs.output.lost_outputs import Row, real_name, size_lookup

_OF_MASK = ("mask_file", "mask_bytes", "mask_sha256")
COLUMNS = ("file", "member", "status", "index", "copy", "bytes", "sha256", "shard_bytes", "shard_sha256", *_OF_MASK)
_CHUNK = 1 << 20
_FILES_A_TASK = 64
_ROWS_AT_ONCE = 64


class Problem(NamedTuple):
    """``file``: below the destination; ``member``: the image in it, where it is a shard. ``kind``: "missing", "damaged"
    (which ``delete_damaged`` removes), "unreadable" or "extra"."""

    file: str
    problem: str
    kind: str
    member: str | None = None


@dataclass
class Verified:
    """``outputs``: how many the manifest lists as written; ``good``: those that are as it says."""

    outputs: int = 0
    good: int = 0
    problems: list[Problem] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Problems of that kind."""
        return sum(problem.kind == kind for problem in self.problems)


class _ShardContent(NamedTuple):
    """``members``: sha256 (hex) by name, as far as the shard could be read; ``damage``: why no further, or "". ``size``
    and ``sha256`` are of the file."""

    members: dict[str, str]
    damage: str
    size: int
    sha256: str


class _Listed(NamedTuple):
    """A file, as the manifest has it."""

    name: str
    bytes: int | None
    sha256: str


Task = Callable[[], Verified]


def file_tasks(storage: Storage, rows: Iterable[Row], expected: set[str]) -> Iterator[Task]:
    """``rows``: of outputs that were written. Their files are added to ``expected``."""
    size_of = size_lookup(storage)
    rows = iter(rows)
    while some := list(islice(rows, _FILES_A_TASK)):
        each = [_files_of(row) for row in some]
        expected.update(file.name for files in each for file in files)
        # Listed here: tasks run in threads, each folder would be listed by several.
        yield partial(_check_files, storage, [[(file, size_of(file.name)) for file in files] for files in each])


def shard_tasks(storage: Storage, rows: Iterable[Row], expected: set[str]) -> Iterator[Task]:
    size_of = size_lookup(storage)
    for file, together in groupby(rows, lambda row: str(row["file"])):
        expected.add(file)
        yield partial(_check_shard, storage, file, list(together), size_of(file))


def _files_of(row: Row) -> list[_Listed]:
    """An output's image, and its mask where it has one."""
    mask = [_Listed(*(row[name] for name in _OF_MASK))] if row["mask_file"] else []
    return [_Listed(row["file"], row["bytes"], row["sha256"]), *mask]


def _check_files(storage: Storage, some: list[list[tuple[_Listed, int | None]]]) -> Verified:
    found = Verified(len(some))
    for files in some:
        problems = [problem for file, size in files if (problem := _check_file(storage, file, size))]
        found.problems += problems
        found.good += not problems
    return found


def _check_file(storage: Storage, file: _Listed, size: int | None) -> Problem | None:
    if size is None:
        return Problem(file.name, "missing", "missing")
    if file.bytes is not None and size != file.bytes:
        return Problem(file.name, f"has {size:,} bytes, the manifest says {file.bytes:,}", "damaged")
    try:
        digest = storage.sha256(real_name(storage, file.name))
    except Exception as error:  # of the system, or of any package that fsspec reads with
        return _unreadable(file.name, error)
    if digest != file.sha256:
        return Problem(file.name, "its checksum is not that of the manifest", "damaged")
    return None


def _check_shard(storage: Storage, file: str, rows: list[Row], size: int | None) -> Verified:
    if size is None:
        return Verified(len(rows), 0, [Problem(file, f"missing, with {len(rows):,} outputs", "missing")])
    try:
        with storage.open(file) as opened:
            content = _read_shard(file, opened)
    except Exception as error:
        return Verified(len(rows), 0, [_unreadable(file, error)])
    wrong = _wrong_as_a_whole(rows[0], content)
    others = [row for row in rows if content.members.get(row["member"]) != row["sha256"]]
    lost = [row for row in others if row["member"] not in content.members] if content.damage else []
    if lost:  # one line for what has one reason
        wrong.append(f"{len(lost):,} of its {len(rows):,} outputs cannot be read any more")
    elif wrong and not others:
        wrong.append("every image in it is whole, but something beside them is not, such as a label")
    problems = [Problem(file, "; ".join(wrong), "damaged")] if wrong else []
    for row in others:
        if row["member"] in content.members:
            problems.append(Problem(file, "its checksum is not that of the manifest", "damaged", row["member"]))
        elif not lost:
            problems.append(Problem(file, "missing", "damaged", row["member"]))
    return Verified(len(rows), len(rows) - len(others), problems)


def _wrong_as_a_whole(row: Row, content: _ShardContent) -> list[str]:
    """With the file itself, of which manifests of earlier versions say nothing."""
    wrong = []
    if row["shard_bytes"] not in (None, content.size):
        wrong.append(f"has {content.size:,} bytes, the manifest says {row['shard_bytes']:,}")
    elif row["shard_sha256"] not in (None, content.sha256):
        wrong.append("its checksum is not that of the manifest")
    return [*wrong, content.damage] if content.damage else wrong


def _unreadable(file: str, error: Exception) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(file, "missing", "missing")
    reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    said = reason if reason.startswith("cannot be read") else f"cannot be read ({reason})"
    return Problem(file, printable(said), "unreadable")


def _read_shard(name: str, file: BinaryIO) -> _ShardContent:
    """``name`` ends in .tar, .parquet or .vgraw. Raises what reading the file raises."""
    hashed = _Hashed(file)
    members: dict[str, str] = {}
    damage = ""
    if name.endswith(".tar"):
        try:
            members.update(_members_of_tar(hashed))
        except TarDamage as error:
            damage = error.reason
        hashed.read_on()
    elif name.endswith(SUFFIX):
        hashed.read_on()
        try:
            members.update(_images_of_raw(file, hashed.size))
        except DamagedRawError as error:
            damage = str(error)
    else:
        hashed.read_on()
        file.seek(0)
        try:
            members.update(_rows_of_parquet(file))
        except OSError as error:
            if error.errno is not None:
                raise
            damage = reason_for(error)
        except Exception as error:  # of pyarrow, of a damaged file: nearly any
            damage = reason_for(error)
    return _ShardContent(members, damage, hashed.size, hashed.digest.hexdigest())


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


def _images_of_raw(file: BinaryIO, size: int) -> Iterator[tuple[str, str]]:
    file.seek(max(0, size - TAIL_SIZE))
    begin, length, digest = read_tail(file.read(TAIL_SIZE), size)
    file.seek(begin)
    index = read_index(file.read(length), digest, begin)
    for position, offset in enumerate(index.places["offset"].tolist()):
        file.seek(offset)
        yield str(position), hashlib.sha256(file.read(index.size_of(position))).hexdigest()


def _rows_of_parquet(file: BinaryIO) -> Iterator[tuple[str, str]]:
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    name = next((one.name for one in parquet.schema_arrow if is_image_column(one.type)), "image")  # others: masks
    for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=[f"{name}.bytes", f"{name}.path"]):
        data, paths = batch.column(0).flatten()
        for value, path in zip(data, paths.to_pylist(), strict=True):
            yield str(path), hashlib.sha256(value.as_buffer() or b"").hexdigest()

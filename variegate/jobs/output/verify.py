"""Every output of a complete run compared with the manifest by checksums, in shards every image; and its side files."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, BinaryIO

from variegate.errors import shortened
from variegate.formats.base import SourceError
from variegate.formats.parquet.columns import is_image_column
from variegate.formats.parquet.read import reason_for
from variegate.formats.raw import SUFFIX, TAIL_SIZE, DamagedRawError, read_index, read_tail
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage, open_storage
from variegate.formats.tar.members import StreamReader, TarDamage, TarWalk
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME, Manifest, has_its_checksum, read_manifest
from variegate.jobs.output.on_disk import Row, real_name, size_lookup
from variegate.jobs.output.run_record import SETTINGS_NAME, SOURCE_NAME
from variegate.jobs.output.side_files import Problem, side_file_problems
from variegate.threads import default_threads

_REMOTE_THREADS = 16
_INDEX = ".tar.vgindex"  # what readers put beside shards
_COLUMNS = (
    *("file", "member", "status", "index", "copy", "bytes", "sha256", "shard_bytes", "shard_sha256"),
    *("mask_file", "mask_bytes", "mask_sha256"),
)
_CHUNK = 1 << 20
_FILES_A_TASK = 64
_ROWS_AT_ONCE = 64
OnProgress = Callable[[int, int], None]


@dataclass
class Verified:
    """``outputs``: how many the manifest lists as written; ``good``: those that are as it says."""

    outputs: int = 0
    good: int = 0
    problems: list[Problem] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Problems of that kind."""
        return sum(problem.kind == kind for problem in self.problems)


def verify(spec: str | os.PathLike[str], threads: int | None = None, on_progress: OnProgress | None = None) -> Verified:
    """Compare what is there with the manifest. Nothing is changed. Raises SourceError where no run has been.

    ``on_progress``: called with the outputs looked at, and all.
    """
    storage = open_storage(spec)
    has_manifest = storage.exists(MANIFEST_NAME)
    if not has_manifest and not storage.exists(SETTINGS_NAME):
        raise SourceError(
            f"{storage.shown}: holds no run; accepted: a folder that variegate augment or pack wrote, with "
            f"{SETTINGS_NAME} and {MANIFEST_NAME}"
        )
    found = Verified()
    if not has_manifest:
        goes_on = "missing: the run is incomplete; to resume, run the command that began it again"
        found.problems.append(Problem(MANIFEST_NAME, goes_on, "missing"))
        return found
    expected = {MANIFEST_NAME, CHECKSUM_NAME, SETTINGS_NAME, SOURCE_NAME}
    try:
        if _has_another_checksum(storage, found.problems):
            raise SourceError(f"its checksum differs from {CHECKSUM_NAME}")
        manifest = read_manifest(storage.root)
        found.problems += side_file_problems(storage, manifest, expected)
        for checked in _check_outputs(storage, manifest, expected, threads):
            found.outputs += checked.outputs
            found.good += checked.good
            found.problems += checked.problems
            if on_progress is not None:
                on_progress(found.outputs, len(manifest))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = str(error).removeprefix(f"{storage.place_of(MANIFEST_NAME)}: ")
        if not isinstance(error, SourceError):
            reason = f"damaged: its rows or settings are not those of a run ({shortened(' '.join(reason.split()))})"
        without = f"{reason}; the other files cannot be checked; if it is deleted, all outputs are written again"
        found.problems.append(Problem(MANIFEST_NAME, without, "damaged"))
        return found
    found.problems += [Problem(name, "not in the manifest", "extra") for name in _others(storage, "", expected)]
    return found


def delete_damaged(spec: str | os.PathLike[str], verified: Verified) -> list[str]:
    """Remove the files that are damaged, so that the command that made them makes them again -> their names."""
    storage = open_storage(spec)
    names = sorted({problem.file for problem in verified.problems if problem.kind == "damaged"})
    for name in names:
        storage.remove(real_name(storage, name))
    storage.sync()
    return names


def _has_another_checksum(storage: Storage, problems: list[Problem]) -> bool:
    try:
        return has_its_checksum(storage) is False
    except SourceError as error:
        reason = str(error).removeprefix(f"{storage.place_of(CHECKSUM_NAME)}: ")
        problems.append(Problem(CHECKSUM_NAME, reason, "damaged"))
        return False


def _check_outputs(storage: Storage, manifest: Manifest, expected: set[str], threads: int | None) -> Iterator[Verified]:
    """In their order, with a bounded number under way."""
    make_tasks = _file_tasks if manifest.settings.get("layout", "folder") == "folder" else _shard_tasks
    tasks = make_tasks(storage, _written(manifest), expected)
    threads = threads or (_REMOTE_THREADS if storage.is_remote else default_threads())
    with ThreadPoolExecutor(threads, "variegate-verify") as pool:
        under_way = deque(pool.submit(task) for task in islice(tasks, 2 * threads))
        try:
            while under_way:
                checked = under_way.popleft().result()
                under_way.extend(pool.submit(task) for task in islice(tasks, 1))
                yield checked
        finally:
            pool.shutdown(cancel_futures=True)


def _written(manifest: Manifest) -> Iterator[Row]:
    """The rows of outputs. Raises SourceError where rows are not those that the settings ask for."""
    copies, samples = manifest.settings.get("copies"), manifest.settings.get("samples")
    if isinstance(copies, int) and isinstance(samples, int) and len(manifest) != copies * samples:
        raise SourceError(f"damaged: it has {len(manifest):,} rows, for {samples:,} samples of {copies:,} copies")
    for number, row in enumerate(manifest.columns(*_COLUMNS, all_read=True)):
        if isinstance(copies, int) and (row["index"], row["copy"]) != divmod(number, copies):
            raise SourceError(f"damaged: row {number:,} is of sample {row['index']}, copy {row['copy']}")
        if row["status"] == "written":
            if not row["file"] or not row["sha256"]:
                raise SourceError(f"damaged: row {number:,} has no file, or no checksum")
            yield row


def _others(storage: Storage, folder: str, expected: set[str]) -> Iterator[str]:
    """Files that are not expected; names that begin with a dot are passed over, as sources pass over them."""
    for entry in storage.list(folder):
        name = f"{folder}/{entry}" if folder else entry
        if entry.startswith("."):
            continue
        if entry.endswith("/"):
            yield from _others(storage, name.rstrip("/"), expected)
        elif printable(name) not in expected and not name.endswith(_INDEX):
            yield printable(name)


def _file_tasks(storage: Storage, rows: Iterator[Row], expected: set[str]) -> Iterator[Callable[[], Verified]]:
    size_of = size_lookup(storage)
    while some := list(islice(rows, _FILES_A_TASK)):
        # Listed here: tasks run in threads, each folder would be listed by several.
        outputs = []
        for row in some:
            kinds = ["", "mask_"] if row["mask_file"] else [""]
            files = [tuple(row[f"{kind}{name}"] for name in ("file", "bytes", "sha256")) for kind in kinds]
            outputs.append([(*file, size_of(file[0])) for file in files])
            expected.update(file[0] for file in files)
        yield partial(_check_files, storage, outputs)


def _check_files(storage: Storage, outputs: list[list[tuple[Any, ...]]]) -> Verified:
    problems = [[found for file in files if (found := _check_file(storage, *file))] for files in outputs]
    return Verified(len(outputs), problems.count([]), [*chain.from_iterable(problems)])


def _check_file(storage: Storage, name: str, wanted: int | None, sha256: str, size: int | None) -> Problem | None:
    """``wanted``, ``sha256``: as the manifest has them; ``size``: on the disk."""
    if size is None:
        return Problem(name, "missing", "missing")
    if wanted not in (None, size):
        return Problem(name, f"has {size:,} bytes, the manifest says {wanted:,}", "damaged")
    try:
        digest = storage.sha256(real_name(storage, name))
    except Exception as error:  # of the system, or of any package that fsspec reads with
        return _unreadable(name, error)
    if digest != sha256:
        return Problem(name, "its checksum differs from the manifest", "damaged")
    return None


def _shard_tasks(storage: Storage, rows: Iterable[Row], expected: set[str]) -> Iterator[Callable[[], Verified]]:
    size_of = size_lookup(storage)
    for file, together in groupby(rows, lambda row: str(row["file"])):
        expected.add(file)
        yield partial(_check_shard, storage, file, list(together), size_of(file))


def _check_shard(storage: Storage, file: str, rows: list[Row], size: int | None) -> Verified:
    if size is None:
        return Verified(len(rows), 0, [Problem(file, f"missing, with {len(rows):,} outputs", "missing")])
    try:
        with storage.open(file) as opened:
            members, damage, hashed = _read_shard(file, opened)
    except Exception as error:
        return Verified(len(rows), 0, [_unreadable(file, error)])
    wrong = []  # of the file itself, of which manifests of earlier versions say nothing
    if rows[0]["shard_bytes"] not in (None, hashed.size):
        wrong.append(f"has {hashed.size:,} bytes, the manifest says {rows[0]['shard_bytes']:,}")
    elif rows[0]["shard_sha256"] not in (None, hashed.digest.hexdigest()):
        wrong.append("its checksum differs from the manifest")
    wrong += [damage] * bool(damage)
    others = [row for row in rows if members.get(row["member"]) != row["sha256"]]
    lost = [row for row in others if row["member"] not in members] if damage else []
    if lost:  # one line for what has one reason
        wrong.append(f"{len(lost):,} of its {len(rows):,} outputs cannot be read")
    elif wrong and not others:
        wrong.append("its images are intact, but other members are not, such as a label")
    problems = [Problem(file, "; ".join(wrong), "damaged")] if wrong else []
    for row in others:
        if row["member"] in members:
            problems.append(Problem(file, "its checksum differs from the manifest", "damaged", row["member"]))
        elif not lost:
            problems.append(Problem(file, "missing", "damaged", row["member"]))
    return Verified(len(rows), len(rows) - len(others), problems)


def _unreadable(file: str, error: Exception) -> Problem:
    if isinstance(error, FileNotFoundError):
        return Problem(file, "missing", "missing")
    reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    said = reason if reason.startswith("cannot be read") else f"cannot be read ({reason})"
    return Problem(file, printable(said), "unreadable")


class _Hashed:
    """Size and checksum of everything that is read through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size, self.digest = 0, hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.size += len(data)
        self.digest.update(data)
        return data


def _read_shard(name: str, file: BinaryIO) -> tuple[dict[str, str], str, _Hashed]:
    """Checksums of the members by name, as far as it can be read; why no further, or ""; and the whole, hashed."""
    hashed, members, damage = _Hashed(file), dict[str, str](), ""
    if name.endswith(".tar"):
        try:
            walk = TarWalk(StreamReader(hashed))
            while (member := walk.next()) is not None:
                members[member.name] = hashlib.sha256(walk.content()).hexdigest()
        except TarDamage as error:
            damage = error.reason
    while hashed.read(_CHUNK):
        pass
    try:
        if name.endswith(SUFFIX):
            members.update(_images_of_raw(file, hashed.size))
        elif not name.endswith(".tar"):
            file.seek(0)
            members.update(_rows_of_parquet(file))
    except DamagedRawError as error:
        damage = str(error)
    except Exception as error:
        if name.endswith(SUFFIX) or (isinstance(error, OSError) and error.errno is not None):
            raise
        damage = reason_for(error)  # of pyarrow, of a damaged file: nearly any
    return members, damage, hashed


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

"""Every file of a complete run compared with the manifest by checksums."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, islice
from typing import NamedTuple

from variegate.data.base import SourceError
from variegate.data.stamps import escape_undecodable
from variegate.data.storage import Storage, open_storage
from variegate.errors import one_line, truncate_middle
from variegate.events import OnEvent, Progress, ignore_event
from variegate.io.files import StrPath
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME, Manifest, StoredFile, files_of, read_manifest
from variegate.jobs.output.parts import Row, real_name, size_lookup
from variegate.jobs.output.run_record import (
    SETTINGS_NAME,
    SOURCE_NAME,
    describe_difference,
    read_settings,
    read_source,
)
from variegate.threads import default_threads, in_order

_REMOTE_THREADS = 16
_INDEX = ".tar.index"  # readers write it next to shards
_COLUMNS = (
    "file",
    "status",
    "index",
    "copy",
    "bytes",
    "sha256",
    "shard_bytes",
    "shard_sha256",
    *(f"{kind}_{name}" for kind in ("mask", "annotation") for name in ("file", "bytes", "sha256")),
)
_FILES_A_TASK = 64
_CHECKSUM = re.compile(rb"([0-9a-f]{64})  manifest\.parquet\n")


class Problem(NamedTuple):
    """A file that is not as the manifest says."""

    file: str  # below the destination
    problem: str
    kind: str  # "missing", "damaged" (which ``delete_damaged`` removes), "unreadable" or "extra"


@dataclass
class Verified:
    """``outputs``: number of outputs that the manifest lists as written; ``good``: number of outputs that match it."""

    outputs: int = 0
    good: int = 0
    problems: list[Problem] = field(default_factory=list)

    def count(self, kind: str) -> int:
        """Problems of that kind."""
        return sum(problem.kind == kind for problem in self.problems)


def verify(spec: StrPath, threads: int | None = None, on_event: OnEvent = ignore_event) -> Verified:
    """Compare the files with the manifest. Nothing is changed. Raises SourceError where no run has been.

    ``on_event``: called with ``Progress`` of outputs.
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
        if not _has_its_checksum(storage, found.problems):
            raise SourceError(f"its checksum differs from {CHECKSUM_NAME}")
        manifest = read_manifest(storage.root)
        found.problems += _record_problems(storage, manifest)
        for checked in _check_outputs(storage, manifest, expected, threads):
            found.outputs += checked.outputs
            found.good += checked.good
            found.problems += checked.problems
            on_event(Progress("verifying", found.outputs, len(manifest)))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = str(error).removeprefix(f"{storage.place_of(MANIFEST_NAME)}: ")
        if not isinstance(error, SourceError):
            reason = (
                f"damaged: its rows or settings are not those of a run ({truncate_middle(' '.join(reason.split()))})"
            )
        without = f"{reason}; the other files cannot be checked; if it is deleted, all outputs are written again"
        found.problems.append(Problem(MANIFEST_NAME, without, "damaged"))
        return found
    found.problems += [Problem(name, "not in the manifest", "extra") for name in _others(storage, "", expected)]
    return found


def delete_damaged(spec: StrPath, verified: Verified) -> list[str]:
    """Remove the files that are damaged, so that the command that made them makes them again -> their names."""
    storage = open_storage(spec)
    names = sorted({problem.file for problem in verified.problems if problem.kind == "damaged"})
    for name in names:
        storage.remove(real_name(storage, name))
    storage.sync()
    return names


def _has_its_checksum(storage: Storage, problems: list[Problem]) -> bool:
    """False if the manifest is known to differ from the one written."""
    try:
        text = storage.read(CHECKSUM_NAME)
    except FileNotFoundError:
        return True
    found = _CHECKSUM.fullmatch(text)
    if found is None:
        problems.append(Problem(CHECKSUM_NAME, f"not a checksum of {MANIFEST_NAME}", "damaged"))
        return True
    return storage.sha256(MANIFEST_NAME).encode() == found[1]


def _record_problems(storage: Storage, manifest: Manifest) -> Iterator[Problem]:
    """Check that settings match the manifest and the record of the source is readable."""
    try:
        if describe_difference(read_settings(storage), manifest.settings):
            yield Problem(SETTINGS_NAME, "not the settings that the manifest has", "damaged")
    except FileNotFoundError:
        yield Problem(SETTINGS_NAME, "missing", "missing")
    except SourceError:
        yield Problem(SETTINGS_NAME, "not the settings of a run", "damaged")
    try:
        read_source(storage)
    except SourceError as error:
        yield Problem(SOURCE_NAME, str(error).removeprefix(f"{storage.place_of(SOURCE_NAME)}: "), "damaged")


class _Output(NamedTuple):
    """An output with its sidecar, a shard with ``number`` outputs, or a file of the full run with none."""

    number: int
    files: list[StoredFile]


def _check_outputs(storage: Storage, manifest: Manifest, expected: set[str], threads: int | None) -> Iterator[Verified]:
    """Yield results in order, with a bounded number in flight."""
    tasks = _tasks(storage, manifest, expected)
    threads = threads or (_REMOTE_THREADS if storage.is_remote else default_threads())
    with ThreadPoolExecutor(threads, "variegate-verify") as pool:
        yield from in_order(pool, tasks, 2 * threads)


def _tasks(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Callable[[], Verified]]:
    size_of = size_lookup(storage)
    is_sharded = manifest.settings.get("layout", "folder") != "folder"
    outputs = chain((_Output(0, [file]) for file in manifest.files), _outputs(manifest, is_sharded))
    while some := list(islice(outputs, 1 if is_sharded else _FILES_A_TASK)):
        names = [file.name for output in some for file in output.files]
        expected.update(names)
        # Listed here: tasks run in threads, each folder would be listed by several.
        yield partial(_check, storage, some, {name: size_of(name) for name in names})


def _outputs(manifest: Manifest, is_sharded: bool) -> Iterator[_Output]:
    """Raises SourceError for rows that do not match the settings."""
    rows = _written(manifest)
    if is_sharded:
        for _, together in groupby(rows, lambda row: row["file"]):
            of_shard = list(together)
            yield _Output(len(of_shard), files_of(of_shard[0]))
        return
    for row in rows:
        yield _Output(1, files_of(row))


def _written(manifest: Manifest) -> Iterator[Row]:
    """The rows of outputs. Raises SourceError for rows that do not match the settings."""
    copies = manifest.settings.get("copies")
    samples = manifest.settings.get("samples")
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
    """Unexpected files; names that begin with a dot are skipped, as in sources."""
    for entry in storage.list(folder):
        name = f"{folder}/{entry}" if folder else entry
        if entry.startswith("."):
            continue
        if entry.endswith("/"):
            yield from _others(storage, name.rstrip("/"), expected)
        elif escape_undecodable(name) not in expected and not name.endswith(_INDEX):
            yield escape_undecodable(name)


def _check(storage: Storage, outputs: list[_Output], sizes: dict[str, int | None]) -> Verified:
    checked = Verified()
    for number, files in outputs:
        problems = [problem for file in files if (problem := _check_file(storage, file, sizes[file.name]))]
        checked.outputs += number
        checked.good += 0 if problems else number
        checked.problems += problems
    return checked


def _check_file(storage: Storage, file: StoredFile, size: int | None) -> Problem | None:
    """``size``: on the disk."""
    name, recorded, sha256 = file
    if size is None:
        return Problem(name, "missing", "missing")
    if recorded != size:
        return Problem(name, f"has {size:,} bytes, the manifest says {recorded:,}", "damaged")
    try:
        digest = storage.sha256(real_name(storage, name))
    except Exception as error:  # of the system, or of any package that fsspec reads with
        reason = getattr(error, "strerror", None) or one_line(error) or type(error).__name__
        said = reason if reason.startswith("cannot be read") else f"cannot be read ({reason})"
        return Problem(name, escape_undecodable(said), "unreadable")
    if digest != sha256:
        return Problem(name, "its checksum differs from the manifest", "damaged")
    return None

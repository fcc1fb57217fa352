"""Every output of a complete run, compared with the manifest by checksums; and what is there beside them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from variegate.formats.base import SourceError
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage, open_storage
from variegate.formats.tar.labels import CLASS_NAMES, class_names_bytes
from variegate.jobs.output.annotated_files import SETTING, annotation_problems
from variegate.jobs.output.lost_outputs import Row, real_name
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME, Manifest, has_its_checksum, read_manifest
from variegate.jobs.output.packed import packed_beside
from variegate.jobs.output.run_record import (
    LEFT_OUT_NAME,
    SETTINGS_NAME,
    SOURCE_NAME,
    describe_differences,
    read_settings,
    read_source,
)
from variegate.jobs.output.verify_outputs import COLUMNS, Problem, Verified, file_tasks, shard_tasks
from variegate.threads import default_threads

_REMOTE_THREADS = 16
_INDEX = ".tar.vgindex"  # what readers put beside shards
OnProgress = Callable[[int, int], None]


def verify(spec: str | os.PathLike[str], threads: int | None = None, on_progress: OnProgress | None = None) -> Verified:
    """Compare what is there with the manifest. Nothing is changed.

    ``threads``: None for as many as there are cores. ``on_progress``: called with the outputs looked at, and all.

    Raises SourceError where no run of ``variegate augment``, ``pack`` or ``clean`` has been, WriteError where it cannot
    be listed.
    """
    storage = open_storage(spec)
    has_manifest = storage.exists(MANIFEST_NAME)
    if not has_manifest and not storage.exists(SETTINGS_NAME):
        raise SourceError(
            f"{storage.shown}: holds no run; accepted: a folder that variegate augment, pack or clean wrote, with "
            f"{SETTINGS_NAME} and {MANIFEST_NAME}"
        )
    found = Verified()
    if not has_manifest:
        goes_on = "missing: the run is not complete, and the command that began it goes on"
        found.problems.append(Problem(MANIFEST_NAME, goes_on, "missing"))
        return found
    expected = {MANIFEST_NAME, CHECKSUM_NAME, SETTINGS_NAME, SOURCE_NAME}
    try:
        if _is_another(storage, found.problems):
            raise SourceError(f"its checksum is not that in {CHECKSUM_NAME}")
        manifest = read_manifest(storage.root)
        found.problems += _beside(storage, manifest.settings, expected)
        if manifest.settings.get("command") == "pack":
            found.problems += packed_beside(storage, manifest, expected)
        if SETTING in manifest.settings:
            found.problems += annotation_problems(storage, manifest, expected)
        for checked in _check_outputs(storage, manifest, expected, threads):
            found.outputs += checked.outputs
            found.good += checked.good
            found.problems += checked.problems
            if on_progress is not None:
                on_progress(found.outputs, len(manifest))
    except SourceError as error:
        reason = str(error).removeprefix(f"{storage.place_of(MANIFEST_NAME)}: ")
        without = f"{reason}; it does not tell what else there should be, and without it all outputs are made again"
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


def _is_another(storage: Storage, problems: list[Problem]) -> bool:
    try:
        return has_its_checksum(storage) is False
    except SourceError as error:
        reason = str(error).removeprefix(f"{storage.place_of(CHECKSUM_NAME)}: ")
        problems.append(Problem(CHECKSUM_NAME, reason, "damaged"))
        return False


def _beside(storage: Storage, settings: dict[str, Any], expected: set[str]) -> Iterator[Problem]:
    """The files that are no outputs."""
    try:
        if describe_differences(read_settings(storage), settings):
            yield Problem(SETTINGS_NAME, "not the settings that the manifest has", "damaged")
    except FileNotFoundError:
        yield Problem(SETTINGS_NAME, "missing", "missing")
    except SourceError:
        yield Problem(SETTINGS_NAME, "not the settings of a run", "damaged")
    try:
        read_source(storage)
    except SourceError as error:
        yield Problem(SOURCE_NAME, str(error).removeprefix(f"{storage.place_of(SOURCE_NAME)}: "), "damaged")
    if settings.get("command") == "clean":
        yield from _beside_cleaned(storage, settings, expected)
    if settings.get("layout") == "webdataset" and settings.get("classes"):
        expected.add(CLASS_NAMES)
        if not storage.exists(CLASS_NAMES):
            yield Problem(CLASS_NAMES, "missing", "missing")
        elif storage.read(CLASS_NAMES) != class_names_bytes(settings["classes"]):
            yield Problem(CLASS_NAMES, "not the classes of the run", "damaged")


def _beside_cleaned(storage: Storage, settings: dict[str, Any], expected: set[str]) -> Iterator[Problem]:
    """The record of what a cleaning has left out."""
    expected.add(LEFT_OUT_NAME)
    if not storage.exists(LEFT_OUT_NAME):
        yield Problem(LEFT_OUT_NAME, "missing", "missing")
    elif storage.sha256(LEFT_OUT_NAME) != settings.get("dropped", {}).get("sha256"):
        yield Problem(LEFT_OUT_NAME, "its checksum is not that of the settings", "damaged")


def _check_outputs(storage: Storage, manifest: Manifest, expected: set[str], threads: int | None) -> Iterator[Verified]:
    """In their order, with a bounded number under way."""
    make_tasks = file_tasks if manifest.settings.get("layout", "folder") == "folder" else shard_tasks
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
    for number, row in enumerate(manifest.columns(*COLUMNS, all_read=True)):
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

"""``RunFolder``: the folder of a resumable run, with its settings, its lock, its records and its log.

nothing, or only names that begin with a dot    not started
variegate.json                                  started; ``.variegate/parts`` has the records of finished parts
variegate.json, manifest.parquet                complete; ``.variegate`` is removed
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from variegate.checks import check_pixel_version
from variegate.data.annotated.manifest_targets import Content
from variegate.data.base import SourceError
from variegate.data.storage import PRIVATE, TEMPORARY, Storage, WriteError, open_storage
from variegate.io.durable import named_write_errors
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike
from variegate.io.lock import FileLock
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME, StoredFile, read_manifest, write_manifest
from variegate.jobs.output.parts import PARTS
from variegate.jobs.output.run_log import RunLog
from variegate.jobs.output.run_record import (
    SETTINGS_NAME,
    SOURCE_NAME,
    describe_difference,
    read_settings,
    write_settings,
)

_LOCK = f"{PRIVATE}/lock"


class RunFolder(AbstractContextManager["RunFolder"]):
    """A folder, or an address, that a run may write to until ``finish`` or ``close``.

    It is locked, unless the run is complete: then it may be on a read-only disk. There are no locks at addresses, on
    Windows and on some network disks; two runs at once would overwrite each other's files there.

    A run that makes a single ``file`` has a folder of its own (``work_folder``), which ``remove`` removes: errors name
    the file, and a run with other settings is replaced (``was_replaced``) instead of refused.

    Raises SourceError if the folder holds another run or other files, or if another run is writing there now. Raises
    WriteError if the folder is not writable.
    """

    def __init__(
        self,
        spec: StrPath,
        settings: dict[str, Any],  # settings that determine the outputs; a run with other settings is refused
        resume: bool = True,  # False: records of an earlier run are removed; its files are replaced one by one
        place: str | None = None,  # name of a setting that may differ if the source is recorded: the first value stays
        file: StrPath | None = None,
    ) -> None:
        self.storage = storage = open_storage(spec)
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))  # tuples become lists, as in the file
        self.was_replaced = False
        self._place = place
        self._file = file
        self._lock: FileLock | None = None
        is_started = self._check()
        is_finished = all(map(storage.exists, (MANIFEST_NAME, CHECKSUM_NAME, SETTINGS_NAME)))
        self.is_complete = resume and is_started and is_finished and not storage.exists(PRIVATE)
        try:
            if not self.is_complete:
                self.claim()
            if not resume:
                storage.remove_tree(PARTS)
                storage.remove(MANIFEST_NAME)
                storage.sync()
        except BaseException:
            self.close()
            raise

    def claim(self) -> None:
        """Lock the folder and prepare it for writing."""
        self.is_complete = False
        storage = self.storage
        if not storage.is_remote and self._lock is None:
            path = os.path.join(storage.root, _LOCK)
            if self._file is None:
                storage.prepare()
                self._lock = acquire(path, storage.shown)
            else:
                self._lock = acquire(path, os.fspath(self._file), "file")
        is_started = self._check()  # again, now that nobody else writes
        storage.remove_tree(TEMPORARY)
        storage.prepare()  # again: a run that ended in between may have removed it
        if not is_started:
            storage.remove_tree(PARTS)
        if self.was_replaced or not storage.exists(SETTINGS_NAME):
            write_settings(storage, self.settings)
            storage.sync()

    def open_log(self, name: str, is_synced: bool = True) -> RunLog:
        """A log that is removed with the records of parts. Raises WriteError."""
        return RunLog(Path(self.storage.root, PARTS, name), is_synced)

    def finish(self, rows: Iterable[dict[str, Any]], files: Iterable[tuple[str, Content]] = ()) -> int:
        """Write ``files`` of the whole run (name, content), then the manifest; remove private files.

        All outputs must last by now. Returns the number of rows.
        """
        written = [_write_file(self.storage, name, content) for name, content in files]
        self.storage.sync()
        count = write_manifest(self.storage, rows, self.settings, written)
        self.storage.sync()
        self._clean_up()
        return count

    def remove(self) -> None:
        """Remove the folder of a run that makes a file."""
        with named_write_errors(self.storage.shown, "removed"):
            shutil.rmtree(self.storage.root)
        self.close()

    def close(self) -> None:
        """Release the lock. The next run resumes from the records."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> bool:
        """Return whether the run has started. Raises SourceError if it may not write here."""
        storage = self.storage
        if not storage.is_remote and os.path.lexists(storage.root) and not os.path.isdir(storage.root):
            raise SourceError(f"{storage.shown}: is a file; expected a folder, or a name that is still free")
        try:
            # Read first, because a folder of outputs may be long to list. A manifest has the settings too.
            if storage.exists(SETTINGS_NAME):
                self._compare(read_settings(storage))
                return True
            if storage.exists(MANIFEST_NAME):
                self._compare(read_manifest(storage.root).settings)
                return True
        except SourceError:
            if self._file is None:
                raise
            self.was_replaced = True
            return False
        names = [name for name in storage.list() if not name.startswith(".")]
        if names and self._file is None:
            raise SourceError(
                f"{storage.shown}: holds files that no run of variegate wrote ({names[0]}); choose an empty folder "
                "or a new name"
            )
        return False

    def _compare(self, there: dict[str, Any]) -> None:
        """Raise SourceError for settings of another run. Values that may differ are taken over."""
        shown = self.storage.shown
        here = self.settings
        place = self._place
        if place in there and place in here and self.storage.exists(SOURCE_NAME):
            here = here | {place: there[place]}
        if "exclude" in there and "exclude" in here and there.get("fingerprint") == here.get("fingerprint"):
            # The list of excluded samples may have moved: fingerprints tell which samples they are.
            here = here | {"exclude": there["exclude"]}
        if (command := there.get("command", "augment")) != here.get("command", "augment"):
            raise SourceError(f"{shown}: holds a run of variegate {command}; choose another folder")
        if "pixels" in here:
            check_pixel_version(shown, there.get("pixels"), SourceError)
            if "pixels" not in there:  # the recorded settings are kept
                here = {name: value for name, value in here.items() if name != "pixels"}
        self.settings = here
        if difference := describe_difference(there, here):
            raise SourceError(f"{shown}: holds a run {difference}; choose another folder")

    def _clean_up(self) -> None:
        self.is_complete = True
        self.storage.remove_tree(PARTS)
        self.storage.remove_tree(TEMPORARY)
        with suppress(WriteError):  # another run, which will find this one complete, may be making its lock there
            self.storage.remove_tree(PRIVATE)
        self.storage.sync()
        self.close()


def _write_file(storage: Storage, name: str, content: Content) -> StoredFile:
    with storage.writer(name) as out:
        for piece in (content,) if isinstance(content, bytes) else content:
            out.file.write(piece)
        out.commit()
    return StoredFile(name, out.descriptor.size, out.descriptor.digest.hexdigest())


def work_folder(file: StrPath) -> Path:
    """The folder of a run that makes this file; with a dot in front, no folder of images takes it for a class."""
    path = Path(os.path.abspath(file))
    return path.with_name(f".{path.name}.partial")


def acquire(path: StrPath, shown: str, kind: str = "folder") -> FileLock:
    """A lock, which is not held on systems without locks (Windows, some network disks). Its file may be removed while
    it is locked. ``kind``: what ``shown`` is. Raises SourceError if this or another process holds it."""
    lock = FileLock(path)
    if os.name == "nt":  # where a locked file could not be removed
        return lock
    with named_write_errors(shown):
        try:
            lock.acquire()
        except BlockingIOError as error:
            holder = str(error)
            who = f"another run (process {holder})" if holder else "another run"
            raise SourceError(
                f"{shown}: {who} is writing there; wait until it has ended, or choose another {kind}"
            ) from None
    lock.write_mark(str(os.getpid()))
    return lock


@contextmanager
def locked(path: StrPath, shown: str, kind: str = "folder") -> Iterator[None]:
    """``acquire`` for as long as the context lasts; then the file is removed. The lock of a killed process is free."""
    lock = acquire(path, shown, kind)
    try:
        yield
    finally:
        lock.release(remove=True)


def check_not_nested(source: LocationLike, destination: StrPath) -> None:
    """Raise SourceError if the destination is the source, is inside of it, or is a file."""
    inner, outer = (Location.parse(place, chain=True) for place in (destination, source))
    if inner.is_url or outer.is_url:
        return
    below = Path(inner.address()).resolve()
    above = Path(outer.address()).resolve()
    if below == above or above in below.parents:
        where = "is the source itself" if below == above else f"lies inside the source {above}"
        raise SourceError(f"{below}: {where}; choose a folder outside of it")
    if below.exists() and not below.is_dir():
        raise SourceError(f"{below}: is a file; expected a folder, or a name that is still free")

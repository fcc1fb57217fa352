"""Places that runs write to: whether one may, and what an earlier life of the same run has already done there.

nothing, or only names that begin with a dot    it has not begun: ``variegate.json`` is the first file to be written
variegate.json                                  it has begun; ``.variegate/journal`` has what is finished
variegate.json, manifest.parquet                it is complete; what may be left of ``.variegate`` is removed
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from variegate.checks import check_pixel_version
from variegate.formats.base import SourceError
from variegate.formats.storage import PRIVATE, TEMPORARY, Storage, WriteError, open_storage
from variegate.io.durable import write_errors_name
from variegate.io.files import StrPath
from variegate.io.lock import FileLock
from variegate.jobs.output.journal import Journal, remove_journal
from variegate.jobs.output.manifest import MANIFEST_NAME, read_manifest, write_manifest
from variegate.jobs.output.run_record import (
    SETTINGS_NAME,
    SOURCE_NAME,
    describe_differences,
    read_settings,
    write_settings,
)

_LOCK = f"{PRIVATE}/lock"


class Destination(AbstractContextManager["Destination"]):
    """A place that this run may write to, until ``finish`` or ``close``; one that is refused is left as it is.

    In a folder of this machine no second run can be opened meanwhile. Where there are no locks (at addresses, on
    Windows, on some network disks), two runs at once would overwrite each other's journal.

    Raises SourceError where the place holds another run or other files, or another run is writing there now;
    WriteError where it cannot be written to.
    """

    def __init__(
        self,
        spec: StrPath,
        settings: dict[str, Any],  # what the outputs depend on; a run with others is refused
        resume: bool = True,  # False: what an earlier run did is forgotten; its files are replaced one by one
        place: str | None = None,  # a setting that may differ where there is a record of the source: the first stays
    ) -> None:
        self.storage = storage = open_storage(spec)
        self.settings: dict[str, Any] = json.loads(json.dumps(settings))  # what reading them back gives
        self._place = place
        self.is_complete = False
        self._journal: Journal | None = None
        self._open = ExitStack()  # the lock, then the journal
        is_begun = self._check()
        if resume and is_begun and storage.exists(MANIFEST_NAME) and not storage.exists(PRIVATE):
            self.is_complete = True
            if not storage.exists(SETTINGS_NAME):
                self.amend(lambda storage: write_settings(storage, self.settings))
            return
        try:
            self._begin(resume)
        except BaseException:
            self.close()
            raise

    @property
    def journal(self) -> Journal:
        """Raises RuntimeError where the run is complete: there is nothing to record, and nothing is."""
        if self._journal is None:
            raise RuntimeError("the run is complete, or was closed: it has no journal")
        return self._journal

    def reopen(self, record: Callable[[Journal], None]) -> None:
        """Make a complete run one that has begun: ``record`` fills its journal, then the manifest goes."""
        self._claim()
        remove_journal(self.storage)
        journal = self._open_journal()
        record(journal)
        journal.flush()
        self.storage.remove(MANIFEST_NAME)
        self.storage.sync()
        self.is_complete = False

    def amend(self, change: Callable[[Storage], None]) -> None:
        """Change what is beside the outputs, complete or not. Raises as ``reopen``, and what ``change`` raises."""
        if self.is_complete:
            self._claim()
        change(self.storage)
        self.storage.sync()
        if self.is_complete:
            self._clean_up()

    def finish(self, rows: Iterable[dict[str, Any]]) -> int:
        """Write the manifest of ``rows``, whose outputs last by now, and remove what is private -> number of rows."""
        count = write_manifest(self.storage, rows, self.settings)
        self.storage.sync()
        self.is_complete = True
        self._clean_up()
        return count

    def close(self) -> None:
        """Let the next run in, which goes on from what was flushed to the journal."""
        self._journal = None
        self._open.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> bool:
        """True if the run has begun there. Raises SourceError where it may not."""
        storage = self.storage
        if not storage.is_remote and os.path.lexists(storage.root) and not os.path.isdir(storage.root):
            raise SourceError(f"{storage.shown}: is a file; expected a folder, or a name that is still free")
        # Asked first, as a folder of outputs may be long to list. A manifest has the settings too.
        there: dict[str, Any] | None = None
        if storage.exists(SETTINGS_NAME):
            there = read_settings(storage)
        elif storage.exists(MANIFEST_NAME):
            there = read_manifest(storage.root).settings
        if there is None:
            if names := [name for name in storage.list() if not name.startswith(".")]:
                raise SourceError(
                    f"{storage.shown}: holds files that no run of variegate wrote ({names[0]}); choose an empty folder "
                    "or a new name"
                )
            return False
        place = self._place
        if place in there and place in self.settings and storage.exists(SOURCE_NAME):
            self.settings = self.settings | {place: there[place]}
        here = self.settings
        if "exclude" in there and "exclude" in here and there.get("fingerprint") == here.get("fingerprint"):
            # Of the list of samples left out, the place may be another: fingerprints show which they are.
            self.settings = here = here | {"exclude": there["exclude"]}
        if (was := there.get("command", "augment")) != here.get("command", "augment"):
            raise SourceError(f"{storage.shown}: holds a run of variegate {was}; choose another folder")
        if "pixels" in here:
            check_pixel_version(storage.shown, there.get("pixels"), SourceError)
            if "pixels" not in there:  # the settings stay as they were written
                self.settings = here = {name: value for name, value in here.items() if name != "pixels"}
        if difference := describe_differences(there, here):
            raise SourceError(f"{storage.shown}: holds a run {difference}; choose another folder")
        return True

    def _open_journal(self) -> Journal:
        of_settings = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:16]
        self._journal = Journal(self.storage, of_settings)
        self._open.callback(self._journal.close)
        return self._journal

    def _claim(self) -> bool:
        """Keep other runs out -> whether this one has begun."""
        storage = self.storage
        if not storage.is_remote:
            storage.prepare()
            self._open.callback(acquire(os.path.join(storage.root, _LOCK), storage.shown).release)
        is_begun = self._check()  # again, now that nobody else writes
        storage.remove_tree(TEMPORARY)
        storage.prepare()  # again: a run that ended between may have removed it
        return is_begun

    def _begin(self, resume: bool) -> None:
        storage = self.storage
        is_begun = self._claim()
        if not is_begun or not storage.exists(SETTINGS_NAME):
            write_settings(storage, self.settings)
            storage.sync()
        if not resume:
            remove_journal(storage)
            storage.remove(MANIFEST_NAME)
            storage.sync()
        if storage.exists(MANIFEST_NAME):
            self.is_complete = True
            self._clean_up()
        else:
            self._open_journal()

    def _clean_up(self) -> None:
        if self._journal is not None:
            self._journal.close()
        remove_journal(self.storage)
        self.storage.remove_tree(TEMPORARY)
        with suppress(WriteError):  # another run, which will find this one complete, may be making its lock there
            self.storage.remove_tree(PRIVATE)
        self.storage.sync()
        self.close()


def acquire(path: StrPath, shown: str, kind: str = "folder") -> FileLock:
    """A lock, not held where there are none (on Windows, on some network disks). The file may be removed while it is
    locked. ``kind``: what ``shown`` is. Raises SourceError where another process, or this one, holds it."""
    lock = FileLock(path)
    if os.name == "nt":  # where a file that is locked could not be removed
        return lock
    with write_errors_name(shown):
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
    """``acquire`` for as long as the context lasts; then the file is removed. That of a killed holder is taken over."""
    lock = acquire(path, shown, kind)
    try:
        yield
    finally:
        lock.release(remove=True)

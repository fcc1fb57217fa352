"""Whether a run may write to a place, and what an earlier life of the same run has already done there.

What is found there says how far it came, whenever it was killed:

    nothing, or only names that begin with a dot    it has not begun: ``variegate.json`` is the first file to be written
    variegate.json                                  it has begun; ``.variegate/journal`` tells what is finished
    variegate.json, manifest.parquet                it is complete; what may be left of ``.variegate`` is removed
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any

from variegate.data.sources.base import SourceError
from variegate.sinks import settings as run_settings
from variegate.sinks.journal import Journal
from variegate.sinks.journal_files import remove_journal
from variegate.sinks.lock import acquire
from variegate.sinks.manifest import MANIFEST_NAME, write_manifest
from variegate.sinks.storage import PRIVATE, TEMPORARY, Storage, WriteError, open_storage

SETTINGS_NAME = "variegate.json"
_LOCK = f"{PRIVATE}/lock"


class Destination:
    """A place that this run may write to, until ``finish`` or ``close``. Usable as a context manager.

    In a folder of this machine no second run can be opened meanwhile. There is no such lock at addresses, on Windows,
    and on network disks that have none: there, two runs at once are the user's to avoid (they would write the same
    bytes, but overwrite each other's journal).
    """

    def __init__(self, storage: Storage, settings: dict[str, Any], plan: str) -> None:
        """For ``open``."""
        self.storage, self.settings, self.plan = storage, settings, plan
        self.is_complete = False
        self._journal: Journal | None = None
        self._lock: int | None = None

    @classmethod
    def open(
        cls,
        spec: str | os.PathLike[str],
        settings: dict[str, Any],
        plan: str | None = None,
        resume: bool = True,
    ) -> Destination:
        """``settings``: what the outputs depend on, as JSON has it; another run with other settings is refused.
        ``plan``: a digest of what is in the journal, for what the settings do not tell; None: of the settings.

        ``resume=False``: what an earlier life of this run did is forgotten; its files are replaced one by one.

        Raises SourceError where the place holds another run or other files, or another run is writing there now;
        WriteError where it cannot be written to. A place that is refused is left as it is.
        """
        storage = open_storage(spec)
        settings = run_settings.as_json(settings)
        self = cls(storage, settings, plan or run_settings.digest(settings))
        is_begun = self._check()
        if resume and is_begun and storage.exists(MANIFEST_NAME) and not storage.exists(PRIVATE):
            self.is_complete = True
            return self
        try:
            self._begin(resume)
        except BaseException:
            self.close()
            raise
        return self

    @property
    def journal(self) -> Journal:
        """Raises RuntimeError where the run is complete: there is nothing to record, and nothing is."""
        if self._journal is None:
            raise RuntimeError("the run is complete, or was closed: it has no journal")
        return self._journal

    def finish(self, rows: Iterable[dict[str, Any]]) -> int:
        """Write the manifest -> its number of rows; then only outputs, manifest and settings are left.

        ``rows``: as ``write_manifest`` takes them, usually ``journal.rows(num_items)``. Every output must have been
        made durable (``storage.sync``) by whoever wrote it.
        """
        count = write_manifest(self.storage, rows, self.settings)
        self.storage.sync()
        self.is_complete = True
        self._clean_up()
        return count

    def close(self) -> None:
        """Let the next run in, which goes on from what was flushed to the journal."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Destination:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> bool:
        """Whether the run has begun there. Raises SourceError where it may not."""
        storage = self.storage
        if not storage.is_remote and os.path.lexists(storage.root) and not os.path.isdir(storage.root):
            raise SourceError(f"{storage.shown}: is a file; expected a folder, or a name that is still free")
        if storage.exists(SETTINGS_NAME):  # asked first: a folder of outputs may be long to list
            there = run_settings.from_bytes(storage.read(SETTINGS_NAME), storage.place_of(SETTINGS_NAME))
            if difference := run_settings.describe_differences(there, self.settings):
                raise SourceError(f"{storage.shown}: holds a run {difference}; choose another folder")
            return True
        names = [name for name in storage.list() if not name.startswith(".")]
        if names:
            raise SourceError(
                f"{storage.shown}: holds files that no run of variegate wrote ({names[0]}); choose an empty folder or "
                "a new name"
            )
        return False

    def _begin(self, resume: bool) -> None:
        storage = self.storage
        if not storage.is_remote:
            storage.prepare()
            self._lock = acquire(os.path.join(storage.root, _LOCK), storage.shown)
        is_begun = self._check()  # again, now that nobody else writes
        storage.remove_tree(TEMPORARY)
        storage.prepare()  # again: a run that ended between may have removed it
        if not is_begun:
            storage.write(SETTINGS_NAME, run_settings.to_bytes(self.settings))
            storage.sync()
        if not resume:
            remove_journal(storage)
            storage.remove(MANIFEST_NAME)
            storage.sync()
        if storage.exists(MANIFEST_NAME):
            self.is_complete = True
            self._clean_up()
        else:
            self._journal = Journal(storage, self.plan)

    def _clean_up(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        remove_journal(self.storage)
        self.storage.remove_tree(TEMPORARY)
        with suppress(WriteError):  # another run, which will find this one complete, may be making its lock there
            self.storage.remove_tree(PRIVATE)
        self.storage.sync()
        self.close()

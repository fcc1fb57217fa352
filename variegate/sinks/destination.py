"""Whether a run may write to a place, and what an earlier life of the same run has already done there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from variegate.sinks.journal import Journal
from variegate.sinks.storage import Storage

SETTINGS_NAME = "variegate.json"


class Destination:
    """A place that this run may write to, until ``close`` or ``finish``. Usable as a context manager."""

    storage: Storage
    journal: Journal  # asking for it raises RuntimeError where is_complete
    is_complete: bool  # the run was finished before; there is nothing to do

    @classmethod
    def open(
        cls,
        spec: str | os.PathLike[str],
        settings: dict[str, Any],
        plan: str | None = None,
        resume: bool = True,
    ) -> Destination:
        """``settings``: all that the outputs depend on and a user knows of, as JSON has it. ``plan``: a digest for
        what they depend on besides, such as the source's fingerprint; None: of the settings.

        ``resume=False``: what an earlier life of this run did is forgotten; its files are replaced one by one.

        Raises SourceError where the place holds another run or other files, or another run is writing there now;
        WriteError where it cannot be written to.
        """
        raise NotImplementedError

    def finish(self, rows: Iterable[dict[str, Any]]) -> int:
        """Write the manifest -> its number of rows, then leave nothing behind but the outputs, the manifest and the
        settings. ``rows``: usually ``journal.rows(num_items)``."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the place; what was flushed to the journal is what the next run goes on from."""
        raise NotImplementedError

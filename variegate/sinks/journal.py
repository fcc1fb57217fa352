"""What has been done of a run: an append-only record of finished ranges of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from variegate.sinks.storage import Storage


class Journal:
    """Ranges of items that are finished, and the manifest's rows of their outputs. For one thread.

    ``plan`` is a digest of all that the rows depend on; a journal of another plan is refused with SourceError.
    """

    def __init__(self, storage: Storage, plan: str) -> None:
        self.covered: list[tuple[int, int]] = []  # what is recorded, flushed or not: sorted, merged (start, stop)
        self.num_rows = 0
        self.pending = 0  # records that are not flushed yet

    def append(self, start: int, stop: int, rows: Sequence[str]) -> None:
        """Items ``start..stop-1`` are done; ``rows``: the JSON text of one object per output, in the items' order, as
        json.dumps makes it (ASCII, one line). Raises ValueError where the range overlaps one that is recorded."""
        raise NotImplementedError

    def flush(self) -> None:
        """What was appended lasts when this returns. Raises WriteError, DiskFullError; calling it again tries again."""
        raise NotImplementedError

    def rows(self, num_items: int) -> Iterator[dict[str, Any]]:
        """All rows, in the order of the items, once each. Raises ValueError unless 0..num_items-1 are all covered."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        raise NotImplementedError

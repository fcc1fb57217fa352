"""From results to what lasts: every output is in its place before the journal says so, and then it is never undone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from variegate.formats.annotated.written import targets_in
from variegate.formats.shards import Labels, Record, Shard, describe_labels, open_shard
from variegate.formats.storage import Storage
from variegate.formats.tar.write import ImageAnnotations
from variegate.jobs.augment.plan import ItemOutputs, Plan
from variegate.jobs.output.journal import Journal
from variegate.workers.scheduler import Snapshot


@dataclass
class Report:
    """Counts of outputs, if not said otherwise. ``written`` are on disk and in the journal: nothing undoes them."""

    files: int  # samples of the source
    total: int  # of a complete run
    written: int = 0  # by this run
    resumed: int = 0  # that an earlier run had written
    repaired: int = 0  # of those that an earlier run had written: not there any more, or not whole; to be made again
    missing: int = 0  # that cannot be made, as this run or an earlier one found
    skipped: list[tuple[str, str]] = field(default_factory=list)  # samples that were given up by this run, and why
    seconds: float = 0.0  # since the first worker was ready
    is_interrupted: bool = False
    snapshot: Snapshot | None = None  # of the devices, while it runs

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.written / self.seconds if self.seconds > 0 else 0.0


class FileCommit:
    """Outputs are files that workers wrote."""

    def __init__(self, plan: Plan, journal: Journal, report: Report) -> None:
        self._plan = plan
        self._journal = journal
        self._report = report
        self._written = self._missing = 0

    def done(self, start: int, outputs: Sequence[ItemOutputs]) -> None:
        rows = [row for made in outputs for row in made.rows]
        self._journal.append(start, start + len(outputs), rows)
        self._written += len(rows)
        if self._journal.is_due:
            self.flush()

    def missing(self, item: int, reason: str) -> None:
        rows = [json.dumps(row) for row in self._plan.missing_rows(item, reason)]
        self._journal.append(item, item + 1, rows, len(rows))
        self._missing += len(rows)
        if self._journal.is_due:
            self.flush()

    def flush(self) -> None:
        self._journal.flush()
        self._report.written += self._written
        self._report.missing += self._missing
        self._written = self._missing = 0

    def close(self) -> None:
        pass


class ShardCommit:
    """Outputs come in order, and are gathered here into shards. A shard is in the journal once it is in its place."""

    def __init__(self, plan: Plan, storage: Storage, labels: Labels, journal: Journal, report: Report) -> None:
        self._plan = plan
        self._storage = storage
        self._labels = labels
        self._journal = journal
        self._report = report
        self._shard: Shard | None = None
        self._first = 0  # item of the shard
        self._rows: list[dict[str, Any]] = []
        self._missing = 0

    def done(self, start: int, outputs: Sequence[ItemOutputs]) -> None:
        for item, made in enumerate(outputs, start):
            self._begin(item)
            shard = self._shard
            assert shard is not None
            for text, data, extra in zip(made.rows, made.data, made.extras, strict=True):
                row = json.loads(text)
                row["file"], row["member"] = shard.name, shard.add(self._record(row, data, made.label, extra))
                self._rows.append(row)
            self._end_item(item)

    def missing(self, item: int, reason: str) -> None:
        self._begin(item)
        rows = list(self._plan.missing_rows(item, reason))
        self._rows += rows
        self._missing += len(rows)
        self._end_item(item)

    def flush(self) -> None:
        self._journal.flush()

    def close(self) -> None:
        if self._shard is not None:
            self._shard.discard()
            self._shard = None

    def _begin(self, item: int) -> None:
        """Open the shard of an item."""
        if self._shard is None:
            plan = self._plan
            number, rest = divmod(item, plan.items_per_shard)
            assert rest == 0, "items come in order, from the beginning of a shard"
            self._shard = open_shard(self._storage, plan.layout, number, self._labels, plan.about)
            self._first = item

    def _end_item(self, item: int) -> None:
        """The last item of a shard ends it."""
        stop = item + 1
        if stop % self._plan.items_per_shard == 0 or stop == self._plan.num_items:
            self._end(stop)

    def _end(self, stop: int) -> None:
        """Record the items from ``self._first`` on, which are in their place, or cannot be made."""
        whole = {} if self._shard is None else self._put_shard(self._shard)
        rows = [json.dumps(row | whole if row["status"] == "written" else row) for row in self._rows]
        self._journal.append(self._first, stop, rows, self._missing)
        self._journal.flush()
        self._report.written += len(self._rows) - self._missing
        self._report.missing += self._missing
        self._rows = []
        self._missing = 0

    def _put_shard(self, shard: Shard) -> dict[str, Any]:
        """It is in its place, and lasts -> columns of the rows of its outputs."""
        shard.commit()
        self._storage.sync()
        self._shard = None
        return {"shard_bytes": shard.size, "shard_sha256": shard.sha256}

    def _record(self, row: dict[str, Any], data: bytes, label: Any, extra: Any) -> Record:
        if self._plan.about is not None:
            objects = None if row["targets"] is None else targets_in(row)
            extra = ImageAnnotations((row["height"], row["width"]), objects, extra)
        about = row["class"], row["source"], row["id"]
        return Record(row["index"], row["copy"], data, self._plan.format, label, *about, beside=extra)


def labels_of(plan: Plan) -> Labels:
    """Labels of the outputs, by the first sample that can be read. Raises SourceError where they do not fit."""
    for index in range(min(len(plan.source), 100)):
        with suppress(Exception):  # it will be named when its turn comes
            label = plan.source.read(index).label
            break
    else:
        label = -1
    return describe_labels(plan.layout, label, plan.source.classes)

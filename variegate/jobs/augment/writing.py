"""Writers of parts: the files of a part's outputs, then its record, after which nothing undoes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from variegate.data.annotated.manifest_targets import targets_in
from variegate.data.annotated.records import ImageAnnotations
from variegate.data.shards import Labels, Record, describe_labels, open_shard
from variegate.data.storage import Storage
from variegate.decode.depth import note_once
from variegate.jobs.output.parts import Row, write_record

if TYPE_CHECKING:
    from variegate.jobs.augment.plan import Plan

# Files that are written together, and open at the same time, by a thread.
_FILES_AT_ONCE = 64


class CopyOutput(NamedTuple):
    """A copy of an item."""

    row: Row  # of the manifest
    data: bytes  # its image file
    extra: Any = None  # the file of its mask or annotations; when packing, its entry of the index


class ItemOutputs(NamedTuple):
    copies: tuple[CopyOutput, ...]
    label: Any  # of the sample


# The outputs of an item, or the reason of its failure.
Made: TypeAlias = ItemOutputs | str
# Calls a function with each value, perhaps in several threads.
RunAll: TypeAlias = Callable[[Callable[[Any], object], Iterable[Any]], object]


class PartReport(NamedTuple):
    """Reply of a worker that has written a part. ``failed``: reasons by item. ``notes``: warnings on the way."""

    failed: Mapping[int, str]
    notes: tuple[str, ...] = ()


class PartWriter(AbstractContextManager["PartWriter"]):
    """Write the items of a part in their order, then ``commit``. Equal items make equal files. Raises WriteError."""

    def __init__(self, plan: Plan, storage: Storage, part: int) -> None:
        self.plan = plan
        self.storage = storage
        self.part = part
        self.rows: list[Row] = []

    def add(self, made: Iterable[tuple[int, Made]], run_all: RunAll = map, num_threads: int = 1) -> None:
        """Add items. ``run_all``: runs the writing of files on a pool of threads."""
        outputs = []
        for item, found in made:
            if isinstance(found, str):
                self.rows += self.plan.missing_rows(item, found)
                continue
            for output in found.copies:
                self.rows.append(output.row)
                outputs.append((output, found.label))
        self._write(outputs, run_all, num_threads)

    def commit(self) -> None:
        """Make the files last, then the record."""
        self._finish()
        self.storage.sync()
        write_record(self.storage, self.part, self.rows)
        self.storage.sync()

    def __exit__(self, *_: object) -> None:
        """Discard uncommitted files."""

    @abstractmethod
    def _write(self, outputs: Sequence[tuple[CopyOutput, Any]], run_all: RunAll, num_threads: int) -> None:
        """Write outputs, each with its label. Rows may be completed."""

    def _finish(self) -> None:
        """Complete files and rows."""


class FolderWriter(PartWriter):
    """Every output is a file, with that of its mask or annotations if its row names one."""

    def _write(self, outputs: Sequence[tuple[CopyOutput, Any]], run_all: RunAll, num_threads: int) -> None:
        files = [(output.row["file"], output.data) for output, _ in outputs]
        for (row, _, beside), _ in outputs:
            if name := row.get("mask_file") or row.get("annotation_file"):
                files.append((name, beside))
        number = max(1, min(_FILES_AT_ONCE, -(-len(files) // num_threads)))
        groups = [files[first : first + number] for first in range(0, len(files), number)]
        list(run_all(self.storage.write_many, groups))  # type: ignore[call-overload]


class ShardWriter(PartWriter):
    """All outputs are in one shard."""

    def __init__(self, plan: Plan, storage: Storage, part: int, labels: Labels) -> None:
        super().__init__(plan, storage, part)
        self.shard = open_shard(storage, plan.layout, part, labels, plan.metadata, plan.depth)

    def __exit__(self, *_: object) -> None:
        self.shard.discard()

    def _write(self, outputs: Sequence[tuple[CopyOutput, Any]], run_all: RunAll, num_threads: int) -> None:
        for output, label in outputs:
            output.row["member"] = self.shard.add(self._record(output, label))

    def _finish(self) -> None:
        self.shard.commit()
        of_shard = {"file": self.shard.name, "shard_bytes": self.shard.size, "shard_sha256": self.shard.sha256}
        for row in self.rows:
            if row["status"] == "written":
                row |= of_shard

    def _record(self, output: CopyOutput, label: Any) -> Record:
        row, data, extra = output
        if self.plan.metadata is not None:
            objects = None if row["targets"] is None else targets_in(row)
            extra = ImageAnnotations((row["height"], row["width"]), objects, extra)
        metadata = row["class"], row["source"], row["id"]
        return Record(row["index"], row["copy"], data, self.plan.format, label, *metadata, beside=extra)


def labels_of(plan: Plan) -> Labels:
    """Labels of the outputs, by the first sample that can be read. Raises SourceError if they do not fit."""
    for index in range(min(len(plan.source), 100)):
        # A sample that cannot be read is named, and its depth noted, when its part is made.
        with suppress(Exception), note_once(set(), keeps_depth=True):
            label = plan.source.read(index).label
            break
    else:
        label = -1
    return describe_labels(plan.layout, label, plan.source.classes)

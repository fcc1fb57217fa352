"""``Expansion``: a plan run on the devices of an engine, from a claimed destination to its manifest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

from variegate.decode.depth import FIRST
from variegate.decode.entropy.index import index_path
from variegate.errors import DecodeError
from variegate.formats.base import FileSource, SourceError
from variegate.formats.filtered import whole_of
from variegate.formats.labels import CLASS_NAMES
from variegate.formats.packed import index_beside
from variegate.formats.stamps import Stamps
from variegate.formats.storage import open_storage
from variegate.formats.tar.write import has_class_names, write_class_names
from variegate.io.files import StrPath
from variegate.io.location import Location
from variegate.jobs.augment.commit import FileCommit, Report, ShardCommit, labels_of
from variegate.jobs.augment.job import ExpansionSpec
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.same_source import check_unchanged, refuse_other_files
from variegate.jobs.engine import Engine
from variegate.jobs.options import OnError
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.manifest import CHECKSUM_NAME, read_manifest, write_checksum
from variegate.jobs.output.on_disk import DiskRun, Row, check_apart
from variegate.jobs.output.run_record import write_source
from variegate.workers.run import FailedItem
from variegate.workers.scheduler import Snapshot

# Outputs in a task: some tenths of a second of work on a core, so that what it costs to hand one over is nothing.
_OUTPUTS_PER_TASK = 64
# Of every device, so that the last tasks do not leave the others with nothing to do.
_TASKS_PER_DEVICE = 8
# Outputs between the first that is not in its place and the last that is being made, per device.
_OUTPUTS_AHEAD = 16 * _OUTPUTS_PER_TASK
_WAITING_BYTES = 512 << 20


@dataclass
class Expansion(DiskRun):
    """Outputs and manifest depend on the plan, and on whether GPUs or CPUs run it; on nothing else."""

    plan: Plan
    destination: StrPath = field(repr=False)  # a folder or an address, which may hold a password
    engine: Engine
    on_error: OnError = "skip"  # passes over samples that failed three times; "raise" ends the run at the first
    resume: bool = True  # False: an earlier run's outputs are replaced
    on_progress: Callable[[Report], None] | None = None
    stop: Event = field(default_factory=Event)  # once set, the run ends with what it has begun
    index: StrPath | None = "auto"  # an entropy index, or None; "auto": what ``variegate index`` has made
    verb: ClassVar[str] = "augmenting"
    _shard_commit: ClassVar[Any] = ShardCommit

    def __post_init__(self) -> None:
        if self.index not in (None, "auto") and not Path(self.index).is_file():
            raise ValueError(f"index: {self.index} is no file; accepted: auto, none, or what variegate index wrote")
        self.report = Report(len(self.plan.source), self.plan.num_outputs)
        self.num_items, self.is_sharded = self.plan.num_items, self.plan.is_sharded
        self.shared_columns = {"seed": self.plan.seed, "epoch": self.plan.epoch}
        self._skipped: set[int] = set()  # samples in report.skipped, by index

    def run(self) -> Report:
        """``self.report`` counts what was done even where this raises SourceError, DecodeError or EngineError."""
        source = self.plan.source
        location = Location.parse(self.destination, chain=True)
        workers = self.engine.workers
        if isinstance(source, FileSource):
            check_apart(source.folder, self.destination)
        # Workers would write files to a memory that is theirs alone, and ends with them.
        if location.protocols[:1] == ("memory",) and workers != "thread" and self.plan.layout == "folder":
            raise SourceError(
                f"{location}: is in the memory of a single process, and workers={workers!r} have their own; accepted "
                "with it: workers='thread'"
            )
        self._labels = labels_of(self.plan)
        self.run_on(source)
        self.report.is_interrupted = self.is_interrupted
        return self.report

    def settings(self) -> dict[str, Any]:
        return self.plan.settings(self.engine.executor)

    def refuse(self, settings: dict[str, Any], stamps: Stamps | None) -> None:
        refuse_other_files(open_storage(self.destination), settings, stamps)

    def check_source(self, destination: Destination, stamps: Stamps | None) -> None:
        self._stamps = stamps
        self._is_recorded = check_unchanged(destination, self.plan, stamps)

    def span_of(self, row: Row) -> tuple[int, int]:
        return self.plan.span_of(row)

    def restore(self, destination: Destination, num_lost: int) -> None:
        report = self.report
        labels = self._labels
        stamps = self._stamps
        report.repaired = num_lost
        if num_lost:
            why = "files are missing or have another size"
            warnings.warn(f"{num_lost:,} outputs of an earlier run are made again: {why}", stacklevel=4)
        if stamps is not None and not self._is_recorded:
            destination.amend(lambda storage: write_source(storage, stamps))
        # Shards write them, but those that are there already do not do so again.
        is_begun = destination.is_complete or destination.journal.covered
        if self.plan.layout == "webdataset" and is_begun and not has_class_names(destination.storage, labels):
            destination.amend(lambda storage: write_class_names(storage, labels))
            warnings.warn(f"{CLASS_NAMES} is written again", stacklevel=4)
        if not destination.is_complete:
            return
        manifest = read_manifest(destination.storage.root)
        report.missing = manifest.count_missing()
        if not destination.storage.exists(CHECKSUM_NAME):
            destination.amend(write_checksum)
        report.resumed = report.total - report.missing
        self.restore_side_files(destination)

    def restore_side_files(self, destination: Destination) -> None:
        """Of a complete run: what lies beside the outputs and is lost is made again."""
        self.plan.restore_side_files(destination)

    def write_side_files(self, destination: Destination, rows: Callable[[], Iterator[Row]]) -> None:
        self.plan.write_side_files(destination, rows)

    def _index_file(self) -> str | None:
        if self.index is None or self.plan.copies > 1 or self.plan.about is not None:
            return None  # one decode serves all copies, whose crops together are nearly all of the picture
        path = Path(self.index)
        if self.index == "auto":
            beside = index_beside(self.plan.source)
            if beside is None or beside.is_url:
                path = index_path(whole_of(self.plan.source).fingerprint)
            else:
                path = Path(beside.address())
        return str(path.absolute()) if path.exists() else None

    def make(self, destination: Destination) -> None:
        plan, report, journal, engine = self.plan, self.report, destination.journal, self.engine
        report.missing = journal.num_missing
        report.resumed = sum(plan.outputs_in(start, stop) for start, stop in journal.covered) - report.missing
        self._is_ready = engine.workers == "thread"
        self._began = time.perf_counter()
        self._items = self._bytes = 0
        self._noted: set[str] = set()
        stamps = None if self._stamps is None else self._stamps.for_workers()
        spec = ExpansionSpec(plan, None, engine.workers != "thread", stamps=stamps, index=self._index_file())
        commit: FileCommit | ShardCommit
        if plan.is_sharded:
            spec = replace(spec, labels=self._labels)
            commit = self._shard_commit(plan, destination.storage, self._labels, journal, report)
        else:
            spec = replace(spec, storage=destination.storage)
            commit = FileCommit(plan, journal, report)
        per_device = plan.num_items // (_TASKS_PER_DEVICE * len(engine.devices))
        size = max(1, min(_OUTPUTS_PER_TASK // plan.copies_per_item, per_device))
        tasks: Iterator[tuple[int, int, None]] = ((*span, None) for span in journal.left(plan.num_items, size))
        results = engine.run(
            spec,
            tasks,
            ordered=True if plan.is_sharded else None,
            max_items=max(1, _OUTPUTS_AHEAD * len(engine.devices) // plan.copies_per_item),
            has_room=self._has_room if plan.is_sharded else None,
            stop=self.stop,
            on_turn=self._on_turn,
        )
        try:
            with closing(results):
                for result in results:
                    if isinstance(result, FailedItem):
                        self._give_up(result.item, result.reason, commit)
                    else:
                        commit.done(result.start, result.outputs)
                        self._items += len(result.outputs)
                        self._bytes += sum(len(data) for made in result.outputs for data in made.data)
                        for note in [note for made in result.outputs for note in made.notes]:
                            self._pass_on(note)
                    self._count_time()
        finally:
            try:
                commit.flush()
            finally:
                commit.close()
                if self.on_progress is not None:
                    self.on_progress(self.report)

    def _pass_on(self, note: str) -> None:
        """Warn of a note of a device's job; of notes that differ in their first image alone, of one."""
        kind = note.partition(FIRST)[0]
        if kind not in self._noted:
            self._noted.add(kind)
            warnings.warn(note, stacklevel=2)

    def _has_room(self) -> bool:
        """Image files wait here for their turn: as many as there were bytes of them, on average."""
        snapshot = self.report.snapshot
        return snapshot is None or snapshot.outstanding * self._bytes <= _WAITING_BYTES * self._items

    def _give_up(self, item: int, reason: str, commit: Any) -> None:
        index = self.plan.sample_of(item)
        if self.on_error == "raise":
            raise DecodeError(str(self.plan.source.name(index)), reason)
        if index not in self._skipped:  # of many copies, a sample is several items, and others come between them
            self._skipped.add(index)
            self.report.skipped.append((self.plan.sample_name(index), reason))
        commit.missing(item, reason)

    def _on_turn(self, snapshot: Snapshot) -> None:
        self.report.snapshot = snapshot
        if not self._is_ready and any(device.state == "ready" for device in snapshot.devices):
            self._is_ready = True
            self._began = time.perf_counter()
        self._count_time()
        if self.on_progress is not None:
            self.on_progress(self.report)

    def _count_time(self) -> None:
        """Count time between the first and last item: starting and ending processes is no matter of speed."""
        if self._is_ready:
            self.report.seconds = time.perf_counter() - self._began

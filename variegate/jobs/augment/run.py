"""``Expansion``: a plan run on the devices of an engine, from its folder to its manifest."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import ClassVar

from variegate.data.base import SourceError, summarize_names
from variegate.data.packed import index_beside
from variegate.data.stamps import stamps_of
from variegate.data.storage import open_storage
from variegate.decode.depth import FIRST
from variegate.decode.entropy.index import index_path
from variegate.errors import DecodeError
from variegate.events import OnEvent, Skipped, ignore_event
from variegate.io.amounts import pluralize
from variegate.io.files import StrPath
from variegate.io.location import Location
from variegate.jobs.augment.job import ExpansionSpec
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.same_source import check_unchanged, refuse_other_files
from variegate.jobs.augment.writing import PartReport, labels_of
from variegate.jobs.engine import Engine
from variegate.jobs.options import OnError
from variegate.jobs.output.parts import FinishedPart, Parts
from variegate.jobs.output.run_folder import RunFolder, check_not_nested
from variegate.jobs.output.run_record import write_source
from variegate.workers.run import Finished, FinishedItems
from variegate.workers.scheduler import DeviceSnapshot, Snapshot


@dataclass(frozen=True)
class ExpansionProgress:
    """Event: counts of outputs, as in ``Report``, and the devices, whose counts are of outputs too."""

    verb: str
    written: int
    resumed: int
    missing: int
    skipped: int
    total: int
    rate: float
    devices: tuple[DeviceSnapshot, ...]

    @property
    def remaining(self) -> int:
        return self.total - self.written - self.resumed - self.missing


@dataclass
class Report:
    """Counts of outputs, if not said otherwise. ``written`` are on disk, with a record: nothing undoes them."""

    files: int  # samples of the source
    total: int  # of a complete run
    written: int = 0  # by this run
    resumed: int = 0  # that an earlier run had written
    repaired: int = 0  # of an earlier run, in parts that are made again because files are missing or not whole
    missing: int = 0  # that cannot be made, as this run or an earlier one found
    skipped: list[tuple[str, str]] = field(default_factory=list)  # samples that this run gave up, and why
    seconds: float = 0.0  # since the first worker was ready
    is_interrupted: bool = False

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.written / self.seconds if self.seconds > 0 else 0.0


@dataclass
class Expansion:
    """Outputs and manifest depend on the plan, and on whether GPUs or CPUs run it; on nothing else."""

    plan: Plan
    destination: StrPath = field(repr=False)  # a folder or an address, which may hold a password
    engine: Engine
    on_error: OnError = "skip"  # skips samples that failed three times; "raise" ends the run at the first
    resume: bool = True  # False: an earlier run's outputs are replaced
    on_event: OnEvent = ignore_event  # called with ExpansionProgress and Skipped
    stop: Event = field(default_factory=Event)  # once set, the run finishes started parts and ends
    index: StrPath | None = "auto"  # an entropy index, or None; "auto": what ``variegate index`` has made
    verb: ClassVar[str] = "augmenting"

    def __post_init__(self) -> None:
        if self.index not in (None, "auto") and not Path(self.index).is_file():
            raise ValueError(f"index: {self.index} is no file; accepted: auto, none, or what variegate index wrote")
        self.report = Report(len(self.plan.source), self.plan.num_outputs)
        self._skipped: set[int] = set()  # samples in report.skipped, by index
        self._devices: list[DeviceSnapshot] = []

    def run(self) -> Report:
        """``self.report`` counts finished outputs even if this raises SourceError, DecodeError or EngineError."""
        plan = self.plan
        source = plan.source
        self._check_destination()
        self._labels = labels_of(plan)
        settings = plan.settings(self.engine.executor)
        self._stamps = stamps = stamps_of(source)
        refuse_other_files(open_storage(self.destination), settings, stamps)
        place = None if stamps is None else "source"
        with RunFolder(self.destination, settings, self.resume, place) as folder:
            parts = Parts(folder.storage, plan)
            if folder.is_complete and (parts.remaining or parts.lost_files):
                folder.claim()
                parts = Parts(folder.storage, plan)
            self._count_finished(parts)
            is_recorded = check_unchanged(folder.storage, plan, stamps, parts.finished)
            if folder.is_complete:
                return self.report
            if stamps is not None and not is_recorded:
                write_source(folder.storage, stamps)
            if parts.remaining:
                self._make(folder, parts)
            self.report.is_interrupted = bool(parts.remaining)
            if not self.report.is_interrupted:
                plan.make_class_folders(folder.storage)
                shared = {"seed": plan.seed, "epoch": plan.epoch}
                rows = (row | shared for row in parts.rows())
                folder.finish(rows, plan.last_files(folder.storage, self._labels, parts.rows))
        return self.report

    def _check_destination(self) -> None:
        source = self.plan.source
        location = Location.parse(self.destination, chain=True)
        workers = self.engine.workers
        if source.folder is not None:
            check_not_nested(source.folder, self.destination)
        # Workers would write files to a memory that is theirs alone, and ends with them.
        if location.protocols[:1] == ("memory",) and workers != "thread":
            raise SourceError(
                f"{location}: is in the memory of a single process, and workers={workers!r} have their own; accepted "
                "with it: workers='thread'"
            )

    def _count_finished(self, parts: Parts) -> None:
        report = self.report
        report.resumed = sum(part.written for part in parts.finished.values())
        report.missing = sum(part.missing for part in parts.finished.values())
        report.repaired = parts.num_lost
        if report.repaired:
            why = "files are missing or have another size"
            warnings.warn(
                f"writing {pluralize(report.repaired, 'output')} of an earlier run again: {why}", stacklevel=4
            )
        if parts.lost_files:
            warnings.warn(f"written again: {summarize_names(parts.lost_files)}", stacklevel=4)

    def _index_file(self) -> str | None:
        plan = self.plan
        if self.index is None or plan.copies > 1 or plan.metadata is not None or plan.depth.is_deep:
            return None  # one decode serves all copies, whose crops together are nearly all of the picture
        path = Path(self.index)
        if self.index == "auto":
            beside = index_beside(plan.source)
            if beside is None or beside.is_url:
                path = index_path(plan.source.whole.fingerprint)
            else:
                path = Path(beside.address())
        return str(path.absolute()) if path.exists() else None

    def _make(self, folder: RunFolder, parts: Parts) -> None:
        plan, engine = self.plan, self.engine
        self._is_ready = engine.workers == "thread"
        self._began = time.perf_counter()
        self._noted: set[str] = set()
        spec = ExpansionSpec(
            plan,
            folder.storage,
            is_alone=engine.workers != "thread",
            labels=self._labels,
            is_strict=self.on_error == "raise",
            stamps=None if self._stamps is None else self._stamps.for_workers(),
            index=self._index_file(),
        )
        remaining = [plan.items_of(part) for part in parts.remaining]
        tasks = ((items.start, items.stop, None) for items in remaining)
        try:
            with closing(engine.run(spec, tasks, stop=self.stop, on_turn=self._on_turn)) as results:
                for result in results:
                    self._record(result, parts)
                    self._count_time()
        finally:
            self._report_progress()

    def _record(self, result: Finished, parts: Parts) -> None:
        """Count a part that a worker has written."""
        assert isinstance(result, FinishedItems)  # workers also write parts with failed items
        report: PartReport = result.outputs[0]
        for note in report.notes:
            self._pass_on(note)
        self._count_part(parts, result.start, report.failed)

    def _count_part(self, parts: Parts, first: int, failed: Mapping[int, str]) -> None:
        self._skip(failed)
        plan = self.plan
        part = first // plan.items_per_part
        missing = sum(len(plan.copies_of(item)) for item in failed)
        written = sum(len(plan.copies_of(item)) for item in plan.items_of(part)) - missing
        parts.finished[part] = FinishedPart(written, missing)
        self.report.written += written
        self.report.missing += missing

    def _skip(self, failed: Mapping[int, str]) -> None:
        """Note failed samples, or raise DecodeError for the first."""
        plan = self.plan
        for item, reason in sorted(failed.items()):
            index = plan.sample_of(item)
            if self.on_error == "raise":
                raise DecodeError(str(plan.source.name(index)), reason)
            if index not in self._skipped:  # a sample with many copies is several items
                self._skipped.add(index)
                skipped = plan.sample_name(index), reason
                self.report.skipped.append(skipped)
                self.on_event(Skipped(*skipped))

    def _pass_on(self, note: str) -> None:
        """Warn of a note of a device's job; of notes that differ in their first image alone, of one."""
        kind = note.partition(FIRST)[0]
        if kind not in self._noted:
            self._noted.add(kind)
            warnings.warn(note, stacklevel=2)

    def _on_turn(self, snapshot: Snapshot) -> None:
        self._devices = snapshot.devices
        if not self._is_ready and any(device.state == "ready" for device in snapshot.devices):
            self._is_ready = True
            self._began = time.perf_counter()
        self._count_time()
        self._report_progress()

    def _report_progress(self) -> None:
        report = self.report
        outputs_per_item = self.plan.num_outputs / self.plan.num_items
        devices = tuple(
            device._replace(rate=device.rate * outputs_per_item, done=round(device.done * outputs_per_item))
            for device in self._devices
        )
        self.on_event(
            ExpansionProgress(
                self.verb,
                report.written,
                report.resumed,
                report.missing,
                len(report.skipped),
                report.total,
                report.rate,
                devices,
            )
        )

    def _count_time(self) -> None:
        """Count time between the first and last item: starting and ending processes is no matter of speed."""
        if self._is_ready:
            self.report.seconds = time.perf_counter() - self._began

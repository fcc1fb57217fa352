"""Run a plan: claim the destination, do what is left to do, keep what comes, and write the manifest at the end."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from variegate.checks import one_of
from variegate.decode.entropy.index import index_path
from variegate.errors import DecodeError
from variegate.formats.base import FileSource, SourceError
from variegate.formats.filtered import whole_of
from variegate.formats.packed import index_beside
from variegate.formats.shards import Labels
from variegate.formats.stamps import stamps_of
from variegate.formats.storage import Storage, open_storage
from variegate.formats.tar.labels import CLASS_NAMES
from variegate.formats.tar.write import has_class_names, write_class_names
from variegate.io.location import Location, LocationLike
from variegate.jobs.augment.annotated_job import AnnotatedJob
from variegate.jobs.augment.annotated_plan import AnnotatedPlan
from variegate.jobs.augment.commit import Commit, FileCommit, Report, ShardCommit, labels_of
from variegate.jobs.augment.job import ExpansionJob, ExpansionSpec
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.same_source import compare, refuse_other_files
from variegate.jobs.drive import FailedItem
from variegate.jobs.engine import Engine
from variegate.jobs.messages import Snapshot
from variegate.jobs.options import ON_CHANGE, OnChange, OnError, check_on_error
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.journal import Journal
from variegate.jobs.output.lost_outputs import Lost, Row, SpanOf, take_back_lost
from variegate.jobs.output.manifest import CHECKSUM_NAME, read_manifest, write_checksum
from variegate.jobs.output.run_record import write_source

# Outputs in a task: some tenths of a second of work on a core, so that what it costs to hand one over is nothing.
_OUTPUTS_PER_TASK = 64
# Of every device, so that the last tasks do not leave the others with nothing to do.
_TASKS_PER_DEVICE = 8
# Outputs between the first that is not in its place and the last that is being made, per device.
_OUTPUTS_AHEAD = 16 * _OUTPUTS_PER_TASK
_WAITING_BYTES = 512 << 20


@dataclass
class Expansion:
    """Outputs and manifest depend on the plan, and on whether GPUs or CPUs run it; on nothing else.

    Args:
        plan: what is to be made.
        destination: a folder, or an address that fsspec writes to.
        engine: where it is made.
        on_error: "skip" passes over samples that failed three times; "raise" ends the run at the first.
        resume: go on where an earlier run of the same plan ended; False makes everything anew.
        changed: where files of the source have changed since outputs were made of them: "refuse" ends the run,
            "remake" makes these outputs again, "same" takes files of equal size for the same in spite of their times.
        on_progress: called now and then with the report.
        stop: once it is set, the run ends with what it has begun, all of which is kept.
        index: the file of an entropy index, "auto" for the one that ``variegate index`` made of this source, if it did,
            or None: crops of its JPEGs are read faster where one copy is made of each. Outputs do not depend on it.
    """

    plan: Plan
    destination: str | PathLike[str] = field(repr=False)  # it may hold a password
    engine: Engine
    on_error: OnError = "skip"
    resume: bool = True
    changed: OnChange = "refuse"
    on_progress: Callable[[Report], None] | None = None
    stop: Event = field(default_factory=Event)
    index: str | PathLike[str] | None = "auto"
    verb: ClassVar[str] = "augmenting"
    _shard_commit: ClassVar[Any] = ShardCommit

    def __post_init__(self) -> None:
        check_on_error(self.on_error)
        one_of("changed", self.changed, ON_CHANGE)
        if self.index not in (None, "auto") and not Path(self.index).is_file():
            raise ValueError(f"index: {self.index} is no file; accepted: auto, none, or what variegate index wrote")
        self.report = Report(len(self.plan.source), self.plan.num_outputs)
        self._skipped: set[int] = set()  # samples in report.skipped, by index

    def run(self) -> Report:
        """Do it. ``self.report`` tells what was done even where this raises. Outputs of an earlier run that are gone,
        or have another size, are made again.

        Raises SourceError for a destination that holds anything else, and for a source whose files are not those that
        the run was begun with (see ``changed``), DecodeError with on_error="raise", and
        EngineError where no device is left or outputs cannot be written.
        """
        plan, report = self.plan, self.report
        if isinstance(plan.source, FileSource):
            check_apart(plan.source.folder, self.destination)
        _check_shared(self.destination, self.engine.workers, plan.layout)
        labels = labels_of(plan)
        settings = plan.settings(self.engine.executor)
        self._stamps = stamps = stamps_of(plan.source)
        refuse_other_files(open_storage(self.destination), settings, stamps)
        place = None if stamps is None else "source"
        with Destination(self.destination, settings, None, self.resume, place) as destination:
            remade, is_recorded = compare(destination, plan, stamps, self.changed)
            self._lost = take_back_lost(
                destination, self._spans(destination), plan.is_sharded, self._is_unwanted(remade)
            )
            self._tell_lost(self._lost)
            if stamps is not None and not is_recorded:
                # Not before what was made of other files is taken back: nobody could tell it any more.
                destination.amend(lambda storage: write_source(storage, stamps))
            self._restore_class_names(destination, labels)
            if destination.is_complete:
                manifest = read_manifest(destination.storage.root)
                report.missing = manifest.count_missing()
                if manifest.has_checksum and not destination.storage.exists(CHECKSUM_NAME):
                    destination.amend(write_checksum)
                report.resumed = report.total - report.missing
                plan.restore_beside(destination)
                self._restore_beside(destination)
                return report
            journal = destination.journal
            report.missing = journal.num_missing
            report.resumed = sum(plan.outputs_in(start, stop) for start, stop in journal.covered) - report.missing
            report.resumed += sum(map(len, self._lost.kept.values()))
            self._began = time.perf_counter()
            self._is_ready = self.engine.workers == "thread"
            self._items = self._bytes = 0
            self._make_all(destination, journal, labels)
            if journal.covered == [(0, plan.num_items)]:
                self._finish(destination)
            else:
                report.is_interrupted = True
        return report

    def _index_file(self) -> str | None:
        if self.index is None or self.plan.copies > 1 or isinstance(self.plan, AnnotatedPlan):
            return None  # one decode serves all copies, whose crops together are nearly all of the picture
        path = Path(self.index)
        if self.index == "auto":
            beside = index_beside(self.plan.source)
            if beside is None or beside.is_url:
                path = index_path(whole_of(self.plan.source).fingerprint)
            else:
                path = Path(beside.address())
        return str(path.absolute()) if path.exists() else None

    def _spans(self, destination: Destination) -> SpanOf:
        """Which items are made together with an output that is recorded."""
        return self.plan.span_of

    def _is_unwanted(self, remade: npt.NDArray[np.bool_]) -> Callable[[Row], bool]:
        """Which outputs are to be made again, of samples that are."""
        unwanted = set(np.flatnonzero(remade).tolist())
        return lambda row: row["index"] in unwanted

    def _restore_beside(self, destination: Destination) -> None:
        """Of a complete run: what lies beside the outputs and is lost is made again."""

    def _finish(self, destination: Destination) -> None:
        """Everything is made."""
        plan, journal = self.plan, destination.journal
        plan.write_beside(destination, lambda: journal.rows(plan.num_items))
        same = {"seed": plan.seed, "epoch": plan.epoch}
        destination.finish(row | same for row in journal.rows(plan.num_items))

    def _work(self, storage: Storage, journal: Journal, labels: Labels) -> tuple[ExpansionSpec, Commit]:
        """What workers are given to do, and who keeps what comes of it."""
        plan, kept = self.plan, self._lost.kept
        is_alone = self.engine.workers != "thread"
        stamps = None if self._stamps is None else self._stamps.for_workers()
        kind, index = self._kind, self._index_file()
        if plan.is_sharded:
            spec = ExpansionSpec(plan, None, is_alone, labels, stamps, index=index, kind=kind)
            return spec, self._shard_commit(plan, storage, labels, journal, self.report)
        spec = ExpansionSpec(plan, storage, is_alone, None, stamps, kept, index, kind)
        return spec, FileCommit(plan, journal, self.report, kept)

    @property
    def _kind(self) -> type[ExpansionJob]:
        return AnnotatedJob if isinstance(self.plan, AnnotatedPlan) else ExpansionJob

    def _make_all(self, destination: Destination, journal: Journal, labels: Labels) -> None:
        plan = self.plan
        spec, commit = self._work(destination.storage, journal, labels)
        results = self.engine.run(
            spec,
            self._tasks(journal),
            ordered=True if plan.is_sharded else None,
            max_items=max(1, _OUTPUTS_AHEAD * len(self.engine.devices) // plan.copies_per_item),
            has_room=self._has_room if plan.is_sharded else None,
            stop=self.stop,
            on_turn=self._tell,
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
                            warnings.warn(note, stacklevel=1)
                    self._count_time()
        finally:
            try:
                commit.flush()
            finally:
                commit.close()
                if self.on_progress is not None:
                    self.on_progress(self.report)

    def _tell_lost(self, lost: Lost) -> None:
        self.report.repaired, self.report.remade = lost.missing + lost.resized, lost.unwanted
        counts = {"missing": lost.missing, "of another size": lost.resized, "of files that changed": lost.unwanted}
        words = " and ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        if words:
            warnings.warn(f"outputs of an earlier run are made again: {words}", stacklevel=3)

    def _restore_class_names(self, destination: Destination, labels: Labels) -> None:
        """Shards write them, but those that are there already do not do so again."""
        is_begun = destination.is_complete or destination.journal.covered
        if self.plan.layout == "webdataset" and is_begun and not has_class_names(destination.storage, labels):
            destination.amend(lambda storage: write_class_names(storage, labels))
            warnings.warn(f"{CLASS_NAMES} is written again", stacklevel=3)

    def _has_room(self) -> bool:
        """Image files that are given back wait here for their turn: as many as there were bytes of them, on average."""
        snapshot = self.report.snapshot
        return snapshot is None or snapshot.outstanding * self._bytes <= _WAITING_BYTES * self._items

    def _tasks(self, journal: Journal) -> Iterator[tuple[int, int, None]]:
        """What is left to do."""
        plan = self.plan
        per_device = plan.num_items // (_TASKS_PER_DEVICE * len(self.engine.devices))
        size = max(1, min(_OUTPUTS_PER_TASK // plan.copies_per_item, per_device))
        yield from ((start, stop, None) for start, stop in journal.left(plan.num_items, size))

    def _give_up(self, item: int, reason: str, commit: Commit) -> None:
        index = self.plan.sample_of(item)
        if self.on_error == "raise":
            raise DecodeError(str(self.plan.source.name(index)), reason)
        if index not in self._skipped:  # of many copies, a sample is several items, and others come between them
            self._skipped.add(index)
            self.report.skipped.append((self.plan.sample_name(index), reason))
        commit.missing(item, reason)

    def _tell(self, snapshot: Snapshot) -> None:
        self.report.snapshot = snapshot
        if not self._is_ready and any(device.state == "ready" for device in snapshot.devices):
            self._is_ready, self._began = True, time.perf_counter()
        self._count_time()
        if self.on_progress is not None:
            self.on_progress(self.report)

    def _count_time(self) -> None:
        """How long it takes to start and to end processes says nothing of the speed."""
        if self._is_ready:
            self.report.seconds = time.perf_counter() - self._began


def _check_shared(destination: str | PathLike[str], workers: str, layout: str) -> None:
    """Raise SourceError where workers would write files to a memory that is theirs alone, and ends with them."""
    location = Location.parse(destination)
    if location.protocols[:1] == ("memory",) and workers != "thread" and layout == "folder":
        raise SourceError(
            f"{location}: is in the memory of a single process, and workers={workers!r} have their own; accepted "
            "with it: workers='thread'"
        )


def check_apart(source: LocationLike, destination: str | PathLike[str]) -> None:
    """Raise SourceError where the destination is the source, lies in it, or is a file."""
    inner, outer = Location.parse(destination), Location.parse(source)
    if inner.is_url or outer.is_url:
        return
    below, above = Path(inner.address()).resolve(), Path(outer.address()).resolve()
    if below == above or above in below.parents:
        where = "is the source itself" if below == above else f"lies inside the source {above}"
        raise SourceError(f"{below}: {where}; choose a folder outside of it")
    if below.exists() and not below.is_dir():
        raise SourceError(f"{below}: is a file; expected a folder, or a name that is still free")

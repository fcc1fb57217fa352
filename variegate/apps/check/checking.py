"""``check``: find problems of a data set before training."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.check.duplicates import find_duplicates
from variegate.apps.check.findings import (
    MEASURED,
    READ,
    SPLIT_TITLES,
    CheckResult,
    channel_statistics,
    check_replaces,
    in_order,
    is_table,
    with_findings,
    write_findings,
)
from variegate.apps.check.judging import judge, thresholds_for
from variegate.apps.check.scan import Scan
from variegate.apps.check.values import Windows
from variegate.data.base import SourceError, summarize_names
from variegate.data.opening import open_source
from variegate.data.samples import Samples
from variegate.data.stamps import stamps_of
from variegate.events import OnEvent, Progress, ignore_event
from variegate.io.amounts import pluralize
from variegate.jobs.arguments import dicom_of
from variegate.jobs.output.parts import PARTS
from variegate.jobs.output.run_folder import RunFolder, work_folder
from variegate.options.datasets import CheckingOptions
from variegate.threads import default_threads

_REPORT_BEGIN = 4096  # bytes, in which the title is


def check(
    source: Any,
    test: Any = None,
    *,
    stop: Event | None = None,
    on_event: OnEvent = ignore_event,
    **options: Any,
) -> CheckResult:
    """Check a data set for problems that harm training; decodes every image once, on all cores.

    Args:
        source: the training images; anything that ``vg.open_source`` accepts.
        test: images that a model will be tested on, likewise.
        stop: once set, the run finishes started parts and raises KeyboardInterrupt.
        on_event: called with ``Progress`` of images by stage.
        options: fields of ``CheckingOptions``, as the options of ``variegate check``: out, report, labels, threads,
            seed, near_distance, the thresholds, and window and frame of DICOM files. Without ``out``, nothing is
            written. With it, the same call resumes an interrupted run, to the same bytes.

    Raises:
        ValueError, SourceError: naming the argument.
        WriteError: if a result cannot be written.
        ImportError: for ``labels`` without cleanlab.
    """
    return Checking(source, test, CheckingOptions(**options)).run(on_event, stop)


class Checking:
    """A check that is opened and not yet run. ``sources``: by split. Raises ValueError (SourceError)."""

    def __init__(self, source: Any, test: Any, options: CheckingOptions) -> None:
        self._options = options
        self._dicom = dicom_of(options)
        if options.labels:
            from variegate.apps.check.label_errors import check_cleanlab

            check_cleanlab()
        self._out = None if options.out is None else Path(os.path.abspath(options.out))
        if self._out is not None:
            check_replaces(self._out, is_table, "table of variegate check")
        if options.report is not None:
            _check_report(Path(options.report), self._out)
        given = {"train": source} if test is None else {"train": source, "test": test}
        self.sources: dict[str, Samples] = {
            split: open_source(one, stream=False, on_error="skip") for split, one in given.items()
        }
        for split, one in given.items():
            self._check_apart(one, self.sources[split])
        for beside, source in zip(SPLIT_TITLES, list(self.sources.values()), strict=False):
            if isinstance(source, Samples) and source.unclassified is not None:
                self.sources[beside] = source.unclassified
        self.notes = [text for one in self.sources.values() for text in one.notes()]
        self.notes += _notes_on_classes(self.sources)
        self.resumed = 0
        self.checked = 0  # images, including an earlier run's
        self._seconds = 0.0

    @property
    def total(self) -> int:
        """Images in all."""
        return sum(map(len, self.sources.values()))

    def run(self, on_event: OnEvent = ignore_event, stop: Event | None = None) -> CheckResult:
        """Raises WriteError, and KeyboardInterrupt where it was stopped."""
        options = self._options
        on_event(Progress("preparing", 0))
        started = time.perf_counter()
        with ExitStack() as stack:
            folder = None if self._out is None else stack.enter_context(self._work_folder())
            table = self._measured(folder, on_event, stop)
            on_event(Progress("comparing", len(table), len(table)))
            thresholds = thresholds_for(table, options)
            found = [*judge(table, thresholds), *find_duplicates(table, options.near_distance)]
            if options.labels:
                from variegate.apps.check.label_errors import doubtful_labels  # it trains, with torch

                def report_epochs(done: int, total: int) -> None:
                    on_event(Progress("training for labels, epoch", done, total))

                source = self.sources["train"]
                doubts, notes = doubtful_labels(
                    table, source, found, options.seed or 0, report_epochs, stop, self._dicom
                )
                found += doubts
                self.notes += notes
            findings = in_order(found)
            mean, std = channel_statistics(table)
            result = CheckResult(
                table=with_findings(table, findings),
                findings=findings,
                sources=self.sources,
                classes=self.sources["train"].classes,
                mean=mean,
                std=std,
                thresholds=thresholds,
                notes=[*self.notes, *_notes_on_names(table)],
                seconds=time.perf_counter() - started,
                pass_seconds=self._seconds,
                resumed=self.resumed,
                out=None if options.out is None else str(options.out),
                report=None if options.report is None else str(options.report),
            )
            if options.report is not None:
                from variegate.apps.check.report import write_report  # Jinja2 and images, only needed for reports

                on_event(Progress("writing the report", len(table), len(table)))
                write_report(options.report, result, self._dicom)
            if self._out is not None:
                write_findings(self._out, result)
        return result

    @contextmanager
    def _work_folder(self) -> Iterator[RunFolder]:
        """Context manager: the scan's folder, removed when the findings are written, or if nothing was measured."""
        assert self._out is not None
        settings = {"command": "check", "plan": self._plan()}
        with RunFolder(work_folder(self._out), settings, file=self._options.out) as folder:
            if folder.was_replaced:
                self.notes.append(
                    "the images have changed since an earlier run on them was interrupted (or it was on others): "
                    "all are checked again"
                )
            try:
                yield folder
            except BaseException:
                if not folder.storage.list(PARTS):
                    folder.remove()
                raise
            folder.remove()

    def _measured(self, folder: RunFolder | None, on_event: OnEvent, stop: Event | None) -> pa.Table:
        started = time.perf_counter()
        threads = self._options.threads or default_threads()

        def count_samples(samples: int) -> None:
            self.checked = samples
            on_event(Progress("checking", samples, self.total))

        scan = Scan(self.sources, folder, self._dicom)
        self.resumed = scan.resumed
        with warnings.catch_warnings():
            # A line for every image with an odd header; the columns have it.
            warnings.simplefilter("ignore")
            scan.run(threads, count_samples, stop)
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        self._seconds = time.perf_counter() - started
        table = scan.table()
        if not len(table):
            raise SourceError("no image in what was given; expected one at least")
        windows = Windows(table)
        self.notes += windows.notes()
        return windows.applied(table)

    def _plan(self) -> str:
        """A digest of all that the measures depend on."""
        digest = hashlib.sha256(MEASURED.to_string().encode())
        digest.update(json.dumps([self._dicom.window, self._dicom.frame]).encode())
        for split, source in self.sources.items():
            digest.update(json.dumps([split, source.fingerprint, source.classes]).encode())
            stamps = stamps_of(source)
            if stamps is not None:
                digest.update(stamps.sizes.tobytes() + stamps.times.tobytes())
                digest.update(json.dumps(list(stamps.marks)).encode())
        return digest.hexdigest()

    def _check_apart(self, given: Any, source: Samples) -> None:
        """The findings are not to become one of the files that are checked."""
        is_folder = isinstance(source, Samples) and source.folder is not None
        if self._out is None or is_folder or not isinstance(given, (str, os.PathLike)):
            return
        with suppress(OSError):
            if os.path.samefile(given, self._out.parent):
                raise SourceError(
                    f"{self._options.out}: would lie among the files of {given}, and be one of them the next time; "
                    "choose another folder"
                )


def _check_report(path: Path, out: Path | None) -> None:
    """Refuse to overwrite any file that is not a report."""
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise ValueError(f"report: got {str(path)!r}; accepted: the name of an .html file")
    if Path(os.path.abspath(path)) == out:
        raise ValueError(f"report: got {str(path)!r}, where the findings go; accepted: another name")
    check_replaces(path, _is_report, "report of variegate check")


def _is_report(path: Path) -> bool:
    with open(path, "rb") as file:
        begin = file.read(_REPORT_BEGIN)
    return not begin or b"<title>Data check" in begin


def _notes_on_classes(sources: dict[str, Samples]) -> list[str]:
    """Labels are compared by number."""
    train, test = (sources[split].classes if split in sources else () for split in READ)
    if not train or not test or train == test:
        return []
    others = sorted({*train} ^ {*test})
    named = f" ({summarize_names(others)})" if others else ""
    return [f"the test images have other classes than the train images{named}, or the same in another order"]


def _notes_on_names(table: pa.Table) -> Iterator[str]:
    """Notes on names that are not unique."""
    for split in READ:
        counted = pc.value_counts(table.filter(pc.equal(table["split"], split))["file"])
        shared = counted.filter(pc.greater(counted.field("counts"), 1)).field("values").to_pylist()
        if shared:
            yield (
                f"shared by several {split} images: {pluralize(len(shared), 'name')} ({summarize_names(shared)}); a "
                "list of names excludes all images of a name"
            )

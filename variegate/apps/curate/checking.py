"""``check``: what would hurt a training, found before it does."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from variegate.apps.curate.duplicates import find_duplicates
from variegate.apps.curate.finding import BESIDE, DataFinding
from variegate.apps.curate.judging import Thresholds, judge, thresholds_for
from variegate.apps.curate.notes import notes_on_classes, notes_on_names
from variegate.apps.curate.result import CheckResult, channel_statistics, check_out, in_order, write_findings
from variegate.apps.curate.scan.columns import MEASURED, with_findings
from variegate.apps.curate.scan.journal import ScanJournal
from variegate.apps.curate.scan.passing import Position
from variegate.apps.curate.scan.recording import Recording, record_pass
from variegate.apps.curate.scan.row import prepare
from variegate.checks import spelt
from variegate.formats.base import FileSource, Source, SourceError, StreamSource
from variegate.formats.filtered import whole_of
from variegate.formats.folder import FolderListing
from variegate.formats.opening import open_source
from variegate.formats.stamps import stamps_of
from variegate.jobs.output.lock import locked
from variegate.options.checking import CheckingOptions
from variegate.threads import default_threads

# Called with what is being done, images done, and of how many (0: not known).
OnProgress = Callable[[str, int, int], object]
_REPORT_BEGIN = 4096  # bytes, in which the title is


@spelt(CheckingOptions)
def check(
    source: Any,
    test: Any = None,
    *,
    stop: Event | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> CheckResult:
    """Decode every image of a data set once, on all cores, and find what would hurt a training.

    ``source``, and ``test`` for images that a model will be tested with: what ``vg.open_source`` takes. ``options``:
    those of the command ``variegate check``: out (None: nothing is written), report, threads, ... With ``out`` the same
    call goes on where another one ended, in whatever way, and ends with the same bytes. ``stop``: once it is set, the
    run ends with what it has begun.

    Raises ValueError (SourceError) naming the argument, WriteError, ImportError for ``labels`` without cleanlab, and
    KeyboardInterrupt where it was stopped.
    """
    return Checking(source, test, CheckingOptions(**options)).run(on_progress, stop)


class Checking:
    """A check that is opened and not yet run. ``sources``: by split. Raises ValueError (SourceError)."""

    def __init__(self, source: Any, test: Any, options: CheckingOptions) -> None:
        self._options = options
        if options.labels:
            from variegate.apps.curate.labels import check_cleanlab

            check_cleanlab()
        self._out = None if options.out is None else Path(os.path.abspath(options.out))
        if self._out is not None:
            check_out(self._out)
        _check_report(options.report, self._out)
        given = {"train": source} if test is None else {"train": source, "test": test}
        self.sources: dict[str, Source | StreamSource] = {
            split: open_source(one, on_error="skip") for split, one in given.items()
        }
        for split, one in given.items():
            self._check_apart(one, self.sources[split])
        for beside, of in zip(BESIDE, [whole_of(one) for one in self.sources.values()], strict=False):
            if isinstance(of, FolderListing) and of.beside:
                self.sources[beside] = of.only_beside()
        self.notes = [text for one in self.sources.values() for text in one.notes()]
        self.notes += notes_on_classes(self.sources)
        self.resumed, self._seconds = 0, 0.0

    @property
    def total(self) -> int:
        """Images in all; 0 where a stream does not tell."""
        sizes = [len(one) if isinstance(one, Source) else 0 for one in self.sources.values()]
        return sum(sizes) if all(sizes) else 0

    def run(self, on_progress: OnProgress | None = None, stop: Event | None = None) -> CheckResult:
        """Raises WriteError, and KeyboardInterrupt where it was stopped."""
        tell: OnProgress = on_progress or (lambda what, done, total: None)
        tell("preparing", 0, 0)
        prepare()
        started = time.perf_counter()
        with ExitStack() as stack:
            journal = None if self._out is None else stack.enter_context(self._journal())
            table = self._measured(journal, tell, stop)
            tell("comparing", len(table), len(table))
            thresholds = thresholds_for(table, self._options)
            found = self._find(table, thresholds)
            findings = in_order([*found, *self._doubts(table, found, tell, stop)])
            mean, std = channel_statistics(table)
            result = CheckResult(
                *(with_findings(table, findings), findings, self.sources, self.sources["train"].classes, mean, std),
                thresholds,
                [*self.notes, *notes_on_names(table)],
                *(time.perf_counter() - started, self._seconds, self.resumed),
                None if self._out is None else str(self._options.out),
                None if self._options.report is None else str(self._options.report),
            )
            if self._options.report is not None:
                from variegate.apps.curate.report import write_report  # Jinja2, and images, for those who want it

                tell("writing the report", len(table), len(table))
                write_report(self._options.report, result)
            if self._out is not None:
                write_findings(self._out, result)
        return result

    def _doubts(
        self, table: pa.Table, findings: Sequence[DataFinding], tell: OnProgress, stop: Event | None
    ) -> list[DataFinding]:
        """Of labels, where that is asked for."""
        if not self._options.labels:
            return []
        from variegate.apps.curate.labels import doubtful_labels  # it trains, with torch

        tell_epochs = partial(tell, "training for labels, epoch")
        doubts = doubtful_labels(table, self.sources["train"], findings, self._options.seed or 0, tell_epochs, stop)
        self.notes += doubts.notes
        return doubts.findings

    @contextmanager
    def _journal(self) -> Iterator[ScanJournal]:
        """For this run alone; gone when it has ended well."""
        assert self._out is not None
        # With a dot in front no folder of images takes it for a class.
        folder = self._out.with_name(f".{self._out.name}.partial")
        path = folder / "journal"
        with _gone_if_empty(folder), locked(folder / "lock", str(self._options.out), "file"):
            journal = ScanJournal(path, self._plan())
            with closing(journal):
                if journal.is_other:
                    self.notes.append(
                        "the images have changed since an earlier run on them was interrupted (or it was on others): "
                        "all are looked at anew"
                    )
                try:
                    yield journal
                except BaseException:
                    if not journal.is_empty:
                        raise
                    path.unlink()
                    raise
            path.unlink()

    def _measured(self, journal: ScanJournal | None, tell: OnProgress, stop: Event | None) -> pa.Table:
        started, before = time.perf_counter(), 0
        batches: list[pa.RecordBatch] = []
        for split, source in self.sources.items():
            position = Position()
            if journal is not None:
                position = journal.positions.get(split, position)
                batches += journal.batches.get(split, [])
            self.resumed += position.samples
            threads = self._options.threads or default_threads()
            recording = Recording(split, batches, journal)
            tell_samples = partial(self._tell, tell, before)
            before += record_pass(source, threads, position, recording, tell_samples, stop)
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
        self._seconds = time.perf_counter() - started
        table = pa.Table.from_batches(batches, MEASURED).combine_chunks()
        if not len(table):
            raise SourceError("no image in what was given; expected one at least")
        return table

    def _tell(self, tell: OnProgress, before: int, samples: int) -> None:
        tell("checking", before + samples, self.total)

    def _find(self, table: pa.Table, thresholds: Thresholds) -> list[DataFinding]:
        return [*judge(table, thresholds), *find_duplicates(table, self._options.near_distance)]

    def _plan(self) -> str:
        """A digest of all that the measures depend on."""
        digest = hashlib.sha256(MEASURED.to_string().encode())
        for split, source in self.sources.items():
            digest.update(json.dumps([split, source.fingerprint, source.classes]).encode())
            stamps = stamps_of(source) if isinstance(source, Source) else None
            if stamps is not None:
                digest.update(stamps.sizes.tobytes() + stamps.times.tobytes())
                digest.update(json.dumps(list(stamps.marks)).encode())
        return digest.hexdigest()

    def _check_apart(self, given: Any, source: Source | StreamSource) -> None:
        """The findings are not to become one of the files that are checked."""
        if self._out is None or isinstance(source, FileSource) or not isinstance(given, (str, os.PathLike)):
            return
        with suppress(OSError):
            if os.path.samefile(given, self._out.parent):
                raise SourceError(
                    f"{self._options.out}: would lie among the files of {given}, and be one of them the next time; "
                    "choose another folder"
                )


@contextmanager
def _gone_if_empty(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()


def _check_report(path: Path | None, out: Path | None) -> None:
    """Nothing but a report is to be replaced by one."""
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise ValueError(f"report: got {str(path)!r}; accepted: the name of an .html file")
    if Path(os.path.abspath(path)) == out:
        raise ValueError(f"report: got {str(path)!r}, where the findings go; accepted: another name")
    if path.is_file():
        with suppress(OSError), open(path, "rb") as file:
            begin = file.read(_REPORT_BEGIN)
            if begin and b"<title>Data check" not in begin:
                raise ValueError(
                    f"report: got {str(path)!r}, which is there, and is no report of variegate check; accepted: a new "
                    "file, or an earlier report"
                )

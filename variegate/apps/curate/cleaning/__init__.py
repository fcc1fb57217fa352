"""``clean``: from a source and the table of its check, which has to be of the same images, to a copy without what was
found, written as any run on disk is, or to a list of what to leave out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from variegate.apps.curate.cleaning.copying import Copies, FileCopies, Row, ShardCopies
from variegate.apps.curate.cleaning.found import Found, LeftOut, choose, counts_of, parse_drop, read_found
from variegate.apps.curate.findings import FINDING_KINDS
from variegate.checks import spelt
from variegate.formats.base import FileSource, Source, SourceError
from variegate.formats.filtered import HEADER, FilteredSource, excluded_from, read_names, sample_key, sample_keys
from variegate.formats.kinds import KIND_NAMES
from variegate.formats.opening import open_source
from variegate.formats.stamps import UNKNOWN, Stamps, stamps_of
from variegate.io.addresses import shown
from variegate.io.durable import write_atomically
from variegate.io.files import check_regular
from variegate.io.location import Location
from variegate.jobs.arguments import absolute_place, open_by_index
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.on_disk import DiskRun, Lost, SpanOf, check_apart, source_settings
from variegate.jobs.output.run_record import LEFT_OUT_NAME, describe_other, read_source, write_source
from variegate.options.datasets import CleaningOptions
from variegate.threads import Lookahead

_LIST_BEGINS = f"{HEADER}left out of ".encode()
_THREADS = 4
OnProgress = Callable[[int, int], None]
Span = tuple[int, int]


@spelt(CleaningOptions)
def clean(
    source: Any,
    destination: str | PathLike[str] | None = None,
    *,
    findings: str | PathLike[str],
    drop: str | Sequence[str],
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
    **options: Any,
) -> Cleaned:
    """Copy a data set without the images that a check found, or write a list of these images.

    The source is not changed. To resume an interrupted run, make the same call again; the result has the same bytes.

    Args:
        source: an indexed data set; anything that ``vg.open_source`` accepts, except streams.
        destination: a folder for a copy in the same layout, or a URL that fsspec writes to.
        findings: the table written by ``vg.check(out=...)``.
        drop: kinds of findings to drop: "corrupt,duplicates,leaks", a sequence of kinds, or "all". Of a group of
            duplicates, one image remains: the one with the most pixels, then the most bytes, then the first.
        on_progress: called with (files done, total).
        stop: once set, the run finishes what it has begun and raises KeyboardInterrupt.
        options: fields of ``CleaningOptions``: split ("train" or "test": the checked split that ``source`` holds),
            exclude_list (a file to write instead of a copy), resume, threads.

    Raises:
        ValueError, SourceError: naming the argument.
        WriteError: if the copy or the list cannot be written.
    """
    given = CleaningOptions(**options)
    found, opened = open_checked(source, findings, given.split)
    kinds = parse_drop(drop)
    if destination is None and given.exclude_list is None:
        raise ValueError("destination: got None; accepted: a folder to write a copy to, or exclude_list=FILE")
    made = run_cleaning(source, opened, found, kinds, destination, given, on_progress, stop)
    if made.is_interrupted:
        raise KeyboardInterrupt
    return made


def run_cleaning(
    source: Any,
    opened: Source,
    found: Found,
    kinds: Sequence[str],
    destination: str | PathLike[str] | None,
    options: CleaningOptions,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> Cleaned:
    """Raises as ``clean``, but where it was stopped."""
    if options.exclude_list is not None:
        if destination is not None:
            raise ValueError(
                f"exclude_list: got {str(options.exclude_list)!r} beside a folder to write to; accepted: one of both, "
                "as a copy has no need of a list"
            )
        _check_list(options.exclude_list)
    left_out = choose(found, kinds)
    if len(left_out) == len(opened):
        raise SourceError(f"{_shown(source)}: nothing would be left of its {len(opened):,} images; drop fewer kinds")
    for one in left_out:
        if (key := sample_key(opened, one.index)) != one.file:
            raise SourceError(f"{found.place}: calls image {one.index:,} {one.file!r}, and it is {key!r}; check again")
    # Whoever says "all" knows that not all of it is there.
    none = [kind for kind in kinds if kind not in found.counts()] if len(kinds) < len(FINDING_KINDS) else []
    notes = [*opened.notes(), *([f"found in no image: {', '.join(none)}"] if none else [])]
    target = options.exclude_list if destination is None else destination
    made = Cleaned(len(opened), left_out, counts_of(left_out), shown(str(target)), notes=notes)
    place = absolute_place(os.fspath(source)) if isinstance(source, (str, PathLike)) else _shown(source)
    if destination is None:
        assert options.exclude_list is not None
        _write_list(options.exclude_list, opened, place, made)
        return made
    if isinstance(opened, FileSource):
        check_apart(opened.folder, destination)
    kept = np.delete(np.arange(len(opened)), [one.index for one in left_out])
    files: Any = opened
    while isinstance(files, FilteredSource) and not isinstance(files, FileSource):
        files, kept = files.whole, files.kept[kept]
    if isinstance(files, FileSource):
        copies: Copies = FileCopies(files, kept)
    elif (stored_files := getattr(files, "stored_files", None)) is not None:
        copies = ShardCopies(files, stored_files(), kept)
    else:
        raise SourceError(
            f"{files!r}: is not in files, and cannot be copied; accepted: folders of images and "
            f"{', '.join(KIND_NAMES)}; --exclude-list writes a list"
        )
    CopyRun(opened, place, copies, made, tuple(kinds), options, destination, stop or Event(), on_progress).run()
    return made


def open_checked(source: Any, findings: str | PathLike[str], split: str) -> tuple[Found, Source]:
    """The table, and the source that it is of. Raises SourceError where it is of another, or of what it was."""
    found = read_found(findings, split)
    opened = open_by_index(source, "skip")
    place = _shown(source)
    if opened.fingerprint != found.fingerprint:
        found = _of_stream(source, opened, found)
    if len(found) and not 0 <= found.index.min() <= found.index.max() < len(opened):
        raise SourceError(f"{found.place}: names images that {place} does not have; run variegate check again")
    _check_unchanged(opened, found)
    return found, opened


def _of_stream(source: Any, opened: Source, found: Found) -> Found:
    """The table of a check that read the same shards as a stream, with the indices that their images have. Raises
    SourceError where it is of anything else."""
    fingerprint = None
    if isinstance(source, (str, PathLike)):
        with suppress(SourceError):  # of a kind that is no stream
            fingerprint = open_source(source, stream=True).fingerprint
    if fingerprint != found.fingerprint:
        raise SourceError(
            f"{_shown(source)}: holds other images than those that {found.place} is of; run variegate check again"
        )
    places = {key: index for index, key in enumerate(sample_keys(opened))}
    unknown = next((file for file in found.files if file not in places), None)
    if unknown is not None or len(places) < len(opened):
        why = f"names {unknown!r}, which is not there" if unknown is not None else "has names that are several images'"
        raise SourceError(
            f"{found.place}: is of a stream of {_shown(source)}, and {why}; accepted: a check of it by index"
        )
    return replace(found, index=np.array([places[file] for file in found.files], np.int64))


def _check_unchanged(opened: Source, found: Found) -> None:
    """Of files, by their sizes; of shards, the fingerprint has told."""
    if not isinstance(opened, FileSource) or (stamps := stamps_of(opened)) is None:
        return
    now = stamps.sizes[found.index]
    # Unreadable files may have had no size to note.
    changed = np.flatnonzero((found.sizes >= 0) & (now != found.sizes) & ((now != UNKNOWN) | (found.sizes > 0)))
    if len(changed):
        first = int(changed[0])
        now_is = "is not there" if now[first] == UNKNOWN else f"is {int(now[first]):,} bytes"
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        raise SourceError(
            f"{opened.name(int(found.index[first]))}: has changed since it was checked: was "
            f"{int(found.sizes[first]):,} bytes, {now_is}{more}; run variegate check again"
        )


def _check_list(path: Path) -> None:
    """Raises SourceError where something else than an earlier list is there: an image of the source, or the table."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            begin = file.read(len(_LIST_BEGINS))
    except FileNotFoundError:
        return
    except OSError as error:
        raise SourceError(f"exclude_list: {path}: {error.strerror}; accepted: a new file") from None
    if begin not in (b"", _LIST_BEGINS):
        raise SourceError(
            f"exclude_list: {path}: is there, and is no list of variegate clean; accepted: a new file, or such a list"
        )


def _write_list(path: Path, opened: Source, place: str, made: Cleaned) -> None:
    """Raises SourceError where a name would leave out images that stay."""
    gone = {one.index for one in made.left_out}
    names = {one.file for one in made.left_out}
    shared = next((key for at, key in enumerate(sample_keys(opened)) if key in names and at not in gone), None)
    if shared is not None:
        raise SourceError(
            f"{shared}: is the name of several images, some of which stay; accepted: a folder for a copy instead of "
            "--exclude-list"
        )
    earlier = read_names(opened.exclude)[0] if isinstance(opened, FilteredSource) and opened.exclude else []
    counted = ", ".join(f"{count:,} {name}" for name, count in made.counts.items()) or "nothing"
    header = f"{_LIST_BEGINS.decode()}{' '.join(shown(place).split())} by variegate clean: {counted}"
    lines = [header, *earlier, *(one.file for one in made.left_out)]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"), durable=True)


def _shown(source: Any) -> str:
    return (
        str(Location.parse(source, chain=True)) if isinstance(source, (str, PathLike)) else f"a {type(source).__name__}"
    )


@dataclass
class Cleaned:
    """Result of ``vg.clean``.

    ``images``: number of images of the source; ``left_out``: those not in the copy, or in the list; ``counts``: these
    by kind of finding, of which an image can have several. ``files``, ``bytes``: written by this call; ``resumed``:
    files written by an earlier one. ``notes``: remarks, one line each.
    """

    images: int
    left_out: list[LeftOut]
    counts: dict[str, int]
    place: str
    files: int = 0
    bytes: int = 0
    resumed: int = 0
    is_interrupted: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass
class CopyRun(DiskRun):
    """A cleaned copy, and a record of what is not in it. ``made`` is counted up as it goes."""

    source: Source
    place: str
    copies: Copies
    made: Cleaned
    drop: tuple[str, ...]
    options: CleaningOptions
    destination: str | PathLike[str] = field(repr=False)  # it may hold a password
    stop: Event = field(default_factory=Event)
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        self.resume, self.num_items = self.options.resume, self.copies.count
        # A line of JSON for each image.
        self._record = "".join(json.dumps(one.to_dict()) + "\n" for one in self.made.left_out).encode()

    def run(self) -> None:
        """Raises SourceError for another destination or a source that has changed since it was begun; WriteError."""
        self.run_on(self.source)
        self.made.is_interrupted = self.is_interrupted

    def settings(self) -> dict[str, Any]:
        return {
            "command": "clean",
            **source_settings(self.source, self.place),
            "split": self.options.split,
            "drop": list(self.drop),
            "dropped": {"images": len(self.made.left_out), "sha256": hashlib.sha256(self._record).hexdigest()},
            **excluded_from(self.source),
        }

    def compare(self, destination: Destination, stamps: Stamps | None) -> Callable[[Row], bool]:
        was = None if stamps is None else read_source(destination.storage)
        if stamps is not None and was is None:
            destination.amend(lambda storage: write_source(storage, stamps))
        elif stamps is not None and was is not None and (difference := describe_other(was, stamps)):
            raise SourceError(
                f"{destination.storage.shown}: was begun with other files: {difference}; restore them, or run "
                "variegate check again and choose another folder"
            )
        return super().compare(destination, stamps)

    def spans(self, destination: Destination) -> SpanOf:
        return lambda row: (item := self.copies.item_of(row), item + 1)

    def restore(self, destination: Destination, lost: Lost) -> None:
        storage = destination.storage
        if not destination.is_complete:
            self.made.resumed = destination.journal.num_rows
            return
        manifest = read_manifest(storage.root)
        self.made.resumed = len(manifest)
        if not storage.exists(LEFT_OUT_NAME) or storage.read(LEFT_OUT_NAME) != self._record:
            destination.amend(lambda storage: self.write_side_files(destination, manifest.rows))

    def make(self, destination: Destination) -> None:
        journal, storage, made = destination.journal, destination.storage, self.made
        done, threads = sum(stop - start for start, stop in journal.covered), self.options.threads or _THREADS

        def begin_each() -> Iterator[tuple[Span, Future[list[Row]]]]:
            for span in journal.left(self.num_items, self.copies.at_once):
                if self.stop.is_set():
                    return
                yield span, pool.submit(self.copies.make, storage, *span)

        def flush() -> None:
            storage.sync()
            journal.flush()

        with ThreadPoolExecutor(threads, "variegate-clean") as pool:
            ahead = Lookahead(begin_each())
            try:
                while True:
                    ahead.begin(2 * threads)
                    if (begun := ahead.take()) is None:
                        break
                    (start, stop), future = begun
                    rows = future.result()
                    journal.append(start, stop, [json.dumps(row) for row in rows])
                    made.files += len(rows)
                    made.bytes += sum(row["bytes"] for row in rows)
                    done += stop - start
                    if journal.is_due:
                        flush()
                    if self.on_progress is not None:
                        self.on_progress(done, self.num_items)
            finally:
                for _, future in ahead.close():
                    future.cancel()
                pool.shutdown()
                flush()

    def write_side_files(self, destination: Destination, rows: Callable[[], Iterator[Row]]) -> None:
        storage = destination.storage
        storage.write(LEFT_OUT_NAME, self._record)
        if not storage.is_remote:  # where there are no folders without files
            for folder in self.copies.folders:
                os.makedirs(os.path.join(storage.root, folder), exist_ok=True)
        storage.sync()

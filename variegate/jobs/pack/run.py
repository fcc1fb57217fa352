"""Run a packing: an expansion of one copy, in shards of a size, with statistics and an index beside them; ``pack``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from threading import Event
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from variegate.checks import spelt
from variegate.formats.packed import INDEX_NAME, STATISTICS_NAME, DatasetStatistics, statistics_bytes
from variegate.formats.storage import Storage
from variegate.jobs.arguments import absolute_place, open_by_index
from variegate.jobs.augment.run import Expansion, check_apart
from variegate.jobs.engine import Engine
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.lost_outputs import Row, SpanOf
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.packed import COLUMNS, Totals, totals_of
from variegate.jobs.pack.commit import PackCommit, spans_of, write_index
from variegate.jobs.pack.job import PackJob
from variegate.jobs.pack.measure import Speedup, measure_speedup
from variegate.jobs.pack.plan import PackPlan, pack_plan
from variegate.options.datasets import PackingOptions

_SHARD = re.compile(r"shard-\d{6,}\.(tar|parquet|vgraw)")


@dataclass
class Packed:
    """What a packing came to. ``kept``: JPEG files that were copied as they were; ``skipped``: samples that could not
    be read, by name, with the reason, those of earlier runs among them; bytes of the files (or pixels) of the source,
    of the shards, and of the index.
    """

    images: int = 0
    shards: int = 0
    kept: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    bytes_before: int = 0
    bytes_after: int = 0
    index_bytes: int = 0
    statistics: DatasetStatistics | None = None

    @property
    def saved(self) -> float:
        """The share of the bytes that was saved; below 0 where there are more."""
        return 1 - self.bytes_after / self.bytes_before if self.bytes_before else 0.0


class Packing(Expansion):
    """An ``Expansion`` of a ``PackPlan``, with the same promises: exactly once, the same bytes however it went."""

    verb = "packing"
    _shard_commit = PackCommit
    _kind = PackJob

    def __post_init__(self) -> None:
        super().__post_init__()
        self.packed = Packed()

    @property
    def _pack_plan(self) -> PackPlan:
        return cast(PackPlan, self.plan)

    def _spans(self, destination: Destination) -> SpanOf:
        whole = [(0, self.plan.num_items, destination_rows(destination))] if destination.is_complete else None
        records = destination.journal.records() if whole is None else whole
        spans = [span[:2] for record in records for span in spans_of(*record)]
        starts = np.array([start for start, _ in spans], np.int64)
        return lambda row: spans[int(np.searchsorted(starts, row["index"], "right")) - 1]

    def _is_unwanted(self, remade: npt.NDArray[np.bool_]) -> Callable[[Row], bool]:
        """From the first on, and the shard that ended before it: where shards end depends on all that came before."""
        first = int(remade.argmax()) if remade.any() else len(remade) + 1
        return lambda row: bool(row["index"] >= first - 1)

    def _index_file(self) -> None:
        """Whole images are read."""

    def _finish(self, destination: Destination) -> None:
        journal, count = destination.journal, self.plan.num_items
        self._write_beside(destination.storage, journal.rows(count))
        super()._finish(destination)

    def _restore_beside(self, destination: Destination) -> None:
        storage, names = destination.storage, [STATISTICS_NAME, *([INDEX_NAME] if self._pack_plan.has_index else [])]
        rows = destination_rows(destination)
        if all(storage.exists(name) for name in names):
            self.packed = packed_of(totals_of(rows), storage.sizes().get(INDEX_NAME, 0))
        else:
            destination.amend(lambda storage: self._write_beside(storage, rows))

    def _write_beside(self, storage: Storage, rows: Iterable[Row]) -> None:
        """Statistics and index; and shards that an earlier life of this run had more of go."""
        found = totals_of(rows)
        self.packed = packed_of(found)
        for name in storage.sizes():
            if _SHARD.fullmatch(name) and name not in found.shards:
                storage.remove(name)
        if not found.shards:
            return
        index = write_index(storage, found.shards) if self._pack_plan.has_index else None
        self.packed.index_bytes = cast(int, index["bytes"]) if index else 0
        storage.write(STATISTICS_NAME, statistics_bytes(found.sums, index))
        storage.sync()


def packed_of(found: Totals, index_bytes: int = 0) -> Packed:
    images = found.sums.images
    return Packed(
        images,
        len(found.shards),
        found.kept,
        found.skipped,
        found.bytes_before,
        sum(found.shards.values()),
        index_bytes,
        found.sums.statistics() if images else None,
    )


def destination_rows(destination: Destination) -> Iterator[Row]:
    """Of a complete run: the columns of its manifest that are added up."""
    manifest = read_manifest(destination.storage.root)
    return manifest.columns(*COLUMNS)


@spelt(PackingOptions)
def pack(source: Any, destination: str | PathLike[str], *, stop: Event | None = None, **options: Any) -> Packed:
    """Write a data set into shards that are read faster: reduced, encoded anew or as raw pixels, with statistics of the
    pixels and an entropy index of the JPEGs beside them.

    ``source``: what ``vg.open_source`` takes, by index; ``destination``: a folder, or an address that fsspec writes to.
    ``options``: those of the command ``variegate pack``: size, quality, keep_jpeg, format, shard_size, devices (a list
    too), workers, threads, resume, on_error, changed, ... (``measure`` does nothing here). ``stop``: once it is set,
    the run ends with what it has begun. The same call goes on where another one ended, in whatever way, and ends with
    the same bytes.

    Raises ValueError (SourceError) naming the argument, DecodeError with on_error="raise", EngineError and OSError
    where it cannot go on; KeyboardInterrupt where it was stopped.
    """
    packing = packing_of(source, destination, PackingOptions(**options))
    if stop is not None:
        packing.stop = stop
    if packing.run().is_interrupted:
        raise KeyboardInterrupt
    return packing.packed


def packing_of(source: Any, destination: str | PathLike[str], options: PackingOptions) -> Packing:
    """Opened and checked, and nothing done. Raises ValueError (SourceError) naming the argument."""
    is_place = isinstance(source, (str, PathLike))
    opened = open_by_index(source, options.on_error)
    if is_place:
        check_apart(source, destination)
    place = absolute_place(os.fspath(source)) if is_place else f"a {type(source).__name__}"
    plan = pack_plan(
        opened, place, options.format, options.size, options.quality, options.keep_jpeg, options.shard_size
    )
    names = options.devices
    devices = [name.strip() for name in names.split(",")] if isinstance(names, str) and names != "auto" else names
    engine = Engine(
        devices,
        options.workers,
        options.allocation,
        options.steal,
        num_threads=options.threads,
        address=options.address,
    )
    return Packing(plan, destination, engine, options.on_error, options.resume, options.changed)


def speedup_of(packing: Packing, threads: int | None = None) -> Speedup | None:
    """Of a packing that is done; None where it cannot be measured."""
    return measure_speedup(packing.plan.source, str(packing.destination), threads=threads)

"""A data set packed into shards on the devices of an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from threading import Event
from typing import Any, cast

from variegate.checks import integer
from variegate.data.packed import INDEX_NAME, STATISTICS_NAME, DatasetStatistics, statistics_bytes
from variegate.events import OnEvent, ignore_event
from variegate.io.files import StrPath
from variegate.jobs.arguments import absolute_place, open_by_index
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.jobs.output.manifest import read_manifest
from variegate.jobs.output.parts import Row
from variegate.jobs.output.run_folder import RunFolder, check_apart
from variegate.jobs.output.side_files import PACKED_COLUMNS, Totals, totals_of
from variegate.jobs.pack_shards import PackPlan, write_index
from variegate.ops.output import Identity
from variegate.ops.resize import Resize
from variegate.options.datasets import PackingOptions


@dataclass
class Packed:
    """Result of ``vg.pack``: counts, and bytes of the source, of the shards and of the index.

    ``kept``: JPEG files copied unchanged. ``skipped``: unreadable samples as (name, reason), including those of earlier
    runs. ``bytes_before``: bytes of the source's files (or pixels). ``statistics``: mean and standard deviation of the
    pixels.
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
        """Share of the bytes saved; below 0 if the shards are larger."""
        return 1 - self.bytes_after / self.bytes_before if self.bytes_before else 0.0


class Packing(Expansion):
    """An ``Expansion`` of a ``PackPlan``, with the same promises: exactly once, the same bytes however it went."""

    plan: PackPlan
    verb = "packing"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.packed = Packed()

    def _index_file(self) -> None:
        """Whole images are read."""

    def restore_side_files(self, folder: RunFolder) -> None:
        storage = folder.storage
        if all(map(storage.exists, [STATISTICS_NAME, *([INDEX_NAME] if self.plan.has_index else [])])):
            self.packed = _packed_of(totals_of(_rows_of(folder)), storage.sizes().get(INDEX_NAME, 0))
        else:
            folder.amend(lambda storage: self.write_side_files(folder, lambda: _rows_of(folder)))

    def write_side_files(self, folder: RunFolder, rows: Callable[[], Iterator[Row]]) -> None:
        """Write statistics and index."""
        storage = folder.storage
        found = totals_of(rows())
        self.packed = _packed_of(found)
        if not found.shards:
            return
        index = write_index(storage, found.shards) if self.plan.has_index else None
        self.packed.index_bytes = cast(int, index["bytes"]) if index else 0
        storage.write(STATISTICS_NAME, statistics_bytes(found.sums, index))
        storage.sync()


def _packed_of(found: Totals, index_bytes: int = 0) -> Packed:
    images = found.sums.images
    after = sum(found.shards.values())
    statistics = found.sums.statistics() if images else None
    counts = images, len(found.shards), found.kept, found.skipped
    return Packed(*counts, found.bytes_before, after, index_bytes, statistics)


def _rows_of(folder: RunFolder) -> Iterator[Row]:
    """Of a complete run: the columns of its manifest that are added up."""
    return read_manifest(folder.storage.root).columns(*PACKED_COLUMNS)


def pack(
    source: Any,
    destination: StrPath,
    *,
    stop: Event | None = None,
    on_event: OnEvent = ignore_event,
    **options: Any,
) -> Packed:
    """Write a data set to shards that are faster to read: resized, re-encoded or as raw pixels.

    Statistics of the pixels and an entropy index of the JPEGs are stored next to the shards. To resume an interrupted
    run, make the same call again; the result has the same bytes.

    Args:
        source: anything that ``vg.open_source`` accepts.
        destination: a folder, or a URL that fsspec writes to.
        stop: once set, the run finishes what it has begun and raises KeyboardInterrupt.
        on_event: called with ``ExpansionProgress`` and ``Skipped`` events.
        options: fields of ``PackingOptions``, as the options of ``variegate pack``: size, quality, keep_jpeg, format,
            shard_size, devices (or a list of them), workers, threads, resume, on_error, ....

    Raises:
        ValueError, SourceError: naming the argument.
        DecodeError: for an unreadable image with ``on_error="raise"``.
        EngineError, OSError: if the run cannot continue.
    """
    packing = packing_of(source, destination, PackingOptions(**options))
    if stop is not None:
        packing.stop = stop
    packing.on_event = on_event
    if packing.run().is_interrupted:
        raise KeyboardInterrupt
    return packing.packed


def packing_of(source: Any, destination: StrPath, options: PackingOptions) -> Packing:
    """Opened and checked, and nothing done. Raises ValueError (SourceError) naming the argument."""
    is_place = isinstance(source, (str, PathLike))
    quality = options.quality
    opened = open_by_index(source, options.on_error)
    if is_place:
        check_apart(source, destination)
    if quality is not None and options.format == "raw":
        raise ValueError("quality: got it with the format raw, whose pixels are not encoded; accepted: leave it out")
    side = None if options.size is None else integer("size", options.size, 1, 32_767)
    plan = PackPlan(
        opened,
        Identity() if side is None else Resize(side),
        layout=options.format,
        quality=90 if quality is None else quality,
        place=absolute_place(os.fspath(source)) if is_place else f"a {type(source).__name__}",
        short_side=side,
        keep_jpeg=options.keep_jpeg,
        shard_size=options.shard_size,
    )
    names = options.devices
    engine = Engine(
        [name.strip() for name in names.split(",")] if isinstance(names, str) and names != "auto" else names,
        options.workers,
        options.allocation,
        options.steal,
        num_threads=options.threads,
        address=options.address,
    )
    return Packing(plan, destination, engine, options.on_error, options.resume)

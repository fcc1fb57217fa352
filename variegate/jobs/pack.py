"""A data set packed into shards on the devices of an engine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from os import PathLike
from threading import Event
from typing import Any

from variegate.checks import integer
from variegate.data.packed import INDEX_NAME, DatasetStatistics
from variegate.events import OnEvent, ignore_event
from variegate.io.files import StrPath
from variegate.jobs.arguments import absolute_place, open_by_index, reading_of
from variegate.jobs.augment.opening import engine_of
from variegate.jobs.augment.run import Expansion, Report
from variegate.jobs.output.manifest import Manifest, read_manifest
from variegate.jobs.output.run_folder import check_not_nested
from variegate.jobs.pack_shards import PackPlan, totals_of
from variegate.ops.output import Identity
from variegate.ops.resize import Resize
from variegate.options.datasets import PackingOptions

# What ``totals_of`` looks at.
_COLUMNS = ("file", "status", "reason", "source", "shard_bytes", "packed")


@dataclass
class Packed:
    """Result of ``vg.pack``: counts, and bytes of the source, of the shards and of the index.

    ``kept``: JPEG files copied unchanged. ``skipped``: unreadable samples as (name, reason), also from earlier runs.
    ``bytes_before``: bytes of the source's files (or pixels). ``statistics``: mean and standard deviation of the
    pixels; None if images have several numbers of channels, or no finite pixel.
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

    def run(self) -> Report:
        report = super().run()
        if not report.is_interrupted:
            self.packed = _packed_of(read_manifest(self.destination), self.plan.depth.white)
        return report


def _packed_of(manifest: Manifest, white: float) -> Packed:
    found = totals_of(manifest.columns(*_COLUMNS))
    return Packed(
        images=found.images,
        shards=len(found.shards),
        kept=found.kept,
        skipped=found.skipped,
        bytes_before=found.bytes_before,
        bytes_after=sum(found.shards.values()),
        index_bytes=sum(file.size or 0 for file in manifest.files if file.name == INDEX_NAME),
        statistics=found.sums.statistics(white) if found.sums is not None else None,
    )


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
        stop: once set, the run finishes started parts and raises KeyboardInterrupt.
        on_event: called with ``ExpansionProgress`` and ``Skipped`` events.
        options: fields of ``PackingOptions``, as the options of ``variegate pack``: size, quality, keep_jpeg, format,
            depth, channels, window, frame, shard_size, devices (or a list of them), workers, threads, resume,
            on_error, ....

    Raises:
        ValueError, SourceError: naming the argument.
        DecodeError: for an unreadable image with ``on_error="raise"``.
        EngineError, OSError: if the run cannot continue.
    """
    packing = open_packing(source, destination, PackingOptions(**options))
    if stop is not None:
        packing.stop = stop
    packing.on_event = on_event
    if packing.run().is_interrupted:
        raise KeyboardInterrupt
    return packing.packed


def open_packing(source: Any, destination: StrPath, options: PackingOptions) -> Packing:
    """Opened and checked, and nothing done. Raises ValueError (SourceError) naming the argument."""
    is_place = isinstance(source, (str, PathLike))
    opened = open_by_index(source, options.on_error)
    if is_place:
        check_not_nested(source, destination)
    side = None if options.size is None else integer("size", options.size, 1, 32_767)
    plan = PackPlan(
        opened,
        Identity() if side is None else Resize(side),
        layout=options.format,
        quality=options.quality,
        place=absolute_place(os.fspath(source)) if is_place else f"a {type(source).__name__}",
        short_side=side,
        keep_jpeg=options.keep_jpeg,
        shard_size=options.shard_size,
        channels=options.channels,
        **reading_of(options),
    )
    return Packing(plan, destination, engine_of(options), options.on_error, options.resume)

"""``pack``: a data set prepared once, so that every epoch after reads it faster."""

from __future__ import annotations

import os
from os import PathLike
from threading import Event
from typing import Any

from variegate.checks import spelt
from variegate.jobs.arguments import absolute_place, open_by_index
from variegate.jobs.augment.run import check_apart
from variegate.jobs.engine import Engine
from variegate.jobs.pack.measure import Speedup, measure_speedup
from variegate.jobs.pack.plan import pack_plan
from variegate.jobs.pack.run import Packed, Packing
from variegate.options.packing import PackingOptions


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

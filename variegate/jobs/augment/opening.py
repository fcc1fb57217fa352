"""Expansions of the options of ``variegate augment``."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any

from variegate.io.files import StrPath
from variegate.jobs.arguments import absolute_place, build_transform, open_by_index, parse_size, reading_of, targets_of
from variegate.jobs.augment.annotated import plan_for
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.jobs.output.run_folder import check_not_nested
from variegate.options.datasets import ExpansionOptions
from variegate.options.shared import DeviceOptions


def open_expansion(source: Any, destination: StrPath, options: ExpansionOptions) -> Expansion:
    """Open the source and check all options; nothing is written yet. Raises ValueError (SourceError)."""
    transform = build_transform(options.policy, parse_size(options.size))
    opened = open_by_index(source, options.on_error, options.annotations)
    is_place = isinstance(source, (str, PathLike))
    if is_place:
        check_not_nested(os.fspath(source), destination)
    plan = plan_for(
        opened,
        transform,
        options.copies,
        options.seed,
        options.epoch,
        layout=options.layout,
        format=options.format,
        quality=options.quality,
        shard_size=options.shard_size,
        annotations=options.annotations,
        channels=options.channels,
        **reading_of(options),
        place=absolute_place(os.fspath(source)) if is_place else f"a {type(source).__name__}",
        targets=targets_of(options),
    )
    engine = engine_of(options, options.ordered)
    index = None if options.index.lower() == "none" else options.index
    return Expansion(plan, destination, engine, options.on_error, options.resume, index=index)


def engine_of(options: DeviceOptions, ordered: bool = True) -> Engine:
    return Engine(
        options.device_list(),
        options.workers,
        options.allocation,
        options.steal,
        ordered,
        num_threads=options.threads,
        address=options.address,
    )

"""Comparison of a run's source with the one that it was begun with."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.data.stamps import Stamp, Stamps, describe_change, differences, is_same, stamp_now
from variegate.data.storage import Storage
from variegate.errors import DecodeError
from variegate.jobs.augment.plan import Plan
from variegate.jobs.output.manifest import ANNOTATED
from variegate.jobs.output.run_record import SETTINGS_NAME, describe_changed, describe_other, read_settings, read_source


def refuse_other_files(storage: Storage, settings: dict[str, Any], stamps: Stamps | None) -> None:
    """Raise SourceError, with examples, where the run at the destination was begun with files of other names."""
    if stamps is None or not storage.exists(SETTINGS_NAME):
        return
    if read_settings(storage).get("fingerprint") == settings["fingerprint"] or (was := read_source(storage)) is None:
        return
    other = f"{storage.shown}: holds a run of other"
    if difference := describe_other(was, stamps):
        raise SourceError(f"{other} files than {settings['source']} has now: {difference}; choose another folder")
    if ANNOTATED in settings:  # of the same files
        raise SourceError(
            f"{other} annotations, or other classes, than {settings['source']} has now; choose another folder"
        )


def check_unchanged(storage: Storage, plan: Plan, stamps: Stamps | None, finished: Iterable[int]) -> bool:
    """Return whether the recorded source equals the source now. ``finished``: parts.

    Raises SourceError naming files that have changed since outputs were made of them. Other files may change between
    runs, so that a damaged one can be repaired; a warning names them.
    """
    if stamps is None:
        return True
    used = np.zeros(len(plan.source), bool)
    for part in finished:
        items = plan.items_of(part)
        used[plan.sample_of(items[0]) : plan.sample_of(items[-1]) + 1] = True
    if not used.any():
        return False
    was = read_source(storage)
    if was is None or list(was.names) != list(stamps.names):
        warnings.warn(
            f"{storage.shown}: this run has no record of what its source was (earlier versions kept none): files "
            "that have changed since it began go unnoticed",
            stacklevel=3,
        )
        return bool(used.all())
    files = differences(was, stamps)
    if not len(files):
        return True
    partners = plan.partners(np.arange(len(plan.source)))
    used[partners[used]] = True
    file_of_used = np.searchsorted(stamps.starts, np.flatnonzero(used), "right") - 1
    used_files = files[np.isin(files, file_of_used)]
    if len(used_files):
        raise SourceError(
            f"{describe_changed(was, stamps, used_files)}: changed since outputs were made; restore the source, choose "
            "another folder, or start over with --no-resume"
        )
    warnings.warn(
        f"changed since the run began, before anything was made of it: {describe_changed(was, stamps, files)}",
        stacklevel=3,
    )
    return False


def check_read(stamps: Stamps, source: Samples, index: int, num_bytes: int) -> None:
    """Raise DecodeError for a sample whose file has changed since the run began.

    Of one behind an address it compares the number of bytes alone; Parquet files ask for themselves.
    """
    was = stamps.at(stamps.file_of(index))
    if was.size < 0:
        return
    now = Stamp(num_bytes, was.time) if source.folder is not None else was
    if not source.is_remote:
        on_disk = stamp_now(source.name(index).file)
        now = on_disk if is_same(was, now) else now._replace(time=on_disk.time)
    if not is_same(was, now):
        raise DecodeError(str(source.name(index)), f"has changed since the run began: {describe_change(was, now)}")

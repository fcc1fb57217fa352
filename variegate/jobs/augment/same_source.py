"""Comparison of a run's source with the one that it was begun with, and what follows a difference."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.base import FileSource, Source, SourceError
from variegate.formats.stamps import Stamp, Stamps, describe_change, differences, is_same, stamp_now
from variegate.formats.storage import Storage
from variegate.jobs.augment.plan import Plan
from variegate.jobs.options import OnChange
from variegate.jobs.output.destination import Destination
from variegate.jobs.output.run_record import SETTINGS_NAME, describe_changed, describe_other, read_settings, read_source
from variegate.jobs.output.side_files import ANNOTATED


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


def compare(
    destination: Destination, plan: Plan, stamps: Stamps | None, changed: OnChange
) -> tuple[npt.NDArray[np.bool_], bool]:
    """-> for each sample, whether its outputs are to be made again; whether the record of the source is as it is now.

    Raises SourceError naming the files where outputs were made of others, unless ``changed`` says what to do.
    """
    remade = np.zeros(len(plan.source), bool)
    if stamps is None:
        return remade, True
    storage = destination.storage
    was = read_source(storage)
    if was is None or list(was.names) != list(stamps.names):
        if destination.is_complete or destination.journal.covered:
            warnings.warn(
                f"{storage.shown}: this run has no record of what its source was (earlier versions kept none): files "
                "that have changed since it began go unnoticed",
                stacklevel=3,
            )
        return remade, destination.is_complete
    files = differences(was, stamps)
    if not len(files):
        return remade, True
    done = np.full(len(remade), destination.is_complete)
    for start, stop in [] if destination.is_complete else destination.journal.covered:
        done[plan.sample_of(start) : plan.sample_of(stop - 1) + 1] = True
    # What an output was mixed with, it was made of as well.
    partners, read = plan.partners(np.arange(len(done))), done.copy()
    read[partners[done]] = True
    before = np.concatenate([[0], np.cumsum(read)])
    used = files[(before[stamps.ends(len(done))] > before[stamps.starts])[files]]
    if len(used):
        _check_allowed(was, stamps, used, changed)
        if changed == "remake":
            remade[stamps.samples_of(used, len(remade))] = True
            remade |= remade[partners].any(axis=1)
            remade &= done
    elif done.any():
        warnings.warn(
            f"changed since the run began, before anything was made of it: {describe_changed(was, stamps, files)}",
            stacklevel=3,
        )
    return remade, False


def _check_allowed(was: Stamps, now: Stamps, files: npt.NDArray[np.int64], changed: OnChange) -> None:
    resized = files[was.sizes[files] != now.sizes[files]]
    remake = "--changed remake writes their outputs again"
    if changed == "same" and len(resized):
        raise SourceError(
            f"{describe_changed(was, now, resized)}; files of other sizes are never the same: restore them, or {remake}"
        )
    if changed == "refuse":
        same = "" if len(resized) else "--changed same accepts them if they hold the same pictures, "
        raise SourceError(
            f"{describe_changed(was, now, files)}: changed since outputs were made; restore the source, or choose: "
            f"{same}{remake}"
        )


def check_read(stamps: Stamps, source: Source, index: int, num_bytes: int) -> None:
    """Raise DecodeError naming a sample that was read, where its file is not as it was when the run began.

    Of one behind an address it compares the number of bytes alone; Parquet files ask for themselves.
    """
    was = stamps.at(stamps.file_of(index))
    if was.size < 0:
        return
    now = Stamp(num_bytes, was.time) if isinstance(source, FileSource) else was
    if not source.is_remote:
        on_disk = stamp_now(source.name(index).file)
        now = on_disk if is_same(was, now) else now._replace(time=on_disk.time)
    if not is_same(was, now):
        raise DecodeError(str(source.name(index)), f"has changed since the run began: {describe_change(was, now)}")

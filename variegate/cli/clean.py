"""``variegate clean SRC DST``."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from variegate.cli.console import (
    BAD_INPUT,
    FAILED,
    INTERRUPTED,
    CountingBar,
    emit_json,
    fail,
    interrupt_sets,
    note,
    print_facts,
    say,
    warnings_as_notes,
)
from variegate.cli.options import CommandOptions, ExcludeOptions
from variegate.formats.kinds import IMAGES_HELP
from variegate.options import option
from variegate.options.cleaning import CleaningOptions

if TYPE_CHECKING:
    from variegate.apps.curate.cleaning import Cleaned
    from variegate.apps.curate.cleaning.found import Found, LeftOut

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class CleanOptions(CleaningOptions, ExcludeOptions, CommandOptions):
    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")
    dst: str | None = option(
        None, "The folder to write the copy to, or a URL; not inside SRC. Not with --exclude-list.", "Arguments",
        metavar="[DST]",
    )  # fmt: skip


def clean(options: CleanOptions) -> None:
    """Copy a data set without what `variegate check` found in it, or list what to leave out of it.

    SRC stays as it is. The copy has the same layout: files under their names, shards with all that belongs to the
    images that stay. Of a group of duplicates one stays: the one with the most pixels, of equals that of the most
    bytes, then the first. left_out.jsonl in DST names what is not there, and why. After an interruption of any kind
    the same command goes on, and ends with the same files; `variegate verify DST` compares them with their checksums.
    """
    as_json = options.as_json
    if options.findings is None:
        raise ValueError("--from: is missing; accepted: the findings.parquet that variegate check wrote")
    from variegate.apps.curate.cleaning import open_checked, run_cleaning
    from variegate.apps.curate.cleaning.found import parse_drop
    from variegate.io.durable import WriteError

    kinds = parse_drop(options.drop) if options.drop.strip() else ()
    found, opened = open_checked(options.place, options.findings, options.split)
    if not kinds:
        raise fail(f"--drop: is missing; {_choices(found)}", BAD_INPUT, as_json)
    if options.dst is None and options.exclude_list is None:
        raise ValueError("DST: is missing; accepted: a folder to write the copy to, or --exclude-list FILE")
    stop, started = threading.Event(), time.perf_counter()
    try:
        with CountingBar(as_json) as bar, interrupt_sets(stop), warnings_as_notes(bar.console):
            task = bar.add_task("copying", total=None)

            def show(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            made = run_cleaning(options.place, opened, found, kinds, options.dst, options, show, stop)
    except WriteError as error:
        raise fail(f"{error}; what was copied is kept, and the same command goes on", FAILED, as_json) from error
    if made.is_interrupted:
        rest = f"interrupted: {made.files + made.resumed:,} files are copied and kept; the same command goes on"
        raise fail(rest, INTERRUPTED, as_json)
    _print_cleaned(made, options, time.perf_counter() - started)


def _choices(found: Found) -> str:
    counts = found.counts()
    if not counts:
        return f"and {found.place} has nothing that could be left out"
    named = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
    return f"{found.place} has: {named}; accepted: such names with commas between them, or all"


def _print_cleaned(made: Cleaned, options: CleanOptions, seconds: float) -> None:
    kept = made.images - len(made.left_out)
    if options.as_json:
        facts: dict[str, Any] = {"images": made.images, "kept": kept, "left_out": len(made.left_out)}
        facts |= {"counts": made.counts, "files": made.files, "resumed": made.resumed, "bytes": made.bytes}
        emit_json("done", **facts, seconds=round(seconds, 3), destination=made.place)
        return
    note(*made.notes)
    for kind, count in made.counts.items():
        some = [one for one in made.left_out if kind in one.findings]
        say(f"{kind}: {count:,} left out, {_examples(some, kind)}")
    facts_shown = [("images", f"{made.images:,}"), ("left out", f"{len(made.left_out):,}"), ("kept", f"{kept:,}")]
    if options.dst is not None:
        facts_shown.append(("files", f"{made.files:,} ({made.bytes / 1e6:,.1f} MB)"))
    if made.resumed:
        facts_shown.append(("before", f"{made.resumed:,} files (by an earlier run)"))
    print_facts([*facts_shown, ("where", made.place)])


def _examples(some: Sequence[LeftOut], kind: str) -> str:
    shown = [f"{one.file}{f' ({one.kept} stays)' if one.kept and kind != 'leaks' else ''}" for one in some[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(some) - _SHOWN:,} more" if len(some) > _SHOWN else "")

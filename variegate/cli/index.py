"""``variegate index SRC``."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict, dataclass

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    CountingBar,
    emit_json,
    fail,
    interrupt_sets,
    note,
    say,
    warnings_as_notes,
)
from variegate.cli.options import CommandOptions, ExcludeOptions
from variegate.formats.kinds import IMAGES_HELP
from variegate.options import option
from variegate.options.indexing import IndexingOptions


@dataclass(frozen=True, kw_only=True)
class IndexOptions(IndexingOptions, ExcludeOptions, CommandOptions):
    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")


def index(options: IndexOptions) -> None:
    """Note where the Huffman code of JPEGs can be entered, so that crops are read without what surrounds them.

    Files stay as they are; pixels are the same to the bit. The index takes about 2 % of the files' bytes, and knows
    files by their content: whatever is renamed, moved or joined stays known. Loader(index="auto") uses it.
    """
    from variegate.formats.indexing import index_source

    stop, started = threading.Event(), time.perf_counter()
    with CountingBar(options.as_json) as bar, interrupt_sets(stop), warnings_as_notes(bar.console):
        task = bar.add_task("indexing", total=None)
        found = index_source(
            options.place,
            options.out,
            options.threads,
            on_progress=lambda done, total: bar.update(task, completed=done, total=total or None),
            stop=stop,
        )
    if not found.is_done:
        raise fail(f"interrupted: {found.indexed:,} images are indexed; the same command goes on", INTERRUPTED)
    if found.broken:
        kept = f"the {found.indexed:,} images before are indexed; the same command goes on"
        more = f" (and {len(found.broken) - 1:,} more shards)" if len(found.broken) > 1 else ""
        raise fail(f"{found.broken[0]}{more}; {kept}", FAILED, options.as_json)
    seconds = round(time.perf_counter() - started, 1)
    if options.as_json:
        emit_json("done", **asdict(found), seconds=seconds)
        return
    for reason, number in found.left_out.items():
        note(f"{number:,} images have no index ({reason}) and are decoded as ever")
    share = f", {found.index_bytes / found.image_bytes:.1%} of their bytes" if found.image_bytes else ""
    say(f"{found.path}: {found.indexed:,} of {found.images:,} images{share}, {seconds:,.1f} s")

"""Files that describe data: ``variegate verify DST``, ``variegate replay MANIFEST ROW``, ``variegate index SRC``."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from variegate.cli import console
from variegate.cli.options import CommandOptions, ImportOptions, SourceOptions
from variegate.cli.render import rendering
from variegate.io.amounts import pluralize
from variegate.options import Opt
from variegate.options.datasets import IndexingOptions
from variegate.options.shared import Threads

_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(CommandOptions):
    dst: Annotated[str, Opt("Folder or URL that `augment` or `pack` wrote.", "Arguments", metavar="DST")]
    delete_damaged: Annotated[
        bool, Opt("Delete damaged files, so that the command that wrote them can write them again.", "Running")
    ] = False
    threads: Threads = None


def verify(options: VerifyOptions) -> None:
    """Compare output files with the checksums in their manifest.

    Reports outputs of `augment` or `pack` that are missing, damaged or not in the manifest. The exit code is
    then 1. To write missing files again, run the command that wrote DST again. With --delete-damaged, that replaces
    damaged files as well.

    Examples:
        variegate verify out
        variegate verify out --delete-damaged
    """
    from variegate.jobs.output.verify import delete_damaged as delete
    from variegate.jobs.output.verify import verify as compare

    with rendering(options.as_json, ctrl_c="raises") as render:
        found = compare(options.dst, options.threads, render)
    deleted = delete(options.dst, found) if options.delete_damaged else []
    counts = {"outputs": found.outputs, "good": found.good}
    counts |= {kind: found.count(kind) for kind in ("missing", "damaged", "unreadable", "extra")}
    counts["deleted"] = len(deleted)
    if options.as_json:
        problems = [problem._asdict() for problem in found.problems]
        console.emit_json("done", **counts, problems=problems)
        if problems:  # the object has said it
            raise typer.Exit(console.FAILED)
        return
    for file, problem, _ in found.problems[:_SHOWN]:
        console.print_line(f"{file}: {problem}")
    if len(found.problems) > _SHOWN:
        console.print_line(f"and {len(found.problems) - _SHOWN:,} more, which --json lists")
    console.print_key_values(
        (name, f"{count:,}") for name, count in counts.items() if count or name in ("outputs", "good")
    )
    if not found.problems:
        return
    parts = [pluralize(len(found.problems), "problem")]
    if found.count("missing") or deleted:
        parts.append("to write missing files again, run the command that wrote them")
    if found.count("damaged") and not deleted:
        parts.append("--delete-damaged deletes damaged files, so that the same command writes them again")
    raise console.CommandError("; ".join(parts))


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(ImportOptions):
    manifest: Annotated[
        str, Opt("The manifest.parquet that augment wrote, or its folder.", "Arguments", metavar="MANIFEST")
    ]
    row: Annotated[int, Opt("Number of the row, from 0.", "Arguments", ge=0, metavar="ROW")]
    out: Annotated[
        Path | None,
        Opt("File to write. By default, the name of the output in the current folder.", "Output", metavar="FILE"),
    ] = None
    source: Annotated[
        str | None, Opt("New place of the source images, if they have moved.", "Running", metavar="SRC")
    ] = None
    exclude: Annotated[
        Path | None, Opt("New place of the list of excluded images, if it has moved.", "Running", metavar="FILE")
    ] = None


def replay(options: ReplayOptions) -> None:
    """Write one output of `augment` again, from its row in the manifest.

    Reports whether the new file is identical to the old one. If it is not, the exit code is 1.

    Examples:
        variegate replay out/manifest.parquet 3
        variegate replay out 3 --source /new/place/of/photos --out again.jpg
    """
    from variegate.io.durable import write_atomically
    from variegate.jobs.augment.replay import replay as make_again

    made = make_again(options.manifest, options.row, options.source, options.exclude)
    path = Path(made.name) if options.out is None else options.out
    if options.out is None and path.exists():
        raise ValueError(f"{path}: exists already; accepted: another folder, or --out FILE")
    write_atomically(path, made.data)
    described = {"file": str(path), "source": made.row["source"], "copy": made.row["copy"]}
    if options.as_json:
        console.emit_json("done", **described, operations=made.row["operations"], is_same=made.is_same)
    else:
        verdict = "the same" if made.is_same else "not the same"
        console.print_line(f"{path}: copy {made.row['copy']} of {made.row['source']}, {verdict}")
    if not made.is_same:
        raise console.CommandError(
            f"row {options.row:,}: {made.row['file']} was another file: its source or the version of variegate has "
            "changed, or it was written on another kind of device, where pixels may differ by one level"
        )


@dataclass(frozen=True, kw_only=True)
class IndexOptions(IndexingOptions, SourceOptions, CommandOptions):
    pass


def index(options: IndexOptions) -> None:
    """Index JPEGs, so that loaders decode only the crops they need.

    The index stores entry points into the Huffman code of each file. It takes about 2% of the size of the files and
    identifies them by content: it stays valid when files are renamed, moved or packed. Files are not changed, and
    pixels are identical to the bit. Loader(index="auto") uses the index.

    Examples:
        variegate index photos
        variegate index "shards/train-*.tar" --out train.index
    """
    from variegate.data.indexing import index_source

    started = time.perf_counter()
    with rendering(options.as_json) as render:
        found = index_source(options.place, options.out, options.threads, on_event=render, stop=render.stop)
    if not found.is_done:
        raise console.CommandError(
            f"interrupted after {pluralize(found.indexed, 'image')}; to resume, run the same command again",
            console.INTERRUPTED,
        )
    seconds = round(time.perf_counter() - started, 1)
    if options.as_json:
        console.emit_json("done", **asdict(found), seconds=seconds)
        return
    for reason, number in found.left_out.items():
        console.note(f"not indexed, decoded in full: {pluralize(number, 'image')} ({reason})")
    share = f", {found.index_bytes / found.image_bytes:.1%} of their bytes" if found.image_bytes else ""
    console.print_line(
        f"{found.path}: {found.indexed:,} of {pluralize(found.images, 'image')}{share}, {seconds:,.1f} s"
    )

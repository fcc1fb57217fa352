"""``variegate augment SRC DST``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    emit_json,
    fail,
    interrupt_sets,
    one_line_errors,
    say,
    stderr,
    stdout,
    warnings_as_notes,
)
from variegate.cli.progress import ExpansionProgress

if TYPE_CHECKING:
    from variegate.engine.expand import Expansion


class Format(str, Enum):
    jpg = "jpg"
    png = "png"
    webp = "webp"


class OnError(str, Enum):
    stop = "raise"
    skip = "skip"


POLICY_HELP = (
    "randaugment, trivialaugment, augmix, 3-augment, imagenet, cifar10, svhn, v0, pba-cifar10, pba-svhn, timm's "
    "strings (rand-m9-mstd0.5-inc1), a .json or .yaml file, or none."
)


def augment(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Folder of class folders with images, or of images.")],
    dst: Annotated[Path, typer.Argument(metavar="DST", help="Folder to write to, outside of SRC; made if missing.")],
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "randaugment",
    copies: Annotated[int, typer.Option(min=1, help="Augmented copies of every image.")] = 1,
    size: Annotated[
        str,
        typer.Option(
            metavar="SIDE|HxW|none",
            help="Crop a random box and resize it to this (RandomResizedCrop) before the policy; none keeps each "
            "image's own size.",
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other augmentations.")] = 0,
    epoch: Annotated[int, typer.Option(min=0, help="Epoch to draw for; schedules choose their policy by it.")] = 0,
    format: Annotated[Format, typer.Option(help="File format of the outputs.")] = Format.jpg,
    quality: Annotated[int, typer.Option(min=1, max=100, help="Of jpg and webp.")] = 95,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: all cores that may be used.")] = None,
    on_error: Annotated[
        OnError, typer.Option(help="At a file that is no image: raise stops there, skip reports it and goes on.")
    ] = OnError.stop,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for every event.")] = False,
) -> None:
    """Expand a folder of images into augmented copies.

    DST gets SRC's class folders with NAME_COPY.FORMAT for every image and copy, manifest.jsonl with the
    operations and arguments of every file, and variegate.json with the settings. The pixels depend on SRC, the
    policy, the seed and the epoch alone, not on the number of threads.
    """
    with one_line_errors(as_json):
        from variegate.data.sources.folder import open_folder
        from variegate.engine.expand import Expansion, check_apart
        from variegate.engine.recipe import build_transform, parse_size
        from variegate.sinks.folder import FolderSink

        transform = build_transform(policy, parse_size(size))
        source = open_folder(src)
        check_apart(src, dst)
        expansion = Expansion(
            source,
            FolderSink(dst, format.value, quality),
            transform,
            copies=copies,
            seed=seed,
            epoch=epoch,
            threads=threads,
            on_error=on_error.value,
        )
        if as_json:
            emit_json("start", files=len(source), classes=len(source.classes), total=expansion.report.total)
        else:
            for note in source.notes():
                say(f"note: {note}", stderr())
        run_expansion(expansion, as_json)
        report = expansion.report
        if report.written == 0:
            raise fail(f"{src}: none of its {len(source):,} images could be read; nothing was written", FAILED, as_json)


def run_expansion(expansion: Expansion, as_json: bool, summary: bool = True) -> None:
    """Run with progress and print the summary; ends the command with exit code 1 or 130 where it did not finish."""
    from variegate.errors import DecodeError

    report = expansion.report
    console = stderr()
    error: DecodeError | OSError | None = None
    with ExpansionProgress(report.total, as_json, console) as progress:
        expansion.on_progress = progress
        with interrupt_sets(expansion.stop), warnings_as_notes(console):
            try:
                expansion.run()
            except (DecodeError, OSError) as caught:
                error = caught
    if summary or error is not None or report.is_interrupted:
        _print_summary(expansion, as_json)
    if error is not None:
        hint = " (--on-error skip passes over such files)" if isinstance(error, DecodeError) else ""
        kept = f"; the {report.written:,} images written before are kept" if report.written else ""
        raise fail(f"{error}{kept}{hint}", FAILED, as_json) from error
    if report.is_interrupted:
        rest = f"interrupted: {report.written:,} of {report.total:,} images are written and kept"
        raise fail(rest, INTERRUPTED, as_json)


def _print_summary(expansion: Expansion, as_json: bool) -> None:
    report = expansion.report
    where = expansion.sink.root
    if as_json:
        emit_json(
            "interrupted" if report.is_interrupted else "done",
            files=report.files,
            written=report.written,
            skipped=len(report.skipped),
            seconds=round(report.seconds, 3),
            images_per_second=round(report.rate, 1),
            destination=str(where),
        )
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row("files in", f"{report.files:,}")
    table.add_row("written", f"{report.written:,}")
    table.add_row("skipped", f"{len(report.skipped):,}")
    table.add_row("images/s", f"{report.rate:,.1f} ({report.seconds:.1f} s)")
    table.add_row("where", str(where))
    stdout().print(table)

"""``variegate augment SRC DST``."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    cell,
    emit_json,
    fail,
    interrupt_sets,
    one_line_errors,
    say,
    stderr,
    stdout,
    warnings_as_notes,
)
from variegate.cli.live import ExpansionView
from variegate.data.sources.file_kinds import IMAGES_HELP

if TYPE_CHECKING:
    from variegate.engine.expansion import Expansion, Report


class Format(str, Enum):
    jpg = "jpg"
    png = "png"
    webp = "webp"


class Layout(str, Enum):
    folder = "folder"
    webdataset = "webdataset"
    parquet = "parquet"


class OnError(str, Enum):
    stop = "raise"
    skip = "skip"


class OnChange(str, Enum):
    refuse = "refuse"
    same = "same"
    remake = "remake"


class Workers(str, Enum):
    process = "process"
    thread = "thread"
    ray = "ray"


class Allocation(str, Enum):
    least_loaded = "least_loaded"
    round_robin = "round_robin"
    random = "random"


# The manifest holds an epoch in 64 bits, with a sign.
MOST_EPOCH = 2**63 - 1
POLICY_HELP = (
    "What is done to an image: randaugment, trivialaugment, autoaugment, augmix, 3-augment, imagenet, cifar10, svhn, "
    "v0, pba-cifar10, pba-svhn, a string of timm's such as rand-m9-mstd0.5-inc1, a .json or .yaml file, or none."
)
SIZE_HELP = (
    "Crop a random box and resize it to this (RandomResizedCrop) before the policy. With none, every image keeps its "
    "own size."
)
JSON_HELP = "Print a line of JSON for every event, for other programs to read."


def augment(
    src: Annotated[str, typer.Argument(metavar="SRC", help=IMAGES_HELP)],
    dst: Annotated[
        str,
        typer.Argument(metavar="DST", help="The folder to write to, or a URL. It is made if missing; not inside SRC."),
    ],
    policy: Annotated[str, typer.Option(metavar="POLICY", help=POLICY_HELP)] = "randaugment",
    copies: Annotated[int, typer.Option(min=1, help="How many augmented copies to make of every image.")] = 1,
    size: Annotated[
        str,
        typer.Option(metavar="SIDE|HxW|none", help=SIZE_HELP),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other augmentations.")] = 0,
    epoch: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_EPOCH, help="Another epoch gives other augmentations, and a schedule's policy for it."
        ),
    ] = 0,
    layout: Annotated[
        Layout, typer.Option(help="Write class folders, or shards: .tar (webdataset) or .parquet.")
    ] = Layout.folder,
    shard_size: Annotated[int, typer.Option(min=1, help="About how many images to put in a shard.")] = 1000,
    format: Annotated[Format, typer.Option(help="The file format of the images.")] = Format.jpg,
    quality: Annotated[int, typer.Option(min=1, max=100, help="The quality of jpg and webp.")] = 95,
    devices: Annotated[
        str,
        typer.Option(
            metavar="DEVICES",
            help="All GPUs, else the CPU (auto), or a list such as cuda:0,cuda:1 or cpu:0,cpu:1 (parts of the CPU).",
        ),
    ] = "auto",
    workers: Annotated[
        Workers, typer.Option(help="What runs a device; ray uses actors on a cluster.")
    ] = Workers.process,
    address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Where the Ray cluster is. Without it, a new one runs on this machine."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Threads for each device. Without it, the devices share the cores.", rich_help_panel="Devices"
        ),
    ] = None,
    allocation: Annotated[Allocation, typer.Option(help="How a task's device is chosen.")] = Allocation.least_loaded,
    steal: Annotated[
        bool, typer.Option("--steal/--no-steal", help="Let an idle device take a task from the longest queue.")
    ] = True,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Write images in the order of SRC. Shards always are in order.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Go on where an earlier run ended, or make everything anew.")
    ] = True,
    on_error: Annotated[
        OnError, typer.Option(help="Go on without an image that failed three times (skip), or stop there (raise).")
    ] = OnError.skip,
    changed: Annotated[
        OnChange,
        typer.Option(
            help="What to do about files of SRC that have changed since outputs were made of them: refuse names them "
            "and stops, same says that only their times differ, remake makes their outputs again."
        ),
    ] = OnChange.refuse,
    as_json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Expand a data set into augmented copies, on all devices of this machine or of a Ray cluster.

    It writes the images, manifest.parquet with the operations, arguments and checksum of each, and variegate.json with
    the settings. The files depend on SRC, the policy, the size, the seed and the epoch, but not on devices, workers or
    threads. After an interruption of any kind the same command goes on, and ends with the same files. A finished
    command that is given again makes what has been deleted or cut off since; `variegate verify DST` looks for damage
    within files.
    """
    with one_line_errors(as_json):
        from variegate.engine.arguments import absolute_place, build_transform, idle_note, open_by_index, parse_size
        from variegate.engine.engine import Engine
        from variegate.engine.expansion import Expansion, Plan, check_apart
        from variegate.outside.addresses import shown

        transform = build_transform(policy, parse_size(size))
        source = open_by_index(src, on_error.value)
        check_apart(src, dst)
        plan = Plan(
            source,
            transform,
            copies,
            seed,
            epoch,
            layout.value,
            format.value,
            quality,
            shard_size,
            absolute_place(src),
        )
        engine = Engine(
            devices if devices == "auto" else [name.strip() for name in devices.split(",")],
            workers.value,
            allocation.value,
            steal,
            ordered,
            num_threads=threads,
            address=address,
        )
        expansion = Expansion(plan, dst, engine, on_error.value, resume, changed.value)
        if as_json:
            emit_json(
                "start",
                files=len(source),
                classes=len(source.classes),
                total=expansion.report.total,
                devices=list(engine.devices),
            )
        else:
            for note in (*source.notes(), idle_note(policy, epoch)):
                if note is not None:
                    say(f"note: {note}", stderr())
        run_expansion(expansion, as_json)
        report = expansion.report
        if report.written + report.resumed == 0:
            raise fail(
                f"{shown(src)}: none of its {len(source):,} images could be read; nothing was written", FAILED, as_json
            )


def run_expansion(expansion: Expansion, as_json: bool, summary: bool = True) -> None:
    """Run with progress and print the summary; ends the command with exit code 1 or 130 where it did not finish."""
    from variegate.engine.jobs import EngineError
    from variegate.errors import DecodeError

    report = expansion.report
    console = stderr()
    error: DecodeError | EngineError | OSError | None = None
    with ExpansionView(expansion, as_json, console) as view:
        expansion.on_progress = view
        with interrupt_sets(expansion.stop), warnings_as_notes(console):
            try:
                expansion.run()
            except (DecodeError, EngineError, OSError) as caught:
                error = caught
    if summary or error is not None or report.is_interrupted:
        _print_summary(expansion, as_json)
    if error is not None:
        kept = f"; the {report.written:,} images written are kept" if report.written else ""
        hint = " (--on-error skip passes over such files)" if isinstance(error, DecodeError) else ""
        again = " (the same command goes on from there)" if kept and not hint else ""
        raise fail(f"{error}{kept}{hint}{again}", FAILED, as_json) from error
    if report.is_interrupted:
        done = report.written + report.resumed
        rest = f"interrupted: {done:,} of {report.total:,} images are written and kept; the same command goes on"
        raise fail(rest, INTERRUPTED, as_json)


def _print_summary(expansion: Expansion, as_json: bool) -> None:
    from variegate.outside.addresses import shown

    report = expansion.report
    if as_json:
        emit_json(
            "interrupted" if report.is_interrupted else "done",
            files=report.files,
            written=report.written,
            resumed=report.resumed,
            repaired=report.repaired,
            remade=report.remade,
            skipped=len(report.skipped),
            seconds=round(report.seconds, 3),
            images_per_second=round(report.rate, 1),
            destination=shown(str(expansion.destination)),
        )
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _facts(report):
        table.add_row(name, value)
    table.add_row("where", cell(shown(str(expansion.destination))))
    stdout().print(table)


def _facts(report: Report) -> list[tuple[str, str]]:
    facts = [("files in", f"{report.files:,}"), ("written", f"{report.written:,}")]
    if report.resumed:
        facts.append(("before", f"{report.resumed:,} (by an earlier run)"))
    if report.repaired:
        facts.append(("repaired", f"{report.repaired:,} (were missing, or of another size)"))
    if report.remade:
        facts.append(("remade", f"{report.remade:,} (of files that have changed)"))
    before = f" (and {report.missing:,} by an earlier run)" if report.missing and not report.skipped else ""
    facts.append(("skipped", f"{len(report.skipped):,}{before}"))
    if report.written:
        facts.append(("images/s", f"{report.rate:,.1f} ({report.seconds:.1f} s)"))
    return facts

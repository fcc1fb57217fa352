"""``variegate augment SRC DST``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    emit_json,
    fail,
    interrupt_sets,
    note,
    print_facts,
    stderr,
    warnings_as_notes,
)
from variegate.cli.live import ExpansionView
from variegate.cli.options import MOST_EPOCH, ExcludeOptions, PolicyOptions, device_list
from variegate.cli.tiles import augment_tiles
from variegate.formats.kinds import IMAGES_HELP
from variegate.options import option
from variegate.options.expansion import DeviceOptions, GoingOnOptions, TargetOptions

if TYPE_CHECKING:
    from variegate.jobs.augment import Expansion
    from variegate.targets.settings import Targets


@dataclass(frozen=True, kw_only=True)
class AugmentOptions(GoingOnOptions, DeviceOptions, TargetOptions, ExcludeOptions, PolicyOptions):
    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")
    dst: str = option(
        ..., "The folder to write to, or a URL. It is made if missing; not inside SRC.", "Arguments", metavar="DST"
    )
    copies: int = option(1, "How many augmented copies to make of every image.", "Augmentation", low=1)
    seed: int = option(0, "Another seed gives other augmentations.", "Augmentation", low=0)
    epoch: int = option(
        0,
        "Another epoch gives other augmentations, and a schedule's policy for it.",
        "Augmentation",
        low=0,
        high=MOST_EPOCH,
    )
    layout: Literal["auto", "folder", "webdataset", "parquet"] = option(
        "auto",
        "Write class folders, or shards: .tar (webdataset) or .parquet. auto: boxes, masks and key points in the "
        "layout that SRC has them in, images alone in class folders.",
        "Output",
    )
    shard_size: int = option(1000, "About how many images to put in a shard.", "Output", low=1)
    format: Literal["jpg", "png", "webp"] = option("jpg", "The file format of the images.", "Output")
    quality: int = option(95, "The quality of jpg and webp.", "Output", low=1, high=100)
    tile: int | None = option(
        None,
        "SRC is a .npy, TIFF or Zarr image of any size, or a folder of such: make them in tiles of so many pixels a "
        "side, in files of the same kind.",
        "Output",
        low=1,
        high=16_384,
    )
    index: str = option(
        "auto",
        "Read crops of JPEGs by an index, where one copy is made of each: the one of variegate index, if there is one "
        "(auto), none, or a file.",
        "Devices",
        metavar="auto|none|FILE",
    )
    ordered: bool = option(False, "Write images in the order of SRC. Shards always are in order.", "Running")


def augment(options: AugmentOptions) -> None:
    """Expand a data set into augmented copies, on all devices of this machine or of a Ray cluster.

    It writes the images, manifest.parquet with the operations, arguments and checksum of each, and variegate.json with
    the settings. Boxes, masks and key points of SRC (--annotations) come out in the layout that SRC has them in.

    The files depend on SRC, the policy, the size, the seed and the epoch, but not on devices, workers or
    threads. After an interruption of any kind the same command goes on, and ends with the same files. A finished
    command that is given again makes what has been deleted or cut off since; `variegate verify DST` looks for damage
    within files.
    """
    if options.tile is not None:
        augment_tiles(options)
        return
    from variegate.io.addresses import shown
    from variegate.jobs.arguments import absolute_place, build_transform, idle_note, open_by_index, parse_size

    as_json = options.as_json
    transform = build_transform(options.policy, parse_size(options.size))
    source = open_by_index(options.place, options.on_error, options.annotations)
    # Only now what takes longest.
    from variegate.jobs.augment import Expansion, check_apart, plan_for
    from variegate.jobs.engine import Engine

    check_apart(options.src, options.dst)
    plan = plan_for(
        source,
        transform,
        options.copies,
        options.seed,
        options.epoch,
        layout=options.layout,
        format=options.format,
        quality=options.quality,
        shard_size=options.shard_size,
        place=absolute_place(options.src),
        annotations=options.annotations,
        targets=targets_of(options),
    )
    engine = Engine(
        device_list(options.devices),
        options.workers,
        options.allocation,
        options.steal,
        options.ordered,
        num_threads=options.threads,
        address=options.address,
    )
    index = None if options.index.lower() == "none" else options.index
    expansion = Expansion(plan, options.dst, engine, options.on_error, options.resume, options.changed, index=index)
    if as_json:
        counts = {"files": len(source), "classes": len(source.classes), "total": expansion.report.total}
        emit_json("start", **counts, devices=list(engine.devices))
    else:
        note(*source.notes(), idle_note(options.policy, options.epoch))
    run_expansion(expansion, as_json)
    if expansion.report.written + expansion.report.resumed == 0:
        none = f"{shown(options.src)}: none of its {len(source):,} images could be read; nothing was written"
        raise fail(none, FAILED, as_json)


def targets_of(options: TargetOptions) -> Targets | None:
    """None where nothing is said of them."""
    from variegate.targets.settings import Targets

    found = Targets(min_area=options.min_area, min_visibility=options.min_visibility, mask_fill=options.mask_fill)
    return None if found == Targets() else found


def run_expansion(expansion: Expansion, as_json: bool, summary: bool = True) -> None:
    """Run with progress and print the summary; ends the command with exit code 1 or 130 where it did not finish."""
    from variegate.errors import DecodeError
    from variegate.jobs.jobs import EngineError

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
    done = report.written + report.resumed
    if (summary and error is None) or done or report.is_interrupted:
        _print_summary(expansion, as_json)
    if error is not None:
        kept = f"; the {report.written:,} images written are kept" if report.written else ""
        hint = " (--on-error skip passes over such files)" if isinstance(error, DecodeError) else ""
        again = " (the same command goes on from there)" if kept and not hint else ""
        raise fail(f"{error}{kept}{hint}{again}", FAILED, as_json) from error
    if report.is_interrupted:
        rest = f"interrupted: {done:,} of {report.total:,} images are written and kept; the same command goes on"
        raise fail(rest, INTERRUPTED, as_json)


def _print_summary(expansion: Expansion, as_json: bool) -> None:
    from variegate.io.addresses import shown

    report, where = expansion.report, shown(str(expansion.destination))
    if as_json:
        emit_json(
            "interrupted" if report.is_interrupted else "done",
            **{name: getattr(report, name) for name in ("files", "written", "resumed", "repaired", "remade")},
            skipped=len(report.skipped),
            seconds=round(report.seconds, 3),
            images_per_second=round(report.rate, 1),
            destination=where,
        )
        return
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
    print_facts([*facts, ("where", where)])

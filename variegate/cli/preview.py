"""Commands to try first: ``variegate demo`` and ``variegate preview SRC``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from variegate.cli.augment import run_expansion
from variegate.cli.console import emit_json, note, print_key_values, print_line, stderr, warnings_as_notes
from variegate.cli.options import CommandOptions, ImportOptions, SourceOptions
from variegate.io.amounts import pluralize
from variegate.options import Opt
from variegate.options.shared import Copies, Epoch, PolicyOptions, ReadOptions, Seed, TargetOptions, Threads


@dataclass(frozen=True, kw_only=True)
class DemoOptions(CommandOptions):
    folder: Annotated[Path, Opt("Output folder.", "Arguments", metavar="[DIR]")] = Path("demo")
    copies: Copies = 8
    seed: Seed = 0
    threads: Threads = None


def demo(options: DemoOptions) -> None:
    """Augment a few photos and draw a contact sheet of the result.

    The photos are part of the package; nothing is downloaded.

    Examples:
        variegate demo
        variegate demo photos-and-copies --copies 4
    """
    from variegate.apps.demo import run_demo

    as_json = options.as_json
    if not as_json:
        print_line("preparing photos ...", stderr())

    run = partial(run_expansion, as_json=as_json)
    done = run_demo(options.folder, options.copies, options.seed, options.threads, run)
    if as_json:
        emit_json(
            "done",
            photos=str(done.photos),
            augmented=str(done.augmented),
            sheet=str(done.sheet),
            written=done.report.written,
            seconds=round(done.report.seconds, 3),
            images_per_second=round(done.report.rate, 1),
        )
        return
    facts = {
        "photos": f"{done.photos}  ({done.num_photos} in class folders)",
        "augmented": f"{done.augmented}  ({pluralize(done.report.written, 'image')}, and manifest.parquet)",
        "contact sheet": str(done.sheet),
        "images/s": f"{done.report.rate:,.0f}  (read, decoded, augmented, encoded and written)",
    }
    print_key_values(facts.items())
    next_commands = [
        "",
        "Next:",
        f"  variegate preview {done.photos} --sweep Rotate --out rotate.png",
        f"  variegate preview {done.photos} --policy imagenet --out imagenet.png",
        "  variegate augment YOUR_FOLDER OUT --policy randaugment --copies 4 --size 224",
    ]
    for line in next_commands:
        print_line(line)


@dataclass(frozen=True, kw_only=True)
class PreviewOptions(TargetOptions, PolicyOptions, ReadOptions, SourceOptions, ImportOptions):
    sweep: Annotated[
        str | None, Opt("Show one operation, such as Rotate, over its range.", "Augmentation", metavar="OPERATION")
    ] = None
    seed: Seed = 0
    epoch: Epoch = 0
    images: Annotated[int, Opt("Number of images, spread evenly over SRC.", "Sheet", ge=1, le=64)] = 4
    samples: Annotated[
        int | None,
        Opt(
            "Copies of each image, or steps of the sweep. By default 6, or fewer if each copy has several views.",
            "Sheet",
            ge=1,
            le=32,
        ),
    ] = None
    cell: Annotated[
        int | None,
        Opt("Side of each picture in pixels. By default what fits on a screen, 112 to 224.", "Sheet", ge=32, le=1024),
    ] = None
    out: Annotated[Path, Opt("Output file: .png, .jpg or .webp.", "Output", metavar="FILE")] = Path("preview.png")


def preview(options: PreviewOptions) -> None:
    """Draw a contact sheet of your images and augmented copies.

    Next to each original are copies 0, 1, ... exactly as `variegate augment` writes them with the same policy, size,
    seed and epoch. The operations are written below each copy. With --sweep, one operation is shown over its range.
    Boxes, masks and key points (--annotations) are drawn where they are after augmentation, with a key of colors.
    Images of uint16 and float32 (--depth) are shown from black to white, or as their caption says.

    Examples:
        variegate preview photos --policy randaugment --size 224
        variegate preview photos --sweep Rotate --out rotate.png
    """
    with warnings_as_notes(stderr()):
        from variegate.apps.preview import Annotations, check_out, policy_sheet, sweep_sheet
        from variegate.jobs.arguments import policy_notes, reading_of, targets_of

        check_out(options.out)
        common: Any = {"images": options.images, "seed": options.seed, "cell": options.cell}
        common["annotations"] = Annotations(options.annotations, targets_of(options))
        common |= reading_of(options)
        if options.sweep is not None:
            sheet = sweep_sheet(options.place, options.sweep, steps=options.samples or 6, **common)
        else:
            described: Any = {"size": options.size, "samples": options.samples, "epoch": options.epoch}
            sheet = policy_sheet(options.place, options.policy, **described, **common)
            note(*policy_notes(options.policy, options.size, options.epoch))
        note(*sheet.source_notes)
        note(*(f"skipped {error}" for error in sheet.bad))
        sheet.save(options.out)
    if options.as_json:
        bad = [error.path for error in sheet.bad]
        emit_json("done", sheet=str(options.out), images=sheet.num_images, passed_over=bad)
        return
    size = f"{sheet.picture.width} x {sheet.picture.height} pixels"
    print_line(f"{options.out}: {size}, {pluralize(sheet.num_images, 'image')}")

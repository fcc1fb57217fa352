"""Commands to try first: ``variegate demo`` and ``variegate preview SRC``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from variegate.cli.augment import run_expansion, targets_of
from variegate.cli.console import emit_json, note, print_facts, say, stderr, warnings_as_notes
from variegate.cli.options import MOST_EPOCH, CommandOptions, PolicyOptions, SourceOptions
from variegate.options import option, same_option
from variegate.options.datasets import TargetOptions


@dataclass(frozen=True, kw_only=True)
class DemoOptions(CommandOptions):
    folder: Path = option(Path("demo"), "Output folder.", "Arguments", metavar="[DIR]")
    copies: int = option(8, "Augmented copies of each photo.", "Augmentation", low=1)
    seed: int = option(0, "Seed for the augmentation.", "Augmentation", low=0)
    threads: int | None = option(None, "Number of threads. By default, all cores.", "Running", low=1)


def demo(options: DemoOptions) -> None:
    """Augment a few photos and draw a contact sheet of the result.

    The photos are part of the package; nothing is downloaded.
    """
    from variegate.apps.demo import run_demo

    as_json = options.as_json
    if not as_json:
        say("preparing photos ...", stderr())

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
        "augmented": f"{done.augmented}  ({done.report.written:,} images, and manifest.parquet)",
        "contact sheet": str(done.sheet),
        "images/s": f"{done.report.rate:,.0f}  (read, decoded, augmented, encoded and written)",
    }
    print_facts(facts.items())
    next_commands = [
        "",
        "Next:",
        f"  variegate preview {done.photos} --sweep Rotate --out rotate.png",
        f"  variegate preview {done.photos} --policy imagenet --out imagenet.png",
        "  variegate augment YOUR_FOLDER OUT --policy randaugment --copies 4 --size 224",
    ]
    for line in next_commands:
        say(line)


@dataclass(frozen=True, kw_only=True)
class PreviewOptions(TargetOptions, SourceOptions, PolicyOptions):
    src: str = same_option(SourceOptions, "src", help="Images: a folder (with classes or none), shards, or one file.")
    sweep: str | None = option(
        None, "Show one operation, such as Rotate, over its range.", "Augmentation", metavar="OPERATION"
    )
    seed: int = option(0, "Seed, as for augment.", "Augmentation", low=0)
    epoch: int = option(0, "Epoch, as for augment.", "Augmentation", low=0, high=MOST_EPOCH)
    images: int = option(4, "Number of images, spread evenly over SRC.", "Sheet", low=1, high=64)
    samples: int | None = option(
        None,
        "Copies of each image, or steps of the sweep. By default 6, or fewer if each copy has several views.",
        "Sheet",
        low=1,
        high=32,
    )
    cell: int | None = option(
        None,
        "Side of each picture in pixels. By default what fits on a screen, 112 to 224.",
        "Sheet",
        low=32,
        high=1024,
    )
    out: Path = option(Path("preview.png"), "Output file: .png, .jpg or .webp.", "Output", metavar="FILE")


def preview(options: PreviewOptions) -> None:
    """Draw a contact sheet that shows what a policy does to your images.

    Next to each original are copies 0, 1, ... exactly as `variegate augment` writes them with the same policy, size,
    seed and epoch. The operations are written below each copy. With --sweep, one operation is shown over its range.
    Boxes, masks and key points (--annotations) are drawn where they are after augmentation, with a key of colors.
    """
    with warnings_as_notes(stderr()):
        from variegate.apps.preview import Annotations, check_out, policy_sheet, sweep_sheet
        from variegate.jobs.arguments import policy_notes

        check_out(options.out)
        common: Any = {"images": options.images, "seed": options.seed, "cell": options.cell}
        common["annotations"] = Annotations(options.annotations, targets_of(options))
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
    number = "1 image" if sheet.num_images == 1 else f"{sheet.num_images} images"
    say(f"{options.out}: {sheet.picture.width} x {sheet.picture.height} pixels, {number}")

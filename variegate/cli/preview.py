"""``variegate preview SRC``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variegate.cli.console import emit_json, note, say, stderr, warnings_as_notes
from variegate.cli.options import MOST_EPOCH, PolicyOptions
from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class PreviewOptions(PolicyOptions):
    src: str = option(
        ..., "A folder of images, with classes or without, or a single image.", "Arguments", metavar="SRC"
    )
    sweep: str | None = option(
        None, "Show one operation over its range, such as Rotate, not a policy.", "Augmentation", metavar="OPERATION"
    )
    seed: int = option(0, "The seed, as given to augment.", "Augmentation", low=0)
    epoch: int = option(0, "The epoch, as given to augment.", "Augmentation", low=0, high=MOST_EPOCH)
    images: int | None = option(
        None,
        "How many images to show, spread evenly over SRC. Without it, 4 if a screen has room.",
        "Sheet",
        low=1,
        high=64,
    )
    samples: int = option(
        6, "How many copies of each to show, or how many steps of the sweep.", "Sheet", low=1, high=32
    )
    cell: int | None = option(
        None,
        "Side of each picture in pixels. Without it, up to 224, as far as the sheet fits on a screen.",
        "Sheet",
        low=32,
        high=1024,
    )
    out: Path = option(
        Path("preview.png"), "The file to write: .png, .jpg or .webp, by its name.", "Output", metavar="FILE"
    )


def preview(options: PreviewOptions) -> None:
    """Draw a contact sheet that shows what a policy does to your images, with every operation written underneath.

    Beside each original stand copies 0, 1, ... exactly as `variegate augment` with the same policy, size, seed and
    epoch writes them. With --sweep, one operation is shown from one end of its range to the other.
    """
    with warnings_as_notes(stderr()):
        from variegate.engine.arguments import idle_note
        from variegate.preview import check_out, policy_sheet, sweep_sheet

        check_out(options.out)
        common: Any = {"images": options.images, "seed": options.seed, "cell": options.cell}
        if options.sweep is not None:
            sheet = sweep_sheet(options.src, options.sweep, steps=options.samples, **common)
        else:
            described: Any = {"size": options.size, "samples": options.samples, "epoch": options.epoch}
            sheet = policy_sheet(options.src, options.policy, **described, **common)
            note(idle_note(options.policy, options.epoch))
        note(*(f"passed over {error}" for error in sheet.bad))
        sheet.save(options.out)
    if options.as_json:
        emit_json(
            "done", sheet=str(options.out), images=sheet.num_images, passed_over=[error.path for error in sheet.bad]
        )
        return
    number = "1 image" if sheet.num_images == 1 else f"{sheet.num_images} images"
    say(f"{options.out}: {sheet.picture.width} x {sheet.picture.height} pixels, {number}")
    if options.cell is None:
        note(*sheet.notes())

"""``variegate preview SRC``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from variegate.cli.augment import MOST_EPOCH, POLICY_HELP, SIZE_HELP
from variegate.cli.console import emit_json, one_line_errors, say, stderr, stdout, warnings_as_notes


def preview(
    src: Annotated[
        str, typer.Argument(metavar="SRC", help="A folder of images, with classes or without, or a single image.")
    ],
    policy: Annotated[str, typer.Option(metavar="POLICY", help=POLICY_HELP)] = "randaugment",
    sweep: Annotated[
        str | None,
        typer.Option(metavar="OPERATION", help="Show one operation over its range, such as Rotate, not a policy."),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="How many images to show, spread evenly over SRC. Without it, 4 if a screen has room.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, max=32, help="How many copies of each to show, or how many steps of the sweep.")
    ] = 6,
    size: Annotated[str, typer.Option(metavar="SIDE|HxW|none", help=SIZE_HELP)] = "none",
    seed: Annotated[int, typer.Option(min=0, help="The seed, as given to augment.")] = 0,
    epoch: Annotated[int, typer.Option(min=0, max=MOST_EPOCH, help="The epoch, as given to augment.")] = 0,
    cell: Annotated[
        int | None,
        typer.Option(
            min=32,
            max=1024,
            help="Side of each picture in pixels. Without it, up to 224, as far as the sheet fits on a screen.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to write: .png, .jpg or .webp, by its name.")
    ] = Path("preview.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON, for other programs to read.")] = False,
) -> None:
    """Draw a contact sheet that shows what a policy does to your images, with every operation written underneath.

    Beside each original stand copies 0, 1, ... exactly as `variegate augment` with the same policy, size, seed and
    epoch writes them. With --sweep, one operation is shown from one end of its range to the other.
    """
    with one_line_errors(as_json), warnings_as_notes(stderr()):
        from variegate.engine.arguments import idle_note
        from variegate.preview import check_out, policy_sheet, sweep_sheet

        check_out(out)
        if sweep is not None:
            sheet = sweep_sheet(src, sweep, images=images, steps=samples, seed=seed, cell=cell)
        else:
            sheet = policy_sheet(
                src, policy, size=size, images=images, samples=samples, seed=seed, epoch=epoch, cell=cell
            )
            if (note := idle_note(policy, epoch)) is not None:
                say(f"note: {note}", stderr())
        for error in sheet.bad:
            say(f"note: passed over {error}", stderr())
        sheet.save(out)
    if as_json:
        emit_json("done", sheet=str(out), images=sheet.num_images, passed_over=[error.path for error in sheet.bad])
        return
    number = "1 image" if sheet.num_images == 1 else f"{sheet.num_images} images"
    say(f"{out}: {sheet.picture.width} x {sheet.picture.height} pixels, {number}", stdout())
    if cell is None:
        for note in sheet.notes():
            say(f"note: {note}", stderr())

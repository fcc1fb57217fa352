"""``variegate preview SRC``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from variegate.cli.augment import POLICY_HELP
from variegate.cli.console import emit_json, one_line_errors, say, stderr, stdout, warnings_as_notes


def preview(
    src: Annotated[str, typer.Argument(metavar="SRC", help="Folder of images or class folders, or a single image.")],
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "randaugment",
    sweep: Annotated[
        str | None,
        typer.Option(metavar="OPERATION", help="Instead of a policy: one operation over its range, such as Rotate."),
    ] = None,
    images: Annotated[int, typer.Option(min=1, max=64, help="Rows: images, spread evenly over SRC.")] = 4,
    samples: Annotated[int, typer.Option(min=1, max=32, help="Columns: copies, or steps of the sweep.")] = 6,
    size: Annotated[
        str, typer.Option(metavar="SIDE|HxW|none", help="As augment's: RandomResizedCrop before the policy.")
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="The seed that augment would be given.")] = 0,
    epoch: Annotated[int, typer.Option(min=0, help="The epoch that augment would be given.")] = 0,
    out: Annotated[Path, typer.Option(help="The PNG file to write.")] = Path("preview.png"),
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON.")] = False,
) -> None:
    """Draw a contact sheet: originals, then what a policy makes of them, with every operation written underneath.

    Columns are copies 0, 1, ... exactly as `variegate augment` with the same policy, size, seed and epoch writes them.
    """
    with one_line_errors(as_json), warnings_as_notes(stderr()):
        from variegate.engine.recipe import idle_note
        from variegate.preview import policy_sheet, sweep_sheet

        if sweep is not None:
            sheet = sweep_sheet(src, sweep, images=images, steps=samples, seed=seed)
        else:
            sheet = policy_sheet(src, policy, size=size, images=images, samples=samples, seed=seed, epoch=epoch)
            if (note := idle_note(policy, epoch)) is not None:
                say(f"note: {note}", stderr())
        for error in sheet.bad:
            say(f"note: passed over {error}", stderr())
        sheet.save(out)
    if as_json:
        emit_json("done", sheet=str(out), images=sheet.num_images, passed_over=[error.path for error in sheet.bad])
    else:
        say(f"{out}: {sheet.picture.width} x {sheet.picture.height} pixels, {sheet.num_images} images", stdout())

"""What ``search`` and ``evaluate`` share: options, and images on their way into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from variegate.cli.console import say, stderr

if TYPE_CHECKING:
    from variegate.training.images import LabelledImages

Src = Annotated[
    str,
    typer.Argument(metavar="SRC", help="Class folders, .tar shards or .parquet files with labels; URLs."),
]
Model = Annotated[
    str, typer.Option(help="wrn-DEPTH-WIDTH, timm:NAME, or package.module:factory (called with num_classes).")
]
Size = Annotated[
    str, typer.Option(metavar="SIDE|HxW|none", help="Resize all images to this; none where they have one size already.")
]
Padding = Annotated[
    int | None, typer.Option(min=0, help="Border of the random crop, in pixels. Default: an eighth of the side.")
]
Flip = Annotated[bool, typer.Option("--flip/--no-flip", help="Mirror half of the images.")]
Cutout = Annotated[
    int | None, typer.Option(min=0, help="Side of the square that is cut out, in pixels. Default: half of the side.")
]
BatchSize = Annotated[int, typer.Option(min=1, help="Images in a step.")]
Lr = Annotated[float, typer.Option(help="Learning rate at the beginning.")]
LrSchedule = Annotated[str, typer.Option(metavar="cosine|step", help="How it falls.")]
WeightDecay = Annotated[float, typer.Option(min=0.0, help="L2, of all parameters.")]
Momentum = Annotated[float, typer.Option(min=0.0, help="Nesterov's, of SGD.")]
Clip = Annotated[float, typer.Option(min=0.0, help="Norm that gradients are cut to; 0: not at all.")]
Precision = Annotated[
    str, typer.Option(metavar="float32|bfloat16", help="Of the products in a training; weights stay float32.")
]
Devices = Annotated[
    str, typer.Option(help="auto (all GPUs, else every core of the CPU), or a list: cuda:0,cuda:1 or cpu:0,cpu:1.")
]
Capture = Annotated[bool, typer.Option("--capture/--no-capture", help="Record training steps as CUDA graphs, on GPUs.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides the split, weights, orders and policies.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a line of JSON for every event.")]


def listed(devices: str) -> str | list[str]:
    """``--devices`` as functions take it."""
    return devices if devices == "auto" else [name.strip() for name in devices.split(",")]


def load(src: str, size: str, device: str) -> tuple[LabelledImages, str, str]:
    """-> images, where they are from, and their fingerprint. Notes what is left out. Raises SourceError."""
    from variegate.data.sources.base import SourceError
    from variegate.data.sources.paths import shown
    from variegate.engine.recipe import absolute_place, open_by_index, parse_size
    from variegate.training.images import load_images

    source = open_by_index(src)
    for note in source.notes():
        say(f"note: {note}", stderr())
    # On a terminal; it may take minutes.
    with stderr().status(f"decoding {len(source):,} images"):
        images = load_images(source, parse_size(size), device)
    if len(images) < len(source):
        say(f"note: {len(source) - len(images):,} of {len(source):,} images cannot be read and are left out", stderr())
    if images.num_classes < 2:
        raise SourceError(
            f"{shown(src)}: has one class ({images.classes[0]}); accepted: two or more, in folders of their own"
        )
    return images, absolute_place(src), source.fingerprint


def border(given: int | None, images: LabelledImages) -> int:
    return min(images.pixels.shape[1:3]) // 8 if given is None else given


def hole(given: int | None, images: LabelledImages) -> int:
    return min(images.pixels.shape[1:3]) // 2 if given is None else given

"""What ``search`` and ``evaluate`` share: options, and images on their way into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from variegate.cli.console import say, stderr
from variegate.data.sources.file_kinds import LABELLED_IMAGES_HELP

if TYPE_CHECKING:
    from variegate.training.images import LabelledImages

# The groups of options in --help.
IMAGES, TRAINING, AROUND, MACHINE, OUTPUT = "Images", "Training", "Around the policy", "Machine", "Output"

Src = Annotated[str, typer.Argument(metavar="SRC", help=LABELLED_IMAGES_HELP)]
Size = Annotated[
    str,
    typer.Option(
        metavar="SIDE|HxW|auto|none",
        help="All images are resized to this. auto keeps images that have one size of up to 64 pixels, and resizes "
        "others to 32x32; none never resizes.",
        rich_help_panel=IMAGES,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="The network: wrn-DEPTH-WIDTH, timm:NAME, or package.module:factory, which is called with num_classes. By "
        "default wrn-28-2, and wrn-16-1 for fewer than 2,000 images.",
        rich_help_panel=TRAINING,
        show_default=False,
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Images per training step. By default 128, and fewer where an epoch would have fewer than eight steps.",
        rich_help_panel=TRAINING,
        show_default=False,
    ),
]
Lr = Annotated[float, typer.Option(help="The learning rate at the beginning.", rich_help_panel=TRAINING)]
LrSchedule = Annotated[
    str, typer.Option(metavar="cosine|step", help="How the learning rate falls.", rich_help_panel=TRAINING)
]
WeightDecay = Annotated[
    float, typer.Option(min=0.0, help="The L2 penalty, of all parameters.", rich_help_panel=TRAINING)
]
Momentum = Annotated[
    float, typer.Option(min=0.0, help="Nesterov's momentum, of the gradient descent.", rich_help_panel=TRAINING)
]
Clip = Annotated[
    float,
    typer.Option(
        min=0.0, help="The norm that gradients are cut to; 0 leaves them as they are.", rich_help_panel=TRAINING
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        metavar="float32|bfloat16",
        help="The numbers that products and convolutions are computed in; weights stay float32.",
        rich_help_panel=TRAINING,
    ),
]
Padding = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="The border of the random crop, in pixels. By default an eighth of the side.",
        rich_help_panel=AROUND,
        show_default=False,
    ),
]
Flip = Annotated[
    bool, typer.Option("--flip/--no-flip", help="Half of the images are mirrored.", rich_help_panel=AROUND)
]
Cutout = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="The side of the square that is cut out, in pixels. By default half of the image's.",
        rich_help_panel=AROUND,
        show_default=False,
    ),
]
Devices = Annotated[
    str,
    typer.Option(
        help="auto takes all GPUs, and without one every core of the CPU; or a list such as cuda:0,cuda:1 or "
        "cpu:0,cpu:1.",
        rich_help_panel=MACHINE,
    ),
]
Capture = Annotated[
    bool,
    typer.Option(
        "--capture/--no-capture", help="On GPUs, training steps are recorded as CUDA graphs.", rich_help_panel=MACHINE
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="It decides splits, weights, orders and policies.", rich_help_panel=TRAINING),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="A line of JSON is printed for every event.", rich_help_panel=OUTPUT)
]


def listed(devices: str) -> str | list[str]:
    """``--devices`` as functions take it."""
    return devices if devices == "auto" else [name.strip() for name in devices.split(",")]


def load(src: str, size: str | tuple[int, int], device: str) -> tuple[LabelledImages, str, str]:
    """-> images, where they are from, and their fingerprint. Notes what is left out. Raises SourceError.

    ``size``: as typed, or the sides of other images that these belong to.
    """
    from variegate.data.sources.base import SourceError
    from variegate.outside.addresses import shown
    from variegate.engine.arguments import absolute_place, open_by_index, parse_size
    from variegate.training.images import fitting_size, load_images

    sides = None if size == "auto" else parse_size(size) if isinstance(size, str) else size
    source = open_by_index(src)
    for note in source.notes():
        say(f"note: {note}", stderr())
    # On a terminal; it may take minutes.
    with stderr().status(f"decoding {len(source):,} images"):
        images = load_images(source, fitting_size(source) if size == "auto" else sides, device)
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

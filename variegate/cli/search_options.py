"""The options of ``variegate search`` that are its own, and what they are checked for."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from variegate.cli.training import IMAGES, MACHINE, OUTPUT
from variegate.outside.addresses import shown_host

SEARCH = "Search"


class Backend(str, Enum):
    """As typed."""

    local = "local"
    ray = "ray"


Out = Annotated[
    Path,
    typer.Option(help="The folder for the schedule, the log, the pictures and the checkpoint.", rich_help_panel=OUTPUT),
]
Train = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="So many images train the members. By default half of them, at most 4,000.",
        rich_help_panel=IMAGES,
        show_default=False,
    ),
]
Validation = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="So many other images score the members. By default all others, at most 46,000.",
        rich_help_panel=IMAGES,
        show_default=False,
    ),
]
Population = Annotated[int, typer.Option(min=2, help="How many members to train.", rich_help_panel=SEARCH)]
Epochs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="How many epochs each member trains. By default 200, and fewer where more than 50,000 images train.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
Interval = Annotated[
    int,
    typer.Option(min=1, help="Epochs between two rounds of copying the best members.", rich_help_panel=SEARCH),
]
Operations = Annotated[
    str | None,
    typer.Option(
        help="Only these are searched: names with commas, such as Rotate,Invert. By default the paper's 15.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
Space = Annotated[
    str | None,
    typer.Option(
        help="What magnitudes mean. By default pba for 32x32 images, and pba-relative for others.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
BackendOption = Annotated[
    Backend,
    typer.Option(
        help="local uses this machine's devices; ray makes the members trials of Ray Tune on a cluster.",
        rich_help_panel=MACHINE,
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|auto",
        help="With ray: the cluster's address. By default this machine's cluster, or a new one.",
        rich_help_panel=MACHINE,
        show_default=False,
    ),
]
GpusPerMember = Annotated[
    float | None,
    typer.Option(
        help="With ray: a part of a GPU, 1, or 0 for CPUs. By default 1 where the cluster has GPUs.",
        rich_help_panel=MACHINE,
        show_default=False,
    ),
]


def known_operations(operations: str | None, space: str | None) -> tuple[str, ...]:
    """As typed, but for upper and lower case, where names of the space differ in more than that."""
    from variegate.policies.spaces import SPACES
    from variegate.policies.spaces import space as space_of

    if operations is None:
        return ()
    known = {name.lower(): name for name in space_of(space if space in SPACES else "pba").rules}
    return tuple(known.get(name.strip().lower(), name.strip()) for name in operations.split(","))


def check_backend(backend: Backend, address: str | None, gpus_per_member: float | None, devices: str) -> None:
    """Raises ValueError for options of the other back end."""
    if backend is Backend.ray:
        if devices != "auto":
            raise ValueError(
                f"--devices: got {devices!r}, with --backend ray; accepted: --gpus-per-member, as the cluster decides "
                "which devices members are on"
            )
        return
    for name, value in (("--address", address), ("--gpus-per-member", gpus_per_member)):
        if value is not None:
            got = shown_host(value) if isinstance(value, str) else value
            raise ValueError(f"{name}: got {got!r}, with --backend local; accepted: with --backend ray")

"""The kinds of files that a source may lie in: the one table that opening, messages and help texts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from variegate.io.location import Location

IMAGE_EXTENSIONS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"),
)


@dataclass(frozen=True)
class FileKind:
    """Files that hold many samples each.

    ``suffixes``: of their names, in small letters; messages name the first. ``noun``: what such files are called after
    it. ``layout``: what is expected in them, where that has a name. ``opener``: module and function, loaded when first
    needed; it gets the list of locations, sorted, and those arguments of ``open_source`` that ``options`` names, and
    returns a Source or StreamSource. ``takes_annotations``: objects or masks may stand in such files.
    """

    suffixes: tuple[str, ...]
    noun: str
    layout: str
    opener: str
    options: tuple[str, ...]
    takes_annotations: bool = False

    @property
    def suffix(self) -> str:
        return self.suffixes[0]

    @property
    def plural(self) -> str:
        return f"{self.suffix} {self.noun}"

    def open(self, files: list[Location], options: dict[str, Any]) -> Any:
        module, _, function = self.opener.partition(":")
        return getattr(import_module(f"variegate.formats.{module}"), function)(
            files, **{name: options[name] for name in self.options}
        )


FILE_KINDS = (
    FileKind(
        suffixes=(".tar", ".tar.gz", ".tgz"),
        noun="shards",
        layout="WebDataset",
        opener="tar.read:open_tar",
        options=("stream", "on_error", "classes", "cache_dir"),
        takes_annotations=True,
    ),
    FileKind(
        suffixes=(".parquet",),
        noun="files",
        layout="",
        opener="parquet.read:open_parquet",
        options=("classes", "cache_dir", "image_root"),
        takes_annotations=True,
    ),
    FileKind(
        suffixes=(".vgraw",),
        noun="shards",
        layout="raw pixels",
        opener="raw:open_raw",
        options=(),
    ),
)
KIND_NAMES = tuple(kind.plural for kind in FILE_KINDS)
# For the help of commands.
IMAGES_HELP = f"The images: a folder, with classes or without, {', '.join(KIND_NAMES)}, a pattern of such, or a URL."
LABELLED_IMAGES_HELP = f"Images with classes: class folders, {' or '.join(KIND_NAMES)} with labels; URLs too."
ACCEPTED = (
    "a folder of images or of class folders, "
    + ", ".join(kind.plural + f" ({kind.layout})" * bool(kind.layout) for kind in FILE_KINDS)
    + ", patterns (* and {000..012}) or lists of such files, addresses of them (s3://, https://, ...), an array "
    "[N, H, W, C] or a pair (images, labels), a data set with __getitem__ and __len__, or a Source"
)


def file_kind(location: Location) -> FileKind | None:
    """By the extension, whatever its case; of an address, without its query. None for images and all else."""
    for name in location.names:
        for kind in FILE_KINDS:
            if name.lower().endswith(kind.suffixes):
                return kind
        if is_image_name(name):
            return None
    return None


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_EXTENSIONS)


def kinds_with(option: str) -> str:
    """The files that an argument of ``open_source`` is for, in words."""
    return " and ".join(kind.plural for kind in FILE_KINDS if option in kind.options)

"""What ``search`` and ``evaluate`` share: options, and images on their way into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from variegate.cli.console import say, stderr
from variegate.cli.options import CommandOptions
from variegate.data.sources.file_kinds import LABELLED_IMAGES_HELP
from variegate.options import option

if TYPE_CHECKING:
    from variegate.training.images import LabelledImages


@dataclass(frozen=True, kw_only=True)
class ClassesOptions(CommandOptions):
    src: str = option(..., LABELLED_IMAGES_HELP, "Arguments", metavar="SRC")


def load(src: str, size: str | tuple[int, int], device: str) -> tuple[LabelledImages, str, str]:
    """-> images, where they are from, and their fingerprint. Notes what is left out. Raises SourceError.

    ``size``: as typed, or the sides of other images that these belong to.
    """
    from variegate.data.sources.base import SourceError
    from variegate.engine.arguments import absolute_place, open_by_index, parse_size
    from variegate.outside.addresses import shown
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

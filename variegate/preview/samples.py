"""What a policy does: rows of an image and its augmented copies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from variegate.augmenter import Augmenter
from variegate.data.decode import read_image
from variegate.data.sources.base import SourceError
from variegate.data.sources.folder import FolderSource, open_folder
from variegate.data.sources.paths import is_url, plain, shown
from variegate.errors import DecodeError
from variegate.preview.captions import captions
from variegate.preview.sheet import Cell
from variegate.program.describe import operations_of
from variegate.transforms import Transform

Image_HWC = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Chosen:
    """An image to show, with the id that ``augment`` would give it."""

    name: str
    sample_id: int
    img_HWC: Image_HWC


def choose_images(source: str | Path, count: int) -> tuple[list[Chosen], list[DecodeError]]:
    """``count`` images spread evenly over a folder, or the one image that ``source`` is -> (images, bad files).

    A file that does not decode is passed over for the next one. Raises SourceError or DecodeError where there is
    nothing to show.
    """
    if is_url(plain(source)):
        place = shown(plain(source))
        raise SourceError(f"{place}: is an address; accepted: a folder of images, or an image, of this machine")
    source = Path(plain(source))
    if source.is_file():
        return [Chosen(source.name, 0, read_image(source))], []
    folder = open_folder(source)
    chosen: list[Chosen] = []
    bad: dict[int, DecodeError] = {}
    for wanted in range(min(count, len(folder))):
        found = _first_readable(folder, wanted * len(folder) // count if count < len(folder) else wanted, chosen, bad)
        if found is not None:
            chosen.append(found)
    if not chosen:
        raise SourceError(f"{source}: none of its {len(folder):,} images can be read; {next(iter(bad.values()))}")
    return sorted(chosen, key=lambda c: c.sample_id), list(bad.values())


def sample_rows(images: list[Chosen], transform: Transform, samples: int, seed: int, epoch: int) -> list[list[Cell]]:
    """For every image: itself, then copies 0 .. ``samples`` - 1, as ``augment`` would write them."""
    augmenter = Augmenter(transform, seed=seed, layout="NHWC")
    rows = [[original(image)] for image in images]
    pictures = [image.img_HWC for image in images]
    ids = [image.sample_id for image in images]
    for copy in range(samples):
        program = augmenter.program(pictures, ids=ids, epoch=epoch, copy=copy)
        outputs = augmenter.run(program, pictures)
        for n, row in enumerate(rows):
            row.append(Cell(outputs[n].numpy(), f"copy {copy}", captions(operations_of(program, n))))
    return rows


def original(image: Chosen) -> Cell:
    """The first picture of a row."""
    height, width = image.img_HWC.shape[:2]
    return Cell(image.img_HWC, image.name, [f"original, {width} x {height}"], is_name=True)


def _first_readable(
    folder: FolderSource, start: int, chosen: list[Chosen], bad: dict[int, DecodeError]
) -> Chosen | None:
    taken = {image.sample_id for image in chosen}
    for step in range(len(folder)):
        index = (start + step) % len(folder)
        if index in taken or index in bad:
            continue
        try:
            return Chosen(folder.samples[index].path, index, read_image(folder.file(index)))
        except DecodeError as error:
            bad[index] = error
    return None

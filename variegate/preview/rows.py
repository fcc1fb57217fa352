"""Rows of a sheet: an image and its augmented copies, with the operations in the order in which they ran."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from variegate.augmenter import Augmenter
from variegate.data.decode import read_image
from variegate.data.sources.base import SourceError
from variegate.data.sources.exclusion import PlaceWithout, without
from variegate.data.sources.folder import open_folder
from variegate.data.sources.kept import KeptSource
from variegate.errors import DecodeError
from variegate.outside.location import Location
from variegate.preview.sheet import Cell, Image_HWC
from variegate.program import describe
from variegate.program.program import Grouping, Output, Program
from variegate.transforms import Transform


@dataclass(frozen=True)
class Chosen:
    """An image to show, with the id that ``augment`` would give it."""

    name: str
    sample_id: int
    img_HWC: Image_HWC


def choose_images(source: str | Path | PlaceWithout, count: int) -> tuple[list[Chosen], list[DecodeError]]:
    """``count`` images spread evenly over a folder, or the one image that ``source`` is -> (images, bad files).

    A file that does not decode is passed over for the next one. Raises SourceError or DecodeError where there is
    nothing to show.
    """
    location, given = Location.parse(source), source
    if location.is_url:
        raise SourceError(f"{location}: is an address; accepted: a folder of images, or an image, of this machine")
    source = Path(location.address())
    if source.is_file():
        if isinstance(given, PlaceWithout):
            raise SourceError(f"--exclude: got {given.exclude}, and {source} is one image; leave it out")
        return [Chosen(source.name, 0, read_image(source))], []
    folder = open_folder(source)
    kept = list(range(len(folder)))
    if isinstance(given, PlaceWithout) and isinstance(some := without(folder, given.exclude), KeptSource):
        kept = some.kept.tolist()
    chosen: list[Chosen] = []
    bad: dict[int, DecodeError] = {}
    for wanted in range(min(count, len(kept))):
        start = wanted * len(kept) // count if count < len(kept) else wanted
        taken = {image.sample_id for image in chosen} | bad.keys()
        for index in (*kept[start:], *kept[:start]):
            if index in taken:
                continue
            try:
                chosen.append(Chosen(folder.samples[index].path, index, read_image(folder.file(index))))
                break
            except DecodeError as error:
                bad[index] = error
    if not chosen:
        raise SourceError(f"{source}: none of its {len(kept):,} images can be read; {next(iter(bad.values()))}")
    return sorted(chosen, key=lambda c: c.sample_id), list(bad.values())


def sample_rows(images: list[Chosen], transform: Transform, samples: int, seed: int, epoch: int) -> list[list[Cell]]:
    """For every image: itself, then copies 0 .. ``samples`` - 1, as ``augment`` would write them; but that images are
    mixed among themselves, where the transform mixes samples."""
    augmenter = Augmenter(transform, seed=seed, layout="NHWC")
    rows = [[original(image)] for image in images]
    pictures = [image.img_HWC for image in images]
    ids = [image.sample_id for image in images]
    for copy in range(samples):
        program = augmenter.program(pictures, ids=ids, epoch=epoch, copy=copy, partners="batch")
        if program.grouping is not None:
            program = program.replace(output=Output(layout="NHWC"))  # views are whole recipes, which end in floats
        outputs = augmenter.run(program, pictures)
        for n, row in enumerate(rows):
            if program.grouping is not None:
                row += _views(program, program.grouping, outputs, n, copy)  # type: ignore[arg-type]
                continue
            row.append(Cell(outputs[n].numpy(), f"copy {copy}", captions(describe.operations_of(program, n))))
    return rows


def _views(program: Program, grouping: Grouping, groups: tuple[Any, ...], n: int, copy: int) -> list[Cell]:
    """Those of image ``n``, one after another."""
    cells: list[Cell] = []
    for g, (group, count) in enumerate(zip(groups, grouping.counts, strict=True)):
        for i, view in enumerate(group[n] if grouping.has_axis else [group[n]]):
            name = f"copy {copy}, group {g}" + (f", view {i}" if count > 1 else "")
            done = describe.operations_of(program, n * grouping.views + len(cells))
            cells.append(Cell(view.numpy(), name, captions(done)))
    return cells


def original(image: Chosen) -> Cell:
    """The first picture of a row."""
    height, width = image.img_HWC.shape[:2]
    return Cell(image.img_HWC, image.name, [f"original, {width} x {height}"], is_name=True)


def captions(operations: list[dict[str, Any]]) -> list[str]:
    """As ``program.describe``, but operations that all chains of a blend begin with are written once."""
    if len(operations) != 1 or operations[0]["op"] != "Blend":
        return describe.captions(operations)
    chains = operations[0]["chains"]
    steps = zip(*(chain["operations"] for chain in chains), strict=False)
    common = len(list(takewhile(lambda each: all(one == each[0] for one in each), steps)))
    lines = describe.captions(chains[0]["operations"][:common]) if common else []
    lines.append(f"blend of {len(chains)}:")
    for chain in chains:
        own = chain["operations"][common:]
        lines.append(f"{chain['weight']:.0%} {', '.join(describe.captions(own)) if own else 'no operation'}")
    return lines

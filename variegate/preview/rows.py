"""Rows of a sheet: an image and its augmented copies, with the operations in the order in which they ran."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from variegate.augmenter import Augmenter
from variegate.preview.belonging import Naming, original_overlay, overlays_after
from variegate.preview.choosing import Choice, Chosen
from variegate.preview.overlay import Overlay
from variegate.preview.sheet import Cell
from variegate.program import describe
from variegate.program.program import Grouping, Output, Program
from variegate.transforms import Transform


def sample_rows(choice: Choice, transform: Transform, samples: int, seed: int, epoch: int) -> list[list[Cell]]:
    """For every image: itself, then copies 0 .. ``samples`` - 1, as ``augment`` would write them; but that images are
    mixed among themselves, where the transform mixes samples."""
    augmenter = Augmenter(transform, seed=seed, layout="NHWC")
    images = choice.images
    rows = [[original(image, choice.naming)] for image in images]
    pictures = [image.img_HWC for image in images]
    ids = [image.sample_id for image in images]
    boxes = None if transform._is_alone else known_boxes(images)
    for copy in range(samples):
        program = augmenter.program(pictures, ids, epoch, copy, partners="batch", boxes=boxes)
        overlays = moved_overlays(program, images, choice)
        if program.grouping is not None:
            program = program.replace(output=Output(layout="NHWC"))  # views are whole recipes, which end in floats
        outputs = augmenter.run(program, pictures)
        for n, row in enumerate(rows):
            if program.grouping is not None:
                row += _views(program, program.grouping, outputs, n, copy)  # type: ignore[arg-type]
                continue
            lines = [*captions(describe.operations_of(program, n)), *counted(overlays[n], row[0].overlay)]
            row.append(Cell(outputs[n].numpy(), f"copy {copy}", lines, overlay=overlays[n]))
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


def original(image: Chosen, naming: Naming) -> Cell:
    """The first picture of a row."""
    height, width = image.img_HWC.shape[:2]
    overlay = None if image.targets is None else original_overlay(image.targets, naming)
    lines = [f"original, {width} x {height}", *counted(overlay)]
    return Cell(image.img_HWC, image.name, lines, is_name=True, overlay=overlay)


def known_boxes(images: Sequence[Chosen]) -> list[Any] | None:
    """For transforms that choose by them."""
    found = [image.targets.get("boxes") for image in images if image.targets is not None]
    return None if not found or found[0] is None else found


def moved_overlays(program: Program, images: Sequence[Chosen], choice: Choice) -> Sequence[Overlay | None]:
    """What belongs to the outputs of a sampled program of these images."""
    targets = [image.targets for image in images if image.targets is not None]
    return overlays_after(program, targets, choice.naming, choice.targets) if targets else [None] * len(images)


def counted(overlay: Overlay | None, before: Overlay | None = None) -> list[str]:
    """A line on how many boxes there are, where they are not as many as ``before``."""
    if overlay is None or overlay.boxes is None:
        return []
    count = len(overlay.boxes)
    if before is not None and before.boxes is not None and len(before.boxes) == count:
        return []
    return ["1 box" if count == 1 else f"{count or 'no'} boxes"]


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

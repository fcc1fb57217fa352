"""Rows of a sheet: an image and its augmented copies, with the operations in the order in which they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np

from variegate.apps.preview.choosing import Choice, Chosen, Naming, original_overlay, overlays_after, read_chosen
from variegate.apps.preview.overlay import Overlay
from variegate.apps.preview.sheet import Cell
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.per_image import num_partners
from variegate.errors import DecodeError
from variegate.loader.shuffle import partners_of
from variegate.program import describe
from variegate.program.ops import Op
from variegate.program.program import Grouping, Program
from variegate.transforms import Transform


def sample_rows(choice: Choice, transform: Transform, samples: int, seed: int, epoch: int) -> list[list[Cell]]:
    """For every image: itself, then copies 0 .. ``samples`` - 1, as ``augment`` would write them, mixed with the same
    images of the source; where the transform ends in numbers, the bytes before it."""
    augmenter = Augmenter(transform, seed=seed, layout="NHWC")
    rows = [[original(image, choice.naming)] for image in choice.images]
    partners = _partners(choice, num_partners(transform), seed, epoch)
    images = [*choice.images, *partners]
    pictures = [image.img_HWC for image in images]
    given: dict[str, Any] = {"ids": [image.sample_id for image in images], "epoch": epoch}
    if all(isinstance(image.label, (int, np.integer)) for image in images):
        given["conditions"] = {"label": [image.label for image in images]}
    if partners:
        given["partners"] = np.arange(len(rows), len(images)).reshape(len(rows), -1)
    if not transform._is_alone:
        given["boxes"] = known_boxes(images)
    names = {image.sample_id: image.name for image in images}
    for copy in range(samples):
        program = _in_bytes(augmenter.program(pictures, copy=copy, **given))
        overlays = moved_overlays(program, images, choice)
        outputs = augmenter.run(program, pictures)
        for n, row in enumerate(rows):
            if program.grouping is not None:
                row += _views(program, program.grouping, outputs, n, copy)  # type: ignore[arg-type]
                continue
            done = captions(describe.operations_of(program, n, in_words=True), names)
            lines = [*done, *counted(overlays[n], row[0].overlay)]
            row.append(Cell(outputs[n].numpy(), f"copy {copy}", lines, overlay=overlays[n]))
    return rows


def _partners(choice: Choice, number: int, seed: int, epoch: int) -> list[Chosen]:
    """``number`` for each image, as ``augment`` mixes it; the image itself in the place of one that cannot be read."""
    if choice.source is None:
        return [image for image in choice.images for _ in range(number)]
    if number == 0:
        return []
    own = np.array([image.index for image in choice.images], np.int64)
    found: list[Chosen] = []
    for image, indices in zip(choice.images, partners_of(own, len(choice.source), seed, epoch, number), strict=True):
        for index in indices.tolist():
            try:
                found.append(read_chosen(choice.source, index))
            except DecodeError:
                found.append(image)
    return found


def _in_bytes(program: Program) -> Program:
    """The same up to its finished tensors: uint8, and what is erased of normalised ones is erased before."""
    output = program.output
    args, fill = program.args, program.fill
    if output.is_float:
        scale, bias = output.scale_and_bias(3)
        is_late = (program.opcode == Op.ERASE) & (args[..., 7] != 0)
        args, fill = args.copy(), fill.copy()
        fill[is_late] = np.clip(np.rint((args[is_late, 4:7] - bias) / scale), 0, 255)
        args[is_late, 7] = 0.0
    return program.replace(args=args, fill=fill, output=replace(output, mean=None, std=None, steps=()))


def _views(program: Program, grouping: Grouping, groups: tuple[Any, ...], n: int, copy: int) -> list[Cell]:
    """Those of image ``n``, one after another."""
    cells: list[Cell] = []
    for g, (group, count) in enumerate(zip(groups, grouping.counts, strict=True)):
        for i, view in enumerate(group[n] if grouping.has_axis else [group[n]]):
            name = f"copy {copy}, group {g}" + (f", view {i}" if count > 1 else "")
            done = describe.operations_of(program, n * grouping.views + len(cells), in_words=True)
            cells.append(Cell(view.numpy(), name, captions(done), group=(copy, g)))
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
    """Overlays of the outputs of a sampled program of these images."""
    targets = [image.targets for image in images if image.targets is not None]
    if not targets:
        return [None] * len(images)
    return overlays_after(program, [image.img_HWC for image in images], targets, choice.naming, choice.targets)


def counted(overlay: Overlay | None, before: Overlay | None = None) -> list[str]:
    """A line on how many boxes there are, where they are not as many as ``before``."""
    if overlay is None or overlay.boxes is None:
        return []
    count = len(overlay.boxes)
    if before is not None and before.boxes is not None and len(before.boxes) == count:
        return []
    return ["1 box" if count == 1 else f"{count or 'no'} boxes"]


def captions(operations: list[dict[str, Any]], names: Mapping[int, str] | None = None) -> list[str]:
    """As ``program.describe``, but what all chains of a blend begin with is written once. ``names``: of images that are
    mixed, by their ids."""
    if len(operations) != 1 or "chains" not in operations[0]:
        return describe.captions(operations)
    chains = operations[0]["chains"]
    steps = zip(*(chain["operations"] for chain in chains), strict=False)
    common = len(list(takewhile(lambda each: all(one == each[0] for one in each), steps)))
    lines = describe.captions(chains[0]["operations"][:common]) if common else []
    lines.append(f"{operations[0]['op'].replace('Blend', 'blend')} of {len(chains)}:")
    for chain in chains:
        own = describe.captions(chain["operations"][common:]) if chain["operations"][common:] else ["no operation"]
        whose = f"{(names or {}).get(chain['id'], chain['id'])}: " if "id" in chain else ""
        lines.append(f"{chain['weight']:.0%} {whose}{', '.join(own)}")
    return lines

"""Rows of a sheet: an image and its augmented copies, or one operation at rising strength."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol

import numpy as np

from variegate.apps.preview.choosing import Choice, Chosen, Naming, moved_overlays, overlay_of, read_chosen
from variegate.apps.preview.overlay import TargetOverlay
from variegate.apps.preview.screen import for_screen
from variegate.apps.preview.sheet import Cell
from variegate.arrays import AnyArray
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import num_partners
from variegate.checks import did_you_mean, refused
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.loader.shuffle import partners_of
from variegate.ops.base import Transform, TypicalRange
from variegate.policies.augmentation import Augmentation
from variegate.policies.spaces import space
from variegate.policies.table import EMISSIONS
from variegate.program import describe
from variegate.program.ops import SPECS, Op
from variegate.program.program import Grouping, Program
from variegate.targets.classes import objects_of


class RowWatch(Protocol):
    """Called while a sheet is drawn, copy by copy; its errors end the drawing."""

    def begin(self, program: Program) -> None:
        """Called before the pixels of a copy of all images."""

    def finish(self, program: Program) -> None:
        """Called after the pixels of a copy of all images."""


def sample_rows(
    choice: Choice,
    transform: Transform,
    copies: Iterable[int],
    seed: int,
    epoch: int,
    watch: RowWatch | None = None,
) -> list[list[Cell]]:
    """For every image: the image, then its ``copies``, as ``augment`` writes them, mixed with the same images of the
    source; if the transform returns numbers, the pixels before normalization."""
    augmenter = Augmenter(transform, seed=seed, layout="NHWC")
    rows = [[original(image, choice.naming)] for image in choice.images]
    partners = _partners(choice, num_partners(transform), seed, epoch)
    images = [*choice.images, *partners]
    pictures = [image.img_HWC for image in images]
    given: dict[str, Any] = {"ids": [image.sample_id for image in images], "epoch": epoch}
    if all(isinstance(image.label, (int, np.integer)) for image in images):
        given["conditions"] = {"label": [image.label for image in images]}
    if wanted := transform._object_labels:
        labels = [(image.targets or {}).get("labels") for image in images]
        objects = objects_of(wanted, labels, choice.naming.classes)
        given["conditions"] = {**given.get("conditions", {}), "objects": objects}
    if partners:
        given["partners"] = np.arange(len(rows), len(images)).reshape(len(rows), -1)
    if not transform._must_be_root:  # it chooses by them
        boxes = [image.targets.get("boxes") for image in images if image.targets is not None]
        given["boxes"] = boxes if boxes and boxes[0] is not None else None
    names = {image.sample_id: image.name for image in images}
    for copy in copies:
        program = in_bytes(augmenter.program(pictures, copy=copy, **given))
        if watch is not None:
            watch.begin(program)
        overlays = moved_overlays(program, images, choice)
        outputs = augmenter.run(program, pictures)
        if watch is not None:
            watch.finish(program)
        for n, row in enumerate(rows):
            if program.grouping is not None:
                row += _views(program, program.grouping, outputs, n, copy)  # type: ignore[arg-type]
                continue
            done = captions(describe.operations_of(program, n, in_words=True), names)
            lines = [*done, *counted(overlays[n], row[0].overlay)]
            row.append(_cell(outputs[n].numpy(), f"copy {copy}", lines, overlay=overlays[n]))
    return rows


def _partners(choice: Choice, number: int, seed: int, epoch: int) -> list[Chosen]:
    """``number`` partners per image, as in ``augment``; the image replaces unreadable partners."""
    if choice.source is None:
        return [image for image in choice.images for _ in range(number)]
    if number == 0:
        return []
    own = np.array([image.index for image in choice.images], np.int64)
    found: list[Chosen] = []
    for image, indices in zip(choice.images, partners_of(own, len(choice.source), seed, epoch, number), strict=True):
        for index in indices.tolist():
            try:
                found.append(choice.read(index) if choice.read else read_chosen(choice.source, index))
            except DecodeError:
                found.append(image)
    return found


def in_bytes(program: Program) -> Program:
    """The same program with pixels as output; erasing after normalization is moved before it."""
    output = program.output
    args = program.args
    fill = program.fill
    if output.is_float:
        scale, bias = output.scale_and_bias(3)
        is_late = (program.opcode == Op.ERASE) & (args[..., 7] != 0)
        args = args.copy()
        fill = fill.copy()
        fill[is_late] = np.clip(np.rint((args[is_late, 4:7] - bias) / scale), 0, 255)
        args[is_late, 7] = 0.0
    return program.replace(args=args, fill=fill, output=replace(output, mean=None, std=None, steps=()))


def _views(program: Program, grouping: Grouping, groups: tuple[Any, ...], n: int, copy: int) -> list[Cell]:
    """The views of image ``n``, one after another."""
    cells: list[Cell] = []
    for g, (group, count) in enumerate(zip(groups, grouping.counts, strict=True)):
        for i, view in enumerate(group[n] if grouping.has_axis else [group[n]]):
            name = f"copy {copy}, group {g}" + (f", view {i}" if count > 1 else "")
            done = describe.operations_of(program, n * grouping.views + len(cells), in_words=True)
            cells.append(_cell(view.numpy(), name, captions(done), group=(copy, g)))
    return cells


def original(image: Chosen, naming: Naming) -> Cell:
    """The first picture of a row."""
    height, width = image.img_HWC.shape[:2]
    overlay = None if image.targets is None else overlay_of(image.targets, naming)
    lines = [f"original, {width} x {height}", *counted(overlay)]
    return _cell(image.img_HWC, image.name, lines, is_name=True, overlay=overlay)


def _cell(pixels: AnyArray, title: str, lines: list[str], **more: Any) -> Cell:
    img_HWC, notes = for_screen(pixels)
    return Cell(img_HWC, title, lines + notes, **more)


def counted(overlay: TargetOverlay | None, before: TargetOverlay | None = None) -> list[str]:
    """A line with the number of boxes, if it differs from ``before``."""
    if overlay is None or overlay.boxes is None:
        return []
    count = len(overlay.boxes)
    if before is not None and before.boxes is not None and len(before.boxes) == count:
        return []
    return [pluralize(count, "box") if count else "no boxes"]


def captions(operations: list[dict[str, Any]], names: Mapping[int, str] | None = None) -> list[str]:
    """Captions as in ``program.describe``; the common beginning of a blend's chains is written once. ``names``: of
    images that are mixed, by their ids."""
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


_SIZES = {0: "height", 1: "width"}


@dataclass(frozen=True)
class StrengthSweep:
    """An operation and where its range comes from. ``magnitudes`` are its arguments, or fractions of a side.

    ``identity``: the argument that changes nothing, shown as the original, or None.
    """

    name: str
    magnitudes: list[float]
    unit: str | None = None  # "height", "width" or "shorter" where magnitudes are fractions of the image's size
    source: str = "RandAugment's range"
    identity: float | None = None

    def argument(self, index: int, height: int, width: int) -> float:
        """The operation's argument at a step, for an image of that size."""
        sides = {"height": height, "width": width, "shorter": min(height, width)}
        magnitude = self.magnitudes[index]
        if self.unit is None:
            return magnitude
        # 150 / 331 of 331 pixels are 150, as in RandAugment, which has float32.
        return float(np.trunc(np.float32(magnitude * sides[self.unit])))


def _typical_ranges() -> dict[str, TypicalRange]:
    return {name: cls._typical_range for name, cls in Transform.registry.items() if cls._typical_range is not None}


def sweepable() -> list[str]:
    """Names that ``sweep_of`` accepts."""
    return sorted({*EMISSIONS, *_typical_ranges()} - {"Identity"})


def sweep_of(name: str, steps: int) -> StrengthSweep:
    """``steps`` magnitudes of an operation, from one end of its range to the other.

    The original stands for the one that changes nothing, so an even number of steps leaves that out of the middle of a
    range; an odd one has it there, for the picture to be seen in its place. Operations without a magnitude have one
    step. Raises ValueError for a name that is not in the catalog.
    """
    found = {known.casefold(): known for known in sweepable()}.get(name.casefold())
    if found is None:
        raise refused("sweep", name, ", ".join(sweepable()) + did_you_mean(name, sweepable()))
    if (useful := _typical_ranges().get(found)) is not None:
        low, high, identity, _, spread, unit = useful
        magnitudes = _spread(lambda count: spread(low, high, count).tolist(), steps, identity)
        return StrengthSweep(found, magnitudes, unit, "a useful range", identity)
    rule = space("torchvision-randaugment").rules.get(found)
    if rule is None or rule.low == rule.high:
        return StrengthSweep(found, [0.0], None, "no range: it has no argument")
    neutral = SPECS[EMISSIONS[found].opcode].neutral
    identity = float(math.ceil(neutral[0]) if isinstance(neutral, tuple) else rule.argument(0.0))

    def levels(count: int) -> list[float]:
        if rule.signed:
            signed = np.linspace(-rule.full, rule.full, count)
            return [float(rule.argument(abs(level), level < 0)) for level in signed.tolist()]
        return [float(rule.argument(level)) for level in np.linspace(0, rule.full, count).tolist()]

    return StrengthSweep(found, _spread(levels, steps, identity), _SIZES.get(int(rule.size)), identity=identity)


def _spread(spread: Callable[[int], list[float]], steps: int, identity: float | None) -> list[float]:
    """``steps`` magnitudes, without the identity if they are as far apart without it."""
    # Bits of Posterize come in whole numbers, so that some may be the same.
    more = dict.fromkeys(spread(steps + 1))
    others = [value for value in more if identity is None or abs(value - identity) > 1e-9]
    return others if len(others) < len(more) else list(dict.fromkeys(spread(steps)))


def sweep_rows(choice: Choice, sweep: StrengthSweep, seed: int) -> list[list[Cell]]:
    """For every image: the image, labeled with the argument that changes nothing, then the operation at each step."""
    typical = _typical_ranges().get(sweep.name)
    rows: list[list[Cell]] = []
    for image in choice.images:
        first = original(image, choice.naming)
        if sweep.identity is not None:
            first.lines.append(f"identity: {sweep.name} {sweep.identity:g}")
        row = [first]
        for index in range(len(sweep.magnitudes)):
            value = sweep.argument(index, *image.img_HWC.shape[:2])
            if typical is not None and typical.build is not None:
                transform = typical.build(value)
            else:
                magnitudes = (value, value) if len(sweep.magnitudes) > 1 else None
                transform = Augmentation(sweep.name, sweep.name, magnitudes)
            augmenter = Augmenter(transform, seed=seed, layout="NHWC")
            program = augmenter.program([image.img_HWC], ids=[image.sample_id])
            output = augmenter.run(program, [image.img_HWC])[0].numpy()
            lines = captions(describe.operations_of(program, 0, in_words=True))
            numbers = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", lines[0])]
            is_said = len(sweep.magnitudes) == 1 or any(abs(one - value) <= 0.02 * abs(value) for one in numbers)
            if not (lines[0].startswith(sweep.name) and is_said):
                lines.insert(0, f"{sweep.name} {value:g}")
            overlay = moved_overlays(program, [image], choice)[0]
            lines += counted(overlay, first.overlay)
            row.append(_cell(output, lines[0], lines[1:], overlay=overlay))
        rows.append(row)
    return rows

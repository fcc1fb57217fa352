"""Rows of a sheet: an image and its augmented copies, with the operations in the order in which they ran, or an image
and what one operation makes of it at rising strength.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from variegate.augmenter import Augmenter
from variegate.data.decode import read_image
from variegate.data.sources.base import SourceError
from variegate.data.sources.folder import open_folder
from variegate.errors import DecodeError
from variegate.outside.location import Location
from variegate.policies.augmentation import Augmentation
from variegate.policies.emissions import EMISSIONS
from variegate.policies.spaces import space
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


def choose_images(source: str | Path, count: int) -> tuple[list[Chosen], list[DecodeError]]:
    """``count`` images spread evenly over a folder, or the one image that ``source`` is -> (images, bad files).

    A file that does not decode is passed over for the next one. Raises SourceError or DecodeError where there is
    nothing to show.
    """
    location = Location.parse(source)
    if location.is_url:
        raise SourceError(f"{location}: is an address; accepted: a folder of images, or an image, of this machine")
    source = Path(location.address())
    if source.is_file():
        return [Chosen(source.name, 0, read_image(source))], []
    folder = open_folder(source)
    chosen: list[Chosen] = []
    bad: dict[int, DecodeError] = {}
    for wanted in range(min(count, len(folder))):
        start = wanted * len(folder) // count if count < len(folder) else wanted
        taken = {image.sample_id for image in chosen} | bad.keys()
        for index in (*range(start, len(folder)), *range(start)):
            if index in taken:
                continue
            try:
                chosen.append(Chosen(folder.samples[index].path, index, read_image(folder.file(index))))
                break
            except DecodeError as error:
                bad[index] = error
    if not chosen:
        raise SourceError(f"{source}: none of its {len(folder):,} images can be read; {next(iter(bad.values()))}")
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


# Operations that no published policy has, or has without a range: the part of their range that is of use, and the
# argument with which they leave every image as it is; of the others that is level 0 of their range.
_RANGES: dict[str, tuple[float, float, float | None]] = {
    "Hue": (-0.5, 0.5, 0.0),
    "Gamma": (0.4, 2.5, 1.0),
    "GaussianBlur": (0.5, 5.0, None),
    "Cutout": (0.0, 0.6, 0.0),  # of the shorter side
    "SolarizeAdd": (0, 110, 0.0),
    "JPEG": (95, 5, None),
    # Transforms with one number, which policies take by their names.
    "CLAHE": (1.0, 20.0, None),
    "ColorTemperature": (2000.0, 20000.0, 6500.0),
    "Downscale": (0.1, 1.0, 1.0),
    "Edges": (0.0, 4.0, None),
    "GaussianNoise": (0.0, 0.4, 0.0),
    "OcclusionDiffusion": (0.0, 0.6, 0.0),
    "PixelDropout": (0.0, 0.5, 0.0),
    "SaltAndPepper": (0.0, 0.5, 0.0),
    "ShotNoise": (0.0, 60.0, 0.0),
}
# As much darker as lighter, as much warmer as colder.
_GEOMETRIC = {"ColorTemperature", "Gamma"}
_SIZES = {0: "height", 1: "width"}


@dataclass(frozen=True)
class StrengthSweep:
    """An operation and where its range comes from. ``magnitudes`` are its arguments, or fractions of a side.

    ``identity``: the argument that changes nothing, which the original stands for; None where there is none.
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


def sweepable() -> list[str]:
    """Names that ``sweep_of`` accepts."""
    return sorted({*EMISSIONS, *_RANGES} - {"Identity"})


def sweep_of(name: str, steps: int) -> StrengthSweep:
    """``steps`` magnitudes of an operation, from one end of its range to the other.

    The original stands for the one that changes nothing, so an even number of steps leaves that out of the middle of a
    range; an odd one has it there, for the picture to be seen in its place. Operations without a magnitude have one
    step. Raises ValueError for a name that is not in the catalogue.
    """
    names = {known.casefold(): known for known in sweepable()}
    found = names.get(name.casefold())
    if found is None:
        hint = "".join(f" (did you mean {names[near]}?)" for near in get_close_matches(name.casefold(), names, n=1))
        raise ValueError(f"sweep: got {name!r}{hint}; accepted: {', '.join(sweepable())}")
    rule = space("torchvision-randaugment").rules.get(found)
    identity: float | None
    if found in _RANGES:
        low, high, identity = _RANGES[found]
        spread = np.geomspace if found in _GEOMETRIC else np.linspace
        magnitudes = _around(lambda count: spread(low, high, count).tolist(), steps, identity)
        return StrengthSweep(found, magnitudes, "shorter" if found == "Cutout" else None, "a useful range", identity)
    if rule is None or rule.low == rule.high:
        return StrengthSweep(found, [0.0], None, "no range: it has no argument")
    identity = 256.0 if found == "Solarize" else float(rule.parameters(0.0))

    def levels(count: int) -> list[float]:
        if rule.signed:
            signed = np.linspace(-rule.full, rule.full, count)
            return [float(rule.parameters(abs(level), level < 0)) for level in signed]
        return [float(rule.parameters(level)) for level in np.linspace(0, rule.full, count)]

    return StrengthSweep(found, _around(levels, steps, identity), _SIZES.get(int(rule.size)), identity=identity)


def _around(spread: Callable[[int], list[float]], steps: int, identity: float | None) -> list[float]:
    """``steps`` magnitudes, without the identity if they could be as far apart without it."""
    more = spread(steps + 1)
    # Bits of Posterize come in whole numbers, so that some may be the same.
    others = list(dict.fromkeys(value for value in more if identity is None or abs(value - identity) > 1e-9))
    return others if len(others) < len(dict.fromkeys(more)) else list(dict.fromkeys(spread(steps)))


def sweep_rows(images: list[Chosen], sweep: StrengthSweep, seed: int) -> list[list[Cell]]:
    """For every image: itself, labelled with the argument that changes nothing, then the operation at each step."""
    has_magnitude = len(sweep.magnitudes) > 1
    rows: list[list[Cell]] = []
    for image in images:
        height, width = image.img_HWC.shape[:2]
        first = original(image)
        if sweep.identity is not None:
            first.lines.append(f"identity: {sweep.name} {sweep.identity:g}")
        row = [first]
        for index in range(len(sweep.magnitudes)):
            value = sweep.argument(index, height, width)
            magnitude = (value, value) if has_magnitude else None
            augmenter = Augmenter(Augmentation(sweep.name, sweep.name, magnitude), seed=seed, layout="NHWC")
            program = augmenter.program([image.img_HWC], ids=[image.sample_id])
            output = augmenter.run(program, [image.img_HWC])[0].numpy()
            lines = captions(describe.operations_of(program, 0))
            if not lines[0].startswith(sweep.name):
                lines.insert(0, f"{sweep.name} {value:g}")
            row.append(Cell(output, lines[0], lines[1:]))
        rows.append(row)
    return rows

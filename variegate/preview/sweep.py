"""What one operation does over its range: a row of an image at rising strength."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.augmenter import Augmenter
from variegate.policies.augmentation import Augmentation
from variegate.policies.catalogue import EMISSIONS
from variegate.policies.spaces import space
from variegate.preview.samples import Chosen
from variegate.preview.sheet import Cell
from variegate.program.describe import captions, operations_of

# Operations that no published policy has, or has without a range, over the part of their range that is of use.
_RANGES: dict[str, tuple[float, float]] = {
    "Hue": (-0.5, 0.5),
    "Gamma": (0.4, 2.5),
    "GaussianBlur": (0.5, 5.0),
    "Cutout": (0.1, 0.6),  # of the shorter side
    "SolarizeAdd": (0, 110),
}
_OF_SHORTER_SIDE = frozenset({"Cutout"})
_SIZES = {0: "height", 1: "width"}


@dataclass(frozen=True)
class Sweep:
    """An operation and where its range comes from. ``magnitudes`` are its arguments, or fractions of a side."""

    name: str
    magnitudes: list[float]
    unit: str | None = None  # "height", "width" or "shorter" where magnitudes are fractions of the image's size
    source: str = "RandAugment's range"

    def argument(self, index: int, height: int, width: int) -> float:
        """The operation's argument at a step, for an image of that size."""
        sides = {"height": height, "width": width, "shorter": min(height, width)}
        magnitude = self.magnitudes[index]
        return magnitude if self.unit is None else float(np.trunc(magnitude * sides[self.unit]))


def sweepable() -> list[str]:
    """Names that ``sweep_of`` accepts."""
    return sorted(name for name in EMISSIONS if name != "Identity")


def sweep_of(name: str, steps: int) -> Sweep:
    """``steps`` magnitudes of an operation, from one end of its range to the other; signed ranges run through zero.

    Operations without a magnitude have one step. Raises ValueError for a name that is not in the catalogue.
    """
    found = {known.casefold(): known for known in sweepable()}.get(name.casefold())
    if found is None:
        raise ValueError(f"sweep: got {name!r}; accepted: {', '.join(sweepable())}")
    rules = space("torchvision-randaugment").rules
    rule = rules.get(found)
    if found in _RANGES or rule is None or rule.low == rule.high:
        low, high = _RANGES.get(found, (0.0, 0.0))
        magnitudes = np.linspace(low, high, steps).tolist() if low != high else [0.0]
        return Sweep(found, magnitudes, "shorter" if found in _OF_SHORTER_SIDE else None, "a useful range")
    if rule.signed:
        levels = np.linspace(-rule.full, rule.full, steps)
        magnitudes = [float(rule.parameters(abs(level), level < 0)) for level in levels]
    else:
        magnitudes = [float(rule.parameters(level)) for level in np.linspace(0, rule.full, steps)]
    magnitudes = list(dict.fromkeys(magnitudes))  # bits of Posterize come in whole numbers
    return Sweep(found, magnitudes, _SIZES.get(int(rule.size)))


def sweep_rows(images: list[Chosen], sweep: Sweep, seed: int) -> list[list[Cell]]:
    """For every image: itself, then the operation at each step."""
    has_magnitude = len(sweep.magnitudes) > 1
    rows: list[list[Cell]] = []
    for image in images:
        height, width = image.img_HWC.shape[:2]
        row = [Cell(image.img_HWC, image.name, [f"original, {width} x {height}"])]
        for index in range(len(sweep.magnitudes)):
            value = sweep.argument(index, height, width)
            magnitude = (value, value) if has_magnitude else None
            augmenter = Augmenter(Augmentation(sweep.name, sweep.name, magnitude), seed=seed, layout="NHWC")
            program = augmenter.program([image.img_HWC], ids=[image.sample_id])
            output = augmenter.run(program, [image.img_HWC])[0].numpy()
            lines = captions(operations_of(program, 0))
            if not lines[0].startswith(sweep.name):
                lines.insert(0, f"{sweep.name} {value:g}")
            row.append(Cell(output, lines[0], lines[1:]))
        rows.append(row)
    return rows

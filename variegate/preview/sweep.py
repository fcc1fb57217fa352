"""What one operation does over its range: a row of an image at rising strength."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from variegate.augmenter import Augmenter
from variegate.policies.augmentation import Augmentation
from variegate.policies.spaces import space
from variegate.policies.table import EMISSIONS
from variegate.preview.samples import Chosen, captions, original
from variegate.preview.sheet import Cell
from variegate.program.describe import operations_of

# Operations that no published policy has, or has without a range, over the part of their range that is of use.
_RANGES: dict[str, tuple[float, float]] = {
    "Hue": (-0.5, 0.5),
    "Gamma": (0.4, 2.5),
    "GaussianBlur": (0.5, 5.0),
    "Cutout": (0.0, 0.6),  # of the shorter side
    "SolarizeAdd": (0, 110),
}
# The argument with which they leave every image as it is; of the others it is level 0 of their range.
_IDENTITIES: dict[str, float | None] = {
    "Hue": 0.0,
    "Gamma": 1.0,
    "GaussianBlur": None,
    "Cutout": 0.0,
    "SolarizeAdd": 0.0,
    "Solarize": 256.0,
}
_OF_SHORTER_SIDE = frozenset({"Cutout"})
_SIZES = {0: "height", 1: "width"}


@dataclass(frozen=True)
class Sweep:
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
        return magnitude if self.unit is None else float(np.trunc(magnitude * sides[self.unit]))


def sweepable() -> list[str]:
    """Names that ``sweep_of`` accepts."""
    return sorted(name for name in EMISSIONS if name != "Identity")


def sweep_of(name: str, steps: int) -> Sweep:
    """``steps`` magnitudes of an operation, from one end of its range to the other.

    The original stands for the one that changes nothing, so an even number of steps leaves that out of the middle of a
    range; an odd one has it there, for the picture to be seen in its place. Operations without a magnitude have one
    step. Raises ValueError for a name that is not in the catalogue.
    """
    found = {known.casefold(): known for known in sweepable()}.get(name.casefold())
    if found is None:
        near = difflib.get_close_matches(name.casefold(), [known.casefold() for known in sweepable()], n=1)
        hint = "".join(f" (did you mean {known}?)" for known in sweepable() if known.casefold() in near)
        raise ValueError(f"sweep: got {name!r}{hint}; accepted: {', '.join(sweepable())}")
    rules = space("torchvision-randaugment").rules
    rule = rules.get(found)
    if found in _RANGES or rule is None or rule.low == rule.high:
        if found not in _RANGES:
            return Sweep(found, [0.0], None, "no range: it has no argument")
        low, high = _RANGES[found]
        identity = _IDENTITIES[found]
        spread = np.geomspace if found == "Gamma" else np.linspace  # as much darker as lighter
        magnitudes = _around(lambda count: spread(low, high, count).tolist(), steps, identity)
        return Sweep(found, magnitudes, "shorter" if found in _OF_SHORTER_SIDE else None, "a useful range", identity)
    identity = _IDENTITIES.get(found, float(rule.parameters(0.0)))

    def levels(count: int) -> list[float]:
        if rule.signed:
            signed = np.linspace(-rule.full, rule.full, count)
            return [float(rule.parameters(abs(level), level < 0)) for level in signed]
        return [float(rule.parameters(level)) for level in np.linspace(0, rule.full, count)]

    return Sweep(found, _around(levels, steps, identity), _SIZES.get(int(rule.size)), identity=identity)


def _around(spread: Callable[[int], list[float]], steps: int, identity: float | None) -> list[float]:
    """``steps`` magnitudes, without the identity if they could be as far apart without it."""
    more = spread(steps + 1)
    # Bits of Posterize come in whole numbers, so that some may be the same.
    others = list(dict.fromkeys(value for value in more if identity is None or abs(value - identity) > 1e-9))
    return others if len(others) < len(dict.fromkeys(more)) else list(dict.fromkeys(spread(steps)))


def sweep_rows(images: list[Chosen], sweep: Sweep, seed: int) -> list[list[Cell]]:
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
            lines = captions(operations_of(program, 0))
            if not lines[0].startswith(sweep.name):
                lines.insert(0, f"{sweep.name} {value:g}")
            row.append(Cell(output, lines[0], lines[1:]))
        rows.append(row)
    return rows

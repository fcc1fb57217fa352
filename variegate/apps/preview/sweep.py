"""A sweep: an image, and what one operation makes of it at rising strength."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from variegate.apps.preview.choosing import Choice
from variegate.apps.preview.rows import captions, counted, moved_overlays, original
from variegate.apps.preview.sheet import Cell
from variegate.augmenter.augmenter import Augmenter
from variegate.checks import meant, refused
from variegate.policies.augmentation import Augmentation
from variegate.policies.spaces import space
from variegate.policies.table import EMISSIONS
from variegate.program import describe
from variegate.transforms import (
    ElasticTransform,
    Emboss,
    GridDistortion,
    MedianBlur,
    MotionBlur,
    OpticalDistortion,
    OpticalFlowWarp,
    RandomPerspective,
    ThinPlateSpline,
    Transform,
    UnsharpMask,
)

# Operations that no published policy has, or has without a range: the part of their range that is of use, and the
# argument with which they leave every image as it is; of the others that is level 0 of their range.
_RANGES: dict[str, tuple[float, float, float | None]] = {
    "Hue": (-0.5, 0.5, None),  # even 0 goes to 8-bit hues and back
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
# Transforms that policies do not drive by one number: a useful range, what changes nothing, and the transform.
_MADE: dict[str, tuple[float, float, float | None, Callable[[float], Transform]]] = {
    "ElasticTransform": (0.0, 300.0, 0.0, lambda alpha: ElasticTransform(alpha)),
    "Emboss": (0.0, 1.0, 0.0, lambda alpha: Emboss(alpha, 0.7)),
    "GridDistortion": (0.0, 0.9, 0.0, lambda limit: GridDistortion(distort_limit=limit)),
    "MedianBlur": (3, 7, None, lambda size: MedianBlur(int(size))),
    "MotionBlur": (1, 31, 1.0, lambda length: MotionBlur(int(length))),
    "OpticalDistortion": (-0.6, 0.6, 0.0, lambda limit: OpticalDistortion((limit, limit))),
    "OpticalFlowWarp": (0.0, 12.0, 0.0, lambda pixels: OpticalFlowWarp(magnitude=pixels)),
    "RandomPerspective": (0.0, 0.9, 0.0, lambda scale: RandomPerspective(scale, 1.0)),
    "ThinPlateSpline": (0.0, 1.0, 0.0, lambda scale: ThinPlateSpline(scale)),
    "UnsharpMask": (0.0, 1.0, 0.0, lambda alpha: UnsharpMask(7, 0.0, alpha, threshold=0)),
}
# As much darker as lighter, as much warmer as colder.
_GEOMETRIC = {"ColorTemperature", "Gamma"}
# Sides of windows.
_ODD = {"MedianBlur", "MotionBlur"}
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
    return sorted({*EMISSIONS, *_RANGES, *_MADE} - {"Identity"})


def sweep_of(name: str, steps: int) -> StrengthSweep:
    """``steps`` magnitudes of an operation, from one end of its range to the other.

    The original stands for the one that changes nothing, so an even number of steps leaves that out of the middle of a
    range; an odd one has it there, for the picture to be seen in its place. Operations without a magnitude have one
    step. Raises ValueError for a name that is not in the catalogue.
    """
    names = {known.casefold(): known for known in sweepable()}
    found = names.get(name.casefold())
    if found is None:
        raise refused("sweep", name, ", ".join(sweepable()) + meant(name, sweepable()))
    rule = space("torchvision-randaugment").rules.get(found)
    identity: float | None
    if found in _RANGES or found in _MADE:
        low, high, identity = _RANGES[found] if found in _RANGES else _MADE[found][:3]
        spread = np.geomspace if found in _GEOMETRIC else np.linspace

        def spread_out(count: int) -> list[float]:
            values = spread(low, high, count)
            return (2.0 * np.floor(values / 2) + 1.0 if found in _ODD else values).tolist()

        magnitudes = _around(spread_out, steps, identity)
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


def sweep_rows(choice: Choice, sweep: StrengthSweep, seed: int) -> list[list[Cell]]:
    """For every image: itself, labelled with the argument that changes nothing, then the operation at each step."""
    has_magnitude = len(sweep.magnitudes) > 1
    rows: list[list[Cell]] = []
    for image in choice.images:
        height, width = image.img_HWC.shape[:2]
        first = original(image, choice.naming)
        if sweep.identity is not None:
            first.lines.append(f"identity: {sweep.name} {sweep.identity:g}")
        row = [first]
        for index in range(len(sweep.magnitudes)):
            value = sweep.argument(index, height, width)
            augmenter = Augmenter(_transform_at(sweep.name, value, has_magnitude), seed=seed, layout="NHWC")
            program = augmenter.program([image.img_HWC], ids=[image.sample_id])
            output = augmenter.run(program, [image.img_HWC])[0].numpy()
            lines = captions(describe.operations_of(program, 0, in_words=True))
            if not lines[0].startswith(sweep.name):
                lines.insert(0, f"{sweep.name} {value:g}")
            overlay = moved_overlays(program, [image], choice)[0]
            lines += counted(overlay, first.overlay)
            row.append(Cell(output, lines[0], lines[1:], overlay=overlay))
        rows.append(row)
    return rows


def _transform_at(name: str, value: float, has_magnitude: bool) -> Transform:
    if name in _MADE:
        return _MADE[name][3](value)
    return Augmentation(name, name, (value, value) if has_magnitude else None)

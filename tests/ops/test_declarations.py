"""Classes that emit existing instructions run on every executor, in policies, pipelines, sweeps and targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.children import run_python

# One class each, of what exists: levels mixed by a matrix, a map, weights of a filter.
DECLARATION = '''
from dataclasses import dataclass
from typing import Annotated
import numpy as np
from variegate.ops.base import TypicalRange
from variegate.ops.filters import emit_filters
from variegate.ops.arguments import AnyMagnitude, Number
from variegate.ops.magnitude import INTERPOLATION_FLAGS, MagnitudeOp, Resampled
from variegate.ops.schema import MagnitudeRange
from variegate.program.ops import Op


@dataclass(frozen=True)
class Warmth(MagnitudeOp):
    """More red and less blue."""

    share: Annotated[Number, MagnitudeRange(0.0, 1.0)]
    _typical_range = TypicalRange(0.0, 0.5, 0.0)

    def emit_magnitude(self, sampling, rows, values, slot):
        for row, share in zip(rows, values):
            matrix = np.array([[1 + share, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1 - share, 0]], np.float32)
            sampling.emit(np.array([row]), Op.COLOR_MATRIX, sampling.add_matrix(matrix), share, name="Warmth")


@dataclass(frozen=True)
class Slide(MagnitudeOp, Resampled):
    """Move right by whole pixels, and down by as many."""

    pixels: AnyMagnitude
    interpolation: str = "nearest"
    fill: object = (0, 0, 0)
    _typical_range = TypicalRange(0.0, 3.0, 0.0)

    def emit_at(self, images, value, slot):
        self._add_map(images, Op.AFFINE, 1.0, 0.0, -value, 0.0, 1.0, -value)


@dataclass(frozen=True)
class Slip(MagnitudeOp, function="slip"):
    """Move right and down by a share of the height."""

    share: Annotated[Number, MagnitudeRange(0.0, 1.0)]

    def emit_at(self, images, value, slot):
        images.add(Op.AFFINE, 1.0, 0.0, -value * images.height, 0.0, 1.0, -value * images.height)


@dataclass(frozen=True)
class Left(MagnitudeOp):
    """So much of the pixel to the left of each."""

    share: Annotated[Number, MagnitudeRange(0.0, 1.0)]
    _typical_range = TypicalRange(0.0, 1.0, 0.0)

    def emit_magnitude(self, sampling, rows, values, slot):
        for row, share in zip(rows, values):
            weights = np.array([[[share, 1 - share, 0.0]]])
            emit_filters(sampling, np.array([row]), weights, np.array([share]), "Left")
'''
USES = """
import sys
import numpy as np
import variegate as vg
from tests.oracle.device import install
from variegate import transforms as T
from variegate.apps.preview.rows import sweep_of
from variegate.policies.custom_space import CustomSpace
from variegate.transforms.functional.declared import function_of
install()
sys.path.insert(0, sys.argv[1])
import declared

image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
slid = np.zeros_like(image)
slid[3:, 3:] = image[:-3, :-3]
warm = np.clip(image * [1.5, 1.0, 0.5] + 0.5, 0, 255).astype(np.uint8)
left = np.concatenate([image[:, :1], image[:, :-1]], axis=1)
for name, number, wanted in (("Warmth", 0.5, warm), ("Slide", 3, slid), ("Left", 1.0, left)):
    transform = getattr(declared, name)(number)
    assert T.from_dict(transform.to_dict()) == transform
    policy = T.RandAugment(1, 30, operations=[T.Augmentation("it", name, (0, number))])


    @vg.pipeline
    def plain(image):
        return transform(image)

    for device in ("oracle", "cpu"):
        for each in (transform, policy, plain):
            for out in vg.Augmenter(each, device=device, layout="NHWC")([image, image]):
                assert (np.asarray(out) == wanted).all(), (name, device, each)
    sweep = sweep_of(name, 3)
    assert (sweep.magnitudes[-1], sweep.identity) == (getattr(declared, name)._typical_range.high, 0.0), sweep
# Arguments that follow from the image, in its function too; without a typical range, its bounds stand for one.
slip = function_of(declared.Slip)
assert (slip(image, 0.15) == slid).all()
assert (slip(image, 0.15, device="oracle") == slid).all()
assert CustomSpace(operations=("Slip",)).operations[0].magnitude == (0.0, 1.0)
sample = {"image": image, "mask": image[..., 0]}
moved = vg.Augmenter(declared.Slide(3), layout="NHWC")([sample])
assert (np.asarray(moved[0]["mask"]) == slid[..., 0]).all()
print("as declared")
"""


@pytest.mark.process
def test_classes_that_say_it_in_existing_instructions_run_everywhere(tmp_path: Path) -> None:
    (tmp_path / "declared.py").write_text(DECLARATION)
    done = run_python(USES, str(tmp_path))
    assert done.stdout == "as declared\n", done.stderr

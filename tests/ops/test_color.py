"""Colours: exact values, ranges, and torchvision's distributions of ColorJitter and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.ops.examples import EXAMPLES
from variegate import transforms as T
from variegate.ops.magnitude import MagnitudeOp, PlainOp

BY_MAGNITUDE = [
    examples[0]
    for examples in EXAMPLES.values()
    if isinstance(examples[0], (MagnitudeOp, PlainOp)) and hasattr(examples[0], "_op")
]


@pytest.mark.parametrize("transform", BY_MAGNITUDE)
def test_policies_may_give_the_magnitude(draw: Any, transform: MagnitudeOp | PlainOp) -> None:
    program = draw(T.Augmentation("it", transform, magnitude=(0.25, 0.25)), 3, size=(8, 8, 3))
    assert program.length.tolist() == [1, 1, 1]
    if isinstance(transform, MagnitudeOp):
        assert any((program.args[:, 0, i] == 0.25).all() for i in range(4))


def test_noise_has_a_slot_of_its_own(draw: Any) -> None:
    program = draw(T.Compose([T.GaussianNoise(), T.SaltAndPepper(), T.ShotNoise()]), 3)
    slots = [program.args[:, 0, 2], program.args[:, 1, 2], program.args[:, 2, 1]]
    assert [set(s.tolist()) for s in slots] == [{1}, {3}, {5}]


def test_sepia_is_the_matrix_and_gray_stays() -> None:
    image = np.array([[[10, 200, 30], [255, 255, 255]]], np.uint8)
    out = vg.Augmenter(T.ToSepia(), layout="NHWC")([image])[0].numpy()
    assert out[0, 0].tolist() == [163, 146, 113]
    assert out[0, 1].tolist() == [255, 255, 239]
    gray = image[..., :1]
    np.testing.assert_array_equal(vg.Augmenter(T.ToSepia(), layout="NHWC")([gray])[0].numpy(), gray)


def test_tone_curves_go_from_black_to_white_through_drawn_heights() -> None:
    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(1, 256, 3)
    along = np.arange(256) / 255
    plain = 255 * (0.75 * (1 - along) ** 2 * along + 2.25 * (1 - along) * along**2 + along**3)
    curves = vg.Augmenter(T.RandomToneCurve(0.0), layout="NHWC")([levels])[0].numpy()
    np.testing.assert_allclose(curves, plain[None, :, None].repeat(3, axis=2), atol=0.51)
    for per_channel in (False, True):
        outputs = vg.Augmenter(T.RandomToneCurve(0.2, per_channel), layout="NHWC")([levels] * 30, ids=range(30)).numpy()
        assert (outputs[:, 0, 0] == 0).all()
        assert (outputs[:, 0, 255] == 255).all()
        assert (outputs[..., 0] != outputs[..., 2]).any() == per_channel
        assert outputs[:, 0, 128].std() > 15

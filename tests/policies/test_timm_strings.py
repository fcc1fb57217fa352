"""timm's AugMix and AutoAugment strings, and the draws they stand for. Those of RandAugment are in test_timm.py."""

from __future__ import annotations

import numpy as np
import pytest

from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.policies import AutoAugment, ThreeAugment, TimmAugMix
from variegate.policies.timm import is_timm, parse_timm
from variegate.program.ops import Interpolation, Op


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("augmix-m5-w4-d2", TimmAugMix(5, mixture_width=4, chain_depth=2)),
        ("augmix-m3-a0.5-mstd0.5", TimmAugMix(3, alpha=0.5, magnitude_std=0.5)),
        ("augmix-b1-m3", TimmAugMix(3)),
        ("augmix-m3-b0", TimmAugMix(3)),
        ("original", AutoAugment("imagenet", "random", space="timm-original")),
        ("original-mstd0.5", AutoAugment("imagenet", "random", space="timm-original", magnitude_std=0.5)),
        ("originalr", AutoAugment("imagenet", "random", space="timm-research")),
        ("v0-mstd0", AutoAugment("v0", "random", space="timm", magnitude_std=0)),
        ("v0r", AutoAugment("v0", "random", space="timm-research")),
        ("3a", ThreeAugment()),
    ],
)
def test_strings(text, expected) -> None:
    assert is_timm(text)
    assert parse_timm(text) == expected
    assert T.from_dict(expected.to_dict()) == expected


@pytest.mark.parametrize(
    ("text", "section", "accepted"),
    [
        ("augmix-m5-w2.5", "'w2.5'", "a whole number after w"),
        ("augmix-m3-w99", "'augmix-m3-w99'", "mixture_width=99; accepted: an integer from 1 to 16"),
        ("augmix-m3-w3-d-1", "'d'", "d followed by 1 or more, or no d: one to three at random"),
        ("augmix-m3-b2", "'b2'", "-b<0 or 1>"),
        ("augmix-n3", "'n3'", "augmix followed by -m<magnitude>, -w<width>"),
        ("original-m9", "'m9'", "original, originalr, v0, v0r, 3a followed by -mstd<deviation> or nothing"),
        ("v0r-mstd1-mstd2", "'mstd2'", "magnitude_std once; it was set before. original, originalr"),
    ],
)
def test_bad_strings_name_the_section(text, section, accepted) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_timm(text)
    assert str(caught.value).startswith(f"{text!r}: got {section}; accepted: ")
    assert accepted in str(caught.value)


def test_augmix_draws_timms_thirteen_at_any_level_below(draw) -> None:
    program = draw(TimmAugMix(5, 1, 1), 6000, size=(100, 64))
    chains = slice(6000, None)
    opcode, value = program.opcode[chains, 0], program.args[chains, 0, 0]
    assert len(set(opcode.tolist())) == 13
    levels = np.abs(value[opcode == Op.ROTATE]) / 3
    assert levels.max() <= 5
    assert abs(levels.mean() - 2.5) < 4 * 1.45 / np.sqrt(len(levels))
    moved = np.abs(value[opcode == Op.TRANSLATE_X])
    assert 0.9 * 0.15 * 64 < moved.max() <= 0.15 * 64  # 0.3 of the width at level 10
    assert set(program.flags[chains, 0][opcode == Op.ROTATE]) == {Interpolation.BILINEAR, Interpolation.BICUBIC}
    assert (program.fill[chains, 0][opcode == Op.ROTATE] == 128).all()
    assert (program.length[:6000] == 0).all()


def test_augmix_with_a_deviation(draw) -> None:
    program = draw(TimmAugMix(5, 2, 1, magnitude_std=0.5), 6000)
    levels = np.abs(program.args[program.opcode[:, 0] == Op.ROTATE, 0, 0]) / 3
    assert abs(levels.mean() - 5) < 4 * 0.5 / np.sqrt(len(levels))
    assert abs(levels.std() - 0.5) < 0.1
    weights = program.blend.weight.reshape(3, 6000).sum(axis=0)
    assert weights == pytest.approx(np.ones(6000), abs=1e-6)


def test_the_blur_of_3a_is_drawn(draw) -> None:
    program = draw(parse_timm("3a-mstd0"), 900)
    assert set(program.opcode[:, 0]) == {Op.SOLARIZE, Op.SATURATION, Op.GAUSSIAN_BLUR}
    assert set(program.args[program.opcode[:, 0] == Op.SOLARIZE, 0, 0]) == {128.0}
    assert set(program.args[program.opcode[:, 0] == Op.SATURATION, 0, 0]) == {0.0}
    sigma = program.args[program.opcode[:, 0] == Op.GAUSSIAN_BLUR, 0, 2]
    assert 0.1 <= sigma.min() < 0.15
    assert 1.9 < sigma.max() <= 2.0


@pytest.mark.parametrize("text", ["augmix-m5-w2", "original-mstd0.5", "v0r", "3a-mstd1"])
def test_a_sample_does_not_depend_on_its_batch(draw, text) -> None:
    policy = parse_timm(text)
    together = draw(policy, 40)
    for row in (0, 21):
        alone = draw(policy, ids=[row])
        np.testing.assert_array_equal(alone.args[0], together.args[row, : alone.args.shape[1]])

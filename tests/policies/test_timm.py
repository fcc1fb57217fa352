"""timm's strings and the draws they stand for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from variegate.errors import PolicyError
from variegate.policies import TimmRandAugment
from variegate.policies.timm import parse_timm
from variegate.program.ops import Interpolation, Op
from variegate.transforms import ArgumentError

NAMES = 15


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rand", TimmRandAugment()),
        ("rand-m9-mstd0.5-inc1", TimmRandAugment(9, magnitude_std=0.5, increasing=True)),
        ("rand-m7-n3-p0.8", TimmRandAugment(7, 3, 0.8)),
        ("rand-mstd1-tweights", TimmRandAugment(10, magnitude_std=1, operations="weights")),
        ("rand-m15-mmax20", TimmRandAugment(15, magnitude_max=20)),
        ("rand-m9-mstd101-inc1", TimmRandAugment(9, magnitude_std=101, increasing=True)),
        ("rand-n1-t3a", TimmRandAugment(num_ops=1, operations="3a")),
        ("rand-t3aw", TimmRandAugment(operations="3aw")),
        ("rand-m9-w0", TimmRandAugment(9, operations="w0")),
        ("rand-m9-t0.3", TimmRandAugment(9, translate_pct=0.3)),
    ],
)
def test_strings(text, expected) -> None:
    assert parse_timm(text) == expected


@pytest.mark.parametrize(
    ("text", "section", "accepted"),
    [
        ("rand-x3", "'x3'", "rand followed by -m<magnitude>"),
        ("rand-m", "'m'", "rand followed by -m<magnitude>"),
        ("rand-m9-n2.5", "'n2.5'", "a whole number after n"),
        ("rand-m9-inc0", "'inc0'", "older versions of timm read inc0 as inc1"),
        ("rand-m9-m8", "'m8'", "magnitude once"),
        ("rand-tnone", "'tnone'", "t followed by default, weights, 3a, 3aw, w0"),
        ("rand-p2", "'rand-p2'", "p=2; accepted: a number from 0 to 1"),
        ("rand-m9-", "''", "rand followed by -m<magnitude>"),
        ("rands-m3", "'rands'", "rand followed by -m<magnitude>"),
    ],
)
def test_bad_strings_name_the_section(text, section, accepted) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_timm(text)
    assert str(caught.value).startswith(f"{text!r}: got {section}; accepted: ")
    assert accepted in str(caught.value)


def test_half_of_the_drawn_operations_apply(draw) -> None:
    program = draw(TimmRandAugment(9), 4000)
    assert abs(program.length.mean() - 2 * 0.5) < 4 * np.sqrt(0.5 / 4000)
    assert (draw(TimmRandAugment(9, p=1.0), 500).length == 2).all()
    assert (draw(TimmRandAugment(9, p=0.0), 500).length == 0).all()


def test_operations_are_equally_likely(draw) -> None:
    program = draw(TimmRandAugment(9, 1, p=1.0), 15_000)
    counts = Counter(program.opcode[:, 0].tolist())
    assert len(counts) == NAMES
    assert all(abs(n - 1000) < 4 * 30.6 for n in counts.values())


def test_magnitude_noise(draw) -> None:
    policy = TimmRandAugment(5, 1, 1.0, magnitude_std=1.0)
    angles = np.concatenate([_angles(draw(policy, 8000, seed=seed)) for seed in range(2)])
    levels = np.abs(angles) / 3
    assert abs(levels.mean() - 5) < 4 / np.sqrt(len(levels))
    assert abs(levels.std() - 1) < 0.12
    assert levels.max() <= 10


def test_noise_is_clipped_and_uniform_above_a_hundred(draw) -> None:
    levels = np.abs(_angles(draw(TimmRandAugment(9, 1, 1.0, magnitude_std=3.0), 8000))) / 3
    assert levels.max() == 10
    assert levels.min() >= 0
    levels = np.abs(_angles(draw(TimmRandAugment(8, 1, 1.0, magnitude_std=101), 8000))) / 3
    assert levels.max() <= 8
    assert abs(levels.mean() - 4) < 4 * 2.31 / np.sqrt(len(levels))
    levels = np.abs(_angles(draw(TimmRandAugment(20, 1, 1.0, magnitude_max=30), 500))) / 3
    assert set(levels) == {20}


def _angles(program):
    return program.args[program.opcode[:, 0] == Op.ROTATE, 0, 0]


def test_interpolation_is_drawn_or_fixed(draw) -> None:
    flags = Counter(_flags(draw(TimmRandAugment(9, 1, 1.0), 6000)).tolist())
    assert set(flags) == {Interpolation.BILINEAR, Interpolation.BICUBIC}
    assert abs(flags[Interpolation.BILINEAR] / flags.total() - 0.5) < 4 * 0.5 / np.sqrt(flags.total())
    assert set(_flags(draw(TimmRandAugment(9, interpolation="nearest"), 500))) == {0}


def _flags(program):
    return program.flags[program.opcode[:, 0] == Op.ROTATE, 0]


def test_fill_is_grey_unless_given(draw) -> None:
    for policy, fill in ((TimmRandAugment(9), 128), (TimmRandAugment(9, fill=(124, 116, 104)), (124, 116, 104))):
        program = draw(policy, 200)
        assert (program.fill[program.opcode == Op.ROTATE] == fill).all()


def test_weighted_sets_draw_without_replacement(draw) -> None:
    program = draw(TimmRandAugment(9, 2, 1.0, operations="weights"), 8000)
    assert (program.opcode[:, 0] != program.opcode[:, 1]).all()
    share = (program.opcode[:, 0] == Op.ROTATE).mean()
    weights = [3, 2, 2, 1, 1, 0.25, 0.25, 0.25] + [0.05] * 7
    assert abs(share - 3 / sum(weights)) < 4 * 0.0052
    # The second is drawn from the rest by the same weights.
    after_shear = program.opcode[program.opcode[:, 0] == Op.SHEAR_X, 1]
    assert abs((after_shear == Op.ROTATE).mean() - 3 / (sum(weights) - 2)) < 0.05


def test_zero_weight_is_never_drawn(draw) -> None:
    program = draw(TimmRandAugment(9, 2, 1.0, operations="w0"), 3000)
    assert not np.isin(program.opcode, [Op.POSTERIZE, Op.INVERT]).any()


def test_three_augment_set(draw) -> None:
    program = draw(parse_timm("rand-m5-n1-p1-t3a"), 600)
    assert set(program.opcode[:, 0]) == {Op.SOLARIZE, Op.SATURATION, Op.GAUSSIAN_BLUR}
    assert set(np.round(program.args[program.opcode[:, 0] == Op.SATURATION, 0, 0], 6)) == {0.25}
    blurs = program.args[program.opcode[:, 0] == Op.GAUSSIAN_BLUR, 0, :4]
    assert set(map(tuple, np.round(blurs, 6))) == {(9, 9, 1.05, 1.05)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operations": "4a"}, "operations='4a'; accepted: one of 'default', 'weights', '3a', '3aw', 'w0'"),
        ({"operations": "3aw", "num_ops": 15}, "num_ops=15; accepted: an integer from 0 to 14"),
        ({"interpolation": "lanczos"}, "interpolation='lanczos'; accepted: one of 'random', 'nearest'"),
        ({"magnitude": -1}, "magnitude=-1"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(ArgumentError) as caught:
        TimmRandAugment(**arguments)
    assert message in str(caught.value)

"""RandAugment and TrivialAugmentWide: what is drawn, how often, and of what it is independent."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from variegate import transforms as T
from variegate.policies import RandAugment, TrivialAugmentWide
from variegate.policies.spaces import space
from variegate.program.ops import Interpolation, Op
from variegate.transforms import ArgumentError


def test_every_operation_is_equally_likely(draw) -> None:
    count = 14_000
    program = draw(RandAugment(num_ops=1), count)
    counts = Counter(program.opcode[program.length == 1, 0].tolist())
    counts[int(Op.NOP)] = int((program.length == 0).sum())  # Identity emits nothing
    assert len(counts) == 14
    # Binomial with mean 1000 and deviation 30.5.
    assert all(abs(n - count / 14) < 4 * 30.5 for n in counts.values())


def test_signs_are_even_and_values_those_of_bin_nine(draw) -> None:
    program = draw(RandAugment(num_ops=1), 14_000)
    expected = {
        Op.ROTATE: 9.0,
        Op.SHEAR_X: float(np.float32(0.09)),
        Op.TRANSLATE_X: int(150 / 331 * 331 * 9 / 30),
        Op.TRANSLATE_Y: int(150 / 331 * 200 * 9 / 30),
    }
    for op, value in expected.items():
        arguments = program.args[program.opcode[:, 0] == op, 0, 0]
        assert set(np.abs(arguments)) == {value}
        assert abs((arguments < 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(arguments))
    factors = program.args[program.opcode[:, 0] == Op.BRIGHTNESS, 0, 0]
    assert set(np.round(factors, 6)) == {0.73, 1.27}
    assert set(program.args[program.opcode[:, 0] == Op.POSTERIZE, 0, 0]) == {7.0}
    # 255 times the float32 number that torch.linspace(1, 0, 31) has there.
    assert set(program.args[program.opcode[:, 0] == Op.SOLARIZE, 0, 0]) == {255 * float(np.float32(0.7))}


def test_rotation_is_about_the_centre(draw) -> None:
    program = draw(RandAugment(num_ops=1))
    rotations = program.args[program.opcode[:, 0] == Op.ROTATE, 0]
    assert np.isnan(rotations[:, 1:3]).all()
    assert (rotations[:, 3] == 0).all()


def test_number_of_operations(draw) -> None:
    program = draw(RandAugment(num_ops=3), 3000)
    share = (program.length == 3).mean()
    assert program.length.max() == 3
    assert abs(share - (13 / 14) ** 3) < 0.03
    assert draw(RandAugment(num_ops=0)).length.max() == 0


def test_interpolation_and_fill_reach_geometry_only(draw) -> None:
    program = draw(RandAugment(num_ops=1, interpolation="bilinear", fill=(1, 2, 3)))
    geometry = np.isin(program.opcode[:, 0], [Op.ROTATE, Op.SHEAR_X, Op.SHEAR_Y, Op.TRANSLATE_X, Op.TRANSLATE_Y])
    assert set(program.flags[geometry, 0]) == {Interpolation.BILINEAR}
    assert set(program.flags[~geometry, 0]) == {0}
    assert (program.fill[geometry, 0] == (1, 2, 3)).all()
    assert (program.fill[~geometry, 0] == 0).all()


def test_epochs_and_seeds_differ(draw) -> None:
    first = draw(RandAugment(), 64).opcode
    assert not np.array_equal(first, draw(RandAugment(), 64, epoch=1).opcode)
    assert not np.array_equal(first, draw(RandAugment(), 64, seed=1).opcode)


def test_drawn_operations_are_pinned(draw) -> None:
    """A change here is a change of every user's training."""
    program = draw(RandAugment(), 4, size=(224, 224))
    shown = [[(op.name, round(float(args[0]), 4)) for op, args in program.operations(row)] for row in range(4)]
    assert shown == PINNED


PINNED = [
    [("TRANSLATE_Y", 30.0), ("SHEAR_Y", 0.09)],
    [("ROTATE", -9.0), ("SHEAR_X", 0.09)],
    [("POSTERIZE", 7.0), ("SHEAR_Y", -0.09)],
    [("SOLARIZE", 178.5), ("CONTRAST", 1.27)],
]


def test_trivial_draws_every_bin_of_every_operation(draw) -> None:
    program = draw(TrivialAugmentWide(), 30_000)
    assert program.length.max() == 1
    turned = program.args[program.opcode[:, 0] == Op.ROTATE, 0, 0]
    assert np.unique(np.abs(turned)).tolist() == np.float32(135 * np.arange(31) / 30).tolist()
    moved = program.args[program.opcode[:, 0] == Op.TRANSLATE_X, 0, 0]
    # torch.linspace(0, 32, 31)[15] is 15.999999, and the rest as in real numbers.
    assert set(np.abs(moved)) == set(np.trunc(32 * np.arange(31) / 30)) - {16.0} | {15.0}
    bits = program.args[program.opcode[:, 0] == Op.POSTERIZE, 0, 0]
    assert set(bits) == {2, 3, 4, 5, 6, 7, 8}
    counts = Counter(program.opcode[:, 0].tolist())
    assert len(counts) == 14
    assert all(abs(n - 30_000 / 14) < 4 * 45 for n in counts.values())


def test_other_bin_counts_span_the_same_range(draw) -> None:
    program = draw(RandAugment(1, 4, num_magnitude_bins=5, operations=["Rotate"]))
    assert set(np.abs(program.args[:, 0, 0])) == {30.0}
    program = draw(RandAugment(1, 1, num_magnitude_bins=9, operations=["Posterize"]))
    assert set(program.args[:, 0, 0]) == {8.0}  # 8 - round(0.5), half to even


def test_named_operations(draw) -> None:
    program = draw(RandAugment(1, operations=["Invert", "Equalize", "SolarizeAdd"]))
    assert set(program.opcode[:, 0]) == {Op.INVERT, Op.EQUALIZE, Op.SOLARIZE_ADD}
    added = program.args[program.opcode[:, 0] == Op.SOLARIZE_ADD, 0, :2]
    assert set(map(tuple, added)) == {(33.0, 128.0)}
    assert set(space("torchvision-randaugment").default).isdisjoint({"Invert", "SolarizeAdd"})


@pytest.mark.parametrize("policy", [RandAugment, TrivialAugmentWide])
def test_the_space_of_dali(draw, policy) -> None:
    program = draw(policy(space="dali", operations=["TranslateX"]), 400)
    pixels = np.abs(program.args[:, 0, 0])
    assert (pixels.max() == 32) if policy is TrivialAugmentWide else (set(pixels) == {30.0})
    assert (program.fill[program.length > 0, 0] == 128).all()
    program = draw(policy(space="dali-relative", operations=["TranslateX"]), 400)
    share = 1 if policy is TrivialAugmentWide else 9 / 30 * 100 / 224
    assert np.abs(program.args[:, 0, 0]).max() == pytest.approx(share * 331)
    assert len(policy(space="dali")._table.entries) == 14


def test_other_operations_of_one_number_go_by_their_names(draw) -> None:
    program = draw(RandAugment(1, 30, operations=["GaussianNoise", "Gamma", "Invert"]), 300)
    assert set(program.opcode[:, 0].tolist()) == {Op.GAUSSIAN_NOISE, Op.GAMMA, Op.INVERT}
    strongest = T.GaussianNoise._typical_range.high
    assert program.args[program.opcode[:, 0] == Op.GAUSSIAN_NOISE, 0, 1].max() == pytest.approx(strongest)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"space": "timm"}, "space='timm'; accepted: one of 'torchvision', 'dali', 'dali-relative'"),
        ({"magnitude": 31}, "RandAugment: magnitude=31; accepted: an integer from 0 to 30"),
        ({"num_ops": -1}, "RandAugment: num_ops=-1; accepted: an integer from 0 to 64"),
        ({"num_magnitude_bins": 1}, "RandAugment: num_magnitude_bins=1; accepted: an integer from 2 to 1024"),
        ({"interpolation": "lanczos"}, "accepted: one of 'nearest', 'bilinear', 'bicubic'"),
        ({"fill": "red"}, "fill='red'"),
        ({"operations": []}, "operations=[]"),
        ({"operations": ["Rotate", "Rotat"]}, "operations[1]='Rotat'; accepted: an Augmentation, or one of ShearX"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(ArgumentError) as caught:
        RandAugment(**arguments)
    assert message in str(caught.value)

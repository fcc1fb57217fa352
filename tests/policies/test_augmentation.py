"""Operations that users declare, alone and inside policies."""

from __future__ import annotations

import numpy as np
import pytest

from variegate import transforms as T
from variegate.ops.custom import CustomOp, Magnitude
from variegate.policies import Augmentation, RandAugment, TrivialAugmentWide
from variegate.program.ops import Op
from variegate.transforms import ArgumentError


class PolicyWarm(CustomOp):
    """Red up, blue down."""

    magnitude = Magnitude(0.0, 0.5, signed=True)

    def color_matrix(self, m):
        return [[1 + m, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1 - m, 0]]


def test_magnitude_domain_and_sign(draw) -> None:
    turn = Augmentation("turn", "Rotate", magnitude=(10, 40), signed=True)
    program = draw(RandAugment(1, 15, operations=[turn]), 400)
    assert set(program.args[:, 0, 0]) == {-25.0, 25.0}
    program = draw(TrivialAugmentWide(4, operations=[turn]), 400)
    assert set(np.abs(program.args[:, 0, 0])) == {10.0, 20.0, 30.0, 40.0}


def test_bins_snap_the_magnitude(draw) -> None:
    coarse = Augmentation("coarse", "Rotate", magnitude=(0, 30), bins=3)
    assert set(draw(TrivialAugmentWide(operations=[coarse]), 2000).args[:, 0, 0]) == {0.0, 15.0, 30.0}
    assert set(draw(coarse, 400).args[:, 0, 0]) == {0.0, 15.0, 30.0}


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ("identity", {-0.75, 0.75}),
        ("one_plus", {0.25, 1.75}),
        ("truncate", {0.0}),
        ("round", {-1.0, 1.0}),
        (lambda m: 2.0**m, {2**-0.75, 2**0.75}),
    ],
)
def test_mappings_see_the_sign(draw, mapping, expected) -> None:
    entry = Augmentation("x", "TranslateX", magnitude=(0, 0.75), signed=True, mag_to_param=mapping)
    assert set(draw(RandAugment(1, 30, operations=[entry]), 100).args[:, 0, 0]) == expected


def test_posterize_gets_whole_bits(draw) -> None:
    entry = Augmentation("p", "Posterize", magnitude=(8, 4))
    assert set(draw(TrivialAugmentWide(operations=[entry]), 2000).args[:, 0, 0]) == {4, 5, 6, 7, 8}


def test_custom_operations_take_their_domain(draw) -> None:
    for given in (PolicyWarm, PolicyWarm(), Augmentation("warm", PolicyWarm)):
        policy = RandAugment(1, 15, operations=["Invert", given])
        program = draw(policy, 400)
        chosen = program.opcode[:, 0] == Op.COLOR_MATRIX
        assert abs(chosen.mean() - 0.5) < 0.1
        assert (program.opcode[~chosen, 0] == Op.INVERT).all()
        assert set(program.args[chosen, 0, 1]) == {-0.25, 0.25}
        assert T.from_dict(policy.to_dict()) == policy


def test_any_one_number_transform_by_name_or_instance(draw) -> None:
    noise = Augmentation("noise", "GaussianNoise", magnitude=(0, 0.2))
    program = draw(RandAugment(1, 15, operations=[noise, T.Hue((0, 0.2))]), 100)
    noisy = program.opcode[:, 0] == Op.GAUSSIAN_NOISE
    assert set(np.round(program.args[noisy, 0, 1], 9)) == {0.1}
    assert set(np.round(program.args[~noisy, 0, 0], 9)) == {0.1}


def test_blur_needs_no_kernel_size(draw) -> None:
    blur = Augmentation("blur", "GaussianBlur", (0.5, 2.0))
    args = draw(TrivialAugmentWide(4, operations=[blur]), 200).args[:, 0]
    assert {tuple(row) for row in args[:, [0, 2]].tolist()} == {(5.0, 0.5), (7.0, 1.0), (11.0, 1.5), (13.0, 2.0)}
    assert (args[:, 0] == args[:, 1]).all()
    assert (args[:, 2] == args[:, 3]).all()


def test_cutout_keeps_its_name(draw) -> None:
    program = draw(RandAugment(1, 15, operations=[Augmentation("hole", "Cutout", (2, 20))]), 5)
    assert program.names == ("Cutout",)
    assert (program.label[:, 0] == 0).all()


def test_mixed_with_vectorised_operations_in_order(draw) -> None:
    """A row's first operation stays first, whichever of the two ways it is emitted."""
    policy = RandAugment(2, 15, operations=["Rotate", PolicyWarm])
    program = draw(policy, 300)
    assert (program.length == 2).all()
    seen = {tuple(op for op, _ in program.operations(row)) for row in range(300)}
    assert len(seen) == 4


def test_round_trip() -> None:
    policy = TrivialAugmentWide(operations=[Augmentation("a", "Rotate", (0, 10), 5, True), "Equalize", PolicyWarm])
    assert T.from_dict(policy.to_dict()) == policy


def test_functions_cannot_be_written() -> None:
    policy = RandAugment(operations=[Augmentation("a", "Rotate", (0, 1), mag_to_param=abs)])
    with pytest.raises(ValueError, match="'a': mag_to_param is a function, which a file cannot hold; name"):
        policy.to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"op": "Rotat"}, "op='Rotat'; accepted: a transform with emit_at(), or one of AutoContrast"),
        ({"op": T.Compose}, "op='Compose'; accepted: a transform that takes a magnitude"),
        ({"op": "Rotate", "magnitude": 3}, "magnitude=3; accepted: None, or a pair (low, high)"),
        ({"op": "Rotate", "bins": 1}, "bins=1; accepted: None, or an integer from 2 to 1024"),
        ({"op": "Rotate", "mag_to_param": "log"}, "mag_to_param='log'; accepted: a function, or one of identity"),
        ({"op": "Posterize", "magnitude": (4, 12)}, "magnitude=(4, 12); accepted: Posterize: "),
        ({"op": "Hue", "magnitude": (0, 2), "signed": True}, "magnitude=(0, 2); accepted: Hue: "),
        ({"op": "GaussianBlur", "magnitude": (0, 1)}, "magnitude=(0, 1); accepted: GaussianBlur: "),
        ({"op": "GaussianNoise"}, "magnitude=None; accepted: a pair (low, high): GaussianNoise needs it"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(ArgumentError) as caught:
        Augmentation("x", **arguments)
    assert message in str(caught.value)

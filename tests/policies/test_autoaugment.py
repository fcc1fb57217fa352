"""AutoAugment: sub-policies, probabilities, spaces, and one's own policies."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from variegate.policies import Augmentation, AutoAugment
from variegate.program.ops import Interpolation, Op
from variegate.transforms import ArgumentError


def test_sub_policies_are_drawn_uniformly(draw) -> None:
    bits = [[["Posterize", 1.0, 2 * i]] for i in range(5)]
    program = draw(AutoAugment(bits), 5000)
    kept, counts = np.unique(program.args[:, 0, 0], return_counts=True)
    assert kept.tolist() == [4, 5, 6, 7, 8]
    assert (np.abs(counts - 1000) < 4 * 28.3).all()


def test_operations_fire_with_their_own_probability_and_in_order(draw) -> None:
    program = draw(AutoAugment([[["Rotate", 0.3, 9], ["Invert", 1.0, None], ["Equalize", 0.0, None]]]), 4000)
    assert abs((program.length == 2).mean() - 0.3) < 4 * 0.0073
    both = program.length == 2
    assert set(program.opcode[both, 0]) == {Op.ROTATE}
    assert set(program.opcode[both, 1]) == {Op.INVERT}
    assert set(program.opcode[~both, 0]) == {Op.INVERT}
    angles = program.args[both, 0, 0]
    assert set(angles) == {-30.0, 30.0}
    assert abs((angles < 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(len(angles))


@pytest.mark.parametrize(
    ("space", "bits", "threshold", "angle", "factors"),
    [
        ("torchvision", 4, 28.333, 30.0, {0.2, 1.8}),
        ("tf", 3, 204, 27.0, {1.54}),
        ("timm", 3, 204, 27.0, {1.54}),
        ("timm-increasing", 1, 52, 27.0, {0.28, 1.72}),
        ("timm-original", 7, 204, 27.0, {1.54}),
        ("timm-research", 1, 204, 27.0, {1.54}),
        ("dali", 3, 204.8, 27.0, {1.54}),
        ("pba", 1, 52, 27.0, {1.54}),
    ],
)
def test_the_space_gives_a_bin_its_meaning(draw, space, bits, threshold, angle, factors) -> None:
    policy = [[["Posterize", 1, 8], ["Solarize", 1, 8], ["Rotate", 1, 9], ["Color", 1, 8]]]
    program = draw(AutoAugment(policy, space=space), 100)
    assert set(program.args[:, 0, 0]) == {bits}
    assert program.args[:, 1, 0] == pytest.approx(np.full(100, threshold), abs=1e-3)
    assert np.abs(program.args[:, 2, 0]) == pytest.approx(np.full(100, angle))
    assert set(np.round(program.args[:, 3, 0], 6)) == factors


def test_fill_defaults_to_the_space(draw) -> None:
    turn = [[["Rotate", 1.0, 5]]]
    assert (draw(AutoAugment(turn), 5).fill == 0).all()
    assert (draw(AutoAugment(turn, space="tf"), 5).fill[:, 0] == 128).all()
    assert (draw(AutoAugment(turn, space="tf", fill=0), 5).fill == 0).all()


def test_translations_scale_with_the_image(draw) -> None:
    move = [[["TranslateX", 1.0, 9], ["TranslateY", 1.0, 9]]]
    program = draw(AutoAugment(move), 20, size=(100, 64))
    assert set(np.abs(program.args[:, 0, 0])) == {int(150 / 331 * 64)}
    assert set(np.abs(program.args[:, 1, 0])) == {int(150 / 331 * 100)}


@pytest.mark.parametrize("name", ["imagenet", "cifar10", "svhn", "v0"])
def test_published_policies_sample(draw, name) -> None:
    program = draw(AutoAugment(name), 2000)
    assert program.length.max() == 2
    assert (program.length > 0).mean() > 0.7
    assert AutoAugment(name).space == ("tf" if name == "v0" else "torchvision")


def test_torchvision_enum_is_accepted() -> None:
    class AutoAugmentPolicy(enum.Enum):
        SVHN = "svhn"

    assert AutoAugment(AutoAugmentPolicy.SVHN).policy == "svhn"


def test_noise_is_about_the_bin(draw) -> None:
    policy = AutoAugment([[["Rotate", 1.0, 5], ["Equalize", 1.0, None]]], space="timm", magnitude_std=1.0)
    program = draw(policy, 4000)
    levels = np.abs(program.args[:, 0, 0]) / 3
    assert abs(levels.mean() - 5) < 4 / np.sqrt(4000)
    assert abs(levels.std() - 1) < 0.06
    assert set(program.opcode[:, 1]) == {Op.EQUALIZE}
    clipped = draw(AutoAugment([[["Rotate", 1.0, 9]]], space="timm", magnitude_std=3.0), 2000)
    assert np.abs(clipped.args[:, 0, 0]).max() == 30.0
    even = np.abs(draw(AutoAugment([[["Rotate", 1.0, 8]]], space="timm", magnitude_std=np.inf), 4000).args[:, 0, 0]) / 3
    assert even.max() <= 8
    assert abs(even.mean() - 4) < 4 * 2.31 / np.sqrt(4000)


def test_interpolation_may_be_drawn(draw) -> None:
    flags = draw(AutoAugment([[["Rotate", 1.0, 5], ["Invert", 1.0, None]]], "random"), 2000).flags
    assert abs((flags[:, 0] == Interpolation.BICUBIC).mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)
    assert set(flags[:, 0]) == {Interpolation.BILINEAR, Interpolation.BICUBIC}
    assert set(flags[:, 1]) == {0}


def test_own_augmentations(draw) -> None:
    turn = Augmentation("turn", "Rotate", magnitude=(0, 90), signed=True)
    program = draw(AutoAugment([[[turn, 1.0, 9]]]), 50)
    assert set(program.args[:, 0, 0]) == {-90.0, 90.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": "cifar"}, "policy='cifar'; accepted: one of 'imagenet', 'cifar10', 'svhn', 'v0'"),
        ({"policy": []}, "policy=[]; accepted: a name, or a list of 1 to 4,096 sub-policies"),
        ({"policy": [[]]}, "policy[0]=()"),
        ({"policy": [[["Rotate", 0.5]]]}, "policy[0][0]=['Rotate', 0.5]; accepted: [operation, probability 0..1, bin"),
        ({"policy": [[["Rotate", 1.5, 3]]]}, "policy[0][0][1]=1.5; accepted: a probability from 0 to 1"),
        ({"policy": [[["Rotat", 0.5, 3]]]}, "policy[0][0][0]='Rotat'; accepted: an Augmentation, or one of ShearX"),
        ({"policy": [[["Rotate", 0.5, 10]]]}, "policy[0][0][2]=10; accepted: a bin from 0 to 9 of the space"),
        ({"policy": "v0", "space": "torchvision"}, "policy[6][1][0]='SolarizeAdd'"),
        ({"space": "kornia"}, "space='kornia'; accepted: one of 'torchvision', 'tf'"),
    ],
)
def test_bad_arguments(arguments, message) -> None:
    with pytest.raises(ArgumentError) as caught:
        AutoAugment(**arguments)
    assert message in str(caught.value)

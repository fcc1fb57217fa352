"""AdaptiveRandAugment: RandAugment, at a magnitude that is given with each image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from variegate import transforms as T
from variegate.policies.uniform import at_given_magnitude, needs_magnitude
from variegate.transforms import ArgumentError

IMAGES = list(np.random.default_rng(0).integers(0, 256, (12, 20, 24, 3)).astype(np.uint8))
IDS = list(range(40, 52))


def made(
    transform: T.Transform, magnitude: Any = None, device: str = "cpu", images: Any = IMAGES, ids: Any = None
) -> Any:
    given = None if magnitude is None else {"magnitude": magnitude}
    return vg.Augmenter(transform, device, seed=3)(images, ids=IDS if ids is None else ids, epoch=2, conditions=given)


@pytest.mark.parametrize("level", [0, 1, 9, 17, 30])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"interpolation": "bilinear", "fill": (9, 8, 7)},
        {"space": "dali"},
        {"operations": ["Rotate", "Invert", T.Augmentation("noise", "GaussianNoise", (0.0, 0.2))]},
    ],
)
def test_the_same_magnitude_for_all_is_randaugment_to_the_bit(level: int, more: dict[str, Any]) -> None:
    fixed, given = T.RandAugment(3, level, **more), T.AdaptiveRandAugment(3, **more)
    assert torch.equal(made(given, [level / 30] * 12), made(fixed))
    assert torch.equal(made(given, np.full(12, level / 30, np.float32)), made(fixed))


def test_each_image_has_its_own() -> None:
    levels = [0, 30, 9, 9, 4, 22, 15, 0, 30, 1, 29, 16]
    found = made(T.AdaptiveRandAugment(), [level / 30 for level in levels])
    for row, level in enumerate(levels):
        alone = made(T.RandAugment(2, level), images=[IMAGES[row]], ids=[IDS[row]])
        assert torch.equal(found[row], alone[0])
        single = vg.Augmenter(T.AdaptiveRandAugment(), "cpu", 3).of_one(
            IMAGES[row], [IDS[row]], 2, conditions={"magnitude": [level / 30]}
        )
        assert torch.equal(found[row], single)


def test_the_reference_and_mixed_partners_agree() -> None:
    magnitude = np.linspace(0, 1, 12)
    policy = T.Compose([T.RandomHorizontalFlip(), T.AdaptiveRandAugment(), T.Normalize(0.5, 0.5)])
    assert torch.equal(made(policy, magnitude), made(policy, magnitude, "oracle"))
    two = T.MultiView([T.AdaptiveRandAugment(), T.Identity()])
    assert torch.equal(made(two, magnitude)[0], made(T.AdaptiveRandAugment(), magnitude))


def test_magnitudes_are_rounded_to_the_nearest_bin() -> None:
    policy = T.AdaptiveRandAugment(1, num_magnitude_bins=5, operations=["Posterize", "ShearX"])
    fixed = T.RandAugment(1, 3, num_magnitude_bins=5, operations=["Posterize", "ShearX"])
    assert torch.equal(made(policy, [0.63, 0.75, 0.87] * 4), made(fixed))
    # Operations that have a magnitude do nothing at 0.
    assert torch.equal(made(policy, [0.1] * 12), torch.from_numpy(np.stack(IMAGES)).permute(0, 3, 1, 2))


def test_it_is_described_and_explained() -> None:
    policy = T.AdaptiveRandAugment(3, fill=(1, 2, 3))
    assert T.from_dict(policy.to_dict()) == policy
    assert repr(policy) == "AdaptiveRandAugment(num_ops=3, fill=(1, 2, 3))"
    given, fixed = vg.Augmenter(policy, seed=1), vg.Augmenter(T.RandAugment(3, 12, fill=(1, 2, 3)), seed=1)
    assert given.explain(7, 2, conditions={"magnitude": 0.4}) == fixed.explain(7, 2)
    one = vg.as_transform(policy, seed=1)(IMAGES[0], id=7, conditions={"magnitude": 0.4})
    assert torch.equal(one, vg.as_transform(T.RandAugment(3, 12, fill=(1, 2, 3)), seed=1)(IMAGES[0], id=7))


@pytest.mark.parametrize(
    ("magnitude", "message"),
    [
        (None, r"AdaptiveRandAugment: magnitude=none given with this batch; accepted: conditions=\{\"magnitude\": "),
        ([0.5] * 11 + [1.01], r"magnitude=1.01; accepted: .* one number from 0 to 1 per image"),
        ([float("nan")] * 12, "magnitude=nan"),
        ([-0.1] * 12, "magnitude=-0.1"),
        (["much"] * 12, "magnitude=an array of <U4"),
        (np.zeros((12, 2)), r"magnitude=an array of float64 with shape \(\d+, 2\)"),
    ],
)
def test_bad_magnitudes(magnitude: Any, message: str) -> None:
    for images in (IMAGES, IMAGES[:1]):
        some = magnitude if magnitude is None or len(images) > 1 else magnitude[-1:]
        with pytest.raises(ArgumentError, match=message):
            made(T.AdaptiveRandAugment(), some, images=images, ids=IDS[: len(images)])


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="num_magnitude_bins=1; accepted: an integer from 2 to 1024"):
        T.AdaptiveRandAugment(num_magnitude_bins=1)


def test_randaugment_anywhere_in_a_policy_becomes_adaptive() -> None:
    flip, cutout = T.RandomHorizontalFlip(), T.Cutout(4)
    policy = T.Compose([flip, T.RandomApply([T.RandAugment(1, 6, 13, fill=9)], p=0.5), cutout])
    found = at_given_magnitude(policy)
    assert found == T.Compose([flip, T.RandomApply([T.AdaptiveRandAugment(1, 13, fill=9)], p=0.5), cutout])
    assert needs_magnitude(found)
    assert not needs_magnitude(policy)
    assert at_given_magnitude(flip) == flip
    assert at_given_magnitude(found) == found
    chosen = T.Cond("label", {1: [flip, T.RandAugment(magnitude=30)]}, default=T.RandAugment(3))
    found = at_given_magnitude(chosen)
    assert found == T.Cond("label", {1: [flip, T.AdaptiveRandAugment()]}, default=T.AdaptiveRandAugment(3))
    assert needs_magnitude(T.Cond("label", {1: [flip, T.AdaptiveRandAugment()]}))

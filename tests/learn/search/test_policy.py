"""A policy as numbers: its bounds, both ways, and as what a member trains with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import variegate as vg
from tests.learn.search.searches import policies
from variegate.errors import PolicyError
from variegate.learn.policy import SearchSpace
from variegate.policies.schedule import policy_from_numbers, published_schedule
from variegate.policies.spaces import SPACES


def test_the_papers_space() -> None:
    space = SearchSpace()
    assert " ".join(space.operations) == (
        "Rotate TranslateX TranslateY Brightness Color Invert Sharpness Posterize ShearX Solarize ShearY Equalize "
        "AutoContrast Cutout Contrast"
    )
    assert space.limits == (10, 9) * 30
    assert space.zeros() == (0,) * 60
    assert SearchSpace(space="pba-relative").operations == space.operations


@given(policies(SearchSpace()))
def test_numbers_are_those_of_published_policies(numbers: tuple[int, ...]) -> None:
    space = SearchSpace()
    assert space.from_numbers(numbers) == policy_from_numbers(numbers)


def test_the_second_copies_follow_all_first_ones() -> None:
    space = SearchSpace(("Cutout", "Rotate"), space="pba-relative")
    assert space.from_numbers([1, 2, 3, 4, 5, 6, 10, 9]) == (
        ("Cutout", 0.1, 2),
        ("Rotate", 0.3, 4),
        ("Cutout", 0.5, 6),
        ("Rotate", 1.0, 9),
    )


@pytest.mark.parametrize("name", SPACES)
def test_every_magnitude_space_can_be_searched(name: str) -> None:
    space = SearchSpace(space=name)
    assert space.transform(space.limits).space in (None, name)
    assert space.schedule(space.limits, epochs=3).epochs == 3
    assert SearchSpace.from_dict(space.to_dict()) == space


def test_a_policy_is_applied_at_any_epoch() -> None:
    space = SearchSpace(("Invert", "Rotate"), copies=1)
    images = np.arange(2 * 32 * 32 * 3, dtype=np.uint32).astype(np.uint8).reshape(2, 32, 32, 3)
    inverted = vg.Augmenter(space.transform((10, 0, 0, 0)), seed=0, layout="NHWC")
    share = []
    for epoch in range(0, 200, 4):
        for before, after in zip(images, np.asarray(inverted(images, ids=[0, 1], epoch=epoch)), strict=True):
            share.append(np.array_equal(after, 255 - before))
            assert share[-1] or np.array_equal(after, before)
    # A count of 0 leaves an image as it is one time in five; of 100 images, four standard deviations.
    assert 0.64 < np.mean(share) < 0.96
    untouched = vg.Augmenter(space.transform(space.zeros()), seed=0, layout="NHWC")
    assert np.array_equal(np.asarray(untouched(images, ids=[0, 1], epoch=150)), images)


def test_all_policies_draw_the_same_slots() -> None:
    space = SearchSpace()
    assert space.transform(space.zeros()).num_slots == space.transform(space.limits).num_slots


def test_published_policies_are_in_the_papers_space() -> None:
    space = SearchSpace()
    for name in ("pba-cifar10", "pba-svhn"):
        for segment in published_schedule(name).segments:
            numbers = [n for _, probability, magnitude in segment.policy for n in (round(10 * probability), magnitude)]
            assert space.from_numbers(numbers) == segment.policy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operations": ("Rotate", "Rotat")}, r"operations\[1\]: got 'Rotat'; accepted: Name, .*mean 'Rotate'\?"),
        ({"operations": (["Rotate"],)}, r"operations\[0\]: got \['Rotate'\]; accepted: a name, an Augmentation, or"),
        ({"operations": ("Rotate", "Rotate")}, r"operations\[1\]: got 'Rotate'; accepted: each name once"),
        ({"operations": ("Rotate:0-45",)}, r"got 'Rotate:0-45'; accepted: Name, Name:low..high or Name:low..high:sign"),
        ({"operations": ("D4:0..1",)}, "accepted: D4 without a range, as it has no magnitude"),
        ({"operations": ("JPEG:0..200",)}, "got 'JPEG:0..200'; accepted: JPEG: an integer, .* from 1 to 100"),
        ({"operations": ("Cutout",), "cutout": 0.5}, r"operations\[0\]: got 'Cutout'; accepted: each name once"),
        ({"crop": 2}, r"crop: got 2; accepted: a number from 0 to 1"),
        ({"space": "pba32"}, "space: got 'pba32'; accepted: one of .*pba, pba-relative"),
    ],
)
def test_bad_spaces_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        SearchSpace(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0] * 7, "policy: got '7 numbers'; accepted: 8 integers: 2 operations, 2 each"),
        ([11, *[0] * 7], r"policy\[0\]: got 11; accepted: an integer from 0 to 10"),
        ([0, 10, *[0] * 6], r"policy\[1\]: got 10; accepted: an integer from 0 to 9"),
        ([0, -1, *[0] * 6], r"policy\[1\]: got -1"),
        ([0.5, *[0] * 7], r"policy\[0\]: got 0.5"),
        (None, "policy: got None"),
    ],
)
def test_bad_numbers_are_refused(numbers: list[int], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        SearchSpace(("Rotate", "Invert")).check(numbers)

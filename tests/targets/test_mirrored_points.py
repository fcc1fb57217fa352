"""Key points that are left and right: in a mirrored image they change places, through whatever mirrors it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.functions import function
from tests.targets.test_samples import FLIP, IMAGE, WIDTH, run, sample
from variegate import transforms as T

# A nose above a left and a right eye, and a left ear hidden.
FACE = [[30.0, 10.0, 2.0], [40.0, 20.0, 2.0], [20.0, 20.0, 2.0], [50.0, 22.0, 1.0], [10.0, 22.0, 2.0]]
ORDER = [0, 2, 1, 4, 3]
TWICE = T.Compose([FLIP, T.RandomVerticalFlip(1.0)])
SIDEWAYS = function("rotate", {"angle": 90.0, "expand": True})


def turn(points: Any) -> float:
    """Positive where nose, left eye and right eye follow one another as in an upright face, whatever its place."""
    nose, left, right = np.asarray(points, np.float64)[:3, :2]
    (a, b), (c, d) = left - nose, right - nose
    return float(a * d - b * c)


def test_a_flip() -> None:
    [result] = run(FLIP, sample(keypoints=FACE), mirrored_points=ORDER)
    expected = [[WIDTH - x, y, v] for x, y, v in (FACE[place] for place in ORDER)]
    assert result["keypoints"].tolist() == expected
    [plain] = run(FLIP, sample(keypoints=FACE))
    assert plain["keypoints"].tolist() == [[WIDTH - x, y, v] for x, y, v in FACE]


@pytest.mark.parametrize(
    ("transform", "is_mirrored"),
    [
        (FLIP, True),
        (T.RandomVerticalFlip(1.0), True),
        (T.Transpose(1.0), True),
        (TWICE, False),
        (SIDEWAYS, False),
        (T.Compose([FLIP, SIDEWAYS]), True),
        (T.Compose([FLIP, T.RandomAffine(40, scale=(0.5, 0.9), shear=10), T.RandomPerspective(0.4, 1.0)]), True),
        (T.Compose([T.RandomAffine(40, scale=(0.5, 0.9)), T.ElasticTransform(30.0), TWICE]), False),
        (T.Compose([T.Resize((20, 30)), FLIP, T.Pad(4, padding_mode="reflect")]), True),
    ],
)
def test_faces_stay_faces(transform: T.Transform, is_mirrored: bool) -> None:
    samples = [sample(keypoints=FACE)] * 6
    plain = run(transform, *samples)
    for before, after in zip(plain, run(transform, *samples, mirrored_points=ORDER), strict=True):
        wanted = before["keypoints"][ORDER] if is_mirrored else before["keypoints"]
        assert torch.equal(after["keypoints"], wanted)
        assert turn(after["keypoints"]) * turn(FACE) > 0


def test_of_each_box_and_of_each_image() -> None:
    other = [[x + 2, y + 5, v] for x, y, v in FACE]
    boxes = {"boxes": [[5, 5, 55, 30], [0, 0, 9, 9], [7, 7, 58, 35]], "keypoints": [FACE, FACE, other]}
    flips = T.RandomHorizontalFlip(0.5)
    results = run(flips, *[sample(**boxes)] * 8, mirrored_points=ORDER, min_area=100)
    kinds = {str(result["keypoints"].tolist()) for result in results}
    flipped = [[[WIDTH - x, y, v] for x, y, v in (face[n] for n in ORDER)] for face in (FACE, other)]
    assert kinds == {str([FACE, other]), str(flipped)}


def test_images_of_a_mosaic_are_mirrored_one_by_one() -> None:
    mosaic = T.Compose([T.RandomHorizontalFlip(0.5), T.Mosaic()])
    samples = [sample(boxes=[[5, 5, 55, 30]], keypoints=[FACE]) for _ in range(8)]
    seen = 0
    for result in run(mosaic, *samples, partners="batch", mirrored_points=ORDER):
        for face in result["keypoints"]:
            assert turn(face) * turn(FACE) > 0
            seen += 1
    assert seen > 8


def test_none_and_empty_lists() -> None:
    results = run(
        FLIP, sample(boxes=[], keypoints=[]), sample(boxes=[[1, 1, 9, 9]], keypoints=[FACE]), mirrored_points=ORDER
    )
    assert [tuple(result["keypoints"].shape) for result in results] == [(0, 5, 3), (1, 5, 3)]


@pytest.mark.parametrize("order", [[0, 2], [0, 0], "01", 3, [0.5, 1], [1, None], [-1, 0]])
def test_what_is_no_order_is_refused(order: Any) -> None:
    with pytest.raises(ValueError, match=r"^mirrored_points: got .*; accepted: a list with each of 0, 1, 2, ... once"):
        vg.Targets(mirrored_points=order)


def test_another_number_of_points_is_named() -> None:
    with pytest.raises(ValueError, match=r"^samples\[0\]\['keypoints'\]: got shape \(3, 2\), and .* has 5 numbers"):
        run(FLIP, {"image": IMAGE, "keypoints": [[1, 1], [2, 2], [3, 3]]}, mirrored_points=ORDER)

"""Boxes and key points as torchvision 0.26's v2 functions give them for the same parameters; values computed there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T

HEIGHT, WIDTH = 33, 41
BOXES = [[3, 4, 20, 17], [0, 0, 41, 33], [30, 2, 39, 31]]
POINTS = [[3, 4], [20, 17], [38.5, 30], [0, 0]]
AFFINE = {"angle": 20.0, "translate": [4, -3], "scale": 1.2, "shear": [10.0, -5.0]}

# Function, arguments, boxes, points, and how many pixels of a mask of the first box are set.
CASES: list[tuple[str, dict[str, Any], list[list[float]], list[list[float]], int]] = [
    (
        *("horizontal_flip", {}),
        [[21, 4, 38, 17], [0, 0, 41, 33], [2, 2, 11, 31]],
        [[37, 4], [20, 17], [1.5, 30], [40, 0]],
        221,
    ),
    (
        *("vertical_flip", {}),
        [[3, 16, 20, 29], [0, 0, 41, 33], [30, 2, 39, 31]],
        [[3, 28], [20, 15], [38.5, 2], [0, 32]],
        221,
    ),
    (
        *("rotate", {"angle": 30.0}),
        [[0, 5.925, 20.317, 25.683], [0, 0, 41, 33], [21.477, 0, 41, 24.307]],
        [[-0.905, 14.425], [20.317, 17.183], [42.838, 19.191], [-5.504, 12.461]],
        221,
    ),
    (
        *("rotate", {"angle": -50.0, "center": [10, 5]}),
        [[0, 0, 17.194, 20.374], [0, 0, 33.757, 33], [2.939, 18.393, 30.939, 33]],
        [[6.267, -1.005], [7.235, 20.374], [9.168, 42.902], [7.402, -5.874]],
        206,
    ),
    (
        *("affine", AFFINE),
        [[5.093, 0, 31.491, 13.764], [0, 0, 41, 33], [26.129, 3.287, 41, 33]],
        [[12.931, -8.382], [23.653, 13.764], [36.012, 36.675], [12.068, -14.061]],
        222,
    ),
    (
        *("resize", {"size": [50, 23]}),
        [[1.683, 6.061, 11.22, 25.758], [0, 0, 23, 50], [16.829, 3.03, 21.878, 46.97]],
        [[1.683, 6.061], [11.22, 25.758], [21.598, 45.455], [0, 0]],
        180,  # 190 in torchvision, whose resize of masks takes the pixel up and left of a place
    ),
    (
        *("crop", {"top": 5, "left": 7, "height": 20, "width": 25}),
        [[0, 0, 13, 12], [0, 0, 25, 20], [23, 0, 25, 20]],
        [[-4, -1], [13, 12], [31.5, 25], [-7, -5]],
        156,
    ),
    (
        *("pad", {"padding": [3, 1, 2, 6]}),
        [[6, 5, 23, 18], [3, 1, 44, 34], [33, 3, 42, 32]],
        [[6, 5], [23, 18], [41.5, 31], [3, 1]],
        221,
    ),
    (
        *("resized_crop", {"top": 5, "left": 7, "height": 20, "width": 25, "size": [30, 30]}),
        [[0, 0, 15.6, 18], [0, 0, 30, 30], [27.6, 0, 30, 30]],
        [[-4.8, -1.5], [15.6, 18], [37.8, 37.5], [-8.4, -7.5]],
        288,
    ),
]


def run(name: str, arguments: dict[str, Any], options: vg.Targets | None = None) -> dict[str, Any]:
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[4:17, 3:20] = 1
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    sample = {"image": image, "boxes": BOXES, "keypoints": POINTS, "mask": mask}
    augmenter = vg.Augmenter(T.Function(name, arguments), device="cpu", num_threads=1)
    [result] = augmenter([sample], targets=options)
    return dict(result)


@pytest.mark.parametrize(("name", "arguments", "boxes", "points", "pixels"), CASES)
def test_as_torchvision(
    name: str, arguments: dict[str, Any], boxes: list[list[float]], points: list[list[float]], pixels: int
) -> None:
    # torchvision's flips take the centre of the first pixel for (0, 0) of key points, everything else its corner.
    options = vg.Targets(point_origin="centre" if name.endswith("flip") else "corner")
    result = run(name, arguments, options)
    np.testing.assert_allclose(result["boxes"], boxes, atol=2e-3)
    np.testing.assert_allclose(result["keypoints"], points, atol=2e-3)
    # A pixel on the border may belong to either side.
    assert abs(int(result["mask"].sum()) - pixels) <= 2


def test_a_growing_rotation_keeps_boxes_with_the_image() -> None:
    """The image is 53x51, with its content in the middle, in torchvision too, whose boxes begin at 0 though."""
    result = run("rotate", {"angle": 30.0, "expand": True})
    assert result["image"].shape[1:] == (51, 53)
    theirs = np.array([[4.598, 13.964, 25.821, 33.722], [0, 0, 52.007, 49.079], [26.981, 2.732, 49.275, 32.347]])
    off = (np.array([53, 51]) - [52.007, 49.079]) / 2
    np.testing.assert_allclose(result["boxes"], theirs + np.tile(off, 2), atol=2e-3)


def test_perspective() -> None:
    ends = {"startpoints": [[0, 0], [40, 0], [40, 32], [0, 32]], "endpoints": [[4, 2], [37, 5], [35, 30], [1, 28]]}
    result = run("perspective", ends)
    points = [[6.215, 5.398], [19.54, 16.903], [33.906, 28.324], [4, 2]]
    np.testing.assert_allclose(result["keypoints"], points, atol=2e-3)
    theirs = [[5.04, 5.398, 20.538, 16.903], [0.904, 2.0, 37.791, 30.85], [26.839, 5.812, 36.084, 29.15]]
    np.testing.assert_allclose(result["boxes"], theirs, atol=0.01)

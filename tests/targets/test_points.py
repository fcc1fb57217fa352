"""Key points go where the pixels around them go, through deformations too."""

from __future__ import annotations

import numpy as np
import pytest

import variegate as vg
from tests.functions import function
from tests.oracle.executor import instruction
from tests.oracle.geometry import displaced
from variegate import transforms as T
from variegate.program.stages import stages_of
from variegate.targets.regions import LEFT_IMAGE, SEEN, move_points

HEIGHT, WIDTH = 60, 71
IMAGE = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
BENDS = {
    "elastic": T.ElasticTransform(80.0, 5.0),
    "folding": T.ElasticTransform(400.0, 3.0),
    "grid": T.GridDistortion(distort_limit=0.5),
    "lens": T.OpticalDistortion((-0.5, 0.5)),
    "plates": T.ThinPlateSpline(),
    "warp": T.OpticalFlowWarp(),
}


@pytest.mark.parametrize("name", BENDS)
def test_points_through_deformations_are_right_to_a_tenth_of_a_pixel(name: str) -> None:
    """What a pixel's centre reads is a point of the source, and that point is shown there."""
    program = vg.Augmenter(BENDS[name], device="oracle").program([(HEIGHT, WIDTH)], ids=[3])
    read = displaced(instruction(program, 0, 0), (HEIGHT, WIDTH), 15)
    y, x = np.nonzero(read.inside_HW)
    there = np.stack([read.x_HW[y, x], read.y_HW[y, x]], axis=1) / 2.0**15
    moved, state = move_points(stages_of(program), np.zeros(len(there), np.int64), there)
    assert (state == SEEN).all()
    off = np.hypot(*(moved - np.stack([x + 0.5, y + 0.5], axis=1)).T)
    if name == "folding":  # where a point may be seen at several places
        assert np.quantile(off, 0.98) < 0.1
    else:
        assert off.max() < 0.1


def test_a_chain_of_maps_is_followed_to_the_end() -> None:
    chain = T.Compose([T.Pad((3, 5)), T.RandomHorizontalFlip(1.0), T.Resize((140, 154)), T.TranslateX(4.0)])
    [result] = vg.Augmenter(chain, device="cpu")([{"image": IMAGE, "keypoints": [[10.0, 20.0, 2.0]]}])
    assert result["keypoints"].tolist() == [[2 * (77 - 13.0) + 4.0, 2 * 25.0, 2.0]]


def test_what_leaves_the_image_at_any_step_is_not_visible() -> None:
    chain = T.Compose([function("crop", {"top": 10, "left": 10, "height": 20, "width": 20}), T.Pad(10)])
    points = [[5.0, 15.0, 2.0], [15.0, 15.0, 2.0], [10.0, 30.0, 1.0], [15.0, 31.0, 1.0], [-3.0, 15.0, 2.0]]
    [result] = vg.Augmenter(chain, device="cpu")([{"image": IMAGE, "keypoints": points}])
    assert result["keypoints"].tolist() == [[*xy, v] for (*xy, _), v in zip(points, [0, 2, 1, 0, 0], strict=True)]


def test_erased_points_are_there_and_hidden() -> None:
    erase = function("erase", {"i": 10, "j": 20, "h": 5, "w": 6, "v": 9})
    points = [[20.0, 10.0, 2.0], [19.9, 10.0, 2.0], [25.9, 14.9, 1.0], [22.0, 12.0, 0.0]]
    sample = {"image": IMAGE, "keypoints": points, "boxes": [[20, 10, 26, 15]]}
    [result] = vg.Augmenter(erase, device="cpu")([sample])
    assert result["keypoints"][:, 2].tolist() == [1, 2, 1, 0]
    assert result["boxes"].tolist() == sample["boxes"]


def test_points_without_visibility_keep_their_places_outside() -> None:
    [result] = vg.Augmenter(T.CenterCrop(20), device="cpu")([{"image": IMAGE, "keypoints": [[1.0, 2.0]]}])
    assert result["keypoints"].tolist() == [[1.0 - 26, 2.0 - 20]]  # torchvision's centre of an odd side


def test_a_point_that_a_map_crushes_has_left() -> None:
    flat = function("affine", {"angle": 0.0, "translate": [0, 0], "scale": 1e-7, "shear": [0.0, 0.0]})
    program = vg.Augmenter(flat, device="cpu").program([(HEIGHT, WIDTH)], ids=[0])
    program.args[0, 0, :6] = 0.0  # every pixel reads the same place
    _, state = move_points(stages_of(program), np.zeros(1, np.int64), np.array([[4.0, 5.0]]))
    assert state.tolist() == [LEFT_IMAGE]

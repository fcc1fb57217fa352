"""A filled rectangle's mask and its box stay together, whatever is done to the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from tests.functions import function
from variegate import transforms as T

pytestmark = pytest.mark.usefixtures("validated")

HEIGHT, WIDTH = 33, 41
TURN = T.RandomRotation(60, interpolation="bilinear")

# Every operation that moves pixels, drawn strongly enough for a 41x33 image; not pads that repeat the image, whose
# mirrored objects have no boxes.
GEOMETRY: dict[str, T.Transform] = {
    "flips": T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()]),
    "d4": T.D4(),
    "crop": T.RandomCrop((21, 30), padding=4),
    "center crop": T.CenterCrop(20),
    "pad": T.Pad([3, 0, 1, 5]),
    "resize": T.Resize((50, 23)),
    "nearest resize": T.Resize((17, 60), interpolation="nearest"),
    "letter box": T.LetterBox(50),
    "resized crop": T.Compose([T.RandomResizedCrop(29), T.RandomHorizontalFlip()]),
    "rotation": T.RandomRotation(180),
    "growing rotation": T.RandomRotation(180, expand=True, interpolation="bilinear"),
    "affine": T.RandomAffine(90, (0.3, 0.3), (0.5, 1.5), (-30, 30, -30, 30)),
    "bicubic affine": T.RandomAffine(90, (0.3, 0.3), (0.5, 1.5), (-30, 30, -30, 30), interpolation="bicubic"),
    "shear and shift": T.SomeOf(
        [T.ShearX((-0.5, 0.5)), T.ShearY((-0.5, 0.5)), T.TranslateX((-9, 9)), T.TranslateY((-9, 9))], 2
    ),
    "perspective": T.RandomPerspective(0.7, p=1.0),
    "stretch": T.Stretch((0.5, 1.5), (0.5, 1.5)),
    "elastic": T.ElasticTransform(60.0, 4.0),
    "folding elastic": T.ElasticTransform(300.0, 3.0, interpolation="nearest"),
    "grid": T.GridDistortion(distort_limit=0.5),
    "lens": T.OpticalDistortion((-0.5, 0.5)),
    "plates": T.ThinPlateSpline(),
    "warp": T.OpticalFlowWarp(),
    "downscale": T.Downscale((0.1, 0.6)),
    "blocks twice": T.Compose(
        [
            T.RandomResizedCrop(30),
            T.Pad(3),
            T.Downscale((0.2, 0.6)),
            T.RandomVerticalFlip(),
            T.Downscale((0.2, 0.6), "bilinear"),
        ]
    ),
    "blocks that turn": T.Compose([T.RandomHorizontalFlip(), T.Downscale((0.2, 0.6)), TURN, T.Downscale((0.5, 0.9))]),
    "turned twice": T.Compose([TURN, T.RandomHorizontalFlip(), TURN]),
    "bent and turned": T.Compose([TURN, T.ElasticTransform(60.0, 4.0), TURN, T.RandomResizedCrop(30)]),
    "RandAugment": T.RandAugment(3, 12, interpolation="bilinear"),
    "TrivialAugment": T.TrivialAugmentWide(),
    "AutoAugment": T.AutoAugment(),
    "AugMix": T.AugMix(severity=8),
    "erasing": T.RandomErasing(1.0),
}
# An edge that lies on the center of a pixel may move by a block, of at most 5 pixels, in each Downscale.
ROUNDING = {"blocks twice": 10.0}
MIXES = {"Mosaic": T.Mosaic(), "CutMix": T.CutMix(), "MixUp": T.MixUp(), "ResizeMix": T.ResizeMix()}


def sample(box: tuple[int, int, int, int]) -> dict[str, Any]:
    left, top, right, bottom = box
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[top:bottom, left:right] = 1
    return {"image": np.repeat(mask[..., None] * 200, 3, axis=2), "boxes": [box], "masks": mask[None]}


@st.composite
def rectangles(draw: st.DrawFn) -> tuple[int, int, int, int]:
    left, top = draw(st.integers(0, WIDTH - 1)), draw(st.integers(0, HEIGHT - 1))
    return left, top, draw(st.integers(left + 1, WIDTH)), draw(st.integers(top + 1, HEIGHT))


def check_together(results: list[dict[str, Any]], rounding: float = 0.0) -> None:
    """``rounding``: of blocks; and of nearest rotations of large images, whose matrices are rounded to 1/65536."""
    for result in results:
        for box, mask in zip(result["boxes"].tolist(), result["masks"].numpy(), strict=True):
            (height, width), (left, top, right, bottom) = mask.shape, box
            assert 0 <= left <= right <= width
            assert 0 <= top <= bottom <= height
            y, x = np.nonzero(mask)
            if len(x):
                assert min(x.min() - left, right - x.max() - 1, y.min() - top, bottom - y.max() - 1) >= -1 - rounding, (
                    box
                )


@pytest.mark.parametrize("name", GEOMETRY)
def test_mask_lies_within_the_box(name: str) -> None:
    augmenter = vg.Augmenter(GEOMETRY[name], device="cpu", num_threads=1)

    @settings(max_examples=6)
    @given(st.lists(rectangles(), min_size=8, max_size=8), st.integers(0, 2**32))
    def check(boxes: list[tuple[int, int, int, int]], first: int) -> None:
        results = augmenter([sample(box) for box in boxes], ids=range(first, first + len(boxes)))
        check_together(results, ROUNDING.get(name, 0.0))

    check()


def test_a_small_image_that_is_bent_and_enlarged() -> None:
    """What a field shows between the centres of pixels counts as well, since the next map may show it."""
    bend = T.OneOf([T.ElasticTransform(60.0, 4.0), T.GridDistortion(distort_limit=0.5), T.ThinPlateSpline()])
    augmenter = vg.Augmenter(T.Compose([bend, T.Resize((70, 90))]), device="cpu", num_threads=1)
    boxes = [(3, 2, 4, 3), (0, 0, 9, 1), (6, 0, 7, 7), (0, 5, 9, 7)]
    samples = []
    for left, top, right, bottom in boxes:
        mask = np.zeros((7, 9), np.uint8)
        mask[top:bottom, left:right] = 1
        samples.append({"image": np.zeros((7, 9, 3), np.uint8), "boxes": [(left, top, right, bottom)]})
        samples[-1] |= {"masks": mask[None], "mask": mask}
    results = augmenter(samples * 50, ids=range(200))
    check_together(results)
    # A box is left where its mask is, but for what is thinner than a pixel.
    assert all(len(result["boxes"]) or int(result["mask"].sum()) < 20 for result in results)


def test_boxes_of_pixels_that_grow_are_those_of_their_masks() -> None:
    """To the pixel, whichever way round the image is; boxes of which no pixel is read stay."""
    turned = T.Compose([T.D4(), T.Downscale((0.1, 0.5)), T.D4()])
    rng = np.random.default_rng(0)
    boxes = [
        tuple(map(int, (x[0], y[0], x[1] + 1, y[1] + 1)))
        for x, y in zip(
            np.sort(rng.integers(0, WIDTH, (200, 2))), np.sort(rng.integers(0, HEIGHT, (200, 2))), strict=True
        )
    ]
    augmenter = vg.Augmenter(turned, device="cpu", num_threads=1)
    shown = 0
    for result in augmenter([sample(box) for box in boxes], ids=range(200)):
        y, x = np.nonzero(result["masks"].numpy()[0])
        if len(x):
            assert result["boxes"][0].tolist() == [x.min(), y.min(), x.max() + 1, y.max() + 1]
            shown += 1
    assert shown > 100
    [plain] = vg.Augmenter(T.Resize((20, 20), interpolation="nearest"))([sample((3, 4, 30, 20))])
    np.testing.assert_allclose(plain["boxes"], [[3 * 20 / 41, 4 * 20 / 33, 30 * 20 / 41, 20 * 20 / 33]], rtol=1e-6)


def test_a_box_that_ends_where_a_crop_begins_is_dropped_however_it_rounds() -> None:
    for begin in range(1, 40):
        crop = function("resized_crop", {"top": 0, "left": begin, "height": HEIGHT, "width": 1, "size": [86, 61]})
        augmenter = vg.Augmenter(crop, device="cpu", num_threads=1)
        [result] = augmenter([sample((begin - 1, 0, begin, HEIGHT))])
        assert result["boxes"].shape == (0, 4)
        [result] = augmenter([sample((begin + 1, 0, begin + 2, HEIGHT))]) if begin + 2 <= WIDTH else [result]
        assert result["boxes"].shape == (0, 4)


@pytest.mark.parametrize("name", MIXES)
@pytest.mark.parametrize("before", ["flips", "affine", "elastic"])
def test_mixed_masks_lie_within_their_boxes(name: str, before: str) -> None:
    augmenter = vg.Augmenter(T.Compose([GEOMETRY[before], MIXES[name]]), device="cpu", num_threads=1)

    @settings(max_examples=6)
    @given(st.lists(rectangles(), min_size=8, max_size=8), st.integers(0, 2**32))
    def check(boxes: list[tuple[int, int, int, int]], first: int) -> None:
        samples = [sample(box) for box in boxes]
        check_together(augmenter(samples, ids=range(first, first + len(boxes)), partners="batch"))

    check()


def test_mask_shows_what_a_nearest_image_shows() -> None:
    """A mask of a black and white image, and the image cut at half its value, differ along outlines alone."""
    values_change = ("AugMix", "erasing", "blocks twice", "RandAugment", "TrivialAugment", "AutoAugment")
    samples = [sample(box) for box in ((4, 6, 30, 27), (0, 0, 20, 33), (11, 2, 41, 16), (5, 5, 36, 28))]
    for name in GEOMETRY.keys() - values_change:
        augmenter = vg.Augmenter(GEOMETRY[name], device="cpu", num_threads=1, layout="NHWC")
        for result in augmenter(samples, ids=range(4), targets=vg.Targets()):
            for each in result["masks"][:1]:
                image, mask = result["image"].numpy()[..., 0] > 100, each.numpy() > 0
                assert (image != mask).mean() < 0.02, name

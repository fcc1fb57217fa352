"""Boxes and sizes: torchvision's algorithms, restated plainly, against what is sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from PIL import Image

import variegate as vg
from tests import oracle
from tests.images import photo
from tests.pillow_oracle import resize
from variegate import transforms as T
from variegate.program.ops import Op
from variegate.program.program import Program

PHOTOS = [(1, 1), (1, 7), (7, 1), (223, 225), (225, 223), (480, 640), (333, 500), (2, 3)]


def boxes_of(program: Program) -> np.ndarray:
    assert (program.opcode[:, 0] == Op.RESIZED_CROP).all()
    return program.args[:, 0, :4].astype(int)


def torchvision_boxes(
    rng: np.random.Generator, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[int, int, int, int]:
    """One draw of torchvision's RandomResizedCrop.make_params."""
    for _ in range(10):
        area = height * width * rng.uniform(*scale)
        aspect = math.exp(rng.uniform(math.log(ratio[0]), math.log(ratio[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1)), h, w
    in_ratio = width / height
    if in_ratio < min(ratio):
        w, h = width, round(width / min(ratio))
    elif in_ratio > max(ratio):
        h, w = height, round(height * max(ratio))
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.parametrize("size", [(480, 640), (100, 300)])
def test_random_resized_crop_draws_torchvision_boxes(draw: Any, size: tuple[int, int]) -> None:
    scale, ratio, n = (0.08, 1.0), (3 / 4, 4 / 3), 20_000
    ours = boxes_of(draw(T.RandomResizedCrop(224), n, size=(*size, 3)))
    rng = np.random.default_rng(0)
    theirs = np.array([torchvision_boxes(rng, *size, scale, ratio) for _ in range(n)])
    for column in range(4):
        a, b = np.sort(ours[:, column]), np.sort(theirs[:, column])
        grid = np.unique(np.concatenate([a, b]))
        distance = np.abs(np.searchsorted(a, grid, "right") - np.searchsorted(b, grid, "right")).max() / n
        # Kolmogorov-Smirnov at n = 20,000 twice: 0.0195 is passed by chance once in a thousand.
        assert distance < 0.0195
    area = ours[:, 2] * ours[:, 3] / (size[0] * size[1])
    assert scale[0] - 0.01 < area.min() < area.max() <= 1.0
    assert (ours[:, 0] + ours[:, 2] <= size[0]).all()
    assert (ours[:, 1] + ours[:, 3] <= size[1]).all()


def test_random_resized_crop_of_extreme_shapes_takes_the_centre(draw: Any) -> None:
    program = draw(T.RandomResizedCrop(8, scale=(0.9, 1.0)), [(10, 1000), (1000, 10), (100, 100), (1, 7)])
    wide, tall, square, thin = boxes_of(program)
    assert tuple(wide) == (0, (1000 - 13) // 2, 10, 13)
    assert tuple(tall) == ((1000 - 13) // 2, 0, 13, 10)
    assert square[2] * square[3] >= 0.85 * 100 * 100
    assert tuple(thin) == (0, 3, 1, 1)
    assert (program.out_size[:, 0] == 8).all()


def test_random_resized_crop_fits_every_size(draw: Any) -> None:
    program = draw(T.RandomResizedCrop((5, 9)), PHOTOS * 64)
    boxes, sizes = boxes_of(program), program.in_shape[:, :2]
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= sizes).all()


@pytest.mark.parametrize(("interpolation", "edges"), [("bilinear", "crop"), ("lanczos", "crop"), ("nearest", "image")])
def test_a_batch_of_cut_boxes_is_pillows_crops_resized(draw: Any, interpolation: Any, edges: Any) -> None:
    """A cut is a CROP before the resize; a box that is the image has none."""
    images = [photo(*size) for size in ((60, 80), (33, 20), (7, 40), (1, 1))] * 5
    transform = T.RandomResizedCrop((24, 31), interpolation=interpolation, edges=edges)
    augmenter = vg.Augmenter(transform, layout="NHWC")
    program = augmenter.program(images, ids=range(20))
    assert set(program.length.tolist()) == {1, 2}
    whole = vg.Augmenter(T.RandomResizedCrop((24, 31), interpolation=interpolation)).program(images, ids=range(20))
    resample = Image.Resampling[interpolation.upper()]
    boxes = boxes_of(whole) if edges == "crop" else None
    for n, out in enumerate(augmenter(images, ids=range(20))):
        steps = program.operations(n)
        height, width = images[n].shape[:2]
        top, left, h, w = (int(v) for v in steps[0][1][:4]) if len(steps) == 2 else (0, 0, height, width)
        assert boxes is None or boxes[n].tolist() == [top, left, h, w]
        cut = Image.fromarray(images[n]).crop((left, top, left + w, top + h))
        expected = resize(cut, (31, 24), resample)
        np.testing.assert_array_equal(out.numpy(), np.asarray(expected))


def test_resize_by_the_short_side_cuts_fractions_off(draw: Any) -> None:
    program = draw(T.Resize(100), [(333, 500), (500, 333), (100, 100), (480, 640), (1, 7), (7, 1)])
    sizes = [program.final_size(row) for row in range(6)]
    assert sizes == [(100, 150), (150, 100), (100, 100), (100, 133), (100, 700), (700, 100)]
    assert program.length.tolist() == [1, 1, 0, 1, 1, 1]


def test_resize_bounds_the_long_side(draw: Any) -> None:
    program = draw(T.Resize(100, max_size=120), [(333, 500), (1, 7), (110, 100), (1000, 3)])
    assert [program.final_size(row) for row in range(4)] == [(80, 120), (17, 120), (110, 100), (120, 1)]
    program = draw(T.Resize(None, max_size=50), [(100, 200), (200, 50)])
    assert [program.final_size(row) for row in range(2)] == [(25, 50), (50, 12)]


def test_center_crop_is_torchvisions(draw: Any) -> None:
    sizes = [(5, 6), (9, 9), (4, 4), (1, 7), (3, 8), (7, 5)]
    program = draw(T.CenterCrop(4), sizes)
    for row, (height, width) in enumerate(sizes):
        padded = [max(height, 4), max(width, 4)]
        before = [(4 - side) // 2 if side < 4 else 0 for side in (height, width)]
        expected = [round((side - 4) / 2) - b for side, b in zip(padded, before, strict=True)]
        got = program.args[row, 0, :2].tolist() if program.length[row] else [0, 0]
        assert got == expected
        assert program.final_size(row) == (4, 4)
    assert program.length[2] == 0


def test_random_crop_pads_what_lacks_on_both_sides(draw: Any) -> None:
    program = draw(T.RandomCrop(10, pad_if_needed=True, padding_mode="edge"), [(6, 20), (20, 10), (10, 10)])
    (pad, pad_args), (crop, crop_args) = program.operations(0)
    assert (pad, crop) == (Op.PAD, Op.CROP)
    assert pad_args[:4].tolist() == [0, 4, 0, 4]
    assert 0 <= crop_args[0] <= 4
    assert [op for op, _ in program.operations(1)] == [Op.CROP]
    assert program.length[2] == 0


def test_random_crop_refuses_small_images(draw: Any) -> None:
    with pytest.raises(ValueError, match=r"RandomCrop: size=\(8, 8\).* image of \(7, 9\) after padding; pass pad_if"):
        draw(T.RandomCrop(8), [(9, 9), (7, 9)])


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_random_crop_pixels_come_from_the_padded_image(draw: Any, mode: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)
    program = draw(T.RandomCrop(8, padding=3, fill=9, padding_mode=mode), [(6, 7)] * 20)
    extra = {"constant_values": 9} if mode == "constant" else {}
    padded = np.pad(image, ((3, 3), (3, 3), (0, 0)), mode, **extra)  # type: ignore[call-overload]
    windows = {padded[y : y + 8, x : x + 8].tobytes() for y in range(5) for x in range(6)}
    placed = {np.ascontiguousarray(_as_hwc(out)).tobytes() for out in oracle.run(program, [image] * 20)}
    assert placed <= windows
    assert len(placed) > 1


def _as_hwc(out: Any) -> np.ndarray:
    array = np.asarray(out)
    return array if array.shape[-1] == 3 else array.transpose(1, 2, 0)

"""Dicts in, dicts out: kinds of boxes and masks, what is dropped, what mixing joins, and what is refused."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.functions import function
from variegate import transforms as T

HEIGHT, WIDTH = 40, 60
IMAGE = np.arange(HEIGHT * WIDTH * 3, dtype=np.uint32).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)
FLIP = T.RandomHorizontalFlip(1.0)


def run(transform: T.Transform, *samples: Any, partners: Any = None, **options: Any) -> list[dict[str, Any]]:
    augmenter = vg.Augmenter(transform, device="cpu", num_threads=1)
    return list(augmenter(list(samples), ids=range(len(samples)), targets=vg.Targets(**options), partners=partners))


def sample(**entries: Any) -> dict[str, Any]:
    return {"image": IMAGE, **entries}


@pytest.mark.parametrize(
    ("box_format", "box", "flipped"),
    [
        ("xyxy", [10, 5, 30, 25], [30, 5, 50, 25]),
        ("xywh", [10, 5, 20, 20], [30, 5, 20, 20]),
        ("cxcywh", [20, 15, 20, 20], [40, 15, 20, 20]),
        ("cxcywhr", [20, 15, 16, 8, 30], [40, 15, 16, 8, 150]),
    ],
)
def test_box_formats(box_format: str, box: list[float], flipped: list[float]) -> None:
    [result] = run(FLIP, sample(boxes=torch.tensor([box])), box_format=box_format)
    assert result["boxes"].dtype == torch.float32
    got = result["boxes"][0].tolist()
    if box_format == "cxcywhr":
        got[4] %= 180.0  # a rectangle turned by half a turn is the same
    assert got == pytest.approx(flipped, abs=1e-4)


def test_normalized_boxes_are_shares_of_the_new_image() -> None:
    crop = function("crop", {"top": 0, "left": 0, "height": 20, "width": 30})
    entries = {"boxes": [[0.25, 0.25, 0.75, 0.375]], "keypoints": [[0.25, 0.25]]}
    [result] = run(crop, sample(**entries), normalized=True)
    assert result["boxes"].tolist() == [[0.5, 0.5, 1.0, 0.75]]
    assert result["keypoints"].tolist() == [[0.5, 0.5]]


def test_rotated_boxes_turn_with_the_image() -> None:
    [result] = run(function("rotate", {"angle": 30.0}), sample(boxes=[[30, 20, 16, 8, 10]]), box_format="cxcywhr")
    assert result["boxes"][0].tolist() == pytest.approx([30, 20, 16, 8, 40], abs=1e-3)


def test_boxes_that_leave_take_their_labels_and_masks_along() -> None:
    masks = np.zeros((4, HEIGHT, WIDTH), bool)
    entries: dict[str, Any] = {
        "boxes": [[0, 0, 10, 10], [16, 10, 26, 20], [22, 10, 32, 20], [25, 15, 29, 19]],
        "labels": ["out", "most left", "in", "small"],
        "masks": masks,
        "iscrowd": np.arange(4),
        "keypoints": np.full((4, 2, 3), 25.0),
    }
    crop = function("crop", {"top": 10, "left": 20, "height": 20, "width": 20})
    [result] = run(crop, sample(**entries), per_box=["iscrowd"])
    assert result["labels"] == ["most left", "in", "small"]
    assert result["iscrowd"].tolist() == [1, 2, 3]
    assert result["masks"].shape == (3, 20, 20)
    assert result["masks"].dtype == torch.bool
    assert result["keypoints"].shape == (3, 2, 3)
    [result] = run(crop, sample(**entries), per_box=["iscrowd"], min_visibility=0.61)
    assert result["labels"] == ["in", "small"]
    [result] = run(crop, sample(**entries), per_box=["iscrowd"], min_area=17)
    assert result["labels"] == ["most left", "in"]
    [result] = run(crop, sample(**entries), per_box=["iscrowd"], min_visibility=0.6)
    assert result["labels"] == ["most left", "in", "small"]


@pytest.mark.parametrize("device", ["oracle", "cpu"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_masks_read_the_very_pixels_of_a_nearest_image(device: str, dtype: Any) -> None:
    turn = T.Compose([T.RandomAffine(90, (0.2, 0.2), (0.6, 1.6), 20), FLIP, T.RandomResizedCrop(31, interpolation=0)])
    augmenter = vg.Augmenter(turn, device=device, layout="NHWC")
    level = IMAGE[..., 0].astype(dtype)
    results = augmenter([sample(mask={"one": level, "two": level.max() - level})] * 6, ids=range(6))
    for result in results:
        assert result["mask"]["one"].dtype == torch.from_numpy(level).dtype
        inside = (result["image"] != 0).any(dim=2)
        assert (result["mask"]["one"] == result["image"][..., 0])[inside].float().mean() > 0.999


def test_masks_have_a_fill_of_their_own_and_all_values_of_their_dtype() -> None:
    mask = np.full((HEIGHT, WIDTH), -(2**31), np.int32)
    [result] = run(T.Pad(2, fill=9), sample(mask=mask), mask_fill=255)
    assert result["mask"].unique().tolist() == [-(2**31), 255]
    assert result["mask"].dtype == torch.int32


def test_mosaic_and_cutmix_join_boxes_labels_and_masks() -> None:
    samples = [
        sample(boxes=[[0, 0, 60, 40]], labels=[n], mask=np.full((HEIGHT, WIDTH), n, np.uint8), label=n, image_id=n)
        for n in range(4)
    ]
    for mix in (T.Mosaic(num_classes=4), T.CutMix(num_classes=4)):
        for n, result in enumerate(run(mix, *samples, partners="batch", passed=["image_id"])):
            assert result["image_id"] == n
            assert result["label"].shape == (4,)
            values, counts = result["mask"].unique(return_counts=True)
            assert sorted(result["labels"]) == values.tolist()
            shares = torch.zeros(4).index_add_(0, values.long(), counts / (HEIGHT * WIDTH))
            assert torch.allclose(shares, result["label"], atol=1e-6)
            if isinstance(mix, T.Mosaic):
                for (left, top, right, bottom), label in zip(result["boxes"].int(), result["labels"], strict=True):
                    assert (result["mask"][top:bottom, left:right] == label).all()
                    assert (right - left) * (bottom - top) == (result["mask"] == label).sum()


def test_mixup_keeps_both_images_boxes_and_the_mask_that_is_seen_more() -> None:
    samples = [sample(boxes=[[n, 0, n + 5, 5]], mask=np.full((HEIGHT, WIDTH), n, np.uint8), label=n) for n in (1, 2)]
    for n, result in enumerate(run(T.MixUp(num_classes=3), *samples, partners="batch")):
        own, other = n + 1, 2 - n
        assert result["boxes"][:, 0].tolist() == [own, other]
        assert result["mask"].unique().tolist() == [own if result["label"][own] >= 0.5 else other]


def test_images_are_those_of_a_call_without_targets() -> None:
    t = T.Compose([T.RandomResizedCrop(20), T.RandAugment(), T.Normalize(0.5, 0.5)])
    augmenter = vg.Augmenter(t, device="cpu")
    results = augmenter([sample(boxes=[[0, 0, 60, 40]], label=1)] * 5, ids=range(5), epoch=2)
    alone = augmenter([IMAGE] * 5, ids=range(5), epoch=2)
    assert all(torch.equal(result["image"], image) for result, image in zip(results, alone, strict=True))
    assert [list(result) for result in results] == [["image", "boxes", "label"]] * 5


def test_no_boxes_stay_no_boxes() -> None:
    [result] = run(FLIP, sample(boxes=[], labels=[], masks=[]))
    assert result["boxes"].shape == (0, 4)
    assert result["masks"].shape == (0, HEIGHT, WIDTH)
    assert result["labels"] == []


def test_arrays_of_names_are_lists_and_bytes_may_lie_the_other_way() -> None:
    entries = {"boxes": np.array([[10, 5, 20, 9]], ">f4"), "labels": np.array(["cat"]), "who": np.array([{}], object)}
    mask = np.arange(HEIGHT * WIDTH, dtype=">i4").reshape(HEIGHT, WIDTH)
    [result] = run(FLIP, sample(**entries, mask=mask), per_box=["who"])
    assert result["labels"] == ["cat"]
    assert result["who"] == [{}]
    assert result["boxes"].tolist() == [[40, 5, 50, 9]]
    np.testing.assert_array_equal(result["mask"], mask[:, ::-1].astype(np.int32))


class _Wrapped(torch.Tensor):
    canvas_size: tuple[int, int]
    format: Any


_Wrapped.__module__ = "torchvision.tv_tensors._bounding_boxes"


def test_tv_tensors_come_back_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torchvision.tv_tensors")

    def wrap(tensor: torch.Tensor, *, like: _Wrapped, canvas_size: tuple[int, int]) -> torch.Tensor:
        wrapped = tensor.as_subclass(type(like))
        wrapped.canvas_size, wrapped.format = canvas_size, like.format
        return wrapped

    module.wrap = wrap  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision.tv_tensors", module)
    boxes = torch.tensor([[10.0, 5.0, 20.0, 20.0]]).as_subclass(_Wrapped)
    boxes.canvas_size, boxes.format = (HEIGHT, WIDTH), types.SimpleNamespace(name="XYWH")
    [result] = run(T.Resize((20, 30)), sample(boxes=boxes), box_format="xywh")
    assert isinstance(result["boxes"], _Wrapped)
    assert result["boxes"].canvas_size == (20, 30)
    assert result["boxes"].tolist() == [[5.0, 2.5, 10.0, 10.0]]
    with pytest.raises(ValueError, match=r"samples\[0\]\['boxes'\]: got BoundingBoxes with format=XYWH"):
        run(FLIP, sample(boxes=boxes))
    boxes.canvas_size = (HEIGHT, WIDTH + 1)
    with pytest.raises(ValueError, match=rf"\['boxes'\]: got canvas_size=.*accepted: .* \({HEIGHT}, {WIDTH}\)"):
        run(FLIP, sample(boxes=boxes), box_format="xywh")
    boxes.format = types.SimpleNamespace(name="XYXYXYXY")
    boxes.canvas_size = (HEIGHT, WIDTH)
    with pytest.raises(ValueError, match=r"format=XYXYXYXY.*accepted: formats XYXY, XYWH, CXCYWH, CXCYWHR"):
        run(FLIP, sample(boxes=boxes))


@pytest.mark.parametrize(
    "transform",
    [
        T.Compose([T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5), T.ColorJitter(0.3), T.RandomHorizontalFlip()]),
        T.Compose(
            [T.RandomHorizontalFlip(), T.RandomIoUCrop(), T.SanitizeBoundingBoxes(min_size=4), T.Resize((20, 24))]
        ),
        T.Compose([T.RandomResizedBoxSafeCrop((30, 20)), T.ElasticTransform()]),
        T.Compose([T.RandomRotation(20, expand=True), T.AugMix(), T.RandomHorizontalFlip()]),
        T.RandAugment(),
    ],
)
def test_a_sample_alone_is_what_it_is_in_a_batch(transform: T.Transform) -> None:
    boxes = [[2.0, 3.0, 20.0, 30.0], [15.0, 5.0, 50.0, 35.0]]
    samples = [sample(mask=IMAGE[..., 0], boxes=boxes, labels=[3, 4], keypoints=[[10.0, 10.0, 2]])] * 6
    augmenter = vg.Augmenter(transform, device="cpu", seed=3)
    together = augmenter(samples, ids=range(6), epoch=1)
    for i, one in enumerate(together):
        [alone] = augmenter(samples[:1], ids=[i], epoch=1)
        assert alone.keys() == one.keys()
        assert all(torch.equal(torch.as_tensor(alone[key]), torch.as_tensor(one[key])) for key in one)


@pytest.mark.parametrize("dtype", [np.uint16, np.int8, np.uint32, np.uint64, ">u2", ">i4"])
def test_masks_of_any_integers_are_taken(dtype: Any) -> None:
    most = min(int(np.iinfo(dtype).max), 2**63 - 1)
    mask = np.array([[0, 1], [2, most]], dtype)
    (made,) = run(T.RandomHorizontalFlip(1.0), {"image": np.zeros((2, 2, 3), np.uint8), "mask": mask})
    assert np.asarray(made["mask"]).tolist() == [[1, 0], [most, 2]]


def test_mask_values_beyond_int64_are_refused() -> None:
    mask = np.full((2, 2), 2**63, np.uint64)
    with pytest.raises(ValueError, match=r"got 9,223,372,036,854,775,808; accepted: values up to 2\*\*63 - 1"):
        run(T.RandomHorizontalFlip(1.0), {"image": np.zeros((2, 2, 3), np.uint8), "mask": mask})

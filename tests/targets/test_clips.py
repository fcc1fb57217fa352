"""Clips with targets: every frame's masks, boxes and points follow by the clip's one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import photo
from variegate import transforms as T

HEIGHT, WIDTH = 40, 60
FRAMES = (3, 2)
MOVES = T.Compose([T.RandomAffine(20, scale=(0.8, 1.2)), T.RandomHorizontalFlip(), T.ColorJitter(0.4)])


def frame(n: int, t: int) -> dict[str, Any]:
    """As many boxes as the frame says, which move on."""
    boxes = [[5 + 4 * t, 5 + 9 * k, 25 + 4 * t, 15 + 9 * k] for k in range(t + n)]
    masks = np.zeros((len(boxes), HEIGHT, WIDTH), np.uint8)
    for mask, (left, top, right, bottom) in zip(masks, boxes, strict=True):
        mask[top:bottom, left:right] = 1
    image = np.roll(photo(HEIGHT, WIDTH), 5 * t + n, axis=1)
    points = np.array([[[box[0], box[1], 2]] for box in boxes], np.float32).reshape(-1, 1, 3)
    labels = [f"{n}.{t}.{k}" for k in range(len(boxes))]
    whole = masks.sum(axis=0).astype(np.uint8)
    return {"image": image, "boxes": boxes, "masks": masks, "labels": labels, "keypoints": points, "mask": whole}


def clip(n: int) -> dict[str, Any]:
    frames = [frame(n, t) for t in range(FRAMES[n])]
    found: dict[str, Any] = {key: [each[key] for each in frames] for key in frames[0]}
    return {**found, "image": np.stack(found["image"]), "mask": np.stack(found["mask"]), "name": f"clip {n}"}


@pytest.mark.parametrize("device", ["oracle", "cpu"])
@pytest.mark.parametrize("t", [MOVES, T.AugMix()], ids=["moves", "augmix"])
def test_every_frame_is_that_of_an_image_with_the_clips_id(device: str, t: T.Transform) -> None:
    options = vg.Targets(passed=["name"])
    clips = vg.Augmenter(t, device, seed=5, consistent=True)([clip(0), clip(1)], ids=[7, 8], targets=options)
    augmenter = vg.Augmenter(t, device, seed=5)
    for n, result in enumerate(clips):
        assert result["name"] == f"clip {n}"
        assert result["image"].shape == (FRAMES[n], 3, HEIGHT, WIDTH)
        for at in range(FRAMES[n]):
            [wanted] = augmenter([frame(n, at)], ids=[7 + n])
            for key in ("image", "mask", "masks", "boxes", "keypoints"):
                assert torch.equal(result[key][at], wanted[key]), key
            assert result["labels"][at] == wanted["labels"]
    if t is MOVES and device == "cpu":
        own = vg.as_transform(t, seed=5, consistent=True, targets=options)(clip(1), id=8)
        assert torch.equal(own["masks"][1], clips[1]["masks"][1])
    alone = vg.Augmenter(t, device, seed=5, consistent=True)(clip(1), ids=8, targets=options)
    assert torch.equal(alone["image"], clips[1]["image"])


def test_crops_that_choose_by_the_boxes_of_all_frames() -> None:
    safe = vg.Augmenter(T.RandomBoxSafeCrop(), "cpu", consistent=True)
    for epoch in range(5):
        [result] = safe([{key: value for key, value in clip(0).items() if key != "name"}], ids=[1], epoch=epoch)
        assert [len(labels) for labels in result["labels"]] == [0, 1, 2]
        assert result["image"].shape[2:] == result["mask"].shape[1:]
        for boxes, masks in zip(result["boxes"], result["masks"], strict=True):
            for box, mask in zip(boxes.tolist(), masks, strict=True):
                assert (box[2] - box[0]) * (box[3] - box[1]) == mask.sum() == 200
    dropped = vg.Augmenter(T.RandomIoUCrop(0.5, 0.6), "cpu", consistent=True)
    for epoch in range(8):
        results = dropped(
            [{key: value for key, value in clip(n).items() if key != "name"} for n in (1, 0)], epoch=epoch
        )
        for n, result in zip((1, 0), results, strict=True):
            for at, (labels, boxes, masks) in enumerate(
                zip(result["labels"], result["boxes"], result["masks"], strict=True)
            ):
                assert len(labels) == len(boxes) == len(masks)
                assert all(label.startswith(f"{n}.{at}.") for label in labels)
                assert all(mask.any() for mask in masks)


def test_conditions_see_the_objects_of_all_frames() -> None:
    samples = [{"image": clip(0)["image"], "labels": labels} for labels in ([["a"], [], ["text"]], [["a"], [], []])]
    t = T.Cond(by="objects", none_of=["text"], then=T.Invert())
    kept, inverted = vg.Augmenter(t, "cpu", consistent=True, layout="NHWC")(samples)
    np.testing.assert_array_equal(kept["image"], clip(0)["image"])
    np.testing.assert_array_equal(inverted["image"], 255 - clip(0)["image"])


def test_wrong_clips() -> None:
    augmenter = vg.Augmenter(MOVES, "cpu", consistent=True)
    images = clip(0)["image"]
    with pytest.raises(ValueError, match=r"samples\[0\]\['boxes'\]: got 2 entries for a clip of 3 frames; accepted:"):
        augmenter([{"image": images, "boxes": [[], []]}])
    with pytest.raises(ValueError, match=r"samples\[0\], frame 1\['boxes'\]\[0\]: got \[5.0, 5.0, 90.0, 9.0\]"):
        augmenter([{"image": images, "boxes": [[], [[5, 5, 90, 9]], []]}])
    with pytest.raises(ValueError, match=r"samples\[0\], frame 2\['mask'\]: got shape"):
        augmenter([{"image": images, "mask": [np.zeros((HEIGHT, WIDTH), np.uint8)] * 2 + [np.zeros((3, 3), np.uint8)]}])
    with pytest.raises(ValueError, match="accepted with consistent=True: clips"):
        augmenter([{"image": images[0, ..., 0]}])

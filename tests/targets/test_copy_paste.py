"""CopyPaste: which pixels, masks, boxes and points come from a partner, and what of the image's own they hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests import oracle
from tests.executors.contract import DEVICES, Device
from tests.executors.test_mixes import INTERPRETED
from tests.images import gray, noise, photo
from tests.validating import validate
from variegate import transforms as T
from variegate.targets.copying import alpha_of

HEIGHT, WIDTH = 60, 80
# The partner as it is, at its own place.
SAME: dict[str, Any] = {"share": 1.0, "scale": (1.0, 1.0), "flip": 0.0, "feather": 0}


def sample(boxes: Any, value: int = 0, **more: Any) -> dict[str, Any]:
    """An image of one level whose masks fill their boxes."""
    masks = np.zeros((len(boxes), HEIGHT, WIDTH), np.uint8)
    for mask, (left, top, right, bottom) in zip(masks, boxes, strict=True):
        mask[top:bottom, left:right] = 1
    image = np.full((HEIGHT, WIDTH, 3), value, np.uint8)
    labels = [f"{value}.{n}" for n in range(len(boxes))]
    return {"image": image, "boxes": np.array(boxes, np.float32), "masks": masks, "labels": labels, **more}


def run(t: T.Transform, *samples: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    augmenter = vg.Augmenter(t, device="oracle", seed=3, layout="NHWC")
    return augmenter(list(samples), ids=range(len(samples)), partners="batch", targets=vg.Targets(**options))


def test_objects_of_a_partner_replace_what_they_hide() -> None:
    own = sample([[0, 0, 20, 20], [30, 10, 50, 30], [60, 40, 80, 60], [62, 5, 64, 6]], 50)
    partner = sample([[40, 10, 60, 30], [58, 0, 70, 8]], 200)
    result, other = run(T.CopyPaste(**SAME), own, partner)
    union = partner["masks"].any(axis=0)
    np.testing.assert_array_equal(result["image"], np.where(union[..., None], partner["image"], own["image"]))
    # The fourth is hidden as a whole; of the second the left half remains, and so does the first, untouched.
    assert result["labels"] == ["50.0", "50.1", "50.2", "200.0", "200.1"]
    assert result["boxes"].tolist()[:3] == [[0, 0, 20, 20], [30, 10, 40, 30], [60, 40, 80, 60]]
    assert result["boxes"].tolist()[3:] == partner["boxes"].tolist()
    wanted = np.concatenate([own["masks"][:3] & ~union, partner["masks"]])
    np.testing.assert_array_equal(result["masks"], wanted)
    assert own["masks"][1].sum() == 400  # what came is not written to
    assert other["labels"][:2] == ["200.0", "200.1"]
    assert len(other["labels"]) == 6


def test_least_visible_share_and_sides_that_stay() -> None:
    # Three quarters of the first are hidden; its box is larger than its mask.
    own, partner = sample([[10, 10, 30, 30]], 50), sample([[10, 10, 30, 25]], 200)
    own["boxes"] = np.array([[8.5, 9.25, 31, 31]], np.float32)
    [kept, _] = run(T.CopyPaste(**SAME, min_visibility=0.25), own, partner)
    assert kept["boxes"][0].tolist() == [8.5, 25, 31, 31]
    [dropped, _] = run(T.CopyPaste(**SAME, min_visibility=0.26), own, partner)
    assert dropped["labels"] == ["200.0"]
    own["boxes"], partner["boxes"] = [[8.5, 9.25, 22.5, 21.75]], [[10, 10, 20, 15]]
    [coco, _] = run(T.CopyPaste(**SAME), own, partner, box_format="xywh")
    assert coco["boxes"][0].tolist() == [8.5, 25, 22.5, 6]


def test_points_and_named_masks() -> None:
    whole = np.ones((HEIGHT, WIDTH), np.uint8)
    own = sample([[10, 10, 30, 30]], 1, keypoints=[[[15, 15, 2], [28, 28, 2]]], mask=7 * whole.astype(np.int32))
    partner = sample([[10, 10, 20, 20]], 2, keypoints=[[[12, 12, 2], [40, 40, 2]]], mask=9 * whole)
    result, _ = run(T.CopyPaste(**SAME), own, partner)
    # Hidden ones are there, but not to be seen: the image's own, and the partner's beside its mask.
    assert result["keypoints"].tolist() == [[[15, 15, 1], [28, 28, 2]], [[12, 12, 2], [40, 40, 0]]]
    assert (result["mask"].numpy() == np.where(partner["masks"][0], 9, 7)).all()
    for each in (own, partner):
        each["keypoints"] = [[15, 15, 2], [40, 40, 2]]
    result, _ = run(T.CopyPaste(**SAME), own, partner)
    assert result["keypoints"].tolist() == [[15, 15, 1], [40, 40, 2], [15, 15, 2], [40, 40, 0]]


def test_scaled_and_mirrored_objects_stay_within_their_masks() -> None:
    """Objects are levels of their own, so that every pixel says where it is from."""
    boxes, found = [[5, 5, 35, 45], [50, 20, 75, 40]], set()
    partner = sample(boxes, 0)
    for n, mask in enumerate(partner["masks"]):
        partner["image"][mask != 0] = 100 + 100 * n
    for seed in range(12):
        augmenter = vg.Augmenter(T.CopyPaste(1.0, (0.4, 2.0), feather=0), "oracle", seed=seed, layout="NHWC")
        [result] = augmenter([sample([], 50), partner], ids=[0, 1], partners=[[1]])
        image, masks = result["image"].numpy()[..., 0], result["masks"].numpy() != 0
        assert (image[~masks.any(axis=0)] == 50).all()
        for label, box, mask in zip(result["labels"], result["boxes"].tolist(), masks, strict=True):
            inner = alpha_of(mask, 2) == 255  # edges are interpolated
            assert inner.any()
            assert (image[inner] == (100 if label == "0.0" else 200)).all()
            y, x = np.nonzero(mask)
            assert np.abs(np.array([x.min(), y.min(), x.max() + 1, y.max() + 1]) - box).max() <= 1.0
        if len(masks) == 2:
            found.add(result["boxes"][0, 0].item() < result["boxes"][1, 0].item())
    assert found == {True, False}


@pytest.mark.parametrize("feather", [0, 1, 3])
def test_alpha_is_the_mean_of_a_square(feather: int) -> None:
    plane = noise(9, 14)[..., 0] > 128
    padded = np.pad(plane, feather, mode="edge")
    side = 2 * feather + 1
    mean = np.lib.stride_tricks.sliding_window_view(padded, (side, side)).mean(axis=(2, 3))
    np.testing.assert_array_equal(alpha_of(plane, feather), np.floor(255 * mean + 0.5 + 1e-9))


@pytest.mark.parametrize("device", [pytest.param(d, id=d.name, marks=d.marks) for d in (*DEVICES, INTERPRETED)])
def test_devices_agree(device: Device) -> None:
    for make, tail in ((photo, []), (gray, [T.Normalize(0.4, 0.2)])):
        samples = []
        for n, (height, width) in enumerate([(60, 80), (60, 80), (60, 80)]):
            one = sample([[5, 5, 30, 40], [40 - n, 10, 70, 50]])
            samples.append({**one, "image": np.roll(make(height, width), 9 * n, axis=1)})
        choice = T.RandomChoice([T.CopyPaste(feather=2), T.MixUp()], p=[0.8, 0.2])
        t = T.Compose([T.RandomHorizontalFlip(), T.RandomAffine(20), choice, *tail])
        program, wanted = _planned(t, samples)
        images = [one["image"] for one in samples]
        for out, expected in zip(device.run(validate(program), images, geometry="exact"), wanted, strict=True):
            np.testing.assert_array_equal(out, expected)


def _planned(t: T.Transform, samples: list[dict[str, Any]]) -> tuple[Any, Any]:
    """A program with the alpha of its masks, and the outputs of the reference."""
    from variegate.augmenter.samples import follow
    from variegate.targets.samples import of_images

    augmenter, options = vg.Augmenter(t, "oracle", seed=1), vg.Targets()
    images = [one["image"] for one in samples]
    followed = follow(
        augmenter, images, lambda shapes: of_images(samples, shapes, options), options, ids=[0, 1, 2], partners="batch"
    )
    assert followed.program.blend is not None
    assert followed.program.blend.alpha is not None
    return followed.program, oracle.run(followed.program, images)


def test_a_sample_does_not_depend_on_its_batch() -> None:
    samples = [sample([[n, 5, 30 + n, 30], [40, 10, 60, 50]], 10 * n + 10) for n in range(5)]
    augmenter = vg.Augmenter(T.CopyPaste(), device="cpu", seed=9)
    together = augmenter(samples, ids=range(5), partners=[[4], [0], [1]])
    [alone] = augmenter([samples[2], samples[1]], ids=[2, 1], partners=[[1]])
    for key in ("image", "boxes", "masks"):
        assert torch.equal(together[2][key], alone[key])
    assert together[2]["labels"] == alone["labels"]


def test_nothing_to_paste() -> None:
    own, empty = sample([[0, 0, 20, 20]], 50), sample([], 200)
    result, _ = run(T.CopyPaste(**SAME), own, empty)
    assert (result["image"] == 50).all()
    assert result["labels"] == ["50.0"]
    [result, _] = run(T.CopyPaste(share=0.0), own, own)
    assert result["labels"] == ["50.0"]


def test_what_is_refused() -> None:
    own = sample([[0, 0, 20, 20]])
    without = {key: value for key, value in own.items() if key != "masks"}
    with pytest.raises(TypeError, match=r"samples\[1\]: got no masks of objects, by which CopyPaste pastes; accepted:"):
        run(T.CopyPaste(**SAME), without, without)
    with pytest.raises(TypeError, match="CopyPaste: got images without boxes"):
        vg.Augmenter(T.CopyPaste())([own["image"]] * 2, partners="batch")
    with pytest.raises(ValueError, match="CopyPaste after AugMix"):
        run(T.Compose([T.AugMix(), T.CopyPaste()]), own, own)
    with pytest.raises(ValueError, match="CopyPaste: feather=8; accepted: an integer from 0 to 7"):
        T.CopyPaste(feather=8)
    augmenter, boxes = vg.Augmenter(T.CopyPaste(1.0)), [own["boxes"]] * 2
    program = augmenter.program([own["image"]] * 2, ids=[0, 1], partners="batch", boxes=boxes)
    with pytest.raises(ValueError, match="program: got one without CopyPaste's masks"):
        augmenter.run(program, [own["image"]] * 2)

"""Samples that are wrong are refused, by errors that name the sample, the key, what came and what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.targets.test_samples import FLIP, HEIGHT, IMAGE, WIDTH, run, sample
from variegate import transforms as T

GOOD = sample(boxes=[[0, 0, 5, 5]], labels=[1])
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"boxes": [[0, 0, 5, 5], [1, 2, 61, 5]]},
        r"\['boxes'\]\[1\]: got \[1.0, 2.0, 61.0, 5.0\]; accepted: boxes within",
    ),
    ({"boxes": [[5, 0, 1, 5]]}, r"\['boxes'\]\[0\]: got \[5.0, 0.0, 1.0, 5.0\]; accepted: left <= right"),
    ({"boxes": [[0, 0, np.nan, 5]]}, r"\['boxes'\]\[0\]: got \[0.0, 0.0, nan, 5.0\]; accepted: finite numbers"),
    ({"boxes": [0, 0, 5, 5]}, r"\['boxes'\]: got shape \(4,\); accepted: finite numbers \[M, 4\], xyxy"),
    ({"boxes": [[0, 0, 5, 5], [1, 2]]}, r"\['boxes'\]: got \[\[0, 0, 5, 5\], \[1, 2\]\]; accepted: finite numbers"),
    ({"boxes": None}, r"\['boxes'\]: got None; accepted: finite numbers"),
    ({"boxes": np.array([[0, 0, 5, None]])}, r"\['boxes'\]: got object\[1, 4\]; accepted: finite numbers"),
    ({"boxes": torch.zeros(1, 4).to_sparse()}, r"\['boxes'\]: got a sparse_coo tensor; accepted: finite numbers"),
    ({"boxes": torch.zeros(1, 4, device="meta")}, r"\['boxes'\]: got a meta tensor; accepted: finite numbers"),
    ({"boxes": [[0, 0, 5, 1e300]]}, r"\['boxes'\]\[0\]: got .*; accepted: finite numbers"),
    ({"labels": np.array(["2020-01-01"], "M8[D]")}, r"\['labels'\]: got datetime64\[D\]\[1\]; accepted: a list, or an"),
    ({"labels": 3}, r"\['labels'\]: got 3; accepted: a list, or an array"),
    ({"labels": [1, 2]}, r"\['labels'\]: got 2 for 1 boxes; accepted: one for each box"),
]
WRONG_ENTRIES: list[tuple[dict[str, Any], str]] = [
    ({"mask": np.zeros((9, 9), np.uint8)}, r"\['mask'\]: got shape \(9, 9\); accepted: \[H, W\] of the image's size"),
    ({"mask": np.zeros((HEIGHT, WIDTH))}, r"\['mask'\]: got float64\[40, 60\]; accepted: .* of uint8 or int32"),
    ({"mask": {"depth": np.zeros((9, 9), np.uint8)}}, r"\['mask'\]\['depth'\]: got shape \(9, 9\)"),
    ({"masks": np.zeros((9, 9), np.uint8)}, r"\['masks'\]: got shape \(9, 9\); accepted: \[M, H, W\]"),
    ({"masks": 3}, r"\['masks'\]: got int64\[\]; accepted: \[M, H, W\]|\['masks'\]: got shape \(\)"),
    ({"keypoints": [[1, 1e300]]}, r"\['keypoints'\]\[0\]: got .*; accepted: finite numbers"),
    ({"keypoints": [[1, np.inf]]}, r"\['keypoints'\]\[0\]: got \[1.0, inf\]; accepted: finite numbers"),
    ({"keypoints": [[1, 2, 3, 4]]}, r"\['keypoints'\]: got shape \(1, 4\)"),
    ({"name": 1}, r": got the key 'name'; accepted: 'image', 'mask', .* list it in vg.Targets\(passed=\)"),
    ({"bbox": [[0, 0, 5, 5]]}, r": got the key 'bbox'; accepted: 'boxes', as it is called here"),
]


@pytest.mark.parametrize(("entries", "message"), WRONG)
def test_wrong_boxes_are_named_with_their_sample(entries: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^samples\[1\]" + message):
        run(FLIP, GOOD, {**GOOD, **entries})


@pytest.mark.parametrize(("entries", "message"), WRONG_ENTRIES)
def test_wrong_entries_are_named(entries: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^samples\[0\]" + message):
        run(FLIP, sample(**entries))


def test_batches_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"samples\[1\]: got \['image'\], and samples\[0\] .* differ in 'boxes', 'labels'"
    ):
        run(FLIP, GOOD, sample())
    with pytest.raises(TypeError, match=r"samples\[1\]: got ndarray among dicts"):
        run(FLIP, GOOD, IMAGE)
    with pytest.raises(ValueError, match="got 5 crops of 9x9 for samples with targets"):
        run(T.FiveCrop(9), GOOD)
    with pytest.raises(ValueError, match="mask_fill: got 300; accepted for uint8 masks: 0 to 255"):
        run(FLIP, sample(mask=np.zeros((HEIGHT, WIDTH), np.uint8)), mask_fill=300)
    with pytest.raises(ValueError, match="consistent=True"):
        vg.Augmenter(FLIP, device="cpu", consistent=True)([GOOD])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"box_format": "yolo"}, "box_format: got 'yolo'; accepted: 'cxcywh' with normalized=True, which is the same"),
        ({"box_format": "yxyx"}, "box_format: got 'yxyx'; accepted: one of 'xyxy', 'xywh', 'cxcywh', 'cxcywhr'"),
        ({"min_visibility": 2}, "min_visibility: got 2; accepted: a number from 0 to 1"),
        ({"passed": ["boxes"]}, "passed: got .*; accepted: keys that are none of the samples' own keys"),
        ({"passed": "id"}, "passed: got 'id'; accepted: a list of keys"),
        ({"normalized": True, "box_format": "cxcywhr"}, "normalized: got True"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vg.Targets(**options)


@pytest.mark.parametrize(
    ("entries", "others", "message"),
    [
        (
            {"mask": {"depth": np.zeros((HEIGHT, WIDTH), np.uint8)}},
            {"mask": np.zeros((HEIGHT, WIDTH), np.uint8)},
            r"got 'mask' with the names \['depth'\], and most of its batch 'mask' without names",
        ),
        (
            {"keypoints": [[1, 2]]},
            {"keypoints": [[1, 2, 2]]},
            r"got 'keypoints' \[M, 2\], and most of its batch \[M, 3\]",
        ),
    ],
)
def test_samples_that_are_written_unlike_the_others_are_named(
    entries: dict[str, Any], others: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"samples\[2\]: {message}; accepted: the same in all"):
        run(FLIP, sample(**others), sample(**others), sample(**entries))


@pytest.mark.parametrize("points", [[[1, 2, 2]], [[1, 2]], np.ones((1, 4, 3))])
def test_a_sample_without_key_points_may_be_mixed_with_those_that_have_some(points: Any) -> None:
    per_box = np.ndim(points) == 3
    boxes: dict[str, Any] = {"boxes": [[0, 0, WIDTH, HEIGHT]], "labels": [1]} if per_box else {}
    none: dict[str, Any] = {"boxes": [], "labels": []} if per_box else {}
    samples = [sample(keypoints=points, **boxes, label=0), sample(keypoints=[], **none, label=1)]
    for result in run(T.MixUp(num_classes=2), *samples, partners="batch"):
        assert result["keypoints"].shape[1:] == np.shape(points)[1:]
        assert len(result["keypoints"]) == 1


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (IMAGE.astype(np.float32), "got dtype float32; accepted: uint8"),
        (np.repeat(IMAGE, 11, axis=2), r"got shape \(40, 60, 33\); accepted: uint8 \[H, W, C\]"),
        ("photo.jpg", "got str; accepted: uint8"),
        (torch.zeros(3, 4, 5), "got dtype float32; accepted: uint8"),
    ],
)
def test_a_bad_image_is_named_with_its_sample(image: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^samples\[1\]\['image'\]: {message}"):
        run(FLIP, GOOD, {**GOOD, "image": image})
    with pytest.raises((TypeError, ValueError), match=rf"^sample\['image'\]: {message}"):
        vg.Augmenter(FLIP, device="cpu")({**GOOD, "image": image})
    with pytest.raises((TypeError, ValueError), match=rf"^images\[0\]: {message}"):
        vg.Augmenter(FLIP, device="cpu")([image])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"boxes": [[5, 0, 1, 5]]}, r"sample\['boxes'\]\[0\]: got \[5.0, 0.0, 1.0, 5.0\]; accepted: left <= right"),
        ({"labels": [1, 2]}, r"sample\['labels'\]: got 2 for 1 boxes"),
        ({"bbox": [[0, 0, 5, 5]]}, r"sample: got the key 'bbox'; accepted: 'image'"),
    ],
)
def test_what_is_wrong_with_a_single_dict(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + message):
        vg.Augmenter(FLIP, device="cpu")({**GOOD, **entries})


def test_a_dict_without_an_image() -> None:
    with pytest.raises(ValueError, match=r"^sample: got \['boxes'\] without 'image'"):
        vg.Augmenter(FLIP, device="cpu")({"boxes": [[0, 0, 5, 5]]})
    with pytest.raises(ValueError, match=r"^ids: got shape"):
        vg.Augmenter(FLIP, device="cpu")(GOOD, ids=[1, 2])

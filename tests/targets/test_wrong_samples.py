"""Samples that are wrong are refused, by errors that name the sample, the key, what came and what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.refusals import check_refused, every_refusal
from tests.targets.test_samples import FLIP, HEIGHT, IMAGE, WIDTH, run, sample
from variegate import transforms as T

GOOD = sample(boxes=[[0, 0, 5, 5]], labels=[1])
NAMES = {
    **{"FLIP": FLIP, "GOOD": GOOD, "HEIGHT": HEIGHT, "IMAGE": IMAGE, "T": T, "WIDTH": WIDTH},
    **{"np": np, "run": run, "sample": sample, "torch": torch, "vg": vg},
}
REFUSED = {
    'run(FLIP, GOOD, {**GOOD, "boxes": [[0, 0, 5, 5], [1, 2, 61, 5]]})': (
        "samples[1]['boxes'][1]: got [1.0, 2.0, 61.0, 5.0]; accepted: boxes within"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": [[5, 0, 1, 5]]})': (
        "samples[1]['boxes'][0]: got [5.0, 0.0, 1.0, 5.0]; accepted: left <= right"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": [[0, 0, np.nan, 5]]})': (
        "samples[1]['boxes'][0]: got [0.0, 0.0, nan, 5.0]; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": [0, 0, 5, 5]})': (
        "samples[1]['boxes']: got shape (4,); accepted: finite numbers [M, 4], xyxy"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": [[0, 0, 5, 5], [1, 2]]})': (
        "samples[1]['boxes']: got [[0, 0, 5, 5], [1, 2]]; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": None})': "TypeError: samples[1]['boxes']: got None; accepted: finite numbers",
    'run(FLIP, GOOD, {**GOOD, "boxes": np.array([[0, 0, 5, None]])})': (
        "TypeError: samples[1]['boxes']: got object[1, 4]; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": torch.zeros(1, 4).to_sparse()})': (
        "TypeError: samples[1]['boxes']: got a sparse_coo tensor; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": torch.zeros(1, 4, device="meta")})': (
        "TypeError: samples[1]['boxes']: got a meta tensor; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "boxes": [[0, 0, 5, 1e+300]]})': (
        "samples[1]['boxes'][0]: got ...; accepted: finite numbers"
    ),
    'run(FLIP, GOOD, {**GOOD, "labels": np.array(["2020-01-01"], "M8[D]")})': (
        "TypeError: samples[1]['labels']: got datetime64[D][1]; accepted: a list, or an"
    ),
    'run(FLIP, GOOD, {**GOOD, "labels": 3})': "samples[1]['labels']: got 3; accepted: a list, or an array",
    'run(FLIP, GOOD, {**GOOD, "labels": [1, 2]})': (
        "samples[1]['labels']: got 2 for 1 boxes; accepted: one for each box"
    ),
    "run(FLIP, sample(mask=np.zeros((9, 9), np.uint8)))": (
        "samples[0]['mask']: got shape (9, 9); accepted: [H, W] of the image's size"
    ),
    "run(FLIP, sample(mask=np.zeros((HEIGHT, WIDTH))))": (
        "TypeError: samples[0]['mask']: got float64[40, 60]; accepted: ... of uint8 or int32"
    ),
    'run(FLIP, sample(mask={"depth": np.zeros((9, 9), np.uint8)}))': "samples[0]['mask']['depth']: got shape (9, 9)",
    "run(FLIP, sample(masks=np.zeros((9, 9), np.uint8)))": (
        "samples[0]['masks']: got shape (9, 9); accepted: [M, H, W]"
    ),
    "run(FLIP, sample(keypoints=[[1, 1e+300]]))": "samples[0]['keypoints'][0]: got ...; accepted: finite numbers",
    "run(FLIP, sample(keypoints=[[1, np.inf]]))": (
        "samples[0]['keypoints'][0]: got [1.0, inf]; accepted: finite numbers"
    ),
    "run(FLIP, sample(keypoints=[[1, 2, 3, 4]]))": "samples[0]['keypoints']: got shape (1, 4)",
    "run(FLIP, sample(name=1))": (
        "samples[0]: got the key 'name'; accepted: 'image', 'mask', ... list it in vg.Targets(passed=)"
    ),
    "run(FLIP, sample(bbox=[[0, 0, 5, 5]]))": (
        "samples[0]: got the key 'bbox'; accepted: 'boxes', as it is called here"
    ),
    "run(FLIP, GOOD, sample())": "samples[1]: got ['image'], and samples[0] ... differ in 'boxes', 'labels'",
    "run(FLIP, GOOD, IMAGE)": "TypeError: samples[1]: got ndarray among dicts",
    "run(T.FiveCrop(9), GOOD)": "got 5 crops of 9x9 for samples with targets",
    "run(FLIP, sample(mask=np.zeros((HEIGHT, WIDTH), np.uint8)), mask_fill=300)": (
        "mask_fill: got 300; accepted for uint8 masks: 0 to 255"
    ),
    "vg.Augmenter(FLIP, consistent=True)([GOOD])": "consistent=True",
    'vg.Targets(box_format="yolo")': (
        "box_format: got 'yolo'; accepted: 'cxcywh' with normalized=True, which is the same"
    ),
    'vg.Targets(box_format="yxyx")': "box_format: got 'yxyx'; accepted: one of 'xyxy', 'xywh', 'cxcywh', 'cxcywhr'",
    "vg.Targets(min_visibility=2)": "min_visibility: got 2; accepted: a number from 0 to 1",
    'vg.Targets(passed=["boxes"])': "passed: got ...; accepted: keys that are none of the samples' own keys",
    'vg.Targets(passed="id")': "passed: got 'id'; accepted: a list of keys",
    'vg.Targets(normalized=True, box_format="cxcywhr")': "normalized: got True",
    'run(FLIP, GOOD, {**GOOD, "image": "photo.jpg"})': "TypeError: samples[1]['image']: got str; accepted: uint8",
    'vg.Augmenter(FLIP)({**GOOD, "image": "photo.jpg"})': "TypeError: sample['image']: got str; accepted: uint8",
    'vg.Augmenter(FLIP)(["photo.jpg"])': "TypeError: images[0]: got str; accepted: uint8",
    'vg.Augmenter(FLIP)({**GOOD, "boxes": [[5, 0, 1, 5]]})': (
        "sample['boxes'][0]: got [5.0, 0.0, 1.0, 5.0]; accepted: left <= right"
    ),
    'vg.Augmenter(FLIP)({**GOOD, "labels": [1, 2]})': "sample['labels']: got 2 for 1 boxes",
    'vg.Augmenter(FLIP)({**GOOD, "bbox": [[0, 0, 5, 5]]})': "sample: got the key 'bbox'; accepted: 'image'",
    'vg.Augmenter(FLIP)({"boxes": [[0, 0, 5, 5]]})': "sample: got ['boxes'] without 'image'",
    "vg.Augmenter(FLIP)(GOOD, ids=[1, 2])": "ids: got shape",
    "run(FLIP, sample(masks=3))": "samples[0]['masks']: got shape (); accepted: [M, H, W]",
    'run(FLIP, GOOD, {**GOOD, "image": IMAGE.astype(float)})': (
        "TypeError: samples[1]['image']: got dtype float64; accepted: uint8, uint16 or float32"
    ),
    'run(FLIP, GOOD, {**GOOD, "image": np.repeat(IMAGE, 11, axis=2)})': (
        "samples[1]['image']: got shape (40, 60, 33); accepted: uint8, uint16 or float32 [H, W, C]"
    ),
    'run(FLIP, GOOD, {**GOOD, "image": torch.zeros(3, 40, 60).double()})': (
        "TypeError: samples[1]['image']: got dtype float64; accepted: uint8, uint16 or float32"
    ),
    'vg.Augmenter(FLIP)({**GOOD, "image": IMAGE.astype(float)})': (
        "TypeError: sample['image']: got dtype float64; accepted: uint8, uint16 or float32"
    ),
    'vg.Augmenter(FLIP)({**GOOD, "image": np.repeat(IMAGE, 11, axis=2)})': (
        "sample['image']: got shape (40, 60, 33); accepted: uint8, uint16 or float32 [H, W, C]"
    ),
    'vg.Augmenter(FLIP)({**GOOD, "image": torch.zeros(3, 40, 60).double()})': (
        "TypeError: sample['image']: got dtype float64; accepted: uint8, uint16 or float32"
    ),
    "vg.Augmenter(FLIP)([IMAGE.astype(float)])": "TypeError: images[0]: got dtype float64; accepted: uint8, uint16 or",
    "vg.Augmenter(FLIP)([np.repeat(IMAGE, 11, axis=2)])": (
        "images[0]: got shape (40, 60, 33); accepted: uint8, uint16 or float32 [H, W, C]"
    ),
    "vg.Augmenter(FLIP)([torch.zeros(3, 40, 60).double()])": (
        "TypeError: images[0]: got dtype float64; accepted: uint8, uint16 or float32"
    ),
}


@every_refusal(REFUSED)
def test_refused(call: str, message: str) -> None:
    check_refused(call, message, NAMES)


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

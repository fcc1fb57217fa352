"""``vg.targets_from_albumentations``: how boxes, key points and masks of a pipeline are read."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.interop.convert.test_albumentations import DATA, compose, one
from variegate.interop.convert import ConversionError, ConversionWarning

# Parameters as to_dict() gives them: the targets here, the difference that is reported, or the message of the refusal.
TABLE: Any = json.loads((DATA / "albumentations-targets.json").read_text())


@pytest.mark.parametrize(("described", "expected"), TABLE["becomes"])
def test_how_samples_are_read(described: dict[str, Any], expected: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vg.targets_from_albumentations(compose(one("NoOp"), **described)) == vg.Targets(**expected)


@pytest.mark.parametrize(("params", "message"), TABLE["close"])
def test_what_differs_is_said(params: dict[str, Any], message: str) -> None:
    with pytest.warns(ConversionWarning, match=message) as caught:
        vg.targets_from_albumentations(compose(bbox_params=params))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("described", "message"), TABLE["refused"])
def test_what_nothing_here_means_is_refused(described: dict[str, Any], message: str) -> None:
    for convert in (vg.from_albumentations, vg.targets_from_albumentations):
        with pytest.raises(ConversionError, match=message):
            convert(compose(one("NoOp"), **described))


def test_a_pipeline_with_boxes_is_converted_and_says_how_samples_are_read() -> None:
    params = {"keypoint_params": {"coord_format": "xy"}, "bbox_params": {"coord_format": "coco"}}
    described = compose(one("HorizontalFlip"), **params)
    with pytest.warns(ConversionWarning, match=r"targets=Targets\(box_format='xywh'.*under 'boxes' here"):
        t = vg.from_albumentations(described)
    with pytest.warns(ConversionWarning, match="remove_invisible=True"):
        targets = vg.targets_from_albumentations(described)
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "boxes": [[10, 5, 20, 20]], "keypoints": [[10.0, 5.0]]}
    [result] = vg.Augmenter(t)([sample], targets=targets)
    assert result["boxes"].tolist() == [[30, 5, 20, 20]]
    assert result["keypoints"].tolist() == [[49, 5]]  # W - 1 - x, as there


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_masks_keep_the_value_of_ignored_pixels() -> None:
    """``fill_mask`` of a pipeline is that of ``vg.Targets``; without it ignored pixels would have class 0."""
    rotate = one("Rotate", angle_range=[45, 45], fill_mask=255)
    targets = vg.targets_from_albumentations(compose(rotate, one("CoarseDropout")))
    assert targets.mask_fill == 255
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "mask": np.ones((40, 60), np.uint8)}
    mask = vg.Augmenter(vg.from_albumentations(rotate))([sample], targets=targets)[0]["mask"].numpy()
    assert np.unique(mask).tolist() == [1, 255]
    assert mask[0, 0] == 255
    with pytest.raises(ConversionError, match=r"Compose.fill_mask: got \(0, 255\); accepted: one value for all"):
        vg.targets_from_albumentations(compose(rotate, one("Affine", fill_mask=0)))

"""``vg.targets_from_albumentations``: how boxes, key points and masks of a pipeline are read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.interop.convert.test_albumentations import compose, one
from variegate.interop.convert import ConversionError, ConversionWarning

# As to_dict() of 2.5.1 gives them, with their defaults.
BOXES = {
    **{"coord_format": "coco", "label_fields": None, "bbox_type": "hbb", "min_area": 0.0, "min_visibility": 0.0},
    **{"min_width": 0.0, "min_height": 0.0, "check_each_transform": True, "clip_bboxes_on_input": False},
    **{"filter_invalid_bboxes": False, "max_accept_ratio": None, "clip_after_transform": True},
}
POINTS = {
    **{"coord_format": "xy", "label_fields": None, "remove_invisible": False, "angle_in_degrees": True},
    **{"check_each_transform": True, "label_mapping": {}},
}


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({}, vg.Targets()),
        ({"keypoint_params": POINTS}, vg.Targets(point_origin="centre")),
        ({"bbox_params": {"format": "yolo", "clip": True}}, vg.Targets("cxcywh", normalized=True, clip=True)),
        *(
            ({"bbox_params": BOXES | params}, vg.Targets(**{"box_format": "xywh", **expected}))
            for params, expected in (
                ({}, {}),
                ({"coord_format": "pascal_voc"}, {"box_format": "xyxy"}),
                ({"coord_format": "albumentations"}, {"box_format": "xyxy", "normalized": True}),
                ({"coord_format": "cxcywh"}, {"box_format": "cxcywh"}),
                ({"min_area": 9.0, "min_visibility": 0.25}, {"min_area": 9.0, "min_visibility": 0.25}),
                ({"min_width": 4.0, "min_height": 4.0}, {"min_size": 4.0}),
                ({"clip_bboxes_on_input": True}, {"clip": True}),
                ({"label_fields": ["labels", "iscrowd"]}, {"per_box": ["iscrowd"]}),
            )
        ),
    ],
)
def test_how_samples_are_read(described: dict[str, Any], expected: vg.Targets) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vg.targets_from_albumentations(compose(one("NoOp"), **described)) == expected


def test_a_pipeline_with_boxes_is_converted_and_says_how_samples_are_read() -> None:
    described = compose(one("HorizontalFlip"), bbox_params=BOXES, keypoint_params=POINTS)
    with pytest.warns(ConversionWarning, match=r"targets=Targets\(box_format='xywh'.*under 'boxes' here"):
        t = vg.from_albumentations(described)
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "boxes": [[10, 5, 20, 20]], "keypoints": [[10.0, 5.0]]}
    [result] = vg.Augmenter(t)([sample], targets=vg.targets_from_albumentations(described))
    assert result["boxes"].tolist() == [[30, 5, 20, 20]]
    assert result["keypoints"].tolist() == [[49, 5]]  # W - 1 - x, as there


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"filter_invalid_bboxes": True}, "bbox_params.filter_invalid_bboxes=True: inverted boxes are errors here"),
        ({"label_fields": ["label"]}, r"bbox_params.label_fields=\('label',\): labels of boxes are under 'labels'"),
        ({"clip_after_transform": False}, "bbox_params.clip_after_transform=False: boxes are always cut off"),
    ],
)
def test_what_differs_is_said(params: dict[str, Any], message: str) -> None:
    with pytest.warns(ConversionWarning, match=message) as caught:
        vg.targets_from_albumentations(compose(bbox_params=BOXES | params))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bbox_params": {"format": "xyxy"}}, r"bbox_params.coord_format: got 'xyxy'; accepted: one of 'coco'"),
        ({"bbox_params": BOXES | {"bbox_type": "obb"}}, "bbox_params.bbox_type: got 'obb'; accepted: 'hbb'"),
        ({"bbox_params": BOXES | {"max_accept_ratio": 3.0}}, "bbox_params.max_accept_ratio: got 3.0; accepted: None"),
        ({"bbox_params": BOXES | {"min_width": 3.0}}, r"bbox_params.min_width: got \(3.0, 0.0\); accepted: the same"),
        ({"bbox_params": BOXES | {"min_area": -1}}, "Compose.bbox_params.min_area: got -1; accepted"),
        ({"bbox_params": BOXES | {"label_fields": ["boxes"]}}, r"label_fields: got \('boxes',\); accepted"),
        ({"bbox_params": BOXES | {"label_fields": ["label", "labels"]}}, "accepted: different names"),
        ({"bbox_params": 3}, "Compose.bbox_params: got 3; accepted: an object"),
        ({"keypoint_params": POINTS | {"label_fields": ["a"]}}, "keypoint_params.label_fields: got"),
        ({"additional_targets": {"second": "image"}}, "additional_targets.second: got 'image'; accepted: 'mask'"),
    ],
)
def test_what_nothing_here_means_is_refused(arguments: dict[str, Any], message: str) -> None:
    for convert in (vg.from_albumentations, vg.targets_from_albumentations):
        with pytest.raises(ConversionError, match=message):
            convert(compose(one("NoOp"), **arguments))


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
def test_masks_keep_the_value_of_ignored_pixels() -> None:
    """``fill_mask`` of a pipeline is that of ``vg.Targets``; without it ignored pixels would have class 0."""
    rotate = one("Rotate", angle_range=[45, 45], fill_mask=255)
    targets = vg.targets_from_albumentations(compose(rotate, one("CoarseDropout"), bbox_params=BOXES))
    assert targets.mask_fill == 255
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "mask": np.ones((40, 60), np.uint8)}
    mask = vg.Augmenter(vg.from_albumentations(rotate))([sample], targets=targets)[0]["mask"].numpy()
    assert np.unique(mask).tolist() == [1, 255]
    assert mask[0, 0] == 255
    with pytest.raises(ConversionError, match=r"Compose.fill_mask: got \(0, 255\); accepted: one value for all"):
        vg.targets_from_albumentations(compose(rotate, one("Affine", fill_mask=0)))

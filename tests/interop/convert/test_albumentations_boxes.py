"""Pipelines of AlbumentationsX 2.5.1 for detection: crops that keep boxes, and how boxes and key points are read."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.interop.convert.test_from_albumentations import compose, one
from variegate import transforms as T
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


def read(**arguments: Any) -> vg.Targets:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return vg.targets_from_albumentations(compose(one("NoOp"), **arguments))


@pytest.mark.parametrize(
    ("described", "expected", "differs"),
    [
        (one("BBoxSafeRandomCrop", erosion_rate=0.1), T.RandomBoxSafeCrop(0.1), "a single box is eroded here"),
        (
            one("RandomSizedBBoxSafeCrop", height=30, width=40, erosion_rate=0.0, interpolation=1),
            T.RandomResizedBoxSafeCrop((30, 40)),
            "RandomSizedBBoxSafeCrop.interpolation",
        ),
        (
            one("AtLeastOneBBoxRandomCrop", p=0.5, height=3, width=4, erosion_factor=0.2),
            T.RandomApply([T.RandomAtLeastOneBoxCrop((3, 4), 0.2)], p=0.5),
            "places that hold enough of the box",
        ),
    ],
)
def test_crops_that_keep_boxes(described: dict[str, Any], expected: T.Transform, differs: str) -> None:
    with pytest.warns(ConversionWarning, match=differs):
        assert vg.from_albumentations(compose(described)) == expected


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, {"box_format": "xywh"}),
        ({"coord_format": "pascal_voc"}, {}),
        ({"coord_format": "albumentations"}, {"normalized": True}),
        ({"coord_format": "yolo"}, {"box_format": "cxcywh", "normalized": True}),
        ({"coord_format": "cxcywh"}, {"box_format": "cxcywh"}),
        ({"min_area": 9.0, "min_visibility": 0.25}, {"box_format": "xywh", "min_area": 9.0, "min_visibility": 0.25}),
        ({"min_width": 4.0, "min_height": 4.0}, {"box_format": "xywh", "min_size": 4.0}),
        ({"clip_bboxes_on_input": True}, {"box_format": "xywh", "clip": True}),
        ({"label_fields": ["labels", "iscrowd"]}, {"box_format": "xywh", "per_box": ["iscrowd"]}),
    ],
)
def test_what_is_said_of_boxes(params: dict[str, Any], expected: dict[str, Any]) -> None:
    assert read(bbox_params=BOXES | params) == vg.Targets(**expected)


def test_older_names_key_points_and_images_alone() -> None:
    assert read(bbox_params={"format": "yolo", "clip": True}).clip
    assert read(keypoint_params=POINTS) == vg.Targets(point_origin="centre")
    assert read() == vg.Targets()


def test_a_pipeline_with_boxes_is_converted_and_says_how_samples_are_read() -> None:
    described = compose(one("HorizontalFlip"), bbox_params=BOXES, keypoint_params=POINTS)
    with pytest.warns(ConversionWarning, match=r"targets=Targets\(box_format='xywh'.*under 'boxes' here") as caught:
        t = vg.from_albumentations(described)
    assert caught[0].filename == __file__
    assert t == T.RandomHorizontalFlip(1.0)
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "boxes": [[10, 5, 20, 20]], "keypoints": [[10.0, 5.0]]}
    [result] = vg.Augmenter(t)([sample], targets=vg.targets_from_albumentations(described))
    assert result["boxes"].tolist() == [[30, 5, 20, 20]]
    assert result["keypoints"].tolist() == [[49, 5]]  # W - 1 - x, as there


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"filter_invalid_bboxes": True}, "bbox_params.filter_invalid_bboxes=True: inverted boxes are errors here"),
        (
            {"label_fields": ["label"]},
            r"bbox_params.label_fields=\('label',\): labels of boxes are under 'labels' here",
        ),
        ({"clip_after_transform": False}, "bbox_params.clip_after_transform=False: boxes are always cut off"),
    ],
)
def test_what_differs_is_said(params: dict[str, Any], message: str) -> None:
    with pytest.warns(ConversionWarning, match=message):
        vg.targets_from_albumentations(compose(bbox_params=BOXES | params))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bbox_params": {"format": "xyxy"}}, r"Compose.bbox_params.coord_format: got 'xyxy'; accepted: one of 'coco'"),
        ({"bbox_params": BOXES | {"bbox_type": "obb"}}, "Compose.bbox_params.bbox_type: got 'obb'; accepted: 'hbb'"),
        ({"bbox_params": BOXES | {"max_accept_ratio": 3.0}}, "bbox_params.max_accept_ratio: got 3.0; accepted: None"),
        ({"bbox_params": BOXES | {"min_width": 3.0}}, r"bbox_params.min_width: got \(3.0, 0.0\); accepted: the same"),
        ({"bbox_params": BOXES | {"min_area": -1}}, "Compose.bbox_params.min_area: got -1; accepted"),
        ({"bbox_params": BOXES | {"label_fields": ["boxes"]}}, r"bbox_params.label_fields: got \('boxes',\); accepted"),
        (
            {"bbox_params": BOXES | {"label_fields": ["label", "labels"]}},
            r"bbox_params.label_fields: got \('label', 'labels'\); accepted: different names",
        ),
        ({"bbox_params": 3}, "Compose.bbox_params: got 3; accepted: an object"),
        ({"keypoint_params": POINTS | {"label_fields": ["a"]}}, "keypoint_params.label_fields: got"),
        ({"additional_targets": {"second": "image"}}, "additional_targets.second: got 'image'; accepted: 'mask'"),
    ],
)
def test_what_nothing_here_means_is_refused(arguments: dict[str, Any], message: str) -> None:
    for convert in (vg.from_albumentations, vg.targets_from_albumentations):
        with pytest.raises(ConversionError, match=message):
            convert(compose(one("NoOp"), **arguments))


def test_masks_keep_the_value_of_ignored_pixels() -> None:
    """``fill_mask`` of a pipeline is that of ``vg.Targets``; without it ignored pixels would have class 0."""
    rotate = one("Rotate", angle_range=[45, 45], fill_mask=255)
    described = compose(rotate, one("CoarseDropout"), bbox_params=BOXES)
    with pytest.warns(ConversionWarning, match=r"Rotate.fill_mask=255: give targets=vg.Targets\(mask_fill=255\)"):
        t = vg.from_albumentations(compose(rotate))
    targets = vg.targets_from_albumentations(described)
    assert targets.mask_fill == 255
    sample = {"image": np.zeros((40, 60, 3), np.uint8), "mask": np.ones((40, 60), np.uint8)}
    mask = vg.Augmenter(t)([sample], targets=targets)[0]["mask"].numpy()
    assert np.unique(mask).tolist() == [1, 255]
    assert mask[0, 0] == 255
    with pytest.raises(ConversionError, match=r"Compose.fill_mask: got \(0, 255\); accepted: one value for all"):
        vg.targets_from_albumentations(compose(rotate, one("Affine", fill_mask=0)))
    for name in ("CoarseDropout", "GridDropout", "Erasing", "XYMasking"):
        with pytest.raises(ConversionError, match=f"{name}.fill_mask: got 255; accepted: None: masks are not erased"):
            vg.from_albumentations(one(name, fill_mask=255))


def test_differences_of_boxes_and_points_are_said_where_there_are_some() -> None:
    older = {"keypoint_params": {"format": "xy", "remove_invisible": False}}
    for described, params, how in (
        (one("CoarseDropout"), {"bbox_params": BOXES}, "boxes do not change here"),
        (one("Rotate", border_mode=4), {"bbox_params": BOXES}, "its mirrored images"),
        (one("Rotate", border_mode=4), {"keypoint_params": POINTS}, "its mirrored images"),
        (one("Rotate", rotate_method="ellipse"), {"bbox_params": BOXES}, "1.41 times as wide"),
        (one("Resize", height=20, width=30), older, "0.125 pixels"),
    ):
        _, report = vg.from_albumentations(compose(described, **params), report=True)
        assert how in str(report)
        _, report = vg.from_albumentations(compose(described), report=True)
        assert how not in str(report)
    _, report = vg.from_albumentations(compose(one("Resize", height=20, width=30), keypoint_params=POINTS), report=True)
    assert "0.125 pixels" not in str(report)

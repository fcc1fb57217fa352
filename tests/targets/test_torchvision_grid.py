"""torchvision's boxes, key points and masks over the parameters of its own tests (make_torchvision_grid.py)."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.functions import function
from tests.targets.make_torchvision_grid import HEIGHT, MASK, WIDTH
from variegate.targets.box_formats import corners_of

GRID: dict[str, Any] = json.loads(Path(__file__).with_name("torchvision_grid.json").read_text())
CASES = GRID["cases"]
BOXES, TURNED, POINTS = (GRID["inputs"][key] for key in ("boxes", "turned", "points"))
IMAGE = np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def run(case: dict[str, Any], sample: dict[str, Any], **options: Any) -> dict[str, Any]:
    augmenter = vg.Augmenter(function(case["function"], case["arguments"]), device="cpu", num_threads=1)
    [result] = augmenter([{"image": IMAGE, **sample}], targets=vg.Targets(**options))
    return dict(result)


def mask_of(case: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(zlib.decompress(base64.b64decode(case["mask"])), np.uint8).reshape(case["size"])


def offset(case: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How far torchvision's boxes and points lie from its own image."""
    arguments = case["arguments"]
    if case["function"] == "center_crop" and arguments["output_size"] == [50, 60]:
        return np.array([1.0, 0.0])  # its image is padded by 9 at the left, and its boxes move by 10
    if arguments.get("expand") and arguments["angle"] % 90.0:
        radians = np.radians(arguments["angle"])
        whole = np.abs([[np.cos(radians), np.sin(radians)], [np.sin(radians), np.cos(radians)]]) @ [WIDTH, HEIGHT]
        return np.asarray((whole - case["size"][::-1]) / 2.0)
    return np.zeros(2)


def test_as_torchvision() -> None:
    for case in CASES:
        check_case(case)


def check_case(case: dict[str, Any]) -> None:
    origin = "center" if case["function"].endswith("flip") else "corner"
    sample = {"boxes": BOXES, "labels": list(range(len(BOXES))), "keypoints": POINTS, "mask": MASK}
    result = run(case, sample, point_origin=origin)
    assert list(result["mask"].shape) == case["size"]
    if "boxes" in case:
        theirs = np.array(case["boxes"]) - np.tile(offset(case), 2)
        np.testing.assert_allclose(result["boxes"], theirs[result["labels"]], atol=3e-3)
        dropped = np.delete(theirs, result["labels"], axis=0)
        assert ((dropped[:, 2:] - dropped[:, :2]).min(axis=1, initial=np.inf) <= 2e-3).all()
        np.testing.assert_allclose(result["keypoints"], np.array(case["points"]) - offset(case), atol=3e-3)
    theirs = mask_of(case)
    if case["function"] in ("resize", "resized_crop"):
        # Its nearest pixel is the one up and left of a place: half a pixel of the source, or of the result, from ours.
        ours = result["mask"].numpy()
        near = np.stack([np.roll(np.pad(ours, 1, mode="edge"), (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)])
        assert (near[:, 1:-1, 1:-1] == theirs).any(axis=0).mean() > 0.85
    else:
        np.testing.assert_array_equal(result["mask"], theirs, err_msg=f"{case['function']} {case['arguments']}")


class Mask(torch.Tensor):
    """Known by its name, as torchvision's."""


Mask.__module__ = "torchvision.tv_tensors._mask"


def test_resized_masks_of_torchvisions_are_as_torchvisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the pixel; boxes beside them are where they are beside other masks."""
    module = ModuleType("torchvision.tv_tensors")
    module.wrap = lambda tensor, like: tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision.tv_tensors", module)
    for case in CASES:
        if case["function"] in ("resize", "resized_crop"):
            both = run(case, {"boxes": BOXES, "mask": torch.as_tensor(MASK).as_subclass(Mask)})
            np.testing.assert_array_equal(both["mask"], mask_of(case), err_msg=str(case["arguments"]))
            assert torch.equal(both["boxes"], run(case, {"boxes": BOXES})["boxes"])


# Maps that leave a turned rectangle one; of others torchvision keeps the longer diagonal, so that corners stick out.
SIMILAR = [
    case
    for case in CASES
    if "turned" in case
    and case["function"] in ("affine", "rotate", "crop", "pad", "horizontal_flip", "vertical_flip", "center_crop")
    and not any(case["arguments"].get("shear", ()))
]


@pytest.mark.parametrize("case", SIMILAR, ids=lambda case: f"{case['function']}-{CASES.index(case)}")
def test_turned_boxes_as_torchvisions_that_are_not_clamped(case: dict[str, Any]) -> None:
    result = run(case, {"boxes": TURNED, "labels": list(range(len(TURNED)))}, box_format="cxcywhr")
    theirs = np.array(case["turned"])[result["labels"]]
    theirs[:, :2] -= offset(case)
    ours = corners_of(result["boxes"].double().numpy(), "cxcywhr")
    same = corners_of(theirs, "cxcywhr")
    dropped = np.delete(corners_of(np.array(case["turned"]), "cxcywhr"), result["labels"], axis=0)
    ends = np.array(case["size"][::-1])
    assert ((dropped.max(axis=1) < 0.01).any(axis=1) | (dropped.min(axis=1) > ends - 0.01).any(axis=1)).all()
    if not result["labels"]:
        return
    # The same rectangle may be told from any of its corners.
    turns = np.stack([np.abs(ours - np.roll(same, n, axis=1)).max(axis=(1, 2)) for n in range(4)])
    assert turns.min(axis=0).max() < 0.01


def test_a_turned_box_that_is_sheared_holds_all_its_corners() -> None:
    sheared = next(case for case in CASES if case["arguments"].get("shear") == [5.0, 17.0])
    result = run(sheared, {"boxes": TURNED, "labels": list(range(len(TURNED)))}, box_format="cxcywhr")
    corners = corners_of(np.array(TURNED), "cxcywhr")[result["labels"]]
    points = run(sheared, {"keypoints": corners.reshape(-1, 2)})["keypoints"].numpy().reshape(-1, 4, 2)
    for (x, y, width, height, angle), held in zip(result["boxes"].tolist(), points, strict=True):
        radians = np.radians(angle)
        along = (held - [x, y]) @ np.array([[np.cos(radians), np.sin(radians)], [-np.sin(radians), np.cos(radians)]])
        assert (np.abs(along) <= np.array([width, height]) / 2.0 + 1e-3).all()

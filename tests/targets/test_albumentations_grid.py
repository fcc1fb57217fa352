"""Albumentations' boxes, key points and masks for the same parameters (make_albumentations_grid.py)."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.functions import function
from tests.targets.make_albumentations_grid import HEIGHT, MASK, WIDTH
from variegate import transforms as T

GRID: dict[str, Any] = json.loads(Path(__file__).with_name("albumentations_grid.json").read_text())
CASES = GRID["cases"]
BOXES, POINTS = (GRID["inputs"][key] for key in ("boxes", "points"))
IMAGE = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
# Its masks take the pixel up and left of a place where sizes change, as cv2 does; ours the one that the place lies in.
RESIZES = ("Resize", "LongestMaxSize", "SmallestMaxSize", "LetterBox", "RandomResizedCrop", "RandomSizedCrop")
# Its boxes lie up to half a pixel from its own image: the matrix for pixels' centres is taken for their corners
# (Perspective), or the canvas of boxes is another one than that of the image (SafeRotate).
OFF_THE_IMAGE = ("SafeRotate", "Perspective")


def run(transform: T.Transform, sample: dict[str, Any], **options: Any) -> dict[str, Any]:
    augmenter = vg.Augmenter(transform, device="cpu", num_threads=1)
    [result] = augmenter([{"image": IMAGE, **sample}], targets=vg.Targets(**options))
    return dict(result)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['op']}-{CASES.index(case)}")
def test_as_albumentations(case: dict[str, Any]) -> None:
    ours = T.Compose(
        [function(**given) if name == "Function" else getattr(T, name)(**given) for name, given in case["ours"]]
    )
    sample = {"boxes": BOXES, "labels": list(range(len(BOXES))), "keypoints": POINTS, "mask": MASK}
    result = run(ours, sample, point_origin="center")
    assert list(result["mask"].shape) == case["size"]
    assert result["labels"] == case["labels"]
    beside = 0.51 if case["op"] in OFF_THE_IMAGE else 3e-3
    np.testing.assert_allclose(result["boxes"], case["boxes"], atol=beside)
    # Perspective makes its result larger about the image's corner, for points whose (0, 0) is the first pixel's centre.
    scaled = 0.5 * (WIDTH / case["ours"][1][1]["arguments"]["width"] - 1) if case["op"] == "Perspective" else 0
    np.testing.assert_allclose(result["keypoints"], case["points"], atol=scaled + 3e-3)
    theirs = np.frombuffer(zlib.decompress(base64.b64decode(case["mask"])), np.uint8).reshape(case["size"])
    if case["op"] in RESIZES or case["op"] == "Perspective":
        # Perspective takes the nearest pixel twice, then.
        padded = np.pad(result["mask"].numpy(), 1, mode="edge")
        near = np.stack([np.roll(padded, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)])
        assert (near[:, 1:-1, 1:-1] == theirs).any(axis=0).mean() > (0.99 if case["op"] == "Perspective" else 0.999)
    else:
        # Of a place between two pixels either may be taken.
        assert (result["mask"].numpy() != theirs).sum() <= 1

"""Albumentations' rules of which boxes are kept, its formats, and its box-safe crops (make_albumentations_rules.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.functions import function
from tests.targets.make_albumentations_rules import (
    BOXES,
    FILTERED,
    FORMATS,
    HEIGHT,
    SAFE,
    SAFE_COUNT,
    SAFE_SIZE,
    WIDTH,
)
from variegate import transforms as T

RULES: dict[str, Any] = json.loads(Path(__file__).with_name("albumentations_rules.json").read_text())
IMAGE = np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def run(transform: T.Transform, boxes: list[list[float]], **options: Any) -> dict[str, Any]:
    sample = {"image": IMAGE, "boxes": boxes, "labels": list(range(len(boxes)))}
    [result] = vg.Augmenter(transform, device="cpu", num_threads=1)([sample], targets=vg.Targets(**options))
    return dict(result)


@pytest.mark.parametrize("rule", RULES["kept"], ids=lambda rule: str(rule["options"]))
def test_the_same_boxes_are_kept(rule: dict[str, Any]) -> None:
    crop = function("crop", {"top": 6, "left": 5, "height": 18, "width": 23})
    result = run(crop, FILTERED, **rule["options"])
    assert result["labels"] == rule["labels"]
    np.testing.assert_allclose(result["boxes"], np.reshape(rule["boxes"], (-1, 4)), atol=1e-3)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_boxes(name: str) -> None:
    box_format, normalized = FORMATS[name]
    given = RULES["formats"][name]
    # Shares are written with five digits.
    result = run(T.RandomHorizontalFlip(1.0), given["given"], box_format=box_format, normalized=normalized, clip=True)
    assert len(result["boxes"]) == len(BOXES)
    np.testing.assert_allclose(result["boxes"], given["flipped"], atol=2e-5 if normalized else 1e-3)


@pytest.mark.parametrize("number", range(len(SAFE)), ids=lambda number: f"{SAFE[number][0]}-{number}")
def test_safe_crops_have_the_distribution_of_albumentations(number: int) -> None:
    _, _, name, arguments, boxes = SAFE[number]
    augmenter = vg.Augmenter(getattr(T, name)(**arguments), seed=5)
    program = augmenter.program([SAFE_SIZE] * SAFE_COUNT, range(SAFE_COUNT), boxes=[boxes] * SAFE_COUNT)
    whole = np.array([0, 0, *SAFE_SIZE])
    top, left, height, width = np.where(program.length[:, None] > 0, program.args[:, 0, :4], whole).astype(int).T
    for ours, theirs in zip((left, top, left + width, top + height), RULES["distributions"][number], strict=True):
        longest = max(len(theirs), int(ours.max()) + 1)
        counts = np.bincount(ours, minlength=longest), np.pad(theirs, (0, longest - len(theirs)))
        # Kolmogorov and Smirnov's distance of two samples; beyond this for one of 10,000.
        distance = np.abs(np.cumsum(counts[0] - counts[1])).max() / SAFE_COUNT
        assert distance < 2.23 * np.sqrt(2 / SAFE_COUNT), (ours.mean(), np.average(range(len(theirs)), weights=theirs))

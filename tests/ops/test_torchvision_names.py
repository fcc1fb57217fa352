"""Every public name of torchvision.transforms.v2 is here, or docs/torch.md says in a line why it is not."""

from __future__ import annotations

import re
from pathlib import Path

from variegate import transforms as T

# Classes and enumerations of torchvision 0.28.
NAMES = re.findall(
    r"\w+",
    """
    AugMix AutoAugment AutoAugmentPolicy CenterCrop ClampBoundingBoxes ClampKeyPoints ColorJitter Compose
    ConvertBoundingBoxFormat ConvertImageDtype CutMix ElasticTransform FiveCrop GaussianBlur GaussianNoise Grayscale
    Identity InterpolationMode JPEG Lambda LinearTransformation MixUp Normalize PILToTensor Pad RGB RandAugment
    RandomAdjustSharpness RandomAffine RandomApply RandomAutocontrast RandomChannelPermutation RandomChoice RandomCrop
    RandomEqualize RandomErasing RandomGrayscale RandomHorizontalFlip RandomInvert RandomIoUCrop RandomOrder
    RandomPerspective RandomPhotometricDistort RandomPosterize RandomResize RandomResizedCrop RandomRotation
    RandomShortestSize RandomSolarize RandomVerticalFlip RandomZoomOut Resize SanitizeBoundingBoxes SanitizeKeyPoints
    ScaleJitter SetClampingMode TenCrop ToDtype ToImage ToPILImage ToPureTensor ToTensor Transform TrivialAugmentWide
    UniformTemporalSubsample
    """,
)
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "torch.md"


def refused() -> set[str]:
    missing = _PAGE.read_text().partition("These names of torchvision 0.28 are missing:")[2]
    rows = re.findall(r"^\| ([A-Z][\w, ]+) \| .+ \|$", missing, re.MULTILINE)
    return {name for row in rows for name in row.split(", ")}


def test_every_name_is_there_or_refused_in_a_line() -> None:
    there, not_there = set(T.__all__), refused()
    assert set(NAMES) <= there | not_there
    assert not there & not_there
    assert not_there <= set(NAMES)

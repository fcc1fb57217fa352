"""Every public name of torchvision.transforms.v2 is here, or the converter says what to use instead."""

from __future__ import annotations

import re

from variegate import transforms as T
from variegate.interop.convert.torchvision import CONVERTED, NOTHING, REFUSED

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


def test_every_name_is_there_or_its_replacement_is_named() -> None:
    missing = set(NAMES) - set(T.__all__)
    assert missing <= {*REFUSED, *NOTHING, "ToPILImage"}
    assert "ToPILImage" in CONVERTED

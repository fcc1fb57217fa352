"""Pipelines of other libraries, read by class names and attributes; none of those libraries is imported."""

from variegate.integrations.converters.albumentations import from_albumentations, targets_from_albumentations
from variegate.integrations.converters.report import ConversionError, ConversionReport, ConversionWarning
from variegate.integrations.converters.timm import from_timm
from variegate.integrations.converters.torchvision import from_torchvision

__all__ = [
    "ConversionError",
    "ConversionReport",
    "ConversionWarning",
    "from_albumentations",
    "from_timm",
    "from_torchvision",
    "targets_from_albumentations",
]

"""Convert pipelines of other libraries by class names and attributes, without importing these libraries."""

from variegate.interop.convert.albumentations import from_albumentations, targets_from_albumentations
from variegate.interop.convert.report import ConversionError, ConversionReport, ConversionWarning
from variegate.interop.convert.timm import from_timm
from variegate.interop.convert.torchvision import from_torchvision

__all__ = [
    "ConversionError",
    "ConversionReport",
    "ConversionWarning",
    "from_albumentations",
    "from_timm",
    "from_torchvision",
    "targets_from_albumentations",
]

"""Pipelines of other libraries, read by class names and attributes; none of those libraries is imported."""

from variegate.convert.albumentations import from_albumentations, targets_from_albumentations
from variegate.convert.report import ConversionError, ConversionWarning
from variegate.convert.timm import from_timm
from variegate.convert.torchvision import from_torchvision

__all__ = ["ConversionError", "ConversionWarning", "from_albumentations", "from_timm", "from_torchvision"]
__all__ += ["targets_from_albumentations"]

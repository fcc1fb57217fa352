"""Models by name: Wide ResNets, timm's, or a factory of your own."""

from variegate.training.models.build import ModelError, build_model
from variegate.training.models.wide_resnet import WideResNet

__all__ = ["ModelError", "WideResNet", "build_model"]

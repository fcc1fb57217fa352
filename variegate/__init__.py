"""Variegate: image augmentation as fused programs, for training that never waits."""

from variegate.augmenter import Augmenter
from variegate.policies import load_policy

__version__ = "0.1.0"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Augmenter", "load_policy"]

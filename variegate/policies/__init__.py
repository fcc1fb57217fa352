"""Policies: which operations, chosen how. Each is a transform; the published tables are data."""

from variegate.policies.augmentation import Augmentation
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.randaugment import RandAugment
from variegate.policies.trivialaugment import TrivialAugmentWide

__all__ = ["Augmentation", "AutoAugment", "RandAugment", "TrivialAugmentWide"]

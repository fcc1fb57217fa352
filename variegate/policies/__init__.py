"""Policies: which operations, chosen how. Each is a transform; the published tables are data."""

from variegate.policies.augmentation import Augmentation
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.described import from_dict
from variegate.policies.load import load_policy, save_policy
from variegate.policies.pba import PBA
from variegate.policies.randaugment import RandAugment
from variegate.policies.schedule import Schedule, Segment
from variegate.policies.three_augment import ThreeAugment
from variegate.policies.timm import TimmRandAugment
from variegate.policies.trivialaugment import TrivialAugmentWide

__all__ = [
    "PBA",
    "AugMix",
    "Augmentation",
    "AutoAugment",
    "RandAugment",
    "Schedule",
    "Segment",
    "ThreeAugment",
    "TimmRandAugment",
    "TrivialAugmentWide",
    "from_dict",
    "load_policy",
    "save_policy",
]

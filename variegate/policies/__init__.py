"""Augmentation policies: transforms that choose operations at random; published tables are data."""

import variegate.transforms  # noqa: F401  first, since it shows policies too: whichever is asked for, both are there
from variegate.ops.description import from_dict
from variegate.policies.augmentation import Augmentation
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.load import load_policy, save_policy
from variegate.policies.pba import PBA
from variegate.policies.schedule import Schedule, Segment
from variegate.policies.timm import TimmAugMix, TimmRandAugment
from variegate.policies.uniform import AdaptiveRandAugment, RandAugment, ThreeAugment, TrivialAugmentWide
from variegate.policies.views import MultiView

__all__ = [
    "PBA",
    "AdaptiveRandAugment",
    "AugMix",
    "Augmentation",
    "AutoAugment",
    "MultiView",
    "RandAugment",
    "Schedule",
    "Segment",
    "ThreeAugment",
    "TimmAugMix",
    "TimmRandAugment",
    "TrivialAugmentWide",
    "from_dict",
    "load_policy",
    "save_policy",
]

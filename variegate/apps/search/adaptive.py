"""Trainings whose magnitudes follow them, beside those with fixed policies: ``adaptive:gap``, ``adaptive:entropy``."""

from __future__ import annotations

import numpy as np
import torch

from variegate.apps.train.adaptation import Adaptation, EntropyAdaptation, GapAdaptation
from variegate.apps.train.classifier import Classifier
from variegate.apps.train.images import LabelledImages, split
from variegate.apps.train.step import in_channels_last
from variegate.augmenter.augmenter import Augmenter
from variegate.policies.given import AdaptiveRandAugment
from variegate.transforms import Transform

GAP, ENTROPY = "adaptive:gap", "adaptive:entropy"
ADAPTIVE = (GAP, ENTROPY)
# Of the images that train: with gap they only say how the training does. It must not look at those that score it.
_HELD_BACK = 10


def adaptive_policy() -> Transform:
    """``randaugment``, at magnitudes that are given."""
    return AdaptiveRandAugment()


def held_back(images: LabelledImages, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """-> the images that train, and the tenth of them that does not, with gap. Raises SourceError for too few."""
    number = max(images.num_classes, len(images) // _HELD_BACK)
    return split(images, len(images) - number, None, seed)


class AdaptiveTraining:
    """Of one training: its ``images`` and its ``adaptation``. ``plain``: what is done to images that are looked at."""

    def __init__(self, name: str, images: LabelledImages, plain: Transform, device: str, seed: int) -> None:
        self.images = images
        self.adaptation: Adaptation = EntropyAdaptation(images.ids)
        self._compared: list[tuple[torch.Tensor, torch.Tensor]] = []
        if name == GAP:
            self.images, others = held_back(images, seed)
            some = self.images.take(np.arange(min(len(others), len(self.images))))
            augmenter = Augmenter(plain, device, layout="NHWC")
            self._compared = [(in_channels_last(augmenter(one.pixels)), one.labels) for one in (some, others)]
            self.adaptation = GapAdaptation()

    def end_epoch(self, classifier: Classifier) -> None:
        self.adaptation.settle()
        losses = [classifier.mean_loss(*one) for one in self._compared]
        self.adaptation.end_epoch(*losses)

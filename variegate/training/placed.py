"""What a training works on, on its device: images to train on, and others to score it by, ready for the model."""

from __future__ import annotations

import torch

from variegate.augmenter import Augmenter
from variegate.training.around import Around
from variegate.training.images import LabelledImages


class PlacedImages:
    """``train``: on the device. ``scored``: float32 [N, C, H, W], normalised, and ``labels``: int64 [N], those of the
    images that score it, there too; kept so because they are read very often, though it takes four times the memory.
    """

    def __init__(self, train: LabelledImages, scored: LabelledImages, around: Around, device: str) -> None:
        self.device, self.train = device, train.to(device)
        there = scored.to(device)
        images = Augmenter(around.plain, device)(there.pixels)
        assert isinstance(images, torch.Tensor)
        self.scored, self.labels = images, there.labels

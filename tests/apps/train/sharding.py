"""A model made of blocks, to be split over ranks."""

from __future__ import annotations

import torch
from torch import nn


class Layer(nn.Module):
    """With statistics by batch, dropout, and a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.drop = nn.Dropout(0.1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = images + self.drop(torch.relu(self.norm(self.conv(images))))
        return result


def blocks(num_classes: int) -> nn.Module:
    """Of an odd number of channels, which two ranks cannot halve."""
    parts: list[nn.Module] = [nn.Conv2d(1, 7, 3, padding=1), Layer(7), nn.Sequential(Layer(7), nn.MaxPool2d(2))]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(112, num_classes))

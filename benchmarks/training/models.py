"""ResNet-18 (He et al. 2015, arXiv 1512.03385), written plainly, so that nothing need be installed for it."""

from __future__ import annotations

import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(narrow, wide, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(wide)
        self.relu = nn.ReLU(inplace=True)
        is_same = stride == 1 and narrow == wide
        shortcut = nn.Sequential(nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
        self.shortcut = nn.Identity() if is_same else shortcut

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        inner = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(images)))))
        result: torch.Tensor = self.relu(inner + self.shortcut(images))
        return result


def resnet18(num_classes: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    narrow = 64
    for stage in range(4):
        wide = 64 << stage
        layers += [BasicBlock(narrow, wide, 2 if stage else 1), BasicBlock(wide, wide, 1)]
        narrow = wide
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(narrow, num_classes))

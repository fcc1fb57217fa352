"""Networks after airbench94, which learn CIFAR-10 in a few epochs (Jordan 2024, arXiv 2404.00498)."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf
from torch import nn

# Channels of the three blocks at width 1, and the side of the patches that the first layer looks at.
_CHANNELS, _PATCH = (64, 256, 256), 2
# Scores are divided by this, so that a network of any seed begins with all classes nearly alike.
_SCORES_OVER = 9.0
_STATISTICS_MOMENTUM, _EPSILON = 0.4, 1e-12
# A shift that is this many times its parameter moves as by a learning rate of 64, the paper's for them, against the
# others' 1; weight decay means the same to both.
_SHIFT = 8.0
# Added to variances, of normalised images about 1 to 10, so that nothing is divided by zero.
_LEAST_VARIANCE = 5e-4


class Airbench(nn.Module):
    """Scores [N, ``num_classes``] of images [N, ``in_channels``, H, W] with sides of 9 pixels or more.

    A convolution whose weights ``initialise`` makes whiten patches, then three blocks that begin as the identity,
    without learnt scales of batch norm. ``width``: share of the paper's channels. Raises ValueError.
    """

    def __init__(self, width: float, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        channels = [round(width * each) for each in _CHANNELS]
        if not min(channels) >= 1:
            raise ValueError(f"width: got {width:g}; accepted: more, such as 0.25, 0.5 or 1")
        first = 2 * in_channels * _PATCH**2
        self.whiten = nn.Conv2d(in_channels, first, _PATCH)
        self.whiten.weight.requires_grad_(False)
        nn.init.zeros_(self.whiten.bias)  # type: ignore[arg-type]
        pairs = zip([first, *channels], channels, strict=False)
        self.blocks = nn.Sequential(*(_FastBlock(narrow, wide) for narrow, wide in pairs))
        self.head = nn.Linear(channels[-1], num_classes, bias=False)

    @torch.no_grad()
    def initialise(self, images: torch.Tensor) -> None:
        """``images``: float32 [N, C, H, W], a few hundred or more that it will be trained on, as it will see them."""
        filters = whitening_filters(images, _PATCH)
        self.whiten.weight.copy_(torch.cat([filters, -filters]))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.blocks(nnf.gelu(self.whiten(images)))
        scores: torch.Tensor = self.head(features.amax((2, 3)))
        return scores / _SCORES_OVER


class _FastBlock(nn.Module):
    def __init__(self, narrow: int, wide: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = _convolution(narrow, wide), _ShiftedNorm(wide)
        self.conv2, self.norm2 = _convolution(wide, wide), _ShiftedNorm(wide)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nnf.gelu(self.norm1(nnf.max_pool2d(self.conv1(x), 2)))
        return nnf.gelu(self.norm2(self.conv2(x)))


class _ShiftedNorm(nn.BatchNorm2d):
    """Batch norm without a scale."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=_EPSILON, momentum=_STATISTICS_MOMENTUM, affine=False)
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_new = self.training
        momentum = self.momentum or 0.0
        mean, variance = self.running_mean, self.running_var
        return nnf.batch_norm(x, mean, variance, None, _SHIFT * self.shift, is_new, momentum, self.eps)


def _convolution(narrow: int, wide: int) -> nn.Conv2d:
    """As many of its outputs as there are inputs begin as them."""
    made = nn.Conv2d(narrow, wide, 3, padding="same", bias=False)
    nn.init.dirac_(made.weight[: min(narrow, wide)])
    return made


@torch.no_grad()
def whitening_filters(images: torch.Tensor, side: int) -> torch.Tensor:
    """Filters [C * ``side``^2, C, ``side``, ``side``] that whiten patches of images [N, C, H, W], the strongest
    first."""
    channels = images.shape[1]
    patches = images.double().unfold(2, side, 1).unfold(3, side, 1).permute(0, 2, 3, 1, 4, 5)
    rows = patches.reshape(-1, channels * side * side)
    rows = rows - rows.mean(0)
    variances, directions = torch.linalg.eigh(rows.T @ rows / len(rows))
    filters = directions.T / torch.sqrt(variances.clamp_min(0.0) + _LEAST_VARIANCE)[:, None]
    return filters.flip(0).reshape(-1, channels, side, side).to(images.dtype)

"""How many channels leave: programs keep those of their images, of which one may be all that is wanted."""

from __future__ import annotations

from typing import Any

import torch

from variegate.program.program import Output

Tensors = torch.Tensor | list[torch.Tensor]


def wants_one(output: Output) -> bool:
    """Whether the transform says that one channel leaves (``T.Grayscale()``)."""
    return getattr(output, "channels", None) == 1


def first_channel(image: torch.Tensor, layout: str) -> torch.Tensor:
    """A view of the first channel of [..., C, H, W] or, with "NHWC", of [..., H, W, C]."""
    return image[..., :1, :, :] if layout == "NCHW" else image[..., :1]


def leaving(made: Any, output: Output) -> Tensors:
    """What an executor made -> what leaves; one tensor, where that makes the shapes agree."""
    if not wants_one(output):
        return made
    if isinstance(made, torch.Tensor):
        return first_channel(made, output.layout).contiguous()
    images = [first_channel(image, output.layout).contiguous() for image in made]
    return torch.stack(images) if len({image.shape for image in images}) == 1 else images

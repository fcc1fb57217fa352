"""A loop as one would write it without Variegate: the same model, layout, optimiser and clipping, over one batch."""

from __future__ import annotations

import torch
import torch.nn.functional as nnf

CLIP = 5.0


class BareLoop:
    """``module``: in channels-last layout. The learning rate is 0 unless told otherwise, so that the weights stay
    ordinary numbers however long it runs."""

    def __init__(self, module: torch.nn.Module, lr: float = 0.0) -> None:
        self.module = module.train()
        more = {"momentum": 0.9, "weight_decay": 5e-4, "nesterov": True, "fused": True}
        self.optimizer = torch.optim.SGD(module.parameters(), lr=torch.tensor(lr), **more)  # type: ignore[arg-type]

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """-> the mean loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = nnf.cross_entropy(self.module(images), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.module.parameters(), CLIP)
        self.optimizer.step()
        return loss.detach()


def random_batch(number: int, side: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images in channels-last layout, and labels."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(number, side, side, 3, generator=generator).permute(0, 3, 1, 2)
    return images, torch.randint(classes, (number,), generator=generator)

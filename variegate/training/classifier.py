"""One model in training: its weights, its optimiser, and an epoch at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf

from variegate.augmenter import Augmenter
from variegate.data.shuffle import Permutation
from variegate.training.images import LabelledImages
from variegate.training.models import build_model
from variegate.training.recipe import Recipe
from variegate.transforms.base import Transform

_EVALUATION_BATCH = 1024


class Classifier:
    """A model on a device, trained by a recipe.

    Everything random about it follows from ``seed``: initial weights, the order of the images, and with the images'
    ids what the transform does. On a CPU two trainings with the same seed and number of threads are equal to the bit.
    """

    def __init__(self, model: str, num_classes: int, recipe: Recipe, device: str, seed: int, channels: int = 3) -> None:
        self.recipe, self.device, self.seed = recipe, device, seed
        with torch.random.fork_rng(devices=[]):
            # The generator that models draw from is torch's own; ours is lent to it, and given back.
            torch.manual_seed(seed)
            self.model = build_model(model, num_classes, channels).to(device)
        if device.startswith("cuda"):
            self.model = self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        # A tensor, so that a captured step reads what it is at the time.
        self._lr = torch.tensor(recipe.lr, device=device)
        self._optimizer = torch.optim.SGD(
            self.model.parameters(),
            lr=self._lr,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
            nesterov=recipe.momentum > 0,
            fused=True,
        )

    def train(self, images: LabelledImages, transform: Transform, epoch: int) -> float:
        """One epoch -> the mean loss; NaN where the training has come to nothing.

        ``transform`` ends in ``Normalize``. Raises ValueError for fewer images than a batch has.
        """
        size = self.recipe.batch_size
        steps = len(images) // size
        if steps == 0:
            raise ValueError(f"batch_size: got {size}, with {len(images)} images to train; accepted: no more than that")
        augmenter = Augmenter(transform, self.device, self.seed)
        order = Permutation(len(images), self.seed, epoch)(np.arange(steps * size))
        losses = torch.zeros(steps, device=self.device)
        self.model.train()
        for step in range(steps):
            rows = order[step * size : (step + 1) * size]
            chosen = torch.from_numpy(rows).to(self.device)
            batch = augmenter(images.pixels[chosen], ids=images.ids[rows], epoch=epoch)
            assert isinstance(batch, torch.Tensor)
            self._lr.fill_(self.recipe.lr_at((epoch + step / steps) / self.recipe.epochs))
            losses[step] = self._step(batch, images.labels[chosen])
        return float(losses.mean())

    def _step(self, batch: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        loss = nnf.cross_entropy(self.model(batch), labels)
        loss.backward()
        if self.recipe.clip > 0:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self._optimizer.step()
        return loss.detach()

    @torch.no_grad()
    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """The share of images [N, C, H, W], normalised as for training, that are given their class."""
        self.model.eval()
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        for first in range(0, len(images), _EVALUATION_BATCH):
            part = slice(first, first + _EVALUATION_BATCH)
            right += (self.model(images[part]).argmax(1) == labels[part]).sum()
        return int(right) / len(images)

    def state_dict(self) -> dict[str, Any]:
        """Weights and the optimiser's momenta, as they are; not copies."""
        return {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over another's weights and momenta, copies of them; the recipe and the seed stay."""
        self.model.load_state_dict(state["model"])
        # By itself the optimizer would go on with the very tensors of the other.
        self._optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        for group in self._optimizer.param_groups:
            group["lr"] = self._lr

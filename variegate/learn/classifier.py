"""One model in training: its weights, its optimiser, an epoch at a time, and what it draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from variegate.augmenter.augmenter import Augmenter
from variegate.learn.adaptation import Adaptation
from variegate.learn.images import LabelledImages
from variegate.learn.models import layer_seed, model_to_train, seeded_generator, seeded_weights
from variegate.learn.step import TrainingStep, descent, in_channels_last, precision_of
from variegate.loader.shuffle import Permutation
from variegate.options.search import Hyperparameters
from variegate.transforms import Transform

_EVALUATION_BATCH = 1024
# What is augmented in one go, which does not change it: many small batches, as long as they stay small together.
_AHEAD_IMAGES = 4096
_AHEAD_BYTES = 64 << 20


class Classifier:
    """A model on a device, trained by a recipe; all chance in it follows from ``seed``, and on a CPU every bit.

    ``num_threads``: threads that augment on a CPU; None for all cores. Several may train at once, in a thread each.
    """

    def __init__(
        self,
        model: str,
        num_classes: int,
        recipe: Hyperparameters,
        device: str,
        seed: int,
        channels: int = 3,
        *,
        num_threads: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.device = device
        self.seed = seed
        self._num_threads = num_threads
        self.model = model_to_train(model, num_classes, channels, device, seed)
        self._draws = LayerDraws(device, seed)
        self._lr = torch.tensor(recipe.lr, device=device)
        self._optimizer = descent(self.model, self._lr, recipe)
        self._step = TrainingStep(model, self.model, num_classes, self._optimizer, recipe.precision, recipe.clip)
        self.adapt(Adaptation())

    def adapt(self, adaptation: Adaptation) -> None:
        """Before the first epoch: it gives the magnitudes of every epoch, and is told of the scores."""
        self._adaptation = adaptation
        self._step = replace(self._step, on_scores=adaptation.noting)

    def train(self, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        """One epoch -> the mean loss, a scalar, whose reading waits for the GPU. ``transform`` ends in ``Normalize``.

        Raises ValueError for fewer images than a batch has, ModelError.
        """
        size = self.recipe.batch_size
        steps = self.recipe.steps_in(len(images))
        augmenter = Augmenter(transform, self.device, self.seed, layout="NHWC", num_threads=self._num_threads)
        order = Permutation(len(images), self.seed, epoch)(np.arange(steps * size))
        losses = torch.zeros(steps, device=self.device)
        given = self._adaptation.of_epoch(epoch)
        bytes_each = 4 * images.pixels[0].numel()
        ahead = max(1, min(_AHEAD_IMAGES, _AHEAD_BYTES // bytes_each) // size)
        self.model.train()
        with self._draws.seeded(epoch):
            for first in range(0, steps, ahead):
                rows = order[first * size : min(first + ahead, steps) * size]
                chosen = torch.from_numpy(rows).to(self.device)
                ids = images.ids[rows]
                augmented = augmenter(images.pixels[chosen], ids=ids, epoch=epoch, conditions=given(ids))
                assert isinstance(augmented, torch.Tensor)
                augmented = in_channels_last(augmented)
                labels = images.labels[chosen]
                for step, part in enumerate(range(0, len(rows), size), start=first):
                    self._lr.fill_(self.recipe.lr_at((epoch + step / steps) / self.recipe.epochs))
                    losses[step] = self._step(augmented[part : part + size], labels[part : part + size])
                    self._adaptation.trained(ids[part : part + size])
        return losses.mean()

    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """The share of correct predictions on normalised images [N, C, H, W]; NaN if a score is NaN."""
        correct, invalid = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.model.eval()
        for first in range(0, len(images), _EVALUATION_BATCH):
            part = slice(first, first + _EVALUATION_BATCH)
            with torch.no_grad(), precision_of(self.device, self.recipe.precision):
                scores = self.model(images[part])
            correct += (scores.argmax(1) == labels[part]).sum()
            invalid += scores.isnan().sum()
        return math.nan if int(invalid) else int(correct) / len(images)

    def state_dict(self) -> dict[str, Any]:
        """Weights and the optimiser's momenta, as they are; not copies."""
        return {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy the weights and momenta of another; the recipe and the seed stay."""
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        for group in self._optimizer.param_groups:
            group["lr"] = self._lr
        for weight, values in self._optimizer.state.items():
            if (momentum := values.get("momentum_buffer")) is not None:
                # A copy, in the layout of the weight, which the fused optimizer needs.
                values["momentum_buffer"] = torch.empty_like(weight).copy_(momentum)


class LayerDraws:
    """Seeds what layers draw by epoch. A model that draws nothing on the CPU may train beside others afterwards."""

    def __init__(self, device: str, seed: int) -> None:
        self._device = torch.device(device)
        self._seed = seed
        self._are_none = False

    @contextmanager
    def seeded(self, epoch: int) -> Iterator[None]:
        """The model trains for this epoch within."""
        seed = layer_seed(self._seed, epoch)
        if self._device.type == "cuda":
            # A GPU has a generator of its own, and one thread that trains on it.
            with seeded_generator(torch.cuda.default_generators[self._device.index or 0], seed):
                yield
        elif self._are_none:
            yield
        else:
            with seeded_weights(seed):
                before = torch.default_generator.get_state()
                yield
                self._are_none = torch.equal(before, torch.default_generator.get_state())

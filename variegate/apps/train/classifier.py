"""One model in training: its weights, its optimiser, an epoch at a time, and what it draws."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nnf

from variegate.apps.train.adaptation import Adaptation
from variegate.apps.train.images import LabelledImages
from variegate.apps.train.models import layer_seed, model_to_train, seeded_generator, seeded_weights
from variegate.apps.train.step import TrainingStep, descent, in_channels_last, precision_of
from variegate.augmenter.augmenter import Augmenter
from variegate.loader.shuffle import Permutation
from variegate.options.search import Hyperparameters
from variegate.transforms import Transform

_EVALUATION_BATCH = 1024
# What is augmented in one go, which does not change it: many small batches, as long as they stay small together.
_AHEAD_IMAGES, _AHEAD_BYTES = 4096, 64 << 20


class Classifier:
    """A model on a device, trained by a recipe; all chance in it follows from ``seed``, and on a CPU every bit.

    ``capture``: on a GPU, record the step as a CUDA graph, in ``graph_memory``. ``num_threads``: that augment on a CPU;
    None for all cores. Several may train at once, in a thread each.
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
        capture: bool = True,
        graph_memory: GraphMemory | None = None,
        num_threads: int | None = None,
    ) -> None:
        self.recipe, self.device, self.seed = recipe, device, seed
        self._num_threads = num_threads
        self.model = model_to_train(model, num_classes, channels, device, seed)
        self._draws = LayerDraws(device, seed)
        self._lr = torch.tensor(recipe.lr, device=device)
        self._optimizer = descent(self.model, self._lr, recipe)
        self._step = TrainingStep(model, self.model, num_classes, self._optimizer, recipe.precision, recipe.clip)
        self._memory, self._is_captured = graph_memory, capture and device.startswith("cuda")
        self.adapt(Adaptation())

    def adapt(self, adaptation: Adaptation) -> None:
        """Before the first epoch: it gives the magnitudes of every epoch, and is told of the scores."""
        self._adaptation = adaptation
        self._step = step = replace(self._step, on_scores=adaptation.noting)
        self._run_step = CapturedStep(step, self.device, self._memory) if self._is_captured else step

    def train(self, images: LabelledImages, transform: Transform, epoch: int) -> torch.Tensor:
        """One epoch -> the mean loss, a scalar, whose reading waits for the GPU. ``transform`` ends in ``Normalize``.

        Raises ValueError for fewer images than a batch has, ModelError, CaptureError.
        """
        size, steps = self.recipe.batch_size, self.recipe.steps_in(len(images))
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
                    losses[step] = self._run_step(augmented[part : part + size], labels[part : part + size])
                    self._adaptation.trained(ids[part : part + size])
        return losses.mean()

    def accuracy(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """The share of right answers on normalised images [N, C, H, W]; NaN where scores are NaN."""
        right, lost = torch.zeros(2, dtype=torch.int64, device=self.device)
        for scores, wanted in self._evaluated(images, labels):
            right += (scores.argmax(1) == wanted).sum()
            lost += scores.isnan().sum()
        return math.nan if int(lost) else int(right) / len(images)

    def mean_loss(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """The mean cross-entropy of images as ``accuracy`` has them."""
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for scores, wanted in self._evaluated(images, labels):
            total += nnf.cross_entropy(scores.float(), wanted, reduction="sum").double()
        return total.item() / len(images)

    def _evaluated(self, images: torch.Tensor, labels: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Scores and labels, a batch at a time."""
        self.model.eval()
        for first in range(0, len(images), _EVALUATION_BATCH):
            part = slice(first, first + _EVALUATION_BATCH)
            with torch.no_grad(), precision_of(self.device, self.recipe.precision):
                scores = self.model(images[part])
            yield scores, labels[part]

    def state_dict(self) -> dict[str, Any]:
        """Weights and the optimiser's momenta, as they are; not copies."""
        return {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over another's weights and momenta, copies of them; the recipe and the seed stay."""
        self.model.load_state_dict(state["model"])
        states = self._optimizer.state.items()
        kept = {weight: own["momentum_buffer"] for weight, own in states if own.get("momentum_buffer") is not None}
        # By itself the optimizer would go on with the very tensors of the other.
        self._optimizer.load_state_dict(copy.deepcopy(state["optimizer"]))
        for group in self._optimizer.param_groups:
            group["lr"] = self._lr
        for weight in dict.fromkeys([*kept, *self._optimizer.state]):
            own = self._optimizer.state[weight]
            loaded = own.get("momentum_buffer")
            if weight in kept or loaded is not None:
                # A captured step knows the momenta by their place, and the fused optimiser takes it for granted that
                # they are laid out as the weights. Without any, the first step begins from zeros as well.
                momentum = kept[weight] if weight in kept else torch.empty_like(weight)
                momentum.zero_() if loaded is None else momentum.copy_(loaded)
                own["momentum_buffer"] = momentum


class LayerDraws:
    """Seeds what layers draw by epoch. A model that draws nothing on the CPU may train beside others afterwards."""

    def __init__(self, device: str, seed: int) -> None:
        self._device, self._seed = torch.device(device), seed
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


Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

# Steps before the recording: libraries choose their algorithms, and the optimiser makes its momenta, in the first.
_EAGER = 3

# torch allows one recording at a time in a process: each begins by returning the free memory of all GPUs, which is an
# internal error of the allocator of a GPU that is being recorded.
_RECORDING = Lock()


class CaptureError(ValueError):
    """A step that cannot be recorded: it waits for the GPU, say, because its work depends on values."""


class GraphMemory:
    """Memory that recorded steps on one device share: they live as long as each other, one runs at a time."""

    def __init__(self, device: str) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        # With the pool, since memory that is free on one stream is not given out on another. Nor is it the stream that
        # torch would take, which belongs to whichever GPU came first.
        self.stream = torch.cuda.Stream(torch.device(device))


class CapturedStep:
    """``step(images, labels)``, from the fourth call on by a CUDA graph.

    Weights, momenta and learning rate must stay at their place in memory; batches have one shape; the next call writes
    over the result. ``memory``: None for its own.
    """

    def __init__(self, step: Step, device: str, memory: GraphMemory | None = None) -> None:
        self._step, self._device = step, torch.device(device)
        self._memory = GraphMemory(device) if memory is None else memory
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Raises CaptureError."""
        with torch.cuda.device(self._device):
            if self._graph is None:
                self._calls += 1
                if self._calls <= _EAGER:
                    return self._run_eagerly(images, labels)
                self._graph = self._record(images, labels)
            self._images.copy_(images)
            self._labels.copy_(labels)
            self._graph.replay()
            return self._result

    def _run_eagerly(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """On the stream of the recording, since parts of a backward pass stay with the stream that they began on."""
        current, stream = torch.cuda.current_stream(), self._memory.stream
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            result = self._step(images, labels)
        current.wait_stream(stream)
        for tensor in (images, labels):
            tensor.record_stream(stream)
        result.record_stream(current)
        return result

    def _record(self, images: torch.Tensor, labels: torch.Tensor) -> torch.cuda.CUDAGraph:
        layout = torch.channels_last if images.dim() == 4 else torch.contiguous_format
        self._images, self._labels = images.clone(memory_format=layout), labels.clone()
        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        memory = self._memory
        try:
            # "thread_local": what other threads do on other GPUs meanwhile is none of this graph's business.
            with _RECORDING, torch.cuda.graph(graph, memory.pool, memory.stream, capture_error_mode="thread_local"):
                self._result = self._step(self._images, self._labels)
        except Exception as error:
            torch.cuda.set_stream(current)  # torch leaves it where it was when a recording fails
            raise CaptureError(
                f"the training step cannot be recorded as a CUDA graph: {error}; accepted: a model that never waits "
                "for the GPU, or no recording (capture=False, --no-capture)"
            ) from error
        return graph

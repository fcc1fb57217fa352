"""The trainer: ``train``, searches, races, evaluations and checks of labels all train models by it.

``fit`` trains from the first epoch to the last. A ``Fit`` trains step by step on the batches of a loader: members of a
population change their policy between epochs, and ``train`` adds checkpoints, a log and several ranks.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from variegate.arrays import UInt64Array
from variegate.data.samples import Samples
from variegate.decode.depth import note_once
from variegate.learn.adaptation import Adaptation
from variegate.learn.averaging import (
    DistContext,
    ParallelStrategy,
    average_over_ranks,
    floats_of,
    parallel_strategy,
    share_over_ranks,
)
from variegate.learn.batches import plain_images, tensors_of
from variegate.learn.models import ModelError, layer_seed, model_to_train, seeded_generator, seeded_weights
from variegate.learn.step import (
    Tensors,
    TrainingStep,
    in_channels_last,
    load_state,
    make_optimizer,
    precision_context,
    state_of,
)
from variegate.loader import Batch, Loader
from variegate.options.fit import FitOptions
from variegate.transforms import Transform
from variegate.workers.devices import cores_each

_SCORED_BATCH = 1024
# Where a guess among the five highest scores says something.
_LEAST_CLASSES_FOR_TOP5 = 10


@dataclass(frozen=True)
class StepResult:
    """A step of the optimizer. ``loss``: sum of this rank's losses, on the device. ``images``: of all ranks.
    ``waited``: seconds of ``seconds`` in which the loader was waited for."""

    loss: torch.Tensor
    images: int
    lr: float
    seconds: float
    waited: float


class Fit:
    """A model in training, on one rank. All chance in it follows from ``seed``, and on a CPU every bit.

    ``warmup``: steps before ranks may differ. ``is_alone``: no other training runs in this process, so that random
    layers may draw in any step; else a model that draws nothing in its first step is assumed not to draw later.
    ``steps``: completed steps. Raises ModelError.
    """

    def __init__(
        self,
        model: str,
        num_classes: int,
        channels: int,
        options: FitOptions,
        seed: int,
        ranks: DistContext | None = None,
        adaptation: Adaptation | None = None,
        *,
        warmup: int = 0,
        is_alone: bool = False,
    ) -> None:
        self.name, self.options, self.seed = model, options, seed
        self.ranks = ranks or DistContext()
        self.adaptation = adaptation or Adaptation()
        self.steps = 0
        self._channels, self._num_classes = channels, num_classes
        device = self.ranks.device
        timm_arguments: dict[str, Any] = {"pretrained": True} if options.pretrained else {}
        self.module = model_to_train(model, num_classes, channels, device, seed, **timm_arguments)
        self.average = MovingAverage(self.module, options.ema) if options.ema else None
        self.replicas: ParallelStrategy = parallel_strategy(self.module, self.ranks, options.period, warmup)
        self._layers = LayerSeeds(device, seed, self.ranks.rank, is_alone)
        self._lr = torch.tensor(options.lr, device=device)
        self._optimizer = make_optimizer(self.module, self._lr, options)
        called: Any = torch.compile(self.replicas.model) if options.compile else self.replicas.model
        scaler = torch.amp.GradScaler(device.split(":")[0]) if options.precision == "float16" else None
        self.step = TrainingStep(
            model,
            called,
            num_classes,
            self._optimizer,
            options.precision,
            options.clip,
            options.label_smoothing,
            scaler,
            self.adaptation.noting,
        )

    @property
    def scored(self) -> torch.nn.Module:
        """The model that is scored, and saved in the end."""
        return self.module if self.average is None else self.average.module

    def initialize(self, read: Callable[[], torch.Tensor]) -> None:
        """Call the model's ``initialize``, if it has one, with images [N, C, H, W] read on rank 0. Raises
        ModelError."""
        initialize = getattr(self.module, "initialize", None)
        if initialize is None:
            return
        if self.ranks.is_first:
            try:
                initialize(read())
            except RuntimeError as error:
                raise ModelError(f"model {self.name}: cannot be initialized by the images: {error}") from error
        share_over_ranks(self.module, self.ranks)
        if self.average is not None:
            self.average.module.load_state_dict(self.module.state_dict())

    def warm_up_backward(self, size: tuple[int, int]) -> None:
        """Run a backward pass before the first step, if ranks need it. ``size``: (height, width) of the images. Raises
        ModelError."""

        def add_gradients() -> None:
            images = torch.zeros(2, *size, self._channels, device=self.ranks.device)
            labels = torch.zeros(2, dtype=torch.int64, device=self.ranks.device)
            self.step.add_gradients(in_channels_last(images), labels, 2)

        self.module.train()
        self.replicas.warm_up_backward(add_gradients)

    # -- training ------------------------------------------------------------------------------------------------------

    def train_epoch(self, loader: Loader, epoch: int) -> torch.Tensor:
        """Train an epoch -> its mean loss, a scalar whose reading waits for a GPU."""
        loader.set_epoch(epoch)
        results = list(self.run_epoch(loader, epoch))
        return torch.stack([one.loss for one in results]).sum() / sum(one.images for one in results)

    def run_epoch(self, loader: Loader, epoch: int) -> Iterator[StepResult]:
        """Train on the batches that are left of the loader's epoch; yield after each step, when the loader's state is
        that of the step. Raises ModelError."""
        options = self.options
        step_images = loader.batch_size * options.accumulate
        world = self.ranks.ranks
        length = min(len(loader.source), len(loader) * loader.batch_size * world)
        done = self._done(loader, epoch)
        batches = iter(loader)
        self.module.train()
        while True:
            started = time.perf_counter()
            waited = 0.0
            before = done
            losses = []
            lr = options.lr_at(epoch + before / length)
            self._optimizer.zero_grad(set_to_none=True)
            for number in range(options.accumulate):
                asked = time.perf_counter()
                batch = next(batches, None)
                waited += time.perf_counter() - asked
                if batch is None:
                    break
                done = loader.state_dict()["done"]
                is_last = number + 1 == options.accumulate or done >= length
                seeds = self._layers.seeded(self.steps * options.accumulate + number)
                with seeds, self.replicas.no_sync_unless_last(is_last):
                    losses.append(self._add_gradients(batch, step_images))
                if is_last:
                    break
            if not losses:
                return
            self.steps += 1
            self._update(lr)
            seconds = time.perf_counter() - started
            yield StepResult(torch.stack(losses).sum(), done - before, lr, seconds, waited)

    def _done(self, loader: Loader, epoch: int) -> int:
        """Samples of the epoch, of all ranks, that earlier steps have trained."""
        state = loader.state_dict()
        return int(state["done"]) if state["epoch"] == epoch else 0

    def _add_gradients(self, batch: Batch, step_images: int) -> torch.Tensor:
        images, labels, weights = tensors_of(batch, self.ranks.device)
        total = self.step.add_gradients(images, labels, step_images, weights)
        self.adaptation.trained(batch.ids, ~batch.padding)
        return total

    def _update(self, lr: float) -> None:
        self._lr.fill_(lr)
        self.step.update()
        self.replicas.after(self.steps)
        if self.average is not None:
            self.average.update(self.module, self.steps)

    def synchronize(self) -> None:
        """Make weights, statistics and moving averages equal on all ranks."""
        self.replicas.synchronize()
        if self.average is not None:
            self.average.synchronize(self.module, not self.replicas.is_alike)

    # -- scoring -------------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def score(self, loader: Loader) -> dict[str, float]:
        """Accuracies over all ranks: "top1", and "top5" from ten classes on; NaN if a score is. Empty if no image
        could be read."""
        device = self.ranks.device
        counts = torch.zeros(4, dtype=torch.int64, device=device)
        for scores, labels, valid in self.predict(loader):
            highest = scores.topk(min(5, self._num_classes), 1).indices
            matches = highest == labels[:, None]
            counts[0] += (matches[:, 0] & valid).sum()
            counts[1] += (matches.any(1) & valid).sum()
            counts[2] += valid.sum()
            counts[3] += scores.isnan().any(1).sum()
        (one, five, total, invalid), _ = self.ranks.sum_and_max(counts.tolist(), [0.0])
        if not total:
            return {}
        found = {"top1": one / total, "top5": five / total}
        if self._num_classes < _LEAST_CLASSES_FOR_TOP5:
            del found["top5"]
        return dict.fromkeys(found, math.nan) if invalid else found

    @torch.no_grad()
    def predict(self, loader: Loader) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Yield float32 scores [N, classes], labels [N] and a bool [N], False for padding, of each batch."""
        device = self.ranks.device
        self.scored.eval()
        for batch in loader:
            images, labels, _ = tensors_of(batch, device)
            with precision_context(device, self.options.precision):
                scores: torch.Tensor = self.scored(images)
            yield scores.float(), labels, torch.from_numpy(~batch.padding).to(device)

    # -- state ---------------------------------------------------------------------------------------------------------

    def weights(self) -> Tensors:
        """The weights of ``scored``, on the CPU."""
        return {name: tensor.detach().cpu().contiguous() for name, tensor in self.scored.state_dict().items()}

    def tensors(self) -> Tensors:
        """All tensors that the next step depends on, by PART/NAME; not copies."""
        parts: dict[str, Tensors] = {
            "model": self.module.state_dict(),
            "optimizer": state_of(self._optimizer, self.module),
            "between": self.replicas.state(),
        }
        if self.average is not None:
            parts["average"] = self.average.module.state_dict()
        if self.step.scaler is not None:
            numbers = self.step.scaler.state_dict().items()
            parts["scaler"] = {name: torch.tensor(value, dtype=torch.float64) for name, value in numbers}
        return {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}

    def load(self, tensors: Tensors, steps: int) -> None:
        """Resume with copies of ``tensors`` after ``steps`` steps. Raises ValueError or LookupError for tensors of
        another model."""
        parts: dict[str, Tensors] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        self.steps = steps
        try:
            self.module.load_state_dict(parts["model"])
            if self.average is not None:
                self.average.module.load_state_dict(parts["average"])
        except (RuntimeError, LookupError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(":. ")
            raise ValueError(f"its weights are not those of {self.name}: {reason}") from error
        load_state(self._optimizer, self.module, parts.get("optimizer", {}))
        if self.step.scaler is not None:
            # Counters have to be integers again.
            numbers = {name: tensor.item() for name, tensor in parts["scaler"].items()}
            counters = {name: int(numbers[name]) for name in ("growth_interval", "_growth_tracker")}
            self.step.scaler.load_state_dict({**numbers, **counters})
        self.replicas.load_state(parts.get("between", {}), steps)


class LayerSeeds:
    """Seeds of random layers, by the batch and the rank."""

    def __init__(self, device: str, seed: int, rank: int, is_alone: bool) -> None:
        self._device = torch.device(device)
        self._seed, self._rank, self._must_be_root = seed, rank, is_alone
        self._draws_nothing = False

    @contextmanager
    def seeded(self, batch: int) -> Iterator[None]:
        """Context of a forward and backward pass."""
        seed = layer_seed(self._seed, batch, self._rank)
        with ExitStack() as stack:
            if self._device.type == "cuda":
                # A GPU has a generator of its own, and one thread that trains on it.
                generator = torch.cuda.default_generators[self._device.index or 0]
                stack.enter_context(seeded_generator(generator, seed))
            if self._draws_nothing:
                yield
                return
            stack.enter_context(seeded_weights(seed))
            before = None if self._must_be_root else torch.default_generator.get_state()
            yield
            if before is not None:
                self._draws_nothing = torch.equal(before, torch.default_generator.get_state())


class MovingAverage:
    """A moving average of weights. After n steps min(``decay``, (1 + n) / (10 + n)) of the average stays."""

    def __init__(self, module: torch.nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(module).eval()
        self._decay = decay
        self.module.requires_grad_(False)

    @torch.no_grad()
    def update(self, module: torch.nn.Module, steps: int) -> None:
        """Update by the weights of ``module`` after ``steps`` steps."""
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for mine, new in zip(self.module.parameters(), module.parameters(), strict=True):
            mine.lerp_(new, 1 - decay)

    @torch.no_grad()
    def synchronize(self, module: torch.nn.Module, is_between_ranks: bool) -> None:
        """Copy buffers, such as statistics. ``is_between_ranks``: average the weights over ranks."""
        for mine, new in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(new)
        if is_between_ranks:
            average_over_ranks(floats_of(self.module.parameters()))


@dataclass(frozen=True)
class FitData:
    """Images that train on a device, and how images are normalized. ``num_threads``: that augment on a CPU; None for
    all cores."""

    samples: Samples
    plain: Transform
    device: str = "cpu"
    num_threads: int | None = None

    @property
    def ids(self) -> UInt64Array:
        return self.samples.ids(np.arange(len(self.samples), dtype=np.int64))

    @property
    def channels(self) -> int:
        with note_once(set(), keeps_depth=True):
            return int(self.samples.pixels(np.arange(1)).shape[3])

    def loader(self, transform: Transform, options: FitOptions, seed: int, adaptation: Adaptation | None) -> Loader:
        """Batches that train. An incomplete last batch is dropped. Raises ValueError for fewer images than a batch
        has."""
        check_batch(options.batch_size or 1, len(self.samples))
        conditions = adaptation.of_epoch if adaptation is not None and adaptation.has_magnitudes else None
        return self._loader(transform, options.batch_size or 1, seed=seed, drop_last=True, conditions=conditions)

    def plain_loader(self) -> Loader:
        """Batches that are scored."""
        return self._loader(self.plain, _SCORED_BATCH, shuffle=False)

    def _loader(self, transform: Transform, batch_size: int, **more: Any) -> Loader:
        # Parallel training runs share the cores of a machine; a GPU should find its next batch ready.
        prefetch = 2 if self.device.startswith("cuda") else 0
        return Loader(
            self.samples,
            transform,
            batch_size,
            self.device,
            layout="NHWC",
            num_threads=self.num_threads,
            prefetch=prefetch,
            targets=False,
            rank=0,
            world_size=1,
            **more,
        )

    def begin(self, model: str, options: FitOptions, seed: int, adaptation: Adaptation | None = None) -> Fit:
        """A model before its first step. Raises ModelError."""
        classes = len(self.samples.classes)
        made = Fit(model, classes, self.channels, options, seed, DistContext(device=self.device), adaptation)
        made.initialize(lambda: plain_images(self.samples, self.plain, self.device, seed, self.num_threads))
        return made

    def others(self, samples: Samples) -> FitData:
        """The same for other images."""
        return replace(self, samples=samples)


def threads_each(devices: Sequence[str]) -> int | None:
    """Augmenting threads of each of ``trainings`` parallel training runs; None: all cores, for a single one."""
    return None if len(devices) == 1 else cores_each(len(devices))


@contextmanager
def one_thread_each(*devices: str) -> Iterator[None]:
    """On a CPU, training uses one thread: sums are equal on every machine, and small models train faster."""
    before = torch.get_num_threads()
    if "cpu" in devices:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_batch(batch_size: int, images: int) -> None:
    """Raises ValueError for a batch larger than the images."""
    if batch_size > images:
        raise ValueError(f"batch_size: got {batch_size}, with {images} images to train; accepted: no more than that")


@dataclass(frozen=True)
class Fitted:
    """A training that is over. ``is_finite``: False if it diverged. ``seconds``: from the first step on."""

    fit: Fit
    is_finite: bool
    seconds: float


def fit(
    data: FitData,
    policy: Transform,
    options: FitOptions,
    seed: int,
    *,
    model: str,
    adaptation: Adaptation | None = None,
    is_over: Callable[[], bool] = lambda: False,
    on_epoch: Callable[[], object] = lambda: None,
) -> Fitted | None:
    """Train a model from the first epoch to the last, or until it diverges; None if ``is_over`` ended it.

    ``policy``: all that is done to images that train; it ends in ``Normalize``. Raises ValueError for fewer images than
    a batch has, ModelError.
    """
    made = data.begin(model, options, seed, adaptation)
    loader = data.loader(policy, options, seed, adaptation)
    # From here on, because torch loads a part of itself for the first optimizer of a process, which takes seconds.
    started = time.perf_counter()
    is_finite = True
    for epoch in range(options.num_epochs):
        if is_over():
            return None
        is_finite = math.isfinite(made.train_epoch(loader, epoch))
        made.adaptation.synchronize()
        made.adaptation.end_epoch()
        on_epoch()
        if not is_finite:
            break
    return Fitted(made, is_finite, time.perf_counter() - started)

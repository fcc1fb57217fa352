"""Image size, network, batch size and epochs that options leave open: chosen by the data and the memory."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, replace

import numpy as np
import torch

from variegate.data.samples import Samples
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.learn.models import build_model, seeded_weights
from variegate.learn.reading import read_pixels
from variegate.loader.cache import available_memory
from variegate.options.fit import FitOptions
from variegate.options.shared import TrainReadOptions

Size = tuple[int, int]

# Images of one size up to this side keep it.
LARGEST_KEPT = 64
# Images of a shorter side are enlarged to it: networks halve sides several times.
_LEAST_SIDE = 16
_SIDE_STEP = 8
_SAMPLED = 32
# Networks, and images below which the smaller one is chosen.
LARGE_MODEL = "wrn-28-2"
_SMALL_MODEL = "wrn-16-1"
_SMALL_BELOW = 2_000
_MOST_STEM = 8
AUTOMATIC_MODELS = tuple(
    model + stem for model in (LARGE_MODEL, _SMALL_MODEL) for stem in ("", "-stem2", "-stem4", "-stem8")
)
BATCH = 128
_LEAST_BATCH = 8
# Steps of an epoch: with fewer a short training hardly moves.
_STEPS = 8
# Of the memory that is free, for a batch size that is chosen; the estimate may be that much too low.
_USED_SHARE = 0.75
# Per image, besides activations: gradients of the largest layers, and prefetched batches.
_LARGEST_LAYERS = 3
_LOADED_COPIES = 6


@dataclass(frozen=True)
class Purpose:
    """Bounds of a kind of training. ``side``: largest side that images are resized to; images with a side below
    ``least_side`` are always resized. ``images_seen``: over all epochs; the number of epochs is between
    ``least_epochs`` and ``most_epochs``."""

    side: int
    least_side: int
    images_seen: int
    least_epochs: int
    most_epochs: int


# 50,000 images over 200 epochs, as Population Based Augmentation trains on CIFAR-10.
SEARCH = Purpose(32, 0, 10_000_000, 10, 200)
TRAIN = Purpose(224, 0, 10_000_000, 30, 200)
LABELS = Purpose(32, 16, 30_000, 6, 20)


@dataclass(frozen=True)
class Data:
    """Facts that a choice depends on. ``images``: in all. ``train``: images of an epoch. ``sizes``: (height, width) of
    some images."""

    images: int
    train: int
    sizes: list[Size]


@dataclass(frozen=True)
class Choice:
    """``is_kept``: images keep their size. ``reasons``: lines that say why."""

    model: str
    size: Size
    is_kept: bool
    batch_size: int
    epochs: int
    reasons: tuple[str, ...]


def choose(
    data: Data,
    purpose: Purpose,
    *,
    model: str | None = None,
    size: Size | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
) -> Choice:
    """Choose values for arguments that are None."""
    is_kept = keeps_size(data.sizes, purpose) and size in (None, data.sizes[0])
    size = size or choose_size(data.sizes, purpose)
    model = model or _choose_model(data.images, max(size))
    batch_size = batch_size or choose_batch(data.train)
    epochs = epochs or choose_epochs(data.train, purpose)
    choice = Choice(model, size, is_kept, batch_size, epochs, ())
    return replace(choice, reasons=(_reason(choice, data),))


def sample_sizes(source: Samples, options: TrainReadOptions) -> list[Size]:
    """(height, width) of up to 32 images, evenly from a source; without unreadable ones. ``options``: how they are
    read."""
    found = []
    for index in np.linspace(0, len(source) - 1, min(len(source), _SAMPLED)).astype(np.int64).tolist():
        try:
            height, width = read_pixels(source, index, options).shape[:2]
            found.append((height, width))
        except DecodeError:  # is reported when it is loaded
            continue
    return found


def keeps_size(sizes: list[Size], purpose: Purpose) -> bool:
    """True for images of one size of up to 64 pixels a side, which is not changed."""
    return len(set(sizes)) == 1 and min(sizes[0]) >= purpose.least_side and max(sizes[0]) <= LARGEST_KEPT


def choose_size(sizes: list[Size], purpose: Purpose) -> Size:
    """The size of all images that keep it; else a square of the median shorter side, so that few images are
    enlarged."""
    if keeps_size(sizes, purpose):
        return sizes[0]
    if not sizes:
        return purpose.side, purpose.side
    side = statistics.median_low(min(size) for size in sizes)
    side = max(_LEAST_SIDE, min(purpose.side, round(side / _SIDE_STEP) * _SIDE_STEP))
    return side, side


def choose_batch(train: int) -> int:
    """A power of two that gives an epoch eight steps, from 8 to 128, and no more than there are images."""
    batch = BATCH
    while batch > _LEAST_BATCH and batch * _STEPS > train:
        batch //= 2
    return max(1, min(batch, train))


def choose_epochs(train: int, purpose: Purpose) -> int:
    """Number of epochs of ``train`` images that reaches the purpose's ``images_seen``, within its bounds."""
    seen = round(purpose.images_seen / max(1, train))
    return max(purpose.least_epochs, min(purpose.most_epochs, seen))


def _choose_model(images: int, side: int) -> str:
    """Choose the network by the number of images and their longer side. Above 64 pixels its first layer has a stride,
    so that the blocks see at most 64."""
    model = _SMALL_MODEL if images < _SMALL_BELOW else LARGE_MODEL
    stem = 1
    while side > stem * LARGEST_KEPT and stem < _MOST_STEM:
        stem *= 2
    return model if stem == 1 else f"{model}-stem{stem}"


def _reason(choice: Choice, data: Data) -> str:
    many = pluralize(data.images, "image")
    if data.sizes and len(set(data.sizes)) == 1:
        many += f" of {_text(data.sizes[0])}"
    elif data.sizes:
        height, width = (statistics.median_low(one) for one in zip(*data.sizes, strict=True))
        many += f" of several sizes, about {_text((height, width))}"
    epochs = pluralize(choice.epochs, "epoch")
    chosen = f"{choice.model}, {epochs}, batches of {choice.batch_size} images of {_text(choice.size)}"
    return f"{chosen}: {many}"


def fit_memory(
    choice: Choice, data: Data, channels: int, classes: int, options: FitOptions, seed: int, device: str
) -> Choice:
    """Halve a chosen batch until a step fits into the memory that is free, and say so.

    Raises ValueError naming ``batch_size`` or ``model`` if nothing fits.
    """
    model, size, batch = choice.model, choice.size, choice.batch_size
    need = memory_of(model, channels, classes, size, options, seed)
    if need is None:
        return choice
    free = free_memory(device)
    if options.batch_size is not None:
        if need.of(batch) > free:
            most = int((free * _USED_SHARE - need.fixed) // need.per_image)
            accepted = f"at most {most}, or" if most > 0 else "with"
            raise ValueError(
                f"batch_size: got {batch}, for which {model} takes {_gigabytes(need.of(batch))} at {_text(size)}, and "
                f"{_gigabytes(free)} are free; accepted: {accepted} a smaller size or model"
            )
        return choice
    chosen = batch
    while chosen > _LEAST_BATCH and need.of(chosen) > free * _USED_SHARE:
        chosen //= 2
    if need.of(chosen) > free:
        raise ValueError(
            f"model: {model} takes {_gigabytes(need.of(chosen))} for a batch of {chosen} images of {_text(size)}, and "
            f"{_gigabytes(free)} are free; accepted: a smaller size or model"
        )
    if chosen == batch:
        return choice
    smaller = replace(choice, batch_size=chosen)
    halved = (
        f"batches of {batch} would take {_gigabytes(need.of(batch))}, and {_gigabytes(free)} are free; "
        f"--accumulate {batch // chosen} makes steps of as many images"
    )
    return replace(smaller, reasons=(_reason(smaller, data), halved))


@dataclass(frozen=True)
class Memory:
    """Bytes of a training step, by an estimate."""

    fixed: int
    per_image: int

    def of(self, batch: int) -> int:
        return self.fixed + batch * self.per_image


def memory_of(model: str, channels: int, classes: int, size: Size, options: FitOptions, seed: int) -> Memory | None:
    """Memory of a step: weights with their gradients and state, and activations per image.

    Measured on the CPU with two black images and a model of its own. None for a model that does not run there.
    """
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    try:
        with seeded_weights(seed):
            module = build_model(model, classes, channels)
            images = torch.zeros(2, channels, *size).to(memory_format=torch.channels_last)
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                scores = module(images)
    except Exception:  # anybody's code
        return None
    weights = {one.untyped_storage()._cdata for one in (*module.parameters(), *module.buffers())}
    layers = [one.untyped_storage().nbytes() for key, one in kept.items() if key not in weights]
    del scores
    saved = sum(layers) + _LARGEST_LAYERS * max(layers, default=0)
    if options.precision != "float32":
        saved //= 2
    loaded = _LOADED_COPIES * images.numel() * images.element_size()
    parameters = sum(one.numel() * one.element_size() for one in module.parameters())
    copies = 3 + (options.optimizer != "sgd") + (options.ema > 0)
    return Memory(copies * parameters, (saved + loaded) // 2)


def free_memory(device: str) -> int:
    """Bytes of a device that this process may take; the processes of a machine share its memory."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    return available_memory() // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB"

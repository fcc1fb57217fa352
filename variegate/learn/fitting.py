"""Network, image size and batch size of a training that options leave open: chosen by the data and the memory."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass

import torch

from variegate.learn.images import fitting_batch, fitting_model, is_kept_size
from variegate.learn.models import build_model, seeded_weights
from variegate.loader.cache import available_memory
from variegate.options.training import TrainOptions

Size = tuple[int, int]
_LARGEST_SIDE = 224
_SIDE_STEP = 8
# Images of a shorter side are enlarged to it: networks halve sides several times.
_LEAST_SIDE = 16
# Of the memory that is free, for a batch size that is chosen; the estimate may be that much too low.
_USED_SHARE = 0.75
_LEAST_BATCH = 8
# Per image, besides what the backward pass needs: gradients of the largest layers, and batches that are loaded ahead.
_LARGEST_LAYERS = 3
_LOADED_COPIES = 6


@dataclass(frozen=True)
class Data:
    """Facts that a choice depends on. ``sizes``: (height, width) of some images."""

    images: int
    sizes: list[Size]
    channels: int
    classes: int


@dataclass(frozen=True)
class Fit:
    """``reasons``: one or two lines. ``is_kept``: images keep their size."""

    model: str
    size: Size
    is_kept: bool
    batch_size: int
    reasons: tuple[str, ...]


def fit_training(data: Data, options: TrainOptions, size: Size | None, together: int, device: str) -> Fit:
    """Choose what ``options`` leave open. ``size``: of ``--size`` or of the policy. ``together``: batches in a step, of
    all ranks.

    Raises ValueError naming ``batch_size`` or ``model`` for a batch that does not fit into memory, or is larger than
    the data.
    """
    common = data.sizes[0] if data.sizes and len(set(data.sizes)) == 1 else None
    is_kept = is_kept_size(data.sizes) and size in (None, common)
    if size is None:
        size = data.sizes[0] if is_kept else fitting_side(data.sizes)
    model = options.model or fitting_model(data.images, max(size))
    batch = options.batch_size or fitting_batch(max(1, data.images // together))
    need = memory_of(model, data, size, options)
    free = free_memory(device)
    reasons = [f"{model}, batches of {batch} images of {_text(size)}: {_reason(data, common, is_kept)}"]
    if need is None:
        return Fit(model, size, is_kept, batch, tuple(reasons))
    if options.batch_size is not None:
        if need.of(batch) > free:
            most = int((free * _USED_SHARE - need.fixed) // need.per_image)
            accepted = f"at most {most}, or" if most > 0 else "with"
            raise ValueError(
                f"batch_size: got {batch}, for which {model} takes {_gigabytes(need.of(batch))} at {_text(size)}, and "
                f"{_gigabytes(free)} are free; accepted: {accepted} a smaller size or model"
            )
        return Fit(model, size, is_kept, batch, tuple(reasons))
    chosen = batch
    while chosen > _LEAST_BATCH and need.of(chosen) > free * _USED_SHARE:
        chosen //= 2
    if need.of(chosen) > free:
        raise ValueError(
            f"model: {model} takes {_gigabytes(need.of(chosen))} for a batch of {chosen} images of {_text(size)}, and "
            f"{_gigabytes(free)} are free; accepted: a smaller size or model"
        )
    if chosen < batch:
        reasons = [
            f"{model}, batches of {chosen} images of {_text(size)}: {_reason(data, common, is_kept)}",
            f"batches of {batch} would take {_gigabytes(need.of(batch))}, and {_gigabytes(free)} are free; "
            f"--accumulate {batch // chosen} makes steps of as many images",
        ]
    return Fit(model, size, is_kept, chosen, tuple(reasons))


def fitting_side(sizes: list[Size]) -> Size:
    """A square of the median shorter side, so that no more than half of the images are enlarged; at most 224x224."""
    if not sizes:
        return _LARGEST_SIDE, _LARGEST_SIDE
    side = statistics.median_low(min(size) for size in sizes)
    side = max(_LEAST_SIDE, min(_LARGEST_SIDE, side // _SIDE_STEP * _SIDE_STEP))
    return side, side


@dataclass(frozen=True)
class Memory:
    """Bytes of a training step, by an estimate."""

    fixed: int
    per_image: int

    def of(self, batch: int) -> int:
        return self.fixed + batch * self.per_image


def memory_of(model: str, data: Data, size: Size, options: TrainOptions) -> Memory | None:
    """Memory of a step: weights with their gradients and state, and what the backward pass needs of each image.

    Measured on the CPU with two black images and a model of its own. None for a model that does not run there.
    """
    kept: dict[int, torch.Tensor] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    try:
        with seeded_weights(options.seed):
            module = build_model(model, data.classes, data.channels)
            images = torch.zeros(2, data.channels, *size).to(memory_format=torch.channels_last)
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


def _reason(data: Data, common: Size | None, is_kept: bool) -> str:
    many = f"{data.images:,} images"
    if not data.sizes:
        return many
    if is_kept or common is not None:
        return f"{many} of {_text(data.sizes[0])}"
    height, width = (statistics.median_low(one) for one in zip(*data.sizes, strict=True))
    return f"{many} of several sizes, about {_text((height, width))}"


def _text(size: Size) -> str:
    return f"{size[0]}x{size[1]}"


def _gigabytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB"

"""Kornia: batches of float tensors. Its RandAugment draws the operations once per call, for the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kornia.augmentation as K
import torch
from kornia.augmentation.auto import RandAugment

from benchmarks.gpu.peers.base import Given, GpuPeer, chw, nchw
from benchmarks.inputs import MAGNITUDE, MEAN, NUM_OPS, SIZE, STD
from benchmarks.peers.base import NextBatch

COMPILED = "one draw for the batch, torch.compile"


class Kornia(GpuPeer):
    name = "Kornia"
    packages = ("kornia", "torch")

    def variants(self, given: Given) -> dict[str, NextBatch]:
        floats = _crops(given) if given.ragged else _floats(given)
        eager = augmentation()
        compiled: Any = torch.compile(augmentation()) if given.compile_seconds else None

        @torch.inference_mode()
        def whole_batch() -> torch.Tensor:
            return finish(eager(floats()))

        @torch.inference_mode()
        def per_sample() -> torch.Tensor:
            return finish(torch.cat([eager(image[None]) for image in floats()]))

        @torch.no_grad()
        def whole_batch_compiled() -> torch.Tensor:
            return finish(compiled(floats()))

        made = {"one draw for the batch": whole_batch, "one draw per sample": per_sample}
        return made if compiled is None else made | {COMPILED: whole_batch_compiled}

    def warm_up_seconds(self, variant: str, given: Given) -> float:
        """What is drawn decides what is compiled, so compiling goes on for as long as new draws come up."""
        return given.compile_seconds if variant == COMPILED else super().warm_up_seconds(variant, given)


def augmentation() -> Any:
    """Everything but the crop. It stays on the CPU, where its RandAugment draws; its operations follow the images."""
    return K.AugmentationSequential(
        K.RandomHorizontalFlip(p=0.5),
        RandAugment(n=NUM_OPS, m=MAGNITUDE, transformation_matrix_mode="skip"),
        K.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
    )


def finish(batch: Any) -> torch.Tensor:
    return torch.as_tensor(batch).to(torch.bfloat16).contiguous()


def _floats(given: Given) -> Callable[[], torch.Tensor]:
    batches = nchw(given)
    return lambda: next(batches).float().div_(255)


def _crops(given: Given) -> Callable[[], torch.Tensor]:
    """Crops of one size; images of several sizes make no batch, so the crop runs once per image."""
    batches, crop = chw(given), K.RandomResizedCrop((SIZE, SIZE))
    return lambda: torch.cat([crop(image[None].float().div_(255)) for image in next(batches)])


PEER = Kornia()

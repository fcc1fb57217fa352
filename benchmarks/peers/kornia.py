"""Kornia: batches of float tensors. Its RandAugment draws the operations once per call, for the whole batch."""

from __future__ import annotations

import kornia.augmentation as K
import torch
from kornia.augmentation.auto import RandAugment

from benchmarks.inputs import MAGNITUDE, MEAN, NUM_OPS, STD, Inputs
from benchmarks.peers.base import NextBatch, Peer


class Kornia(Peer):
    name = "Kornia"
    packages = ("kornia", "torch")

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        transform = K.AugmentationSequential(
            K.RandomHorizontalFlip(p=0.5),
            RandAugment(n=NUM_OPS, m=MAGNITUDE, transformation_matrix_mode="skip"),
            K.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
        )
        images = inputs.image_batches(batch)

        def floats() -> torch.Tensor:
            return torch.from_numpy(next(images)).permute(0, 3, 1, 2).contiguous().float().div_(255)

        @torch.inference_mode()
        def whole_batch() -> torch.Tensor:
            return torch.as_tensor(transform(floats())).contiguous()

        @torch.inference_mode()
        def per_sample() -> torch.Tensor:
            return torch.cat([transform(image[None]) for image in floats()]).contiguous()

        return {"one draw for the batch": whole_batch, "one draw per sample": per_sample}


PEER = Kornia()

"""Kornia: batches of float tensors. Its RandAugment draws the operations once per call, for the whole batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import kornia.augmentation as K
import torch
from kornia.augmentation.auto import RandAugment

from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import feed
from benchmarks.libraries import Absent, Library, Ways


def augmentation() -> Any:
    """All operations except the crop. It stays on the CPU, where its RandAugment draws; its operations follow the
    images."""
    return K.AugmentationSequential(
        K.RandomHorizontalFlip(p=0.5),
        RandAugment(n=C.NUM_OPS, m=C.MAGNITUDE, transformation_matrix_mode="skip"),
        K.Normalize(torch.tensor(C.MEAN), torch.tensor(C.STD)),
    )


def ways_of(floats: Callable[[], torch.Tensor], dtype: torch.dtype) -> Ways:
    transform = augmentation()

    @torch.inference_mode()
    def whole_batch() -> torch.Tensor:
        return torch.as_tensor(transform(floats())).to(dtype).contiguous()

    @torch.inference_mode()
    def per_sample() -> torch.Tensor:
        return torch.cat([transform(image[None]) for image in floats()]).to(dtype).contiguous()

    return {"one draw for the batch": whole_batch, "one draw per sample": per_sample}


class Kornia(Library):
    name = "Kornia"
    packages = ("kornia", "torch")

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        if case.key != "randaugment":
            raise Absent("only W2 and W3 are written for it")
        floats = lambda images: torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().float().div_(255)  # noqa: E731
        return ways_of(feed(inputs, batch, floats), torch.float32)


class KorniaGpu(Library):
    name = "Kornia"
    packages = ("kornia", "torch")

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        placed = [[torch.from_numpy(image).cuda().permute(2, 0, 1) for image in one] for one in inputs]
        crop = None if case.size else K.RandomResizedCrop((case.out, case.out))
        images: Any = itertools.cycle(placed if crop else [torch.stack(one) for one in placed])

        def floats() -> torch.Tensor:
            if crop is None:
                return next(images).float().div_(255)
            # Images of different sizes are no batch, so the crop runs once per image.
            return torch.cat([crop(image[None].float().div_(255)) for image in next(images)])

        return ways_of(floats, torch.bfloat16)


LIBRARIES = {"kornia": Kornia(), "kornia_gpu": KorniaGpu()}

"""torchvision v2 on Pillow images, sample by sample."""

from __future__ import annotations

import io
from typing import Any

import torch
from PIL import Image

from benchmarks.peers.base import NextBatch
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn
from benchmarks.rows.libraries.torchvision_steps import LACKS, finish, mixed, rows, v2


class TorchvisionPil(RowLibrary):
    name = "torchvision v2, PIL"
    packages = ("torchvision", "torch", "pillow")
    lacks = LACKS

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        if case.views:
            return {"normalized per sample": _views(case, images, batch)}
        steps = rows()[case.name]
        pixels = v2.Compose([*steps.pixels, v2.PILToTensor(), *steps.tensors])
        last = finish(case, steps)

        def opened() -> list[Any]:
            return [Image.fromarray(image) for image in next(batches)]

        batches = in_turn(images, batch)
        ways = {
            "normalized per sample": lambda: torch.stack([last(pixels(image)) for image in opened()]),
            "normalized as a batch": lambda: last(torch.stack([pixels(image) for image in opened()])),
        }
        return {way: mixed(steps, next_batch) for way, next_batch in ways.items()}


def _views(case: Case, files: list[bytes], batch: int) -> NextBatch:
    """Each file opened once, each view of it made by itself."""
    batches = in_turn(files, batch)
    groups = [[(rows()[name], finish(case, rows()[name])) for name in names] for names in case.views]
    made = [
        [v2.Compose([*steps.pixels, v2.PILToTensor(), *steps.tensors, last]) for steps, last in views]
        for views in groups
    ]

    def next_batch() -> tuple[torch.Tensor, ...]:
        opened = [Image.open(io.BytesIO(file), formats=("JPEG",)).convert("RGB") for file in next(batches)]
        return tuple(torch.stack([torch.stack([one(image) for one in views]) for image in opened]) for views in made)

    return next_batch


LIBRARY = TorchvisionPil()

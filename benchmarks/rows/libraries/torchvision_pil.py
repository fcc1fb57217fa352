"""torchvision v2 on Pillow images, sample by sample."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image

from benchmarks.peers.base import NextBatch
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn
from benchmarks.rows.libraries.torchvision_steps import LACKS, rows, v2
from benchmarks.rows.libraries.torchvision_steps import finish as _finish


class TorchvisionPil(RowLibrary):
    name = "torchvision v2, PIL"
    packages = ("torchvision", "torch", "pillow")
    lacks = LACKS

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        steps = rows()[case.name]
        pixels = v2.Compose([*steps.pixels, v2.PILToTensor(), *steps.tensors])
        last = _finish(case, steps)

        def opened() -> list[Any]:
            return [Image.fromarray(image) for image in next(batches)]

        batches = in_turn(images, batch)
        return {
            "normalised per sample": lambda: torch.stack([last(pixels(image)) for image in opened()]),
            "normalised as a batch": lambda: last(torch.stack([pixels(image) for image in opened()])),
        }


LIBRARY = TorchvisionPil()

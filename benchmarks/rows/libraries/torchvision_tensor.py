"""torchvision v2 on uint8 tensors, one sample at a time: what is drawn once for a batch would not be the same work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.peers.base import NextBatch
from benchmarks.rows.catalogue import Case
from benchmarks.rows.libraries.base import Images, RowLibrary, in_turn
from benchmarks.rows.libraries.torchvision_steps import LACKS, mixed, rows, v2
from benchmarks.rows.libraries.torchvision_steps import finish as _finish


class TorchvisionTensor(RowLibrary):
    name = "torchvision v2, tensor"
    packages = ("torchvision", "torch")
    lacks = LACKS | dict.fromkeys(
        ("rotate_bicubic", "affine_bicubic"), "its rotation of tensors is nearest or bilinear"
    )
    lacks |= dict.fromkeys(("dino", "jpeg"), "its own coder of JPEG files is not part of this build")

    def variants(self, case: Case, images: Images, batch: int) -> dict[str, NextBatch]:
        steps = rows()[case.name]
        pixels = v2.Compose([*steps.pixels, *steps.tensors] or [v2.Identity()])
        last = _finish(case, steps)
        # Its users hold tensors as CHW, so that is how it gets them; the conversion is not counted.
        planar = in_turn(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), batch)
        views = in_turn(images, batch)

        def from_planar() -> list[torch.Tensor]:
            return [torch.from_numpy(image) for image in next(planar)]

        def from_views() -> list[torch.Tensor]:
            return [torch.from_numpy(image).permute(2, 0, 1) for image in next(views)]

        def whole(given: Callable[[], list[torch.Tensor]]) -> NextBatch:
            return lambda: last(torch.stack([pixels(image) for image in given()])).contiguous()

        ways = {
            "CHW, normalized per sample": lambda: torch.stack([last(pixels(image)) for image in from_planar()]),
            "CHW, normalized as a batch": whole(from_planar),
            "view of HWC, normalized as a batch": whole(from_views),
        }
        return {way: mixed(steps, next_batch) for way, next_batch in ways.items()}


LIBRARY = TorchvisionTensor()

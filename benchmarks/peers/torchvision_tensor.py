"""torchvision v2 on uint8 tensors, one sample at a time (its RandAugment draws once per call)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simplejpeg
import torch

from benchmarks.inputs import Inputs, is_from_files
from benchmarks.peers.base import NextBatch, Peer
from benchmarks.peers.torchvision_pil import pipelines


def decode(data: bytes) -> torch.Tensor:
    """uint8[3, H, W], a view. By simplejpeg, as torchvision's own decoder is absent beside CPU torch; both are
    libjpeg-turbo."""
    return torch.from_numpy(simplejpeg.decode_jpeg(data)).permute(2, 0, 1)


class TorchvisionTensor(Peer):
    name = "torchvision v2, tensor"
    packages = ("torchvision", "torch", "simplejpeg")

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        make = _from_jpegs if is_from_files(work) else _from_memory
        return {
            f"{layout}, {name}": make(run, layout, inputs, batch)
            for name, run in pipelines(work, []).items()
            for layout in ("CHW", "view of HWC")
        }


def _from_jpegs(run: Callable[[list[Any]], torch.Tensor], layout: str, inputs: Inputs, batch: int) -> NextBatch:
    jpegs = inputs.jpeg_batches(batch)
    if layout == "CHW":
        return lambda: run([decode(data).contiguous() for data in next(jpegs)])
    return lambda: run([decode(data) for data in next(jpegs)]).contiguous()


def _from_memory(run: Callable[[list[Any]], torch.Tensor], layout: str, inputs: Inputs, batch: int) -> NextBatch:
    assert inputs.images is not None
    if layout == "CHW":
        # Its users hold tensors as CHW, so that is how it gets them; the conversion is not counted.
        planar = Inputs(images=np.ascontiguousarray(inputs.images.transpose(0, 3, 1, 2))).image_batches(batch)
        return lambda: run([torch.from_numpy(image) for image in next(planar)])
    images = inputs.image_batches(batch)
    return lambda: run([torch.from_numpy(image).permute(2, 0, 1) for image in next(images)]).contiguous()


PEER = TorchvisionTensor()

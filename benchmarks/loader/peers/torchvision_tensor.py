"""torchvision v2 on uint8 tensors in torch's DataLoader."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.loader.peers import torch_data
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.loader.peers.torch_data import Way
from benchmarks.peers.torchvision_pil import steps
from benchmarks.peers.torchvision_tensor import PEER as ON_ONE_CORE
from benchmarks.peers.torchvision_tensor import decode


def read(path: str) -> torch.Tensor:
    return decode(Path(path).read_bytes())


class TorchvisionTensor(LoaderPeer):
    name = ON_ONE_CORE.name
    packages = ON_ONE_CORE.packages

    def variants(self, given: Given) -> dict[str, Opener]:
        each, pixels, last = steps("w1", [])
        ways = {"per sample": Way(read, each), "normalized as a batch": Way(read, pixels, last)}
        return torch_data.variants(given, ways)


PEER = TorchvisionTensor()

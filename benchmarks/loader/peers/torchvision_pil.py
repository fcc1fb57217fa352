"""torchvision v2 on Pillow images in torch's DataLoader: what most training scripts do."""

from __future__ import annotations

from benchmarks.loader.peers import torch_data
from benchmarks.loader.peers.base import Given, LoaderPeer, Opener
from benchmarks.loader.peers.torch_data import Way, pil_loader
from benchmarks.peers.torchvision_pil import PEER as ON_ONE_CORE
from benchmarks.peers.torchvision_pil import steps, v2


class TorchvisionPil(LoaderPeer):
    name = ON_ONE_CORE.name
    packages = ON_ONE_CORE.packages

    def variants(self, given: Given) -> dict[str, Opener]:
        each, pixels, last = steps("w1", [v2.PILToTensor()])
        ways = {"per sample": Way(pil_loader, each), "normalized as a batch": Way(pil_loader, pixels, last)}
        return torch_data.variants(given, ways)


PEER = TorchvisionPil()

"""torchvision v2's pipelines on one Pillow image."""

from __future__ import annotations

from benchmarks.rows.catalogue import BY_NAME
from benchmarks.rows.libraries.torchvision_steps import finish, rows, v2
from benchmarks.single.base import One, SingleLibrary, Way


class TorchvisionPil(SingleLibrary):
    name = "torchvision v2, PIL"
    packages = ("torchvision", "torch", "pillow")

    def one(self, way: Way, name: str) -> One | None:
        if way != "as_transform":
            return None
        steps = rows()[name]
        pixels = v2.Compose([*steps.pixels, v2.PILToTensor(), *steps.tensors])
        last = finish(BY_NAME[name], steps)
        return lambda image: last(pixels(image))


LIBRARY = TorchvisionPil()

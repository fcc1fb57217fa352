"""Compiles what the executor would launch, for GPUs that need not be there: ``python -m ... 80 90`` -> JSON lines.

``python -m ... 80:kinds 90:kinds,everything``: one kernel of each kind, and those of some works, alone. A process of
its own, as in the tests' own process the kernels are interpreted ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

import variegate as vg
from tests.executors.cuda.machine_code import compile_launch, resources_of
from tests.point_functions import ELEMENTARY, EXACT
from variegate import transforms as T
from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.cuda.images import place_tensor
from variegate.executors.cuda.launch import Launch
from variegate.executors.cuda.pack import NO_REGION
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.transforms import Transform

NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)


class Point(T.CustomOp):
    """A pixel function of every instruction, so that one is compiled in."""

    @staticmethod
    def point(r: Any, g: Any, b: Any, m: Any) -> tuple[Any, ...]:
        exact = sum(operation(r, g) for operation in EXACT.values())
        return exact, g, sum(function(b) for function in ELEMENTARY.values())


Work = tuple[str, Transform, dict[str, Any], bool, torch.dtype]


def all_works() -> Iterator[Work]:
    """Name, transform, options of the Augmenter, whether channels come last in the input, and its dtype."""
    for work in works_of_bytes():
        yield *work, torch.uint8
    # Each in some rows, so that one kernel of the second pass has all.
    one_of = [
        T.RandomPerspective(1.0, 1.0, interpolation="bicubic"),
        T.ElasticTransform(interpolation="bicubic"),
        T.ColorJitter(0.5, 0.5, 0.5, 0.2),
        T.GaussianBlur(5),
        T.ZoomBlur(1.3),
        T.GaussianNoise(),
        T.PercentileStretch(),
    ]
    everything = [T.RandomResizedCrop(24, interpolation="bicubic"), T.RandomChoice(one_of), NORMALIZE]
    for dtype in (torch.uint16, torch.float32):
        name = str(dtype).removeprefix("torch.")
        w3 = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(2, 9)])
        yield f"W3 in {name}", w3, {"layout": "NHWC"}, True, dtype
        yield f"everything in {name}", T.Compose(everything), {"dtype": "bfloat16"}, False, dtype
        yield f"CopyPaste in {name}", T.CopyPaste(1.0), {}, True, dtype


def works_of_bytes() -> Iterator[tuple[str, Transform, dict[str, Any], bool]]:
    w3 = T.Compose([T.RandomHorizontalFlip(), T.RandAugment(2, 9), NORMALIZE])
    yield "W3", w3, {"dtype": "bfloat16"}, True
    yield "W3 of planar images", w3, {"dtype": "float32", "layout": "NHWC"}, False
    yield "W3r", T.Compose([T.RandomResizedCrop(24), *w3.transforms]), {"dtype": "bfloat16"}, True
    yield "overlays", T.Compose([T.Spatter(p=1.0), T.RandomSnow(p=1.0), NORMALIZE]), {"dtype": "bfloat16"}, True
    yield "AugMix", T.Compose([T.AugMix(), NORMALIZE]), {"dtype": "float16"}, True
    yield "CopyPaste", T.Compose([T.CopyPaste(1.0), NORMALIZE]), {"dtype": "float16"}, True
    everything = [
        T.RandomResizedCrop(24, interpolation="bicubic"),
        T.RandomPerspective(1.0, 1.0, interpolation="bicubic"),
        T.ElasticTransform(interpolation="bicubic"),
        T.ColorJitter(0.5, 0.5, 0.5, 0.2),
        T.GaussianBlur(5),
        T.CLAHE(),
        T.ZoomBlur(1.3),
        T.ChromaticAberration(),
        T.GlassBlur(),
        T.Morphological(),
        Point(),
        T.Spatter(p=1.0),
        T.GaussianNoise(),
        T.Equalize(),
        T.Sharpness(1.5),
        T.RandomErasing(1.0, value="random"),
    ]
    yield "everything", T.Compose([*everything, NORMALIZE]), {"dtype": "bfloat16"}, True


def launches(
    transform: Transform,
    options: dict[str, Any],
    is_channels_last: bool,
    dtype: torch.dtype,
    region: tuple[int, int, int, int] = NO_REGION,
) -> list[Launch]:
    """What a batch of 64 images, or regions, is run by."""
    more = {"partners": "batch", "boxes": [[[4, 4, 24, 24]]] * 64} if transform._mixers else {}
    program = vg.Augmenter(transform, **options).program([(32, 48)] * 64, ids=np.arange(64), **more)
    if program.blend is not None and program.blend.lacks_alpha:
        program.blend.alpha = np.zeros(64 * 32 * 48, np.uint8)
    shape = (64, 32, 48, 3) if is_channels_last else (64, 3, 32, 48)
    placed = place_tensor(torch.zeros(shape, dtype=dtype), is_channels_last)
    fused: Program = lower(program.for_depth(placed.depth), measured_once=True)
    return CudaExecutor(torch.device("cpu")).prepare(fused, placed, np.zeros(64, np.int64), region).launches


def kernels() -> Iterator[tuple[str, Launch]]:
    """The name of a work and of a launch, and the launch: every kernel once, however many of the launches are of it."""
    seen = set()
    queues = [(name, launches(*work)) for name, *work in all_works()]
    _, everything, options, is_last = list(works_of_bytes())[-1]
    queues.append(("region", launches(everything, options, is_last, torch.uint8, (1, 2, 88, 99))))
    for name, queue in queues:
        for number, launch in enumerate(queue):
            key = (launch.kernel.fn.__name__, str(launch.constants), str(launch.options))
            if key not in seen:
                seen.add(key)
                yield f"{name}, launch {number}, {key[0]}", launch


def main() -> None:
    kinds = set()
    for name, launch in kernels():
        work, _, kind = name.split(", ")
        groups = {work} if kind in kinds else {work, "kinds"}
        kinds.add(kind)
        for wanted in sys.argv[1:]:
            capability, _, chosen = wanted.partition(":")
            if chosen and groups.isdisjoint(chosen.split(",")):
                continue
            code = compile_launch(launch, int(capability)).asm
            told = {"kernel": name, "capability": int(capability), "warps": launch.options["num_warps"]}
            # A division is one instruction here; inside of it products may be fused.
            told["fused"] = code["ptx"].count("fma.rn.f64")
            print(json.dumps({**told, **asdict(resources_of(code["cubin"]))}), flush=True)


if __name__ == "__main__":
    main()

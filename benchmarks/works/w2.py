"""W2: uint8 224x224x3 in memory -> flip, RandAugment(2, 9), normalize -> float32 NCHW, on one core."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.inputs import Inputs, make_images, read_jpegs
from benchmarks.works.base import Check, Replay, Work


def make_inputs(tar: Path | None) -> tuple[Inputs, str]:
    jpegs, origin = read_jpegs(tar)
    return Inputs(images=make_images(jpegs)), f"224x224 crops of {origin}"


def check(inputs: Inputs, replay: Replay) -> Iterable[Check]:
    # Only our own environment can import these; this module is read by the harness, never by a peer.
    from benchmarks.peers.ours import transform
    from benchmarks.works.compare import SAMPLE, equal, golden, normalised, outputs

    assert inputs.images is not None
    images = list(inputs.images[:SAMPLE])
    pixels = transform("w2", normalize=False)
    yield equal("cpu equals the reference", outputs(pixels, images, "cpu"), outputs(pixels, images, "reference"))
    yield normalised(transform("w2"), pixels, images)
    yield from golden("equals torchvision on Pillow, operation by operation", pixels, images, replay)


WORK = Work(
    name="w2",
    title="uint8 224x224x3 in memory -> flip, RandAugment(2, 9), normalize -> float32 NCHW, one core",
    target=10.0,
    peers=("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali", "kornia"),
    make_inputs=make_inputs,
    check=check,
    level_targets={"v2": 4.0, "v3": 8.0, "v4": 10.0, "vbmi": 10.0, "host": 10.0},
)

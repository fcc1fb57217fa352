"""Checks that W1 and W2 share: plain executor against fused, normalisation, and the golden library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import simplejpeg

import variegate as vg
from benchmarks.inputs import Inputs
from benchmarks.works.base import Check, Replay
from variegate.program.ops import SPECS
from variegate.program.program import Program

Images = Sequence[npt.NDArray[np.uint8]]
SAMPLE = 64


def outputs(transform: Any, images: Images, device: str) -> npt.NDArray[Any]:
    """NHWC results of ``transform`` with ids 0, 1, 2, ..., so that every call draws the same chances."""
    augmenter = vg.Augmenter(transform, device=device, seed=0, layout="NHWC", num_threads=1)
    return np.asarray(augmenter(list(images), ids=list(range(len(images)))))


def sampled(work: str, inputs: Inputs) -> npt.NDArray[np.uint8]:
    """What the code of this process makes of the first images of ``inputs``, before they are normalised."""
    from benchmarks.peers.ours import transform

    if inputs.images is None:
        images: Images = [simplejpeg.decode_jpeg(data) for data in inputs.jpegs[:SAMPLE]]
    else:
        images = list(inputs.images[:SAMPLE])
    return outputs(transform(work, normalize=False), images, "cpu")


def equal(name: str, ours: npt.NDArray[np.uint8], theirs: npt.NDArray[np.uint8]) -> Check:
    """To the bit: integer operations and nearest geometry leave no room for rounding."""
    return within(name, ours, theirs, mostly=0, share=1.0, anywhere=0)


def within(
    name: str, ours: npt.NDArray[np.uint8], theirs: npt.NDArray[np.uint8], mostly: int, share: float, anywhere: int
) -> Check:
    """At most ``mostly`` levels off on a ``share`` of the values, ``anywhere`` levels off on any."""
    if ours.shape != theirs.shape:
        return Check(name, False, f"shapes differ: {ours.shape} and {theirs.shape}")
    off = np.abs(ours.astype(np.int16) - theirs.astype(np.int16))
    passed = bool((off <= mostly).mean() >= share and off.max(initial=0) <= anywhere)
    images = int((off.reshape(len(off), -1).max(axis=1) == 0).sum())
    found = f"{images} of {len(off)} images bit-identical, largest difference {int(off.max(initial=0))}"
    return Check(name, passed, found)


def normalised(float_transform: Any, uint8_transform: Any, images: Images) -> Check:
    """Float outputs are ``(x / 255 - mean) / std`` of the uint8 ones, up to float32's rounding (values reach 2.7)."""
    pixels = outputs(uint8_transform, images, "cpu").astype(np.float64)
    expected = (pixels / 255 - np.array(vg.IMAGENET_MEAN)) / np.array(vg.IMAGENET_STD)
    off = float(np.abs(outputs(float_transform, images, "cpu") - expected).max())
    return Check("normalized as (x / 255 - mean) / std", off < 2e-6, f"largest difference {off:.1e}")


def golden(
    name: str, transform: Any, images: Images, replay: Replay, mostly: int = 0, share: float = 1.0, anywhere: int = 0
) -> list[Check]:
    """Our pixels against the same sampled programs run one operation after another by torchvision on Pillow."""
    augmenter = vg.Augmenter(transform, device="cpu", seed=0)
    program = augmenter.program(list(images), ids=list(range(len(images))))
    replayed = replay([describe(program, row) for row in range(len(images))])
    if replayed is None:
        return []
    ours = outputs(transform, images, "cpu")
    return [within(name, ours, np.stack(replayed), mostly, share, anywhere)]


def describe(program: Program, row: int) -> dict[str, Any]:
    """A sampled row as JSON: which image, and each instruction's name and arguments."""
    return {
        "index": int(program.source[row]),
        "operations": [[SPECS[op].name, [float(a) for a in args]] for op, args in program.operations(row)],
    }

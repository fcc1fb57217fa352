"""W3 and W3r: their pictures, the bytes that they must move, and the checks of our pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.gpu import pictures as _pictures
from benchmarks.gpu.pictures import Pictures
from benchmarks.inputs import CROPPING, SIZE, Inputs
from benchmarks.works.base import Check, Replay

WRITTEN_BYTES = 3 * SIZE * SIZE * 2
# The resample may round the other way by one level; equalize and autocontrast, where they follow, stretch that level.
AFTER_RESAMPLE: dict[str, Any] = {"mostly": 1, "share": 0.999, "anywhere": 16}
TO_THE_BIT: dict[str, Any] = {"mostly": 0, "share": 1.0, "anywhere": 0}
# Enough draws that the mean area of a crop is known to about a percent.
CROPS_DRAWN = 4096


@dataclass(frozen=True)
class GpuWork:
    """``target``: times the best peer, ``share``: of the copy bandwidth; None where nothing is asked for."""

    name: str
    title: str
    target: float | None
    share: float | None
    make_pictures: Callable[[list[bytes]], Pictures]
    # What the golden library is given of the same pictures.
    golden_inputs: Callable[[list[bytes], Pictures], Inputs]


def read_bytes(work: GpuWork, pictures: Pictures) -> float:
    """Bytes of source pixels that an output image needs, each counted once.

    W3: the image. W3r: the crop's box, on average over our own draws; not its neighbours in a sector of memory, nor
    what is read again between passes.
    """
    if work.name not in CROPPING:
        return float(pictures.data.nbytes / len(pictures))
    import variegate as vg
    from benchmarks.peers.ours import transform
    from benchmarks.works.compare import describe

    count = -(-CROPS_DRAWN // len(pictures)) * len(pictures)
    sizes = np.resize(pictures.shapes, (count, 3))
    program = vg.Augmenter(transform(work.name), device="cpu", seed=0).program(sizes.tolist(), ids=np.arange(count))
    areas = []
    for row in range(count):
        boxes = [args for name, args in describe(program, row)["operations"] if name == "ResizedCrop"]
        areas.append(boxes[0][2] * boxes[0][3])
    return float(3 * np.mean(areas))


def check(work: GpuWork, batch: Pictures, device: str, replay: Replay) -> Iterable[Check]:
    """Ours on ``device`` against ours on the CPU for a whole batch; ours on the CPU against its own meaning."""
    from benchmarks.peers.ours import transform
    from benchmarks.works.compare import SAMPLE, golden, normalised, outputs, within

    cropping = work.name in CROPPING
    tolerance = AFTER_RESAMPLE if cropping else TO_THE_BIT
    pixels, floats = transform(work.name, normalize=False), transform(work.name)
    images = batch.images()
    on_gpu = _augmented(work.name, pixels, batch, device).permute(0, 2, 3, 1).numpy()
    yield within(f"{device} as cpu, uint8", on_gpu, outputs(pixels, images, "cpu"), **tolerance)
    ours = _augmented(work.name, floats, batch, device)
    if cropping:
        levels = _levels(ours).permute(0, 2, 3, 1).numpy()
        yield within(f"{device}: bfloat16 shows the same pixels as uint8", levels, on_gpu, **TO_THE_BIT)
    else:
        yield _same_bits(f"{device} equals cpu, bfloat16", ours, _augmented(work.name, floats, batch, "cpu"))
    few = images[:SAMPLE]
    fused, plain = outputs(pixels, few, "cpu"), outputs(pixels, few, "reference")
    yield within("cpu against the reference", fused, plain, **tolerance)
    yield normalised(floats, pixels, few)
    yield from golden("against torchvision on Pillow, operation by operation", pixels, few, replay, **tolerance)


def _augmented(work: str, transform: Any, batch: Pictures, device: str) -> torch.Tensor:
    """NCHW on the host, given to the augmenter in the form that is timed; ids 0, 1, 2, ..."""
    import variegate as vg
    from benchmarks.gpu.peers.ours import on_device

    augmenter = vg.Augmenter(transform, device=device, dtype="bfloat16", layout="NCHW", seed=0)
    augmented = augmenter(on_device(work, batch, device), ids=np.arange(len(batch)))
    assert isinstance(augmented, torch.Tensor)
    return augmented.cpu()


def _levels(normalised: torch.Tensor) -> torch.Tensor:
    """uint8 that ``normalised`` was made of. bfloat16 rounds by up to 0.3 levels here, so the nearest one is it."""
    import variegate as vg

    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (vg.IMAGENET_MEAN, vg.IMAGENET_STD))
    return ((normalised.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)


def _same_bits(name: str, ours: torch.Tensor, theirs: torch.Tensor) -> Check:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        found = f"{ours.dtype}{tuple(ours.shape)} and {theirs.dtype}{tuple(theirs.shape)}"
        return Check(name, False, f"not the same kind: {found}")
    same = (ours.view(torch.int16) == theirs.view(torch.int16)).flatten(1).all(dim=1)
    off = float((ours.float() - theirs.float()).abs().max())
    found = f"{int(same.sum())} of {len(same)} images bit-identical, largest difference {off:.1e}"
    return Check(name, bool(same.all()), found)


WORKS = {
    "w3": GpuWork(
        name="w3",
        title="uint8 224x224x3 on the GPU -> flip, RandAugment(2, 9), normalize -> bfloat16 NCHW, one GPU",
        target=20.0,
        share=0.30,
        make_pictures=_pictures.square,
        golden_inputs=lambda jpegs, pictures: Inputs(images=pictures.stacked()),
    ),
    "w3r": GpuWork(
        name="w3r",
        title="decoded photos of several sizes on the GPU, packed -> RandomResizedCrop(224), flip, RandAugment(2, 9), "
        "normalize -> bfloat16 NCHW, one GPU",
        target=None,
        share=None,
        make_pictures=_pictures.whole,
        golden_inputs=lambda jpegs, pictures: Inputs(jpegs=jpegs),
    ),
}

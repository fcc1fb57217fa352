"""W1: JPEG bytes -> RandomResizedCrop(224), flip, RandAugment(2, 9), normalize -> float32 NCHW, on one core."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.inputs import CROPPING, Inputs, read_jpegs
from benchmarks.works.base import Check, Replay, Work

# The resample may round the other way by one level; equalize and autocontrast, where they follow, stretch that level.
AFTER_RESAMPLE: dict[str, Any] = {"mostly": 1, "share": 0.999, "anywhere": 16}


def make_inputs(tar: Path | None) -> tuple[Inputs, str]:
    jpegs, origin = read_jpegs(tar)
    return Inputs(jpegs=jpegs), origin


def check(inputs: Inputs, replay: Replay, work: str = "w1") -> Iterable[Check]:
    # Only our own environment can import these; this module is read by the harness, never by a peer.
    from benchmarks.peers.ours import transform
    from benchmarks.works.compare import SAMPLE, golden, normalised, outputs, within

    jpegs = inputs.jpegs[:SAMPLE]
    images = [_decode(data) for data in jpegs]
    pixels = transform(work, normalize=False)
    fused, plain = outputs(pixels, images, "cpu"), outputs(pixels, images, "reference")
    yield within("cpu against the reference", fused, plain, **AFTER_RESAMPLE)
    yield normalised(transform(work), pixels, images)
    yield from golden("against torchvision on Pillow, operation by operation", pixels, images, replay, **AFTER_RESAMPLE)
    yield from _fused_decode(jpegs, images, work)


def _fused_decode(jpegs: list[bytes], images: list[npt.NDArray[np.uint8]], work: str) -> Iterable[Check]:
    """Cropping while decoding gives the same bytes as decoding first, by the flip and the crop alone."""
    import variegate as vg
    from benchmarks.indexing import entropy_index
    from benchmarks.works.compare import equal, outputs
    from variegate import transforms as T

    name = "decode_and_run equals cropping decoded images"
    cropped = T.Compose([T.RandomResizedCrop(*CROPPING[work]), T.RandomHorizontalFlip()])
    augmenter = vg.Augmenter(cropped, device="cpu", seed=0, layout="NHWC", num_threads=1)
    whole, ids = outputs(cropped, images, "cpu"), list(range(len(jpegs)))
    yield equal(name, np.asarray(augmenter.decode_and_run(jpegs, ids=ids)), whole)
    if work != "w1":
        index = entropy_index(jpegs)
        fused = np.asarray(augmenter.decode_and_run(jpegs, ids=ids, index=index))
        yield equal(f"equal with an index, which has {index.summary()['indexed']} of them", fused, whole)


def _decode(data: bytes) -> npt.NDArray[np.uint8]:
    import io

    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB"))


WORK = Work(
    name="w1",
    title="JPEG bytes -> RandomResizedCrop(224), flip, RandAugment(2, 9), normalize -> float32 NCHW, one core",
    target=2.0,
    peers=("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali"),
    make_inputs=make_inputs,
    check=check,
)

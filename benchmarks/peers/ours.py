"""Variegate itself, by its public names."""

from __future__ import annotations

import simplejpeg

import variegate as vg
from benchmarks.inputs import CROPPING, MAGNITUDE, NUM_OPS, Inputs, is_from_files
from benchmarks.peers.base import NextBatch, Peer
from variegate import transforms as T


def transform(work: str, normalize: bool = True) -> T.Compose:
    """The work as Variegate spells it; without ``normalize`` it ends in uint8, for checks to the bit."""
    crop = [T.RandomResizedCrop(*CROPPING[work])] if work in CROPPING else []
    last = [T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)] if normalize else []
    chance = [T.RandomHorizontalFlip(), T.RandAugment(num_ops=NUM_OPS, magnitude=MAGNITUDE)]
    return T.Compose([*crop, *chance, *last])


class Variegate(Peer):
    name = "Variegate"
    packages = ("numba", "numpy", "torch", "simplejpeg")

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def variants(self, work: str, inputs: Inputs, batch: int) -> dict[str, NextBatch]:
        augmenter = vg.Augmenter(transform(work), device="cpu", num_threads=1)
        if is_from_files(work):
            jpegs, whole, index = inputs.jpeg_batches(batch), inputs.jpeg_batches(batch), inputs.index
            ways: dict[str, NextBatch] = {"decode_and_run": lambda: augmenter.decode_and_run(next(jpegs), index=index)}
            if index is None:
                ways["whole images by simplejpeg"] = lambda: augmenter([simplejpeg.decode_jpeg(d) for d in next(whole)])
            if work == "w1i_large":  # other pixels, so where it is what users of such photos would choose
                fast = vg.Augmenter(transform(work), "cpu", num_threads=1, fast_decode=True)
                fast_jpegs = inputs.jpeg_batches(batch)
                ways["decode_and_run, fast_decode"] = lambda: fast.decode_and_run(next(fast_jpegs), index=index)
            return ways
        images, lists = inputs.image_batches(batch), inputs.image_batches(batch)
        return {"one array": lambda: augmenter(next(images)), "list of arrays": lambda: augmenter(list(next(lists)))}


PEER = Variegate()

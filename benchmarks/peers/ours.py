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
            jpegs, whole = inputs.jpeg_batches(batch), inputs.jpeg_batches(batch)
            if inputs.index is not None:
                return {"decode_and_run, index": lambda: augmenter.decode_and_run(next(jpegs), index=inputs.index)}
            return {
                "decode_and_run": lambda: augmenter.decode_and_run(next(jpegs)),
                "whole images by simplejpeg": lambda: augmenter([simplejpeg.decode_jpeg(d) for d in next(whole)]),
            }
        images, lists = inputs.image_batches(batch), inputs.image_batches(batch)
        return {"one array": lambda: augmenter(next(images)), "list of arrays": lambda: augmenter(list(next(lists)))}


PEER = Variegate()

"""Variegate on samples with targets, and the checks of what it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import variegate as vg
from benchmarks.peers.base import Library
from benchmarks.targets.catalogue import CROP_SCALE, DEGREES, HUE, JITTER, SCALE, TRANSLATE, Row
from benchmarks.works.base import Check
from variegate import transforms as T

# A mask shows the nearest pixel, which may reach half a pixel beyond its box. On most sides it falls no more than so
# many pixels short of it, but a sharp corner, where the image's edge cuts an object off, may lie between its pixels.
BEYOND, SHORT, MOST = 1.0, 1.5, 0.9


def transform(row: Row) -> Any:
    jitter, flip = T.ColorJitter(JITTER, JITTER, JITTER, HUE), T.RandomHorizontalFlip()
    affine = T.RandomAffine(DEGREES, (TRANSLATE, TRANSLATE), SCALE, interpolation="bilinear")
    steps: dict[str, list[Any]] = {
        "affine": [affine, jitter, flip],
        "two_affines": [affine, T.RandomAffine(0, shear=10, interpolation="bilinear"), flip],
        "mosaic": [flip, jitter, T.Mosaic()],
        "crop": [T.RandomResizedCrop(row.out, scale=CROP_SCALE), flip, jitter],
        "flip": [flip],
        "elastic": [T.ElasticTransform(), flip],
    }
    return T.Compose(steps[row.kind])


def _partners(row: Row) -> Any:
    return "batch" if row.kind == "mosaic" else None


class Variegate(Library):
    name = "Variegate"
    packages = ("numba", "numpy", "torch")

    def versions(self) -> dict[str, str]:
        return {"variegate": vg.__version__, **super().versions()}

    def calls(self, row: Row, samples: list[dict[str, Any]]) -> dict[str, Callable[[], Any]]:
        """The whole batch; the images alone; images with boxes; images with masks."""
        augmenter = vg.Augmenter(transform(row), seed=0, num_threads=1, layout="NHWC")
        without = {"masks": ("mask", "masks"), "boxes": ("boxes", "labels", "masks")}
        images = [sample["image"] for sample in samples]
        partners = _partners(row)
        calls: dict[str, Callable[[], Any]] = {
            "whole": lambda: augmenter(samples, partners=partners),
            "images": lambda: augmenter(images, partners=partners),
        }
        with_boxes = [{k: v for k, v in sample.items() if k not in without["masks"]} for sample in samples]
        calls["boxes"] = lambda: augmenter(with_boxes, partners=partners)
        if row.masks:
            with_masks = [{k: v for k, v in sample.items() if k not in without["boxes"]} for sample in samples]
            calls["masks"] = lambda: augmenter(with_masks, partners=partners)
        return calls


def checks(row: Row, samples: list[dict[str, Any]]) -> Iterator[Check]:
    augmenter = vg.Augmenter(transform(row), seed=0, num_threads=1, layout="NHWC")
    ids = list(range(len(samples)))
    made = augmenter(samples, ids=ids, partners=_partners(row))
    images = augmenter([sample["image"] for sample in samples], ids=ids, partners=_partners(row))
    same = sum(bool((one["image"] == image).all()) for one, image in zip(made, images, strict=True))
    yield Check("images as without targets", same == len(made), f"{same} of {len(made)} bit-identical")
    count = sum(len(one["boxes"]) for one in made)
    yield Check("boxes are left", count > 0, f"{count} of {row.batch * row.boxes} put in")
    yield _rectangles_stay(row, samples, augmenter, ids)


def _rectangles_stay(row: Row, samples: list[dict[str, Any]], augmenter: Any, ids: list[int]) -> Check:
    """A mask for each box, filled, through the same maps: it must end where its box does."""
    from benchmarks.targets.samples import rectangles

    few = [
        {
            "image": sample["image"],
            "boxes": sample["boxes"][:8],
            "masks": np.stack([rectangles(box[None].astype(np.int64), row.side) for box in sample["boxes"][:8]]),
        }
        for sample in samples
    ]
    every = []
    for one in augmenter(few, ids=ids, partners=_partners(row)):
        for box, mask in zip(one["boxes"].numpy(), one["masks"].numpy(), strict=True):
            if mask.any():
                every.append((bounds(mask) - box) * [-1, -1, 1, 1])
    beyond = float(np.max(every, initial=0.0))
    close = float(np.mean(np.array(every) >= -SHORT)) if every else 0.0
    found = f"{len(every)} boxes; beyond by {beyond:.2f} px at most, {close:.1%} of sides short by at most {SHORT:g} px"
    return Check("masks end where boxes do", beyond <= BEYOND and close >= MOST, found)


def bounds(mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """left, top, right, bottom of what is not 0."""
    lines, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return np.array([columns[0], lines[0], columns[-1] + 1, lines[-1] + 1])


LIBRARY = Variegate()

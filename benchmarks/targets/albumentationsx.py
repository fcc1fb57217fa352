"""AlbumentationsX on samples with targets, one after another, as it works."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import albumentations as A
import cv2

from benchmarks.peers.base import Library
from benchmarks.targets.catalogue import CROP_SCALE, DEGREES, HUE, JITTER, SCALE, TRANSLATE, Row


def pipeline(row: Row) -> Any:
    by = {"interpolation": cv2.INTER_LINEAR, "mask_interpolation": cv2.INTER_NEAREST, "p": 1}
    around_one, hue = (1 - JITTER, 1 + JITTER), (-HUE, HUE)
    jitter = A.ColorJitter(around_one, around_one, around_one, hue, p=1)
    shift = (-TRANSLATE, TRANSLATE)
    affine = A.Affine(scale=SCALE, translate_percent={"x": shift, "y": shift}, rotate=(-DEGREES, DEGREES), **by)
    flip, size = A.HorizontalFlip(p=0.5), (row.out, row.out)
    steps: dict[str, list[Any]] = {
        "affine": [affine, jitter, flip],
        "two_affines": [affine, A.Affine(shear={"x": (-10.0, 10.0), "y": (0.0, 0.0)}, **by), flip],
        "mosaic": [A.Mosaic(target_size=size, cell_shape=size, p=1), flip, jitter],
        "crop": [A.RandomResizedCrop(size, scale=CROP_SCALE, **by), flip, jitter],
        "flip": [flip],
        # As smooth as torchvision's default, whose field is blurred by 5 pixels, cannot be had: a coarse grid instead.
        "elastic": [A.ElasticTransform((0.02, 0.05), **by), flip],
    }
    boxes = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=0.0)
    names = {f"mask{k}": "mask" for k in range(1, row.masks)} if row.masks > 1 else None
    return A.Compose(steps[row.kind], bbox_params=boxes, additional_targets=names, seed=0)


class AlbumentationsX(Library):
    name = "AlbumentationsX"
    packages = ("albumentationsx", "opencv-python-headless", "numpy")

    def calls(self, row: Row, samples: list[dict[str, Any]]) -> dict[str, Callable[[], Any]]:
        t = pipeline(row)
        given = [_as_given(sample) for sample in samples]
        if row.kind != "mosaic":
            return {"whole": lambda: [t(**one) for one in given]}
        turn = count()

        def mosaic() -> list[Any]:
            start, number = next(turn), len(given)
            made = []
            for n in range(number):
                others = [given[(n + 1 + (start + k) % (number - 1)) % number] for k in range(3)]
                made.append(t(**given[n], mosaic_metadata=[_as_metadata(one) for one in others]))
            return made

        return {"whole": mosaic}


def _as_given(sample: dict[str, Any]) -> dict[str, Any]:
    given = {"image": sample["image"], "bboxes": sample["boxes"], "labels": sample["labels"]}
    if "masks" in sample:
        given["masks"] = sample["masks"]
    mask = sample.get("mask")
    return given | (mask if isinstance(mask, dict) else {} if mask is None else {"mask": mask})


def _as_metadata(given: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in given.items() if key != "labels"}
    return kept | {"bbox_labels": {"labels": given["labels"]}}


LIBRARY = AlbumentationsX()

"""Masks stay within their boxes on an interpreted GPU, in large images, in a loader that decodes only what it needs of
photos on their side, and with policies and crops that are drawn by what is given with an image."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.loader.samples import MemorySource
from tests.targets.test_property import GEOMETRY, MIXES, check_together, sample
from variegate import transforms as T
from variegate.data.base import Item

BENT = T.Compose(
    [T.RandomHorizontalFlip(), T.ElasticTransform(60.0, 6.0), T.RandomAffine(20, interpolation="bilinear")]
)


def filled(height: int, width: int, box: tuple[int, int, int, int]) -> dict[str, Any]:
    left, top, right, bottom = box
    mask = np.zeros((height, width), np.uint8)
    mask[top:bottom, left:right] = 1
    return {"image": np.repeat(mask[..., None] * 200, 3, axis=2), "boxes": [box], "masks": mask[None]}


def within(rng: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
    left, top = int(rng.integers(0, width - 1)), int(rng.integers(0, height - 1))
    return left, top, int(rng.integers(left + 1, width + 1)), int(rng.integers(top + 1, height + 1))


@pytest.mark.parametrize("name", ["affine", "folding elastic", "downscale", "bent and turned", "Mosaic"])
def test_on_an_interpreted_gpu(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Masks; images are left out, as they would take the interpreter most of a minute."""
    from tests.executors.poison import interpreted_runner

    t = T.Compose([GEOMETRY["flips"], MIXES[name]]) if name in MIXES else GEOMETRY[name]
    augmenter = vg.Augmenter(t, device="cpu", num_threads=1)
    runner = interpreted_runner((32, 64))
    monkeypatch.setattr(runner, "run", lambda program, batch: [torch.empty(3, 1, 1)] * program.num_outputs)
    monkeypatch.setattr(augmenter, "_runner", runner)
    boxes = [(4, 6, 30, 27), (0, 0, 20, 33), (11, 2, 41, 16), (5, 5, 9, 28)]
    options: Any = {"partners": "batch"} if name in MIXES else {}
    results = augmenter([sample(box) for box in boxes], ids=range(4), **options)
    assert sum(len(result["boxes"]) for result in results) >= 3
    check_together(results)


@pytest.mark.parametrize("name", ["affine", "perspective", "elastic", "plates", "bent and turned", "RandAugment"])
def test_in_large_images(name: str) -> None:
    rng = np.random.default_rng(len(name))
    sizes = [(150, 2000), (1999, 151), (700, 641), (333, 1024)]
    samples = [filled(*size, within(rng, *size)) for size in sizes]
    check_together(vg.Augmenter(GEOMETRY[name], device="cpu", num_threads=1)(samples, ids=range(4)))


@pytest.mark.parametrize(
    "by_boxes",
    [T.RandomIoUCrop(), T.RandomBoxSafeCrop(0.3), T.RandomResizedBoxSafeCrop((50, 40))],
    ids=lambda t: type(t).__name__,
)
def test_after_crops_by_boxes(by_boxes: T.Transform) -> None:
    rng = np.random.default_rng(3)
    samples = [filled(60, 90, within(rng, 60, 90)) for _ in range(24)]
    t = T.Compose([BENT, by_boxes, BENT])
    check_together(vg.Augmenter(t, device="cpu", num_threads=1)(samples, ids=range(24)))


# The opposite of what a reader does to turn a picture upright.
STORED_BY = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


class Sideways(MemorySource):
    """JPEGs that are stored in all eight orientations; their targets are those of the upright pictures."""

    has_targets = True

    def read(self, index: int) -> Item:
        data, targets = stored(index)
        return Item(data, -1, targets)


@cache
def stored(index: int) -> tuple[bytes, dict[str, Any]]:
    upright = filled(300, 420, within(np.random.default_rng(index), 300, 420))
    orientation = 1 + index % 8
    picture, exif, buffer = Image.fromarray(upright.pop("image")), Image.Exif(), io.BytesIO()
    if orientation in STORED_BY:
        picture = picture.transpose(STORED_BY[orientation])
    exif[0x0112] = orientation
    picture.save(buffer, "JPEG", quality=95, exif=exif)
    return buffer.getvalue(), upright


@pytest.mark.parametrize("fast_decode", [False, True])
def test_in_a_loader_of_photos_on_their_side(fast_decode: bool) -> None:
    t = T.Compose([T.RandomResizedCrop(60, scale=(0.3, 1.0)), T.RandomHorizontalFlip(), T.ToDtype("uint8")])
    loader = vg.Loader(Sideways(32), t, batch_size=16, device="cpu", num_threads=1, fast_decode=fast_decode)
    number = 0
    for batch in loader:
        results = [{key: values[n] for key, values in batch.items()} for n in range(len(batch["boxes"]))]
        check_together(results)
        for result in results:
            if not len(result["boxes"]):
                continue
            image, mask = result["image"].numpy()[0] > 100, result["masks"][0].numpy() > 0
            assert (image != mask).mean() < 0.05
            number += 1
    assert number > 16

"""Masks on a real GPU: the CPU's, beside the images, with no waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import photo
from tests.loader.loading import load
from tests.loader.test_targets import AnnotatedMemory
from variegate import transforms as T

pytestmark = pytest.mark.gpu

BENT = T.Compose([T.RandomAffine(40, (0.2, 0.2), (0.7, 1.4), 20, "bilinear"), T.ElasticTransform(60.0, 4.0)])
MANY = T.Compose([T.RandomPerspective(0.6, 1.0), T.Pad(20, padding_mode="reflect"), T.RandAugment(3, 12), BENT])
TRANSFORMS = {
    "flips": T.D4(),
    "nearest resize": T.Resize((190, 233), interpolation="nearest"),
    "bent": BENT,
    "many": MANY,
    "mosaic": T.Compose([BENT, T.Mosaic()]),
    "mixed": T.Compose([BENT, T.MixUp()]),
}


def _samples(number: int, on_gpu: bool = False) -> list[dict[str, Any]]:
    """Each pixel of a mask has a value of its own, so that equal masks are equal places."""
    samples = []
    for n in range(number):
        height, width = 120 + 7 * n, 201 - 5 * n
        mask = torch.arange(height * width, dtype=torch.int32).reshape(height, width)
        each = torch.stack([mask % 251, mask % 241, mask % 239]).to(torch.uint8)
        if on_gpu:
            mask, each = mask.cuda(), each.cuda()
        boxes = [[0, 0, width, height], [9, 9, 60, 70], [30, 5, 90, 100]]
        samples.append({"image": photo(height, width), "mask": mask, "masks": each, "boxes": boxes})
    return samples


@pytest.mark.parametrize("on_gpu", [False, True], ids=["masks of the host", "masks of the GPU"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_places_of_the_cpu(name: str, on_gpu: bool) -> None:
    options: dict[str, Any] = {"ids": range(8), "targets": vg.Targets(mask_fill=7)}
    options |= {"partners": "batch"} if name in ("mosaic", "mixed") else {}
    expected = vg.Augmenter(TRANSFORMS[name], device="cpu")(_samples(8), **options)
    results = vg.Augmenter(TRANSFORMS[name], device="cuda:0")(_samples(8, on_gpu), **options)
    for result, wanted in zip(results, expected, strict=True):
        for key in ("mask", "masks"):
            assert result[key].device == result["image"].device == torch.device("cuda:0")
            assert torch.equal(result[key].cpu(), wanted[key])
        assert not result["boxes"].is_cuda


def test_no_call_waits_for_the_device() -> None:
    augmenter, samples = vg.Augmenter(BENT, device="cuda:0"), _samples(4, on_gpu=True)
    for sample in samples:
        sample["image"] = torch.from_numpy(sample["image"]).cuda()
    augmenter(samples, ids=range(4))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        augmenter(samples, ids=range(4))
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_many_batches_in_flight_do_not_touch_each_other() -> None:
    """The host runs far ahead; pinned memory must not be filled anew before it was copied."""
    augmenter, on_cpu, samples = vg.Augmenter(BENT, device="cuda:0"), vg.Augmenter(BENT, device="cpu"), _samples(4)
    torch.cuda._sleep(200_000_000)
    results = [augmenter(samples, ids=range(4), epoch=epoch) for epoch in range(20)]
    for epoch, made in enumerate(results):
        for result, wanted in zip(made, on_cpu(samples, ids=range(4), epoch=epoch), strict=True):
            assert torch.equal(result["mask"].cpu(), wanted["mask"])


def test_masks_of_a_loader_are_ready_on_the_consumers_stream() -> None:
    transform = T.Compose([T.RandomResizedCrop(24, scale=(0.5, 1.0)), T.RandomHorizontalFlip()])
    expected = [batch["mask"] for batch in load(AnnotatedMemory(40), transform)]
    with torch.cuda.stream(torch.cuda.Stream()):
        seen = []
        for batch in load(AnnotatedMemory(40), transform, device="cuda", decode="cpu", prefetch=4):
            assert batch["mask"].is_cuda
            assert not batch["boxes"][0].is_cuda
            # The consumer's stream is kept busy, and memory is freed and taken again around every batch.
            torch.cuda._sleep(2_000_000)
            seen.append(batch["mask"].clone())
            del batch
        for mask, wanted in zip(seen, expected, strict=True):
            np.testing.assert_array_equal(mask.cpu(), wanted)

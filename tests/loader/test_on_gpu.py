"""The loader on a real GPU: the CPU's pixels, made on streams of their own while the consumer's is busy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.loader.loading import CROPPED, NORMALIZED, load
from tests.loader.samples import MemoryShards, MemorySource

pytestmark = pytest.mark.gpu

TRUNCATED: dict[int, Any] = {5: b"no image"}


def on_host(loader: Any) -> dict[int, bytes]:
    return {
        sample_id: image.cpu().numpy().tobytes()
        for batch in loader
        for sample_id, image in zip(batch.ids.tolist(), batch.images, strict=True)
    }


@pytest.mark.parametrize("source", [MemorySource, MemoryShards])
@pytest.mark.parametrize("options", [{}, {"cache": "device"}, {"cache": "device", "cache_bytes": 30_000}], ids=str)
def test_pixels_are_those_of_the_cpu(source: Any, options: dict[str, Any]) -> None:
    host_options = {**options, "cache": "host"} if options else {}
    expected = load(source(23), CROPPED, **host_options)
    found = load(source(23), CROPPED, device="cuda", decode="cpu", **options)
    for _ in range(2):  # the second epoch reads what the first left in the cache
        assert on_host(found) == on_host(expected)


def test_batches_are_on_the_device_and_wait_for_no_host() -> None:
    loader = load(MemorySource(64), NORMALIZED, device="cuda", batch_size=8, prefetch=3)
    seen = []
    for images, labels in loader:
        assert images.is_cuda
        assert labels.is_cuda
        # The consumer's stream is kept busy, and memory is freed and taken again around every batch.
        torch.cuda._sleep(2_000_000)
        seen.append((images.sum(dtype=torch.float64), labels.sum()))
        del images, labels
    again = [(b.images.sum(dtype=torch.float64), b.labels.sum()) for b in _epoch(loader, 0)]
    assert [tuple(map(float, pair)) for pair in seen] == [tuple(map(float, pair)) for pair in again]


def _epoch(loader: Any, epoch: int) -> list[Any]:
    return [loader.batch(step, epoch) for step in range(len(loader))]


def test_a_consumer_on_a_stream_of_its_own() -> None:
    expected = on_host(load(MemorySource(40), CROPPED))
    with torch.cuda.stream(torch.cuda.Stream()):
        assert on_host(load(MemorySource(40), CROPPED, device="cuda", decode="cpu", prefetch=4)) == expected


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_bad_samples(on_error: str) -> None:
    options: dict[str, Any] = {"on_error": on_error, "decode": "cpu"}
    expected = on_host(load(MemorySource(20, TRUNCATED), CROPPED, **options))
    for cache in (None, "device"):
        loader = load(MemorySource(20, TRUNCATED), CROPPED, device="cuda", cache=cache, **options)
        assert on_host(loader).keys() == expected.keys()
        assert len(loader.errors) == 1


def test_memory_of_the_device_stays_flat() -> None:
    loader = load(MemorySource(96), NORMALIZED, device="cuda", batch_size=16)
    held = []
    for _ in range(20):
        for _ in loader:
            pass
        torch.cuda.synchronize()
        held.append(torch.cuda.memory_reserved())
    assert held[-1] == held[5]

"""What a loader says of its time, and threads that share an iteration."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.loader.samples import MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.loader.stats import LoaderStats, StageStats

CROPPED = T.Compose([T.RandomResizedCrop(24), T.Normalize(0.5, 0.25)])


def files(indices: Any) -> int:
    return sum(len(jpeg(index)) for index in indices)


@pytest.mark.parametrize("source", [MemorySource(22), MemoryShards(22)], ids=["by index", "stream"])
@pytest.mark.parametrize(("threads", "prefetch"), [(1, 0), (2, 2)])
def test_every_sample_goes_through_every_stage(source: Any, threads: int, prefetch: int) -> None:
    loader = vg.Loader(source, CROPPED, 5, "cpu", num_threads=threads, prefetch=prefetch)
    batches = list(loader)
    stats = loader.stats()
    assert stats.epoch == 0
    for stage in (stats.read, stats.decode, stats.augment, stats.hand_over):
        assert stage.samples == 22
        assert stage.seconds > 0
    assert stats.read.nbytes == stats.decode.nbytes == files(range(22))
    sizes = [batch.images.nbytes for batch in batches]
    assert stats.augment.nbytes == stats.hand_over.nbytes == sum(sizes)
    assert stats.augment.times == stats.hand_over.times == 5
    assert stats.wait.times == 5 if not prefetch else stats.wait.times <= 5
    # The consumer's time is not counted twice, and threads cannot have worked for longer than there were of them.
    assert stats.wait.seconds + stats.hand_over.seconds <= stats.seconds
    assert stats.decode.seconds + stats.augment.seconds < (threads + 2) * stats.seconds
    assert str(stats).startswith("epoch 0: 22 samples in ")


def test_an_epoch_begins_with_nothing_of_the_one_before() -> None:
    loader = vg.Loader(MemorySource(12), CROPPED, 4, "cpu", num_threads=2)
    none = loader.stats()
    assert none == LoaderStats(0, none.seconds, *[StageStats()] * 5)
    for epoch in range(3):
        for _ in loader:
            assert loader.stats().hand_over.samples % 4 == 0
        stats = loader.stats()
        # What was made of the next epoch while this one ended is not this one's.
        assert (stats.epoch, stats.augment.samples, stats.hand_over.samples) == (epoch, 12, 12)


def test_in_memory_nothing_is_decoded() -> None:
    images = np.zeros((9, 30, 40, 3), np.uint8)
    loader = vg.Loader((images, np.arange(9)), CROPPED, 4, "cpu")
    list(loader)
    stats = loader.stats()
    assert (stats.read.samples, stats.read.nbytes, stats.decode) == (9, images.nbytes, StageStats())


def test_a_full_cache_leaves_nothing_to_decode() -> None:
    loader = vg.Loader(MemorySource(9), CROPPED, 4, "cpu", cache="host", prefetch=0)
    list(loader)
    assert loader.stats().decode.samples == 9
    list(loader)
    assert (loader.stats().decode.samples, loader.stats().read.samples) == (0, 9)


def test_bad_samples_are_counted_by_the_stages_that_they_reach() -> None:
    loader = vg.Loader(MemorySource(8, {3: b"", 5: jpeg(5)[:100]}), CROPPED, 8, "cpu", on_error="skip", num_threads=1)
    list(loader)
    stats = loader.stats()
    assert (stats.read.samples, stats.augment.samples, stats.hand_over.samples) == (8, 6, 6)


def test_threads_may_share_an_iteration() -> None:
    loader = vg.Loader(MemorySource(60), CROPPED, 2, "cpu", num_threads=2)
    batches, ids, errors = iter(loader), [], []

    def take() -> None:
        try:
            for batch in batches:
                ids.append(batch.ids.tolist())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(number for batch in ids for number in batch) == list(range(1000, 1060))
    assert loader.state_dict()["epoch"] == 1

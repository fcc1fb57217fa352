"""``Loader``: batches, epochs, ranks, and that pixels depend on (seed, epoch, id) alone."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.loader.loading import CROPPED, NORMALIZED, ids, load, pixels
from tests.loader.samples import MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.decode import read_image

_THREADS = ("variegate-read", "variegate-batch", "variegate-fetch")


def test_batches_hold_images_labels_ids_and_marks() -> None:
    loader = load(MemorySource(10), NORMALIZED)
    assert len(loader) == 3
    batches = list(loader)
    images, labels = batches[0]
    assert images.shape == (4, 3, 24, 24)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    assert [len(batch.labels) for batch in batches] == [4, 4, 2]
    for batch in batches:
        assert batch.labels.tolist() == [(i - 1000) % 2 for i in batch.ids.tolist()]
        assert batch.images is batch[0]
        assert batch.labels is batch[1]
        assert not batch.padding.any()
    # As Lightning and accelerate make them anew when they move them to a device.
    moved = type(batches[2])(part for part in batches[2])
    assert torch.equal(moved.images, batches[2].images)
    assert isinstance(moved, vg.Batch)
    copy = pickle.loads(pickle.dumps(batches[2]))
    assert torch.equal(copy.images, batches[2].images)
    assert copy.ids.tolist() == batches[2].ids.tolist()


def test_pixels_are_those_of_the_augmenter() -> None:
    augmenter = vg.Augmenter(CROPPED, seed=5)
    for index, loaded in pixels(load(MemorySource(7), seed=5)).items():
        expected = augmenter.decode_and_run([jpeg(index - 1000)], ids=[index], epoch=0)
        assert loaded == expected[0].numpy().tobytes()


def test_a_policy_goes_by_its_name_and_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    vg.policies.save_policy(T.Invert(), file)
    loader = load(MemorySource(4), file, views=2)
    file.unlink()
    again = pickle.loads(pickle.dumps(loader))
    assert again.augmenter.transform == loader.augmenter.transform == T.MultiView([T.Invert()], counts=[2])
    with pytest.raises(ValueError, match=r"policy: got 'randaugmet'; .*; did you mean 'randaugment'"):
        load(MemorySource(4), "randaugmet")


def test_fast_decoding_is_asked_for() -> None:
    small = T.RandomResizedCrop(5, scale=(0.8, 1.0))
    fast, exact = (pixels(load(MemorySource(7), small, seed=5, fast_decode=choice)) for choice in (True, False))
    assert fast != exact
    assert exact == pixels(load(MemorySource(7), small, seed=5))
    for choice, loaded in ((True, fast), (False, exact)):
        augmenter = vg.Augmenter(small, seed=5, fast_decode=choice)
        for index, found in loaded.items():
            assert found == augmenter.decode_and_run([jpeg(index - 1000)], ids=[index])[0].numpy().tobytes()


def test_shards_give_the_same_pixels_as_random_access() -> None:
    assert pixels(load(MemoryShards(11))) == pixels(load(MemorySource(11)))


@pytest.mark.parametrize("source", [MemorySource, MemoryShards])
def test_order_is_keyed_by_seed_and_epoch(source: Any) -> None:
    loader = load(source(40), shuffle=True)
    first, second = ids(loader), ids(loader)
    assert sorted(first) == sorted(second) == list(range(1000, 1040))
    assert first != second
    assert first != sorted(first)
    again = load(source(40))
    again.set_epoch(1)
    assert ids(again) == second
    assert ids(load(source(40), seed=1)) != first
    assert ids(load(source(40), shuffle=False)) == sorted(first)


def test_every_iteration_begins_another_epoch_also_after_a_break() -> None:
    loader = load(MemorySource(20), shuffle=True)
    first = next(iter(loader)).ids.tolist()
    assert loader.epoch == 0
    second = next(iter(loader)).ids.tolist()
    assert loader.epoch == 1
    assert first != second
    loader.set_epoch(0)
    assert next(iter(loader)).ids.tolist() == first
    assert loader.epoch == 0


def test_rank_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = load(MemorySource(12))
    assert (loader.rank, loader.world_size) == (1, 3)
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(ValueError, match=r"RANK \(environment\): got 'one'; accepted: an integer"):
        load(MemorySource(12))


def test_threads_are_shared_among_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000000")
    assert load(MemorySource(4), num_threads=None).num_threads == 1


def test_images_of_several_sizes_come_as_a_list() -> None:
    batches = list(load(MemorySource(6), None, shuffle=False))
    assert isinstance(batches[0].images, list)
    for batch in batches:
        for sample_id, image in zip(batch.ids.tolist(), batch.images, strict=True):
            expected = read_image(jpeg(sample_id - 1000)).transpose(2, 0, 1)
            np.testing.assert_array_equal(image.numpy(), expected)


def test_batch_by_its_number() -> None:
    loader = load(MemorySource(10))
    batches = list(loader)
    for step, batch in enumerate(batches):
        found = loader.batch(step, epoch=0)
        assert torch.equal(found.images, batch.images)
        assert found.ids.tolist() == batch.ids.tolist()
    with pytest.raises(IndexError, match="step: got 3; accepted: 0 to 2"):
        loader.batch(3)


def test_cond_chooses_by_the_label() -> None:
    transform = T.Compose([T.CenterCrop(8), T.Cond("label", {0: T.Invert()})])
    loader = load(MemorySource(8), transform, shuffle=False)
    for batch in loader:
        for image, label, sample_id in zip(batch.images, batch.labels.tolist(), batch.ids.tolist(), strict=True):
            plain = vg.Augmenter(T.CenterCrop(8))([read_image(jpeg(sample_id - 1000))])[0]
            assert torch.equal(image, 255 - plain if label == 0 else plain)


def test_the_next_epoch_is_begun_while_the_last_batches_are_in_use() -> None:
    source = MemorySource(16)
    loader = load(source, prefetch=2)
    expected = [ids(load(MemorySource(16), prefetch=0)), pixels(load(MemorySource(16), prefetch=0))]
    iterator = iter(loader)
    found = [sample_id for _ in range(4) for sample_id in next(iterator).ids.tolist()]
    _wait_until(lambda: len(source.reads) > 16)
    assert loader.state_dict()["done"] == 16
    assert list(iterator) == []
    assert found == expected[0]
    loader.set_epoch(0)  # not the one that was begun
    assert pixels(loader) == expected[1]


def test_state_tells_of_the_iteration_begun_last() -> None:
    loader = load(MemorySource(20))
    first, second = iter(loader), iter(loader)
    next(second)
    for _ in range(3):
        next(first)
    assert (loader.state_dict()["epoch"], loader.state_dict()["done"]) == (1, 4)


def test_nobody_keeps_a_loader_alive() -> None:
    loader = load(MemorySource(16))
    list(loader)
    dead = weakref.ref(loader)
    gc.disable()
    try:
        del loader
        assert dead() is None
    finally:
        gc.enable()


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_back_pressure_reads_no_further_than_asked() -> None:
    source = MemorySource(400)
    iterator = iter(load(source, prefetch=2, num_threads=1))
    next(iterator)
    _wait_until(lambda: len(source.reads) >= 4 * 4)
    time.sleep(0.2)
    # One in use, two ahead, and one or two steps that are being read.
    assert len(source.reads) <= 4 * 5


def test_threads_end_with_their_loader() -> None:
    before = set(threading.enumerate())  # of loaders of other tests, which may end meanwhile

    def ours() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith(_THREADS)]

    for source in (MemorySource(40), MemoryShards(40)):
        loader = load(source)
        for _ in range(3):
            next(iter(loader))
        assert 0 < len(ours()) <= 3 * 3
        del loader
    _wait_until(lambda: not ours())


def test_shards_have_a_length_where_all_have_an_index() -> None:
    assert len(load(MemoryShards(11), batch_size=4, copies=2)) == 6
    loader = load(MemoryShards(11, is_indexed=False))
    with pytest.raises(TypeError, match=r"MemoryShards\(shard-0.tar and 2 more: 3 shards, 2 classes\): the number of"):
        len(loader)
    with pytest.raises(TypeError, match="the number of samples is not known"):
        loader.batch(0)
    list(loader)
    assert len(loader) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size: got 0; accepted: an integer from 1 on"),
        ({"batch_size": 2.5}, "batch_size: got 2.5; accepted: an integer from 1 on"),
        ({"copies": 0}, "copies: got 0; accepted: an integer from 1 on"),
        ({"sampler": []}, "sampler: gave no index; accepted: at least one"),
        ({"prefetch": -1}, "prefetch: got -1; accepted: an integer from 0 on"),
        ({"on_error": "ignore"}, "on_error: got 'ignore'; accepted: one of 'raise', 'skip', 'replace'"),
        ({"rank": 1}, "rank, world_size: got 1, None; accepted: both, or neither"),
        ({"rank": 2, "world_size": 2}, "rank: got 2 of world_size 2; accepted: 0 to world_size - 1"),
        ({"max_errors": -1, "on_error": "skip"}, "max_errors: got -1; accepted: a number of samples"),
        ({"max_errors": 1.5, "on_error": "skip"}, "max_errors: got 1.5; accepted: a number of samples"),
        ({"cache_bytes": 100}, "cache_bytes: got 100 without a cache"),
        ({"cache": "host", "cache_bytes": 0}, "cache_bytes: got 0; accepted: a positive integer"),
        ({"cache": 7}, "cache: got 7; accepted: 'host', 'device', None, or a folder to keep pixels on disk"),
        ({"seed": -1}, "seed: got -1; accepted: an integer from 0"),
        ({"max_errors": 3}, "max_errors: got 3 with on_error='raise'; accepted with on_error='skip' or 'replace'"),
        ({"drop_last": True, "batch_size": 5}, "drop_last: 4 samples do not fill a batch of 5 on 1 rank(s)"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        load(MemorySource(4), **options)
    assert message in str(error.value)
    with pytest.raises(ValueError, match="epoch: got -1; accepted: an integer from 0 on"):
        load(MemorySource(4), batch_size=np.int64(4)).set_epoch(-1)
    with pytest.raises(ValueError, match="source: has no samples"):
        load(MemorySource(0))


def test_a_transform_in_the_place_of_the_source_is_refused() -> None:
    for swapped in (MemorySource(4), "photos"):
        with pytest.raises(TypeError, match=r"source: got the transform RandomHorizontalFlip\(.*vg.Loader\(source, tr"):
            vg.Loader(T.RandomHorizontalFlip(), swapped)  # type: ignore[arg-type]


def test_names_of_torchs_data_loader() -> None:
    source = MemorySource(5)
    plain, chosen = load(source), load(source, sampler=[1, 3])
    assert len(plain.dataset) == 5
    assert plain.dataset is plain.source
    assert plain.sampler is None
    assert chosen.sampler == [1, 3]

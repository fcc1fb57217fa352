"""Bad samples: raised, skipped or replaced; named, counted, and never a reason for ranks to fall out of step."""

from __future__ import annotations

import copy
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.loader.loading import CROPPED, load, pixels
from tests.loader.samples import BROKEN, TRUNCATED, MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.errors import DecodeError
from variegate.loader.batch import Failure, FailureLog

# Of seed 0 in epoch 0: with others, a run that is repeated would train on other images.
SUBSTITUTES = {5: 18, 6: 2, 7: 14, 8: 10, 9: 14, 12: 13}
SOURCES = [lambda: MemorySource(20, BROKEN), lambda: MemoryShards(20, broken=BROKEN)]  # type: ignore[arg-type]


@pytest.mark.parametrize("make", SOURCES)
def test_raise_names_the_sample_when_its_turn_comes(make: Any) -> None:
    loader = load(make(), shuffle=False, batch_size=5)
    iterator = iter(loader)
    assert len(next(iterator).labels) == 5
    with pytest.raises(DecodeError, match=r"memory: 5\.jpg: truncated"):
        next(iterator)
    assert loader.state_dict()["done"] == 5
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("transform", [CROPPED, T.Compose([CROPPED, T.Normalize(0.5, 0.5)]), T.Resize((9, 9))])
def test_skip_leaves_them_out_and_changes_no_other_pixel(make: Any, transform: Any) -> None:
    loader = load(make(), transform, on_error="skip")
    expected = pixels(load(MemorySource(20), transform))
    for index in BROKEN:
        del expected[1000 + index]
    assert pixels(loader) == expected
    assert {failure.id - 1000 for failure in loader.errors} == set(BROKEN)


def test_errors_hold_file_member_and_reason() -> None:
    loader = load(MemorySource(20, BROKEN), on_error="skip")  # type: ignore[arg-type]
    for _ in range(2):
        list(loader)
    found = {failure.id - 1000: failure for failure in loader.errors}
    assert len(loader.errors) == len(BROKEN)
    for index, failure in found.items():
        assert (failure.file, failure.member, failure.epoch, failure.times) == ("memory", f"{index}.jpg", 0, 2)
        assert str(failure) == f"memory: {index}.jpg: {failure.reason}"
    assert "truncated" in found[5].reason
    assert "truncated" in found[6].reason
    assert found[7].reason == "cannot be read (Input/output error)"
    assert found[8].reason == "zero bytes: the file is empty"
    assert found[9].reason.startswith("not an image: no known format begins with b'this is text'")


def test_threads_count_each_failure() -> None:
    """``Loader.batch`` is for any thread, and so is a copy meanwhile."""
    log = FailureLog(None)
    interval = sys.getswitchinterval()

    def work(_: int) -> None:
        for id in range(50):
            log.add([Failure("a.tar", f"{id}.jpg", "damaged", id, 0)], 1)
            copy.deepcopy(log).list()

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert {failure.times for failure in log.list()} == {4}


def test_replace_keeps_batches_full_and_marks_the_rows() -> None:
    loader = load(MemorySource(20, BROKEN), on_error="replace", shuffle=False)  # type: ignore[arg-type]
    batches = list(loader)
    assert [len(batch.labels) for batch in batches] == [4] * 5
    marked = [int(i) - 1000 for batch in batches for i in batch.ids[batch.padding]]
    assert marked == sorted(BROKEN)
    assert pixels(loader).keys() == pixels(load(MemorySource(20, BROKEN), on_error="skip")).keys()  # type: ignore[arg-type]


def test_a_substitute_is_a_good_sample_drawn_for_the_bad_one() -> None:
    """Another batch size, another thread count, the same substitute; with the label of its own picture."""

    def substitutes(**options: Any) -> dict[int, tuple[bytes, int]]:
        loader = load(MemorySource(20, BROKEN), T.Resize((16, 16)), on_error="replace", **options)  # type: ignore[arg-type]
        return {
            int(i): (image.numpy().tobytes(), int(label))
            for batch in loader
            for i, image, label, is_padding in zip(batch.ids, batch.images, batch.labels, batch.padding, strict=True)
            if is_padding
        }

    found = substitutes()
    assert found == substitutes(batch_size=7, num_threads=1)
    good = {
        vg.Augmenter(T.Resize((16, 16))).decode_and_run([jpeg(i)])[0].numpy().tobytes(): i
        for i in range(20)
        if i not in BROKEN
    }
    assert len(found) == len(BROKEN)
    drawn = {}
    for bad, (picture, label) in found.items():
        drawn[bad - 1000] = good[picture]
        assert label == good[picture] % 2
    assert drawn == SUBSTITUTES


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_substitute_in_shards_is_of_its_block_or_the_one_before(shuffle: bool) -> None:
    """Whatever the batch size is, and also where a run goes on right before the bad samples."""
    source = MemoryShards(20, 5, broken=BROKEN)
    options: dict[str, Any] = {"on_error": "replace", "shuffle": shuffle, "block_shards": 2}
    good = {
        vg.Augmenter(T.Resize((16, 16))).decode_and_run([jpeg(i)])[0].numpy().tobytes(): i
        for i in range(20)
        if i not in BROKEN
    }

    def substitutes(start: int, **changes: Any) -> dict[int, int]:
        loader = load(source, T.Resize((16, 16)), **options, **changes)
        loader.load_state_dict({**loader.state_dict(), "done": start})
        return {
            int(i) - 1000: good[image.numpy().tobytes()]
            for batch in loader
            for i, image, is_padding in zip(batch.ids, batch.images, batch.padding, strict=True)
            if is_padding
        }

    expected = substitutes(0)
    assert sorted(expected) == sorted(BROKEN)
    assert substitutes(0, batch_size=7, num_threads=1) == expected
    assert substitutes(5).items() <= expected.items()
    in_order = [int(i) - 1000 for batch in load(source, T.Resize((16, 16)), **options) for i in batch.ids]
    for bad, replacement in expected.items():
        block, other = (in_order.index(i) // 8 for i in (bad, replacement))
        assert other in (block - 1, block)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_batch_of_nothing_but_bad_samples_holds_a_substitute(on_error: str) -> None:
    """An empty batch would put this rank a step behind the others."""
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(4, 8), TRUNCATED)
    loader = load(MemorySource(12, broken), on_error=on_error, shuffle=False)
    sizes = [len(batch.labels) for batch in loader]
    assert sizes == ([4, 1, 4] if on_error == "skip" else [4, 4, 4])


def test_a_shard_that_is_lost_ends_a_run_of_several_ranks() -> None:
    """Another rank may have read it, and would then wait for this one for ever."""
    alone = load(MemoryShards(30, lost=1), on_error="skip")
    assert len(pixels(alone)) == 20
    assert str(alone.errors[0]) == "shard-1.tar: the connection broke off"
    with pytest.raises(SourceError, match=r"^shard-1\.tar: the connection broke off\. Ranks share out"):
        list(load(MemoryShards(30, lost=1), on_error="skip", rank=0, world_size=2))
    with pytest.raises(SourceError, match=r"^shard-1\.tar: the connection broke off$"):
        list(load(MemoryShards(30, lost=1, on_error="raise")))


def test_nothing_but_bad_samples_ends_with_the_first_of_them() -> None:
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(8), TRUNCATED)
    with pytest.raises(DecodeError, match=r"memory: 0\.jpg: truncated"):
        list(load(MemorySource(8, broken), on_error="skip", shuffle=False))


@pytest.mark.parametrize(("limit", "allowed"), [(2, 2), (5, 5), (0.1, 2), (0.26, 5), (0, 0)])
def test_more_than_max_errors_end_the_run(limit: int | float, allowed: int) -> None:
    loader = load(MemorySource(20, BROKEN), on_error="skip", max_errors=limit, batch_size=1, shuffle=False)  # type: ignore[arg-type]
    message = rf"{allowed + 1} samples could not be read, max_errors={limit} allows {allowed}; the last: memory: "
    with pytest.raises(vg.TooManyErrors, match=message):
        list(loader)
    assert len(loader.errors) == allowed + 1


@pytest.mark.parametrize("make", SOURCES)
def test_a_share_of_bad_samples_is_the_same_in_every_epoch(make: Any) -> None:
    loader = load(make(), on_error="skip", max_errors=0.31)
    for _ in range(4):
        assert len(pixels(loader)) == 20 - len(BROKEN)


def test_a_rank_counts_its_own_samples() -> None:
    """Half of the samples of one rank are bad: that is too many of its own, though a quarter of all."""
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(0, 40, 4), TRUNCATED)
    options: dict[str, Any] = {"on_error": "skip", "max_errors": 0.3, "shuffle": False}
    assert len(pixels(load(MemorySource(40, broken), **options))) == 30
    with pytest.raises(vg.TooManyErrors, match=r"8 samples could not be read, max_errors=0\.3 allows 6"):
        list(load(MemorySource(40, broken), rank=0, world_size=2, **options))


def test_an_image_that_the_transform_does_not_take_is_a_bad_sample() -> None:
    """One picture smaller than the crop does not kill a run; a transform that takes none of them does."""
    crop = T.RandomCrop(44)
    small = [i for i in range(20) if 40 + i % 7 < 44]
    for batch_size in (20, 4):
        loader = load(MemorySource(20), crop, on_error="skip", batch_size=batch_size)
        assert sorted(i - 1000 for i in pixels(loader)) == [i for i in range(20) if i not in small]
        assert "not taken by the transform" in loader.errors[0].reason
    for batch_size in (1, 20):
        replacing = load(MemorySource(20), crop, on_error="replace", batch_size=batch_size)
        marked = [int(i) - 1000 for batch in replacing for i in batch.ids[batch.padding]]
        assert sorted(marked) == small
    with pytest.raises(DecodeError, match=r"not taken by the transform: .*500"):
        list(load(MemorySource(20), T.RandomCrop(500), on_error="skip"))
    with pytest.raises(ValueError, match="44"):
        list(load(MemorySource(20), crop))


class Moody:
    """A data set whose items are not all what they should be."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        if index == 2:
            raise MemoryError("out of it")
        if index == 3:
            return None
        if index == 4:
            return np.zeros((10, 12, 3), np.float32), 0
        return np.full((30, 30, 3), index, np.uint8), index


def test_whatever_a_data_set_raises_is_one_bad_sample() -> None:
    loader = load(Moody(), T.CenterCrop(8), on_error="skip", shuffle=False)
    assert [batch.ids.tolist() for batch in loader] == [[0, 1], [5, 6, 7]]
    assert [failure.member for failure in loader.errors] == ["item 2", "item 3", "item 4"]
    with pytest.raises(DecodeError, match=r"item 2: .*MemoryError: out of it"):
        list(load(Moody(), T.CenterCrop(8), shuffle=False))


@pytest.mark.parametrize("cache", [None, "host"])
def test_pixels_of_a_source_of_its_own_are_checked(cache: str | None) -> None:
    bad = {1: np.zeros((30, 20, 4), np.uint8), 2: np.zeros((30, 20, 3)), 5: np.zeros((0, 3, 3), np.uint8)}
    side = None if cache is None else 16
    loader = load(MemorySource(8, bad), T.CenterCrop(8), on_error="skip", shuffle=False, cache=cache, cache_side=side)
    assert sum(len(batch.ids) for batch in loader) == 5
    assert [failure.reason.partition(";")[0] for failure in loader.errors] == [
        "cannot be read (ValueError: its pixels: got shape (30, 20, 4)",
        "cannot be read (TypeError: its pixels: got dtype float64",
        "cannot be read (ValueError: its pixels: got shape (0, 3, 3)",
    ]


def test_bombs_are_refused_by_their_header() -> None:
    height_at = jpeg(5).index(b"\xff\xc0") + 5
    bomb = bytearray(jpeg(5))
    bomb[height_at : height_at + 4] = b"\xff\x00\xff\x00"
    loader = load(MemorySource(8, {3: bytes(bomb)}), on_error="skip")
    list(loader)
    assert "more than the limit of 178,956,970 (max_pixels)" in loader.errors[0].reason
    limited = load(MemorySource(8), on_error="skip", max_pixels=45 * 50)
    list(limited)
    assert {f.id - 1000 for f in limited.errors} == {i for i in range(8) if np.prod([40 + i % 7, 48 + i % 5]) > 45 * 50}
    assert all("(max_pixels)" in failure.reason for failure in limited.errors)

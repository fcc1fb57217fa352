"""Batches of one size by aspect ratio (``buckets``) and batches of one's own (``batch_sampler``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler

import variegate as vg
from tests.loader.loading import by_key, ids, load
from tests.loader.samples import BROKEN, MemoryShards, MemorySource
from variegate import transforms as T
from variegate.errors import DecodeError
from variegate.loader.reading import Reader

SIZES = [(40, 90), (64, 64), (90, 40), (50, 70)]
BUCKETS = vg.AspectBuckets(32 * 32, step=8)
FLIP = T.RandomHorizontalFlip()


class Shapes:
    """Images of several sizes, and how many were read."""

    def __init__(self, number: int = 45) -> None:
        self.number = number
        self.reads = 0

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> tuple[Any, int]:
        if index >= self.number:
            raise IndexError
        self.reads += 1
        height, width = SIZES[index * 7 % 4]
        return np.random.default_rng(index).integers(0, 256, (height, width, 3), np.uint8), index


def bucketed(source: Any = None, transform: Any = FLIP, **options: Any) -> vg.Loader:
    return load(vg.open_source(source or Shapes()), transform, **({"buckets": BUCKETS} | options))


def test_shapes_have_the_area_and_the_ratio() -> None:
    assert vg.AspectBuckets(512 * 512).shapes == [(384, 640), (448, 576), (512, 512), (576, 448), (640, 384)]
    # Sizes of SDXL: Podell et al. 2023, appendix I.
    assert {(768, 1344), (832, 1216), (896, 1152), (1024, 1024)} < set(vg.AspectBuckets(1024 * 1024).shapes)
    for step, ratio in ((1, 1.5), (8, 2), (16, 4), (64, 1)):
        buckets = vg.AspectBuckets(300 * 200, step, ratio)
        for height, width in buckets.shapes:
            assert height % step == width % step == 0
            assert height * width <= buckets.area
            assert max(height, width) <= ratio * min(height, width)


@pytest.mark.parametrize("shuffle", [True, False])
def test_batches_have_one_size_and_every_sample_once(shuffle: bool) -> None:
    loader = bucketed(shuffle=shuffle)
    batches = list(loader)
    assert sorted(index for batch in batches for index in batch.ids.tolist()) == list(range(45))
    assert len(batches) == len(loader)
    for batch in batches:
        shapes = {SIZES[index * 7 % 4] for index in batch.ids.tolist()}
        assert len({height > width for height, width in shapes}) == 1
    assert {tuple(batch.images.shape[2:]) for batch in batches} <= set(BUCKETS.shapes)
    assert len({tuple(batch.images.shape[2:]) for batch in batches}) >= 3
    orders = [ids(loader), ids(bucketed(shuffle=shuffle))]
    assert (orders[0] == orders[1]) is not shuffle  # epochs 1 and 0


def test_images_are_cropped_to_the_ratio_and_resized() -> None:
    source = Shapes()
    centered = vg.AspectBuckets(32 * 32, step=8, position="center")
    for batch in bucketed(source, transform=None, buckets=centered):
        images = [source[index][0] for index in batch.ids.tolist()]
        size = tuple(batch.images.shape[2:])
        assert torch.equal(batch.images, vg.Augmenter(T.Fit(size, "center"))(images))


def test_drop_last_leaves_out_partial_batches() -> None:
    loader = bucketed(drop_last=True)
    assert {len(batch.ids) for batch in loader} == {4}
    with pytest.raises(ValueError, match="drop_last: no bucket has the 60 samples of a batch; accepted: a smaller"):
        bucketed(drop_last=True, batch_size=60)


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_a_state_resumes_on_any_ranks_with_the_same_pixels(world_size: int) -> None:
    loader = bucketed()
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    rest: dict[Any, bytes] = {}
    for batch in iterator:
        rest |= {i: image.numpy().tobytes() for i, image in zip(batch.ids.tolist(), batch.images, strict=True)}
    resumed: dict[Any, bytes] = {}
    lengths = set()
    for rank in range(world_size):
        loader = bucketed(rank=rank, world_size=world_size)
        loader.load_state_dict(state)
        batches = list(loader)
        lengths.add(len(batches))
        for batch in batches:
            rows = zip(batch.ids.tolist(), batch.images, batch.padding, strict=True)
            resumed |= {i: image.numpy().tobytes() for i, image, is_padding in rows if not is_padding}
    assert resumed == rest
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 5}, "the same buckets, batch_size and drop_last"),
        ({"buckets": vg.AspectBuckets(48 * 48, step=8)}, "the same buckets, batch_size and drop_last"),
        ({"buckets": None}, "the same buckets, batch_size and drop_last"),
    ],
)
def test_states_of_other_buckets_are_refused(options: dict[str, Any], message: str) -> None:
    loader = bucketed()
    next(iter(loader))
    with pytest.raises(ValueError, match=message):
        bucketed(transform=T.Resize((8, 8)), **options).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="done is 1, in the middle of a batch"):
        bucketed().load_state_dict({**loader.state_dict(), "done": 1})


def test_other_features_go_with_buckets() -> None:
    plain = by_key(bucketed())
    assert by_key(bucketed(device="auto", devices=["cpu:0", "cpu:1"])) == plain
    repeated = by_key(bucketed(copies=2))
    assert len(repeated) == 90
    weighted = bucketed(weights=np.arange(45), num_samples=20)
    assert sum(len(batch.ids) for batch in weighted) == 20
    mixture = vg.Mixture({"a": vg.open_source(Shapes()), "b": vg.open_source(Shapes(20))}, stop="all_exhausted")
    assert {tuple(batch.images.shape[2:]) for batch in bucketed(mixture)} <= set(BUCKETS.shapes)
    mixed = bucketed(transform=T.Compose([FLIP, T.MixUp(1.0)]))
    assert {tuple(batch.images.shape[2:]) for batch in mixed} <= set(BUCKETS.shapes)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_unreadable_images_are_skipped_or_replaced(on_error: Any) -> None:
    loader = load(MemorySource(30, BROKEN), FLIP, buckets=BUCKETS, on_error=on_error)
    batches = list(loader)
    assert len(loader.errors) == len(BROKEN)
    assert sum(len(batch.ids) for batch in batches) == 30 - (len(BROKEN) if on_error == "skip" else 0)


def folder_of(root: Path, height: int, width: int) -> Path:
    root.mkdir(parents=True)
    for number in range(3):
        Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(root / f"{number}.png")
    return root


def sizes_of(source: Any, **options: Any) -> set[tuple[int, ...]]:
    return {tuple(batch.images.shape[2:]) for batch in bucketed(source, None, **options)}


def test_sizes_are_read_once_for_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "cache"))
    flat = folder_of(tmp_path / "flat", 40, 80)
    tall = folder_of(tmp_path / "tall", 80, 40)
    with pytest.raises(DecodeError, match="max_pixels"):
        sizes_of(flat, max_pixels=100)
    expected = sizes_of(flat)
    assert expected == {(24, 40)}
    assert sizes_of(tall) == {(40, 24)}
    with monkeypatch.context() as patched:
        patched.setattr(Reader, "image_size", None)
        assert sizes_of(flat) == expected
    first, second = sorted((tmp_path / "cache").rglob("*.npy"))
    first.write_bytes(b"\x93NUMPY" + b"'(" * 73)
    second.write_bytes(b"damaged")
    assert sizes_of(flat) == expected
    for path in flat.iterdir():
        path.unlink()
    flat.rmdir()
    assert sizes_of(folder_of(flat, 60, 30)) == {(40, 24)}


def test_sizes_follow_depth_and_may_be_given(tmp_path: Path) -> None:
    for number in range(3):
        np.save(tmp_path / f"{number}.npy", np.ones((40, 80, 3), np.float32))
    assert sizes_of(tmp_path, depth="float32") == {(24, 40)}
    known = Shapes()
    sizes = np.array([SIZES[index * 7 % 4] for index in range(45)])
    given = bucketed(known, buckets=vg.AspectBuckets(32 * 32, step=8, sizes=sizes))
    assert known.reads == 0
    assert ids(given) == ids(bucketed())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((100, 16), ValueError, "area: got 100; accepted: a number of pixels from 256, one step squared, to"),
        ((1024, 0), ValueError, "step: got 0; accepted: an integer from 1"),
        ((1024, 8, 0.5), ValueError, "max_ratio: got 0.5"),
        ((1024, 8, 2, "top"), ValueError, "position: got 'top'; accepted: one of 'random', 'center'"),
    ],
)
def test_wrong_buckets_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        vg.AspectBuckets(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"buckets": 512}, TypeError, "buckets: got 512; accepted: vg.AspectBuckets"),
        ({"buckets": vg.AspectBuckets(1024, 8, sizes=np.ones((3, 2), int))}, ValueError, r"sizes: got int64 \[3, 2\]"),
        ({"buckets": vg.AspectBuckets(1024, 8, sizes=np.zeros((45, 2), int))}, ValueError, "sizes: got 0; accepted"),
        ({"buckets": vg.AspectBuckets(1024, 8, sizes=[[1, 2], [3]])}, ValueError, "sizes: got list"),
        ({"buckets": BUCKETS, "views": 2}, ValueError, "buckets: got them with several views"),
        ({"batch_sampler": [[1]], "buckets": BUCKETS}, ValueError, "batch_sampler: got it with buckets"),
        ({"batch_sampler": [[1]], "sampler": [1]}, ValueError, "batch_sampler: got it with sampler"),
        ({"batch_sampler": [[1]], "shuffle": True}, ValueError, "batch_sampler: got it with shuffle"),
        ({"batch_sampler": [[1]], "copies": 2}, ValueError, "batch_sampler: got it with copies"),
        ({"batch_sampler": "abc"}, TypeError, "batch_sampler: got str; accepted: lists of indices"),
        ({"batch_sampler": BatchSampler(DistributedSampler(range(9), 2, 0), 4, False)}, ValueError, "takes one rank's"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load(vg.open_source(Shapes()), T.Resize((8, 8)), **options)


def test_shards_are_indexed() -> None:
    assert sorted(ids(load(MemoryShards(8), FLIP, buckets=BUCKETS))) == list(range(1000, 1008))
    assert ids(load(MemoryShards(8), T.Resize((8, 8)), batch_sampler=[[3, 1], [0]])) == [1003, 1001, 1000]


class OfEpoch:
    """Other batches in each epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter([[self.epoch, 1, 2], [3], [4, 5]])


BATCHES = [[1, 2, 3], [4], [6, 5]]


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (BATCHES, BATCHES),
        (lambda epoch: [[7 + epoch], [1, 2]], [[7], [1, 2]]),
        (OfEpoch(), [[0, 1, 2], [3], [4, 5]]),
        (BatchSampler(SequentialSampler(range(5)), 2, False), [[0, 1], [2, 3], [4]]),
    ],
)
def test_batches_of_ones_own(sampler: Any, expected: list[list[int]]) -> None:
    loader = load(vg.open_source(Shapes()), T.Resize((8, 8)), batch_sampler=sampler)
    assert [batch.ids.tolist() for batch in loader] == expected
    assert len(loader) == len(expected)


def test_ranks_take_batches_by_turns_and_resume_after_them() -> None:
    def rank(number: int, world_size: int) -> vg.Loader:
        source = vg.open_source(Shapes())
        return load(source, T.Resize((8, 8)), batch_sampler=BATCHES, rank=number, world_size=world_size)

    found = [[(batch.ids.tolist(), bool(batch.padding.any())) for batch in rank(number, 2)] for number in range(2)]
    assert found == [[([1, 2, 3], False), ([6, 5], False)], [([4], False), ([1, 2, 3], True)]]
    loader = rank(0, 1)
    next(iter(loader))
    state = loader.state_dict()
    rest = [rank(number, 2) for number in range(2)]
    for each in rest:
        each.load_state_dict(state)
    assert [ids(each) for each in rest] == [[4], [6, 5]]


@pytest.mark.parametrize(
    ("batches", "message"),
    [([], "gave no batch"), ([[1], []], "batch 1: gave no index"), ([[99]], r"batch 0\[0\]: got 99"), ([1], "batch 0")],
)
def test_wrong_batches_are_refused(batches: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        list(load(vg.open_source(Shapes()), T.Resize((8, 8)), batch_sampler=batches))

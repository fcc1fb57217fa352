"""Data sets that are iterated over, as streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.loader.loading import load
from variegate.formats.base import SourceError
from variegate.formats.objects.iterable import IterableSource

NUMBER = 22


def picture(number: int) -> Any:
    return np.full((40, 40, 3), number, np.uint8)


class Plain(torch.utils.data.IterableDataset[Any]):
    classes = ("even", "odd")

    def __iter__(self) -> Iterator[Any]:
        for number in range(NUMBER):
            yield picture(number), number % 2


class Stateful(Plain):
    """Goes on from where it was; counts what it makes."""

    made = 0

    def __init__(self) -> None:
        self.next = 0

    def __iter__(self) -> Iterator[Any]:
        while self.next < NUMBER:
            self.next += 1
            type(self).made += 1
            yield picture(self.next - 1), 0
        self.next = 0

    def state_dict(self) -> dict[str, int]:
        return {"next": self.next}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.next = state["next"]


class Sharded:
    """As those of Hugging Face: dicts, shards, names of classes."""

    num_shards = 3
    features = None

    def __init__(self, shards: range = range(3)) -> None:
        self._shards = shards

    def shard(self, num_shards: int, index: int) -> Sharded:
        assert num_shards == 3
        return Sharded(range(index, index + 1))

    def __iter__(self) -> Iterator[Any]:
        for shard in self._shards:
            yield from ({"image": picture(10 * shard + place), "label": shard} for place in range(4))


class Broken(Plain):
    def __iter__(self) -> Iterator[Any]:
        yield picture(0), 0
        raise OSError("the disk is gone")


def shades(loader: vg.Loader) -> list[list[int]]:
    return [[int(image.max()) for image in batch.images] for batch in loader]


OPTIONS: dict[str, Any] = {"shuffle": False}


@pytest.mark.parametrize("dataset", [Plain(), Stateful()])
def test_every_rank_takes_its_share_in_order(dataset: Any) -> None:
    whole = shades(load(dataset, None, batch_size=5, **OPTIONS))
    assert [shade for batch in whole for shade in batch] == list(range(NUMBER))
    ranks = [load(dataset, None, batch_size=3, rank=rank, world_size=2, **OPTIONS) for rank in range(2)]
    steps = zip(*map(shades, ranks), strict=True)
    # The last step of four samples is uneven, filled up to rows of one length.
    assert [sorted({*one, *other}) for one, other in steps] == [
        list(range(i, min(i + 6, NUMBER))) for i in range(0, 22, 6)
    ]


@pytest.mark.parametrize("kind", [Plain, Stateful, Sharded])
@pytest.mark.parametrize("options", [OPTIONS, {"shuffle_buffer": 6}])
def test_it_resumes_anywhere(kind: Any, options: dict[str, Any]) -> None:
    expected = shades(load(kind(), None, batch_size=3, **options))
    loader = load(kind(), None, batch_size=3, **options)
    steps = iter(loader)
    for step in range(3):
        next(steps)
        later = load(kind(), None, batch_size=3, **options)
        later.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert shades(later) == expected[step + 1 :]


def test_its_own_state_spares_what_was_read() -> None:
    loader = load(Stateful(), None, batch_size=4, prefetch=0, num_threads=1, **OPTIONS)
    steps = iter(loader)
    for _ in range(4):
        next(steps)
    later = load(Stateful(), None, batch_size=4, **OPTIONS)
    later.load_state_dict(loader.state_dict())
    Stateful.made = 0
    assert shades(later) == [[16, 17, 18, 19], [20, 21]]
    assert Stateful.made == 6


def test_shards_are_shuffled_and_classes_named() -> None:
    assert vg.open_source(Plain()).classes == ("even", "odd")
    loader = load(Sharded(), None, batch_size=4, shuffle_buffer=1)
    orders = [[batch.labels.tolist()[0] for batch in loader] for _ in range(4)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len({tuple(order) for order in orders}) > 1


def test_workers_make_the_same_batches() -> None:
    expected = shades(load(Plain(), None, batch_size=8, **OPTIONS))
    assert shades(load(Plain(), None, batch_size=8, device="auto", devices=["cpu:0", "cpu:1"], **OPTIONS)) == expected


def test_an_error_ends_it_by_name() -> None:
    with pytest.raises(vg.DecodeError, match=r"Broken: item 1: OSError: the disk is gone"):
        shades(load(Broken(), None, batch_size=1, **OPTIONS))
    skipping = load(Broken(), None, batch_size=1, on_error="skip", **OPTIONS)
    assert shades(skipping)[0] == [0]


def test_what_is_no_whole_stream_is_refused() -> None:
    split = Sharded()
    split._distributed = object()  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match="split by node"):
        vg.open_source(split)
    with pytest.raises(SourceError, match=r"stream: got False for .*; accepted: a data set with __getitem__"):
        vg.open_source(Plain(), stream=False)
    with pytest.raises(TypeError, match="an IterableDataset, or a Source"):
        vg.open_source(iter(Plain()))
    with pytest.raises(IndexError, match="shard 1"):
        next(IterableSource(Plain()).read_shard(1))
    loader = load(Plain(), None, **OPTIONS)
    for odd in ([9, 0, None], ["a", 0, None], [0], 7):
        with pytest.raises((ValueError, TypeError), match="state_dict: stream"):
            loader.load_state_dict(loader.state_dict() | {"stream": odd})

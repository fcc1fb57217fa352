"""Exact resume: after any batch, with other batches, threads or ranks, the rest is what it would have been."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

import variegate as vg
from tests.loader.loading import CROPPED, ids, load, pixels
from tests.loader.samples import MemoryShards, MemorySource


def test_set_epoch_of_the_state_resumes_in_the_middle_and_others_begin() -> None:
    first = load(MemorySource(31), prefetch=6)
    first.set_epoch(2)
    iterator = iter(first)
    next(iterator)
    state = first.state_dict()
    assert state["done"] == 4  # of batches that were handed out, not of those that were prefetched
    expected = [i for batch in iterator for i in batch.ids.tolist()]
    loader = load(MemorySource(31))
    loader.load_state_dict(state)
    loader.set_epoch(2)  # what a training loop does at the start of each epoch
    assert ids(loader) == expected
    loader.load_state_dict(state)
    loader.set_epoch(3)
    assert ids(loader) == ids(first)


def test_state_at_the_end_of_an_epoch() -> None:
    loader = load(MemorySource(10))
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    last = loader.state_dict()
    assert (last["epoch"], last["done"]) == (0, 10)
    assert list(iterator) == []
    assert (loader.state_dict()["epoch"], loader.state_dict()["done"]) == (1, 0)
    loader.load_state_dict(last)
    assert list(loader) == []  # nothing is left of it, as without the interruption
    assert loader.epoch == 1


def test_state_is_small() -> None:
    state = load(MemorySource(10)).state_dict()
    assert len(json.dumps(state)) < 300
    assert state == {
        "version": 1,
        "pixels": vg.PIXEL_VERSION,
        "epoch": 0,
        "done": 0,
        "seed": 0,
        "shuffle": True,
        "source": "memory-10",
        "samples": 10,
    }


def test_a_distributed_checkpoint_saves_and_loads_it(tmp_path: Path) -> None:
    loader = load(MemorySource(31))
    assert isinstance(loader, Stateful)
    iterator = iter(loader)
    next(iterator)
    model = torch.nn.Linear(2, 2)
    dcp.save({"loader": loader, "model": model.state_dict()}, checkpoint_id=tmp_path / "step")  # type: ignore[attr-defined]
    expected = {i: image.numpy().tobytes() for b in iterator for i, image in zip(b.ids.tolist(), b.images, strict=True)}
    again = load(MemorySource(31), batch_size=5)
    dcp.load({"loader": again, "model": model.state_dict()}, checkpoint_id=tmp_path / "step")  # type: ignore[attr-defined]
    assert pixels(again) == expected


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (lambda: load(MemorySource(30)), "state_dict: source is 'memory-31', this loader's is 'memory-30'"),
        (lambda: load(MemorySource(31), seed=1), "state_dict: seed is 0, this loader's is 1"),
        (lambda: load(MemorySource(31), shuffle=False), "state_dict: shuffle is True, this loader's is False"),
        (
            lambda: load(MemorySource(31), copies=2),
            "state_dict: copies is None, this loader's is 2; .* same copies",
        ),
        (lambda: load(MemorySource(31), sampler=[0, 1]), "state_dict: sampler is None, this loader's is "),
        (lambda: load(MemoryShards(31), block_shards=2), "state_dict: (source|block_shards) is "),
    ],
)
def test_a_state_of_another_order_is_refused(loader: Any, message: str) -> None:
    state = load(MemorySource(31)).state_dict()
    with pytest.raises(ValueError, match=message):
        loader().load_state_dict(state)


def test_shards_before_the_position_of_a_state_are_not_fetched() -> None:
    loader = load(MemoryShards(40, 10), block_shards=2)
    iterator = iter(loader)
    for _ in range(7):
        next(iterator)
    state = loader.state_dict()
    expected = [i for batch in iterator for i in batch.ids.tolist()]
    source = MemoryShards(40, 10)
    again = load(source, block_shards=2, prefetch=0)
    again.load_state_dict(state)
    assert ids(again) == expected
    assert len(set(source.fetched)) == 4


@pytest.mark.parametrize("done", [-1, 32, "1"])
def test_a_place_outside_of_the_epoch_is_refused(done: Any) -> None:
    loader = load(MemorySource(31))
    with pytest.raises(ValueError, match="state_dict: done"):
        loader.load_state_dict({**loader.state_dict(), "done": done})


@pytest.mark.parametrize("state", [None, {}, {"version": 2}, {"version": 1, "pixels": vg.PIXEL_VERSION, "epoch": 0}])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(ValueError, match=r"state_dict: .*accepted: what Loader.state_dict gave"):
        load(MemorySource(31)).load_state_dict(state)


def test_pinned_order() -> None:
    """Another order breaks the resume of every run that was saved before."""
    loader = vg.Loader(MemorySource(8), CROPPED, batch_size=8, device="cpu", seed=7)
    assert ids(loader) == [1002, 1000, 1006, 1003, 1005, 1001, 1004, 1007]
    shards = vg.Loader(MemoryShards(14, 4), CROPPED, batch_size=16, device="cpu", seed=7, block_shards=2)
    assert [i - 1000 for i in ids(shards)] == [11, 4, 5, 7, 12, 13, 6, 3, 10, 0, 1, 8, 9, 2]

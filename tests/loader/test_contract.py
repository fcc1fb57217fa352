"""What holds for loaders of every kind: rows depend on (seed, epoch, id, copy), whoever loads them and when."""

from __future__ import annotations

import copy
import json
import pickle
from functools import cache
from typing import Any

import pytest

import variegate as vg
from tests.loader.cases import CASES, join, rows_of
from tests.loader.loading import load

EPOCH = 1
INDEPENDENT = [name for name, case in CASES.items() if not case.is_mixed_by_batch]
# Ranks before and after a resume, and batches before it: each kind of loader resumes on more ranks in the first batch,
# and in one of the other ways.
RESUMES = [(1, 1, 0), (1, 2, 1), (2, 1, 2)]
OTHERS: list[dict[str, Any]] = [
    {"batch_size": 1, "prefetch": 0},
    {"batch_size": 7, "num_threads": 1, "prefetch": 1},
    {"batch_size": 100, "num_threads": 5, "prefetch": 6},
]


@cache
def epoch_of(name: str, epoch: int = EPOCH) -> dict[tuple[int, int], Any]:
    """All rows, by one loader with the options of the case alone."""
    loader = loader_of(name)
    loader.set_epoch(epoch)
    return join(map(rows_of, loader))


def loader_of(name: str, **options: Any) -> vg.Loader:
    case = CASES[name]
    loader = load(case.source(), case.transform, **case.options | options)
    loader.set_epoch(EPOCH)
    return loader


@pytest.mark.parametrize("name", INDEPENDENT)
def test_rows_do_not_depend_on_batches_threads_or_prefetch(name: str) -> None:
    loader = loader_of(name)
    first, second = (join(map(rows_of, loader)) for _ in range(2))
    assert first != second
    for options in OTHERS:
        assert join(map(rows_of, loader_of(name, **options))) == first
    bad = {failure.id for failure in loader.errors}
    assert bad.isdisjoint(sample for sample, _ in first)


@pytest.mark.parametrize(("name", "world_size"), [(name, 2 + n % 2) for n, name in enumerate(INDEPENDENT)])
def test_ranks_are_in_step_and_share_an_epoch(name: str, world_size: int) -> None:
    ranks = [list(loader_of(name, rank=rank, world_size=world_size)) for rank in range(world_size)]
    assert len({len(batches) for batches in ranks}) == 1
    assert join(rows_of(batch) for batches in ranks for batch in batches) == epoch_of(name)


@pytest.mark.parametrize(
    ("name", "before", "after", "batches"),
    [(name, *ways) for n, name in enumerate(INDEPENDENT) for ways in ((2, 3, 1), RESUMES[n % len(RESUMES)])],
)
def test_the_rest_of_an_epoch_is_the_same(name: str, before: int, after: int, batches: int) -> None:
    """After any batch, with other batches, threads and ranks."""
    parts = []
    states = []
    for rank in range(before):
        loader = loader_of(name, rank=rank, world_size=before)
        iterator = iter(loader)
        parts += [rows_of(next(iterator)) for _ in range(batches)]
        states.append(json.loads(json.dumps(loader.state_dict())))
    assert states.count(states[0]) == before
    following: list[Any] = []
    for rank in range(after):
        loader = loader_of(name, rank=rank, world_size=after, batch_size=5, prefetch=rank)
        loader.load_state_dict(states[0])
        assert loader.epoch == EPOCH
        parts += map(rows_of, loader)
        following += map(rows_of, loader)
    assert join(parts) == epoch_of(name)
    assert join(following) == epoch_of(name, EPOCH + 1)


@pytest.mark.parametrize("copied", [lambda loader: pickle.loads(pickle.dumps(loader)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("name", ["mixed with bad ones", "shards, replaced", "targets", "a mixture"])
def test_a_copy_stands_where_the_loader_stands(name: str, copied: Any) -> None:
    loader = loader_of(name, rank=1, world_size=2, prefetch=1)
    iterator = iter(loader)
    next(iterator)
    again = copied(loader)
    assert (again.epoch, again.rank, again.world_size, again.num_threads) == (EPOCH, 1, 2, 2)
    assert again.state_dict() == loader.state_dict()
    again.load_state_dict(again.state_dict())  # the rest of this epoch, which belongs to the iteration of the other
    assert [rows_of(batch) for batch in again] == [rows_of(batch) for batch in iterator]
    assert [rows_of(batch) for batch in again] == [rows_of(batch) for batch in loader]
    assert again.errors == loader.errors
    assert len(pickle.dumps(again)) < 20_000  # neither threads nor batches

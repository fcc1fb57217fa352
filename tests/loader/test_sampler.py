"""``sampler``: lists of indices, torch's samplers, functions of the epoch; that they resume exactly or say why not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler

import variegate as vg
from tests.loader.loading import by_key, ids, keys, load
from tests.loader.samples import MemoryShards, MemorySource


class Seeded(Sampler[int]):
    """An order by epoch, as samplers should give it."""

    def __init__(self, length: int = 12) -> None:
        self.length, self.epoch, self.asked = length, -1, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        return iter(np.random.default_rng(self.epoch).permutation(20)[: self.length].tolist())


class SequentialLike:
    """No torch class, no epochs."""

    def __init__(self, indices: list[Any]) -> None:
        self.indices = indices

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.indices)


def expected(epoch: int, length: int = 12) -> list[int]:
    return (1000 + np.random.default_rng(epoch).permutation(20)[:length]).tolist()


def named(value: Any) -> str:
    """A test's name that is the same in every process."""
    return value if isinstance(value, str) else type(value).__name__


LISTS = [[3, 1, 4, 1, 5, 9, 2, 6], (0, 7), range(2, 9), np.array([5, 5, 5], np.uint8), torch.arange(4)]


@pytest.mark.parametrize("sampler", LISTS, ids=str)
def test_a_list_says_which_samples_an_epoch_has(sampler: Any) -> None:
    given = [1000 + int(index) for index in sampler]
    loader = load(MemorySource(20), sampler=sampler, batch_size=3)
    assert len(loader) == -(-len(given) // 3)
    first, second = ids(loader), ids(loader)
    assert sorted(first) == sorted(second) == sorted(given)
    if len(set(given)) > 5:
        assert first != second
    assert ids(load(MemorySource(20), sampler=sampler, shuffle=False)) == given


def test_repeats_of_a_list_are_copies() -> None:
    loader = load(MemorySource(20), sampler=[4, 2, 4, 4], shuffle=False)
    assert keys(loader) == [(1004, 0), (1002, 0), (1004, 1), (1004, 2)]
    shuffled = by_key(load(MemorySource(20), sampler=[4, 2, 4, 4]))
    assert len(set(shuffled.values())) == 4
    once = by_key(load(MemorySource(20), sampler=[2, 4]))
    assert shuffled[1004, 0] == once[1004, 0]


def test_a_sampler_is_asked_when_an_epoch_begins() -> None:
    sampler = Seeded()
    loader = load(MemorySource(20), sampler=sampler, batch_size=5, prefetch=6)
    assert (len(loader), sampler.asked) == (3, 0)
    assert loader.shuffle is False
    for epoch in range(3):
        assert ids(loader) == expected(epoch)
        # Not a batch before: a sampler may depend on what was learnt in the epoch.
        assert (sampler.epoch, sampler.asked) == (epoch, epoch + 1)
    loader.set_epoch(7)
    assert ids(loader) == expected(7)


def test_samplers_of_torch() -> None:
    source = MemorySource(20)
    assert ids(load(source, sampler=SequentialSampler(range(20)))) == list(range(1000, 1020))
    torch.manual_seed(3)
    drawn = ids(load(source, sampler=RandomSampler(range(20))))
    torch.manual_seed(3)
    assert drawn == [1000 + index for index in RandomSampler(range(20))]
    weighted = torch.utils.data.WeightedRandomSampler([1.0, 5.0], 9)
    found = keys(load(source, sampler=weighted))
    assert len(set(found)) == 9  # repeats are copies


def test_a_function_of_the_epoch() -> None:
    loader = load(MemorySource(20), sampler=lambda epoch: range(epoch, 6), batch_size=4)
    assert len(loader) == 2
    assert ids(loader) == [1000, 1001, 1002, 1003, 1004, 1005]
    assert ids(loader) == [1001, 1002, 1003, 1004, 1005]
    assert len(loader) == 1  # of the epoch that comes next


def test_two_iterations_of_one_epoch_keep_their_orders() -> None:
    torch.manual_seed(0)
    loader = load(MemorySource(20), sampler=RandomSampler(range(20)), batch_size=5, prefetch=1)
    first = iter(loader)
    begun = next(first).ids.tolist()
    loader.set_epoch(0)
    second = ids(loader)
    rest = [i for batch in first for i in batch.ids.tolist()]
    assert sorted(begun + rest) == sorted(second) == list(range(1000, 1020))


def test_resume_of_a_sampler_that_repeats_itself() -> None:
    loader = load(MemorySource(20), sampler=Seeded(), batch_size=5)
    loader.set_epoch(2)
    batches = iter(loader)
    next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    again = load(MemorySource(20), sampler=Seeded(), batch_size=4)
    again.load_state_dict(state)
    again.set_epoch(2)
    assert ids(again) == expected(2)[5:]
    assert ids(again) == expected(3)


def test_a_sampler_that_does_not_repeat_itself_is_told_at_resume() -> None:
    def make() -> vg.Loader:
        return load(MemorySource(20), sampler=RandomSampler(range(20)), batch_size=5)

    loader = make()
    next(iter(loader))
    state = loader.state_dict()
    with pytest.raises(
        ValueError, match=r"^state_dict: order is '[0-9a-f]{16}', the sampler's for epoch 0 is now"
    ) as error:
        make().load_state_dict(state)
    assert "draws from torch's global generator" in str(error.value)
    assert "Loader(weights=...)" in str(error.value)
    list(loader)
    make().load_state_dict(loader.state_dict())  # between epochs nothing depends on the order


@pytest.mark.parametrize("other", [{}, {"sampler": [0, 2]}, {"sampler": lambda epoch: [0, 1]}, {"weights": [1.0] * 20}])
def test_a_state_of_another_sampler_is_refused(other: dict[str, Any]) -> None:
    state = load(MemorySource(20), sampler=[0, 1]).state_dict()
    with pytest.raises(ValueError, match=r"state_dict: (sampler|shuffle|weights) is .*, this loader's is "):
        load(MemorySource(20), **other).load_state_dict(state)


def test_a_bad_sample_is_replaced_by_one_of_the_list() -> None:
    source = MemorySource(20, {3: b"no image"})
    for sampler in ([3, 5, 7], SequentialLike([3, 5, 7])):
        loader = load(source, sampler=sampler, on_error="replace")
        source.reads.clear()
        list(loader)
        assert set(source.reads) <= {3, 5, 7}


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        ([0, 20, 1], "sampler[1]: got 20; accepted: integers from 0 to 19"),
        ([0, 1.5], "sampler[1]: got 1.5; accepted: integers from 0 to 19"),
        (["a", 1], "sampler[0]: got 'a'; accepted: integers from 0 to 19"),
        (np.ones(20, bool), "sampler: got True and False; accepted: indices, such as np.flatnonzero(mask)"),
        (np.zeros((2, 3), int), "sampler: got shape (2, 3); accepted: one index after another"),
        ("01", "sampler: got str; accepted: a sequence or array of indices"),
        (iter([0, 1]), "sampler: got list_iterator (its length is not known); accepted: a sequence or array"),
        (
            DistributedSampler(range(20), 2, 0),
            "sampler: got DistributedSampler, which takes one rank's share; the Loader",
        ),
        (
            BatchSampler(SequentialSampler(range(20)), 4, False),
            "sampler: got BatchSampler, which yields batches; accepted",
        ),
    ],
    ids=named,
)
def test_bad_samplers_are_named(sampler: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        load(MemorySource(20), sampler=sampler)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (SequentialLike([0, 30]), "sampler[1]: got 30; accepted: integers from 0 to 19"),
        (SequentialLike([[0, 1], [2, 3]]), "sampler: got shape (2, 2); accepted: one index after another, not batches"),
        (SequentialLike([[0, 1], [2]]), "sampler[0]: got [0, 1]; accepted: integers from 0 to 19"),
        (lambda epoch: None, "sampler(0): gave NoneType; accepted: indices"),
        (lambda epoch: [0, -3], "sampler(0)[1]: got -3; accepted: integers from 0 to 19"),
    ],
    ids=named,
)
def test_bad_orders_are_named_when_their_epoch_begins(sampler: Any, message: str) -> None:
    loader = load(MemorySource(20), sampler=sampler)
    with pytest.raises((ValueError, TypeError)) as error:
        iter(loader)
    assert str(error.value).startswith(message)


def test_what_does_not_go_together_is_named() -> None:
    with pytest.raises(ValueError, match=r"shuffle: got True with a sampler \(Seeded\) that gives the order itself"):
        load(MemorySource(20), sampler=Seeded(), shuffle=True)
    assert ids(load(MemorySource(20), sampler=Seeded(), shuffle=False)) == expected(0)


def test_a_sampler_chooses_among_all_shards() -> None:
    assert ids(load(MemoryShards(20), sampler=[19, 0, 7], shuffle=False)) == [1019, 1000, 1007]

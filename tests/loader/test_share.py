"""Which samples go where: every one once over all ranks, whatever the batches, and the same number of steps on each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.loader.ranks import Share

SHARES = st.fixed_dictionaries(
    {
        "length": st.integers(1, 60),
        "batch_size": st.integers(1, 9),
        "world_size": st.integers(1, 5),
        "start": st.integers(0, 60),
        "drop_last": st.booleans(),
    }
)


def shares(options: dict[str, int]) -> list[Share]:
    return [Share(rank=rank, **options) for rank in range(options["world_size"])]  # type: ignore[arg-type]


@given(SHARES)
def test_every_sample_once_and_ranks_in_step(options: dict[str, int]) -> None:
    ranks = shares(options)
    assert len({len(share) for share in ranks}) == 1
    seen: list[int] = []
    for step in range(len(ranks[0])):
        sizes = set()
        for share in ranks:
            positions, padding = share.positions(step)
            sizes.add(len(positions))
            assert (positions < options["length"]).all()
            assert padding.sum() <= 1
            assert not padding[:-1].any()
            seen += positions[~padding].tolist()
        assert len(sizes) == 1
        assert sorted(seen) == list(range(options["start"], ranks[0].done_after(step)))
    left = max(options["length"] - options["start"], 0)
    together = options["batch_size"] * options["world_size"]
    assert len(seen) == (left // together * together if options["drop_last"] else left)


@pytest.mark.parametrize("second", [(1, 1), (7, 1), (2, 3), (5, 4)])
def test_the_rest_of_an_epoch_is_the_same_for_other_batches_and_ranks(second: tuple[int, int]) -> None:
    first = [Share(4, rank, 2, length=37) for rank in range(2)]
    done = {int(p) for share in first for step in range(2) for p in share.positions(step)[0]}
    start = first[0].done_after(1)
    batch_size, world_size = second
    rest = [Share(batch_size, rank, world_size, length=37, start=start) for rank in range(world_size)]
    left = [
        int(position)
        for share in rest
        for step in range(len(share))
        for position, is_padding in zip(*share.positions(step), strict=True)
        if not is_padding
    ]
    assert sorted(left) == sorted(set(range(37)) - done)


def test_padding_repeats_samples_where_there_are_fewer_than_ranks() -> None:
    rows = [Share(8, rank, 4, length=2).positions(0) for rank in range(4)]
    assert [positions.tolist() for positions, _ in rows] == [[0], [1], [0], [1]]
    assert [padding.tolist() for _, padding in rows] == [[False], [False], [True], [True]]
    assert np.concatenate([positions for positions, _ in rows]).dtype == np.int64


def test_padding_repeats_samples_of_the_last_block() -> None:
    share = Share(8, 1, 2, length=5, start=4, padding_start=3)
    assert [part.tolist() for part in share.positions(0)] == [[3], [True]]

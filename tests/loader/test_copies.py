"""Several rows of each sample: repeated augmentation, and views."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import variegate as vg
from tests.loader.samples import MemorySource, jpeg
from variegate import transforms as T
from variegate.errors import DecodeError

CROP = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.Posterize((2, 8))])
VIEWS = T.MultiView([CROP, T.Compose([T.RandomResizedCrop(9, (0.05, 0.4)), T.Invert()])], counts=[2, 3])


def rows_of(loader: vg.Loader) -> dict[tuple[int, int], torch.Tensor]:
    """Images by id and copy."""
    made: dict[tuple[int, int], torch.Tensor] = {}
    for batch in loader:
        for image, id, copy, padded in zip(batch.images, batch.ids, batch.copies, batch.padding, strict=True):
            if not padded:
                assert (int(id), int(copy)) not in made
                made[int(id), int(copy)] = image
    return made


@pytest.mark.parametrize("batch_size", [6, 5])
def test_each_sample_comes_as_often_as_asked_for(batch_size: int) -> None:
    source = MemorySource(7)
    loader = vg.Loader(source, CROP, batch_size, device="cpu", seed=3, copies=3, num_threads=2)
    made = rows_of(loader)
    assert set(made) == {(1000 + i, copy) for i in range(7) for copy in range(3)}
    assert len(loader) == -(-21 // batch_size)
    assert "copies=3" in repr(loader)
    aug = vg.Augmenter(CROP, seed=3)
    for (id, copy), image in made.items():
        alone = aug.decode_and_run([jpeg(id - 1000)], ids=[id], copy=copy)
        assert torch.equal(image, alone[0])
    # The same order as without copies.
    order = [int(id) for batch in vg.Loader(source, CROP, 7, device="cpu", seed=3) for id in batch.ids]
    assert [id for id, _ in made] == [id for id in order for _ in range(3)]


def test_a_batch_reads_a_sample_once() -> None:
    source = MemorySource(6)
    for batch in vg.Loader(source, CROP, 6, device="cpu", copies=3, prefetch=0):
        assert batch.copies.tolist() == [0, 1, 2] * 2
    assert sorted(source.reads) == list(range(6))


def test_copies_of_drawn_and_listed_samples_are_numbered_on() -> None:
    loader = vg.Loader(MemorySource(4), CROP, 50, device="cpu", sampler=[2, 0, 2], copies=2)
    assert set(rows_of(loader)) == {(1002, copy) for copy in range(4)} | {(1000, 0), (1000, 1)}
    drawn = vg.Loader(MemorySource(4), CROP, 50, device="cpu", weights=[1.0, 1.0, 0.0, 2.0], num_samples=8, copies=2)
    assert sum(id == 1003 for id, _ in rows_of(drawn)) == 8
    asked = vg.Loader(MemorySource(4), CROP, 50, device="cpu", sampler=lambda epoch: [epoch, 3], copies=2)
    assert set(rows_of(asked)) == {(1000, 0), (1000, 1), (1003, 0), (1003, 1)}


def test_a_loader_hands_out_groups_of_views() -> None:
    loader = vg.Loader(MemorySource(7), VIEWS, 4, device="cpu", seed=3, num_threads=2)
    aug, seen = vg.Augmenter(VIEWS, seed=3), 0
    for large, small in (batch.images for batch in loader):
        assert large.shape[1:] == (2, 3, 16, 16)
        assert small.shape[1:] == (3, 3, 9, 9)
        seen += len(large)
    assert seen == 7
    batch = loader.batch(0, 0)
    expected = aug.decode_and_run([jpeg(int(id) - 1000) for id in batch.ids], ids=batch.ids)
    assert all(torch.equal(a, b) for a, b in zip(batch.images, expected, strict=True))
    assert batch.nbytes == sum(group.nbytes for group in expected)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_views_of_bad_samples_are_skipped_or_replaced(on_error: Any) -> None:
    broken = {2: DecodeError("2.jpg", "gone"), 3: jpeg(3)[:-300]}
    loader = vg.Loader(MemorySource(6, broken), VIEWS, 6, device="cpu", seed=3, on_error=on_error, shuffle=False)
    (batch,) = loader
    kept = [0, 1, 4, 5] if on_error == "skip" else list(range(6))
    assert batch.ids.tolist() == [1000 + i for i in kept]
    good = vg.Loader(MemorySource(6), VIEWS, 6, device="cpu", seed=3, shuffle=False).batch(0)
    for group, expected in zip(batch.images, good.images, strict=True):
        assert len(group) == len(kept)
        for row, i in enumerate(kept):
            assert torch.equal(group[row], expected[i]) == (i not in broken)


def test_views_by_their_number() -> None:
    short = vg.Loader(MemorySource(6), CROP, 3, device="cpu", seed=1, views=2)
    whole = vg.Loader(MemorySource(6), T.MultiView([CROP], counts=[2]), 3, device="cpu", seed=1)
    for ((group,), labels), ((same,), theirs) in zip(short, whole, strict=True):
        assert group.shape[:3] == (3, 2, 3)
        assert torch.equal(group, same)
        assert torch.equal(labels, theirs)
    with pytest.raises(ValueError, match="views: got 0; accepted: an integer from 1"):
        vg.Loader(MemorySource(6), CROP, device="cpu", views=0)
    with pytest.raises(ValueError, match="views: got 2 with a transform that is a MultiView"):
        vg.Loader(MemorySource(6), VIEWS, device="cpu", views=2)


def test_views_and_copies_go_together() -> None:
    loader = vg.Loader(MemorySource(3), VIEWS, 6, device="cpu", copies=2, shuffle=False)
    batch = loader.batch(0)
    alone = vg.Augmenter(VIEWS).decode_and_run([jpeg(1)], ids=[1001], copy=1)
    assert all(torch.equal(group[3], one[0]) for group, one in zip(batch.images, alone, strict=True))

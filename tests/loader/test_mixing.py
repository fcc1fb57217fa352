"""MixUp and its like in a loader: whom a sample is mixed with depends on its id, its epoch and the seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.loader.loading import CROPPED, by_key, load, pixels, pixels_of
from tests.loader.samples import MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.augmenter.planner import MixedLabels
from variegate.errors import DecodeError

NUMBER = 70  # more than a block of partners, and no multiple of one
MIXED = T.Compose([CROPPED, T.RandomChoice([T.MixUp(num_classes=2), T.CutMix(num_classes=2)])])
MOSAIC = T.Compose([CROPPED, T.Mosaic(num_classes=2)])


def mixed(transform: Any = MIXED, source: Any = None, **options: Any) -> vg.Loader:
    return load(MemorySource(NUMBER) if source is None else source, transform, **{"seed": 3, **options})


def test_a_picture_is_made_of_those_that_the_loader_names() -> None:
    loader = mixed()
    plain = load(MemorySource(NUMBER), CROPPED, seed=3, shuffle=False, batch_size=NUMBER)
    alone = next(iter(plain)).images
    for index in (0, 33, 69):
        (partner,) = loader.partners(index, 0)
        assert partner - 1000 != index
        files = [jpeg(index), jpeg(partner - 1000)]
        made = loader.augmenter.decode_and_run(
            files, ids=[1000 + index, partner], partners=[1], conditions={"label": [0, 0]}
        )
        assert pixels(mixed())[1000 + index] == made[0].numpy().tobytes()
        assert f"sample {partner}" in loader.augmenter.explain(1000 + index, partners=[partner])
    # The partner in the mix is the picture that it is itself in this epoch.
    program = loader.augmenter.program([(40, 48)] * 2, ids=[1000, loader.partners(0, 0)[0]], partners=[1])
    assert program.mixture is not None
    pasted = T.Compose([CROPPED, T.CutMix()])
    image = {i: p for b in mixed(pasted, shuffle=False) for i, p in zip(b.ids.tolist(), b.images, strict=True)}[1000]
    partner = loader.partners(0, 0)[0] - 1000
    assert ((image == alone[0]) | (image == alone[partner])).all()


def test_labels_are_soft_or_triples() -> None:
    batch = next(iter(mixed(batch_size=64)))
    assert batch.labels.shape == (64, 2)
    assert batch.labels.dtype == torch.float32
    torch.testing.assert_close(batch.labels.sum(dim=1), torch.ones(64))
    triples = next(iter(mixed(T.Compose([CROPPED, T.MixUp()]), shuffle=False))).labels
    assert isinstance(triples, MixedLabels)
    assert triples.label.tolist() == [0, 1, 0, 1]
    loader = mixed()
    assert triples.partner.tolist() == [loader.partners(index, 0)[0] % 2 for index in range(4)]


def test_partners_are_other_in_another_epoch_and_mostly_in_the_same_batch() -> None:
    loader = mixed()
    partners = [[loader.partners(index, epoch)[0] for index in range(NUMBER)] for epoch in range(2)]
    assert sum(a == b for a, b in zip(*partners, strict=True)) < 10
    assert all(partner != 1000 + index for partners_of in partners for index, partner in enumerate(partners_of))
    source = MemorySource(128)
    list(mixed(source=source, batch_size=64, prefetch=0))
    assert len(source.reads) == 128  # nobody is read twice


def test_samples_of_a_sampler_are_mixed_among_themselves() -> None:
    source = MemorySource(NUMBER)
    list(mixed(source=source, sampler=[3, 5, 7, 9, 11], batch_size=2))
    list(mixed(source=source, weights=[1.0 * (i < 10) for i in range(NUMBER)], batch_size=2))
    assert set(source.reads) <= {*range(12)}
    with pytest.raises(ValueError, match="partners: this loader has a sampler, weights or buckets"):
        mixed(source=source, sampler=[3, 5, 7]).partners(3)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_bad_partner_leaves_its_sample_as_it_is(on_error: Any) -> None:
    loader = mixed()
    bad = {loader.partners(4, 0)[0] - 1000: jpeg(5)[:400], loader.partners(8, 0)[0] - 1000: DecodeError("x", "gone")}
    for mixer in (T.MixUp(num_classes=2), T.CutMix(num_classes=2)):
        transform = T.Compose([CROPPED, mixer])
        expected = pixels(mixed(transform))
        plain = pixels(load(MemorySource(NUMBER), CROPPED, seed=3))
        for size in (4, 64):
            broken = mixed(transform, MemorySource(NUMBER, bad), on_error=on_error, batch_size=size)
            found = pixels(broken)
            assert {failure.id - 1000 for failure in broken.errors} == set(bad)
            for index in range(NUMBER):
                if index in (4, 8):
                    assert found[1000 + index] == plain[1000 + index]
                elif index not in bad:
                    assert found[1000 + index] == expected[1000 + index]
            assert len(found) == NUMBER - len(bad)  # those replaced are padding
    with pytest.raises(DecodeError):
        list(mixed(source=MemorySource(NUMBER, bad)))


@pytest.mark.parametrize("size", [1, 10, 64])
def test_a_picture_that_is_refused_is_bad_by_itself_alone(size: int) -> None:
    images, labels = [np.full((20, 20, 3), i, np.uint8) for i in range(NUMBER)], list(range(NUMBER))
    images[7] = images[7][:4, :4]  # smaller than the crop
    for mixer in (T.MixUp(), T.Mosaic()):
        transform = T.Compose([T.RandomCrop(16), mixer])
        loader = load((images, labels), transform, batch_size=size, on_error="skip", seed=3)
        found = set(pixels(loader))
        assert [failure.id for failure in loader.errors] == [7]
        assert found >= set(range(NUMBER)) - {7}


def test_pictures_that_do_not_go_together_are_bad_in_any_batch() -> None:
    images, labels = [np.full((16, 16, 3), i, np.uint8) for i in range(NUMBER)], list(range(NUMBER))
    images[7] = images[7][:, :, :1]
    for on_error in ("skip", "replace"):
        runs = {}
        for size in (10, NUMBER):
            loader = load((images, labels), T.MixUp(), batch_size=size, on_error=on_error, seed=3)
            runs[size] = {
                (int(i), image.numpy().tobytes())
                for batch in loader
                for i, image in zip(batch.ids, batch.images, strict=True)
            }
            mixed_with_it = {index for index in range(NUMBER) if 7 in loader.partners(index, 0)}
            assert {failure.id for failure in loader.errors} == {7, *mixed_with_it}
        assert runs[10] == runs[NUMBER]


def test_labels_of_replaced_samples_are_mixed_as_well() -> None:
    for num_classes in (2, None):
        transform = T.Compose([CROPPED, T.MixUp(num_classes=num_classes)])
        batch = next(iter(mixed(transform, MemorySource(8, {2: b"no image"}), on_error="replace", batch_size=8)))
        assert len(batch.images) == 8
        first = batch.labels.label if isinstance(batch.labels, MixedLabels) else batch.labels
        assert len(first) == 8


def test_what_cannot_be_asked_about_partners_is_said() -> None:
    batch = next(iter(mixed(source=MemoryShards(20), partners="batch", batch_size=8)))
    assert batch.labels.shape == (8, 2)
    with pytest.raises(ValueError, match=r"partners: got 'all'; accepted: one of 'epoch', 'batch'"):
        mixed(partners="all")
    for loader, message in (
        (load(MemorySource(8)), "partners: a loader that mixes nothing"),
        (mixed(source=MemoryShards(20)), "partners: this loader has blocks of shards"),
        (mixed(copies=3), "partners: this loader has copies"),
    ):
        with pytest.raises(ValueError, match=message):
            loader.partners(0)


def test_copies_and_their_partners_are_read_once_within_a_batch() -> None:
    source = MemorySource(64)
    made = by_key(mixed(source=source, copies=2, batch_size=128, prefetch=0))
    assert len(made) == 128
    assert sorted(source.reads) == list(range(64))


def test_images_in_memory_are_gathered_with_their_partners() -> None:
    images = np.random.default_rng(0).integers(0, 256, (NUMBER, 9, 9, 3)).astype(np.uint8)
    labels = np.arange(NUMBER) % 3
    loader = vg.Loader((images, labels), T.MixUp(num_classes=3), batch_size=8, device="cpu", seed=1)
    for batch in loader:
        for row, index in enumerate(batch.ids.tolist()):
            (partner,) = loader.partners(index, 0)
            share = loader.augmenter.program([(9, 9)] * 2, ids=[index, partner], partners=[1]).mixture.shares[0, 0]  # type: ignore[union-attr]
            expected = images[index] * float(share) + images[partner] * (1 - float(share))
            assert np.abs(batch.images[row].permute(1, 2, 0).numpy() - expected).max() <= 0.5 + 1e-4
            assert batch.labels[row, labels[index]] >= share - 1e-6
    assert pixels_of(loader.batch(0, 1)) == pixels_of(loader.batch(0, 1))

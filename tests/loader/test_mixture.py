"""``vg.Mixture``: what is drawn of each source and in which order, by nothing but (seed, epoch, position)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from tests.loader.loading import CROPPED, by_key, load
from tests.loader.samples import MemorySource
from variegate import transforms as T
from variegate.data.base import Item, SourceError
from variegate.errors import DecodeError
from variegate.loader.mixture import MixtureOrders
from variegate.loader.shuffle import partner_positions

PIXELS = np.random.default_rng(0).integers(0, 256, (64, 20, 20, 3)).astype(np.uint8)


class Unread(MemorySource):
    """A source of any size of which nothing is read."""

    classes = ()  # type: ignore[assignment]


def of(*sizes: int, weights: Any = None, **options: Any) -> vg.Mixture:
    return vg.Mixture({"abcdef"[i]: Unread(size) for i, size in enumerate(sizes)}, weights, **options)


def mixed(weights: Any = (3, 1), **options: Any) -> vg.Mixture:
    return vg.Mixture({"a": MemorySource(23), "b": MemorySource(9)}, weights, **options)


def epoch_of(orders: MixtureOrders, mixture: vg.Mixture, epoch: int) -> tuple[Any, Any, Any]:
    """Source, place in it and copy of every draw."""
    order = orders.order_of(epoch)
    indices, copies = order.at(np.arange(order.length))
    sources = mixture.source_of(indices.astype(np.uint64))
    return sources, indices - mixture.starts[sources], copies


# -- what is drawn -----------------------------------------------------------------------------------------------------


def test_the_order_is_that_of_all_versions() -> None:
    order = MixtureOrders(of(5, 3, 2, weights=[0.5, 0.3, 0.2], stop=14), 7).order_of(2)
    indices, copies = order.at(np.arange(14))
    assert indices.tolist() == [8, 1, 1, 3, 7, 5, 0, 7, 6, 5, 4, 2, 9, 2]
    assert copies.tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0, 2]


def test_sources_have_their_shares_wherever_an_epoch_is_cut() -> None:
    weights = np.array([0.55, 0.3, 0.1499, 0.0001])
    mixture = of(10**9, 10**7, 50, 3, weights=weights, stop=10**9)
    for seed in range(3):
        order = MixtureOrders(mixture, seed).order_of(4)
        for cut in (64, 640, 10_048, 640_000):
            sources = mixture.source_of(order.at(np.arange(max(0, cut - 50_048), cut))[0].astype(np.uint64))
            expected = weights * min(cut, 50_048)
            assert (abs(np.bincount(sources, minlength=4) - expected) <= 3).all()
        ends = order.at(np.array([0, 10**9 - 1]))[0]
        assert (ends < len(mixture)).all()


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_each_source_is_used_up_before_it_begins_again(data: st.DataObject) -> None:
    """Through all epochs, and whatever becomes of the weights."""
    number = data.draw(st.integers(1, 4))
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=number, max_size=number))
    weights = st.lists(st.sampled_from([0.001, 0.1, 1, 2, 7]), min_size=number, max_size=number)
    schedule: dict[Any, Any] = {0: data.draw(weights)}
    schedule |= data.draw(st.dictionaries(st.integers(0, 3), weights, max_size=4))
    stop = data.draw(st.one_of(st.integers(1, 150), st.just("first_exhausted")))
    mixture = of(*sizes, weights=schedule, stop=stop)
    orders = MixtureOrders(mixture, data.draw(st.integers(0, 5)))
    drawn: list[list[int]] = [[] for _ in sizes]
    for epoch in range(4):
        sources, places_of, copies = epoch_of(orders, mixture, epoch)
        assert len({*zip(sources.tolist(), places_of.tolist(), copies.tolist(), strict=True)}) == len(sources)
        shuffled = np.random.default_rng(epoch).permutation(len(sources))
        again, copies_again = orders.order_of(epoch).at(shuffled)
        assert ((again - mixture.starts[sources[shuffled]]) == places_of[shuffled]).all()
        assert (copies_again == copies[shuffled]).all()
        for source, place in zip(sources.tolist(), places_of.tolist(), strict=True):
            drawn[source].append(place)
        if stop == "first_exhausted":
            counts = np.bincount(sources, minlength=number)
            assert (counts <= sizes).all()
            assert (counts == sizes).any()
        else:
            assert len(sources) == stop
    for source, size in enumerate(sizes):
        passes = [drawn[source][begin : begin + size] for begin in range(0, len(drawn[source]), size)]
        assert all(sorted(one) == list(range(size)) for one in passes if len(one) == size)
        assert all(len({*one}) == len(one) for one in passes)


def test_an_epoch_ends_where_the_first_source_does_or_all_do() -> None:
    weights = [0.5, 0.25, 0.25, 0]
    for epoch in range(3):
        first, all_of = of(50, 40, 10, 5, weights=weights), of(50, 40, 10, 5, weights=weights, stop="all_exhausted")
        sources, places, copies = epoch_of(MixtureOrders(first, 1), first, epoch)
        assert 36 <= len(sources) <= 44
        assert sorted(places[sources == 2].tolist()) == list(range(10))
        assert 3 not in sources
        sources, places, copies = epoch_of(MixtureOrders(all_of, 1), all_of, epoch)
        assert 156 <= len(sources) <= 164
        for source, size in enumerate((50, 40, 10)):
            # Each epoch has whole passes, and what is left over of the last.
            assert sorted(places[(sources == source) & (copies == 0)].tolist()) == list(range(size))
    unending = of(10, 10, weights=[1, 1e-9], stop="all_exhausted")
    assert MixtureOrders(unending, 0).order_of(0).length > 10**8


def test_a_late_epoch_and_place_take_no_walk() -> None:
    mixture = of(10**9, 10**7, weights={0: [9, 1], 10: [1, 1], 20: [1, 9]}, stop=10**9)
    order = MixtureOrders(mixture, 0).order_of(2**63)
    positions = 10**8 + np.arange(0, 64 * 256, 64)
    indices, copies = order.at(positions)
    sources = mixture.source_of(indices.astype(np.uint64))
    assert 0.8 < sources.mean() < 1
    assert copies[sources == 1].max() >= 8


# -- batches -----------------------------------------------------------------------------------------------------------


def test_batches_tell_source_copy_and_label() -> None:
    loader = load(mixed([1, 3], stop=40), batch_size=8)
    assert len(loader) == 5
    batches = list(loader)
    source = np.concatenate([batch.source for batch in batches])
    assert source.dtype == np.int64
    assert 28 <= source.sum() <= 32
    mixture = loader.source
    assert isinstance(mixture, vg.Mixture)
    for batch in batches:
        assert batch.source.tolist() == mixture.source_of(batch.ids).tolist()
        own = batch.ids.astype(int) - mixture.starts[batch.source]
        assert (batch.labels.numpy() == own % 2).all()
        for row, (sample, copy) in enumerate(zip(batch.ids.tolist(), batch.copies.tolist(), strict=True)):
            alone = loader.augmenter.decode_and_run([mixture.read(sample).data], ids=[sample], epoch=0, copy=copy)
            assert torch.equal(alone[0], batch.images[row])
    assert max(int(batch.copies.max()) for batch in batches) == 3
    assert pickle.loads(pickle.dumps(batches[0])).source.tolist() == batches[0].source.tolist()
    plain = next(iter(load(MemorySource(4))))
    assert plain.source.tolist() == [0] * 4


def test_a_state_of_other_weights_is_refused() -> None:
    loader = load(mixed())
    state = loader.state_dict()
    with pytest.raises(ValueError, match=r"state_dict: weights is .*Make the loader with the same weights"):
        load(mixed([1, 1])).load_state_dict(state)
    with pytest.raises(ValueError, match="state_dict: source is"):
        load(mixed(stop=5)).load_state_dict(state)


def test_weights_change_between_epochs_only() -> None:
    with pytest.raises(ValueError, match=r"weights: epoch: got \(0, 17\); accepted: an integer from 0 on"):
        mixed({0: [1, 0], (0, 17): [0, 1]})
    with pytest.raises(AttributeError, match=r"Loader.set_weights was removed: .* schedule"):
        load(mixed()).set_weights([1, 1])  # type: ignore[attr-defined]


# -- labels, transforms, partners --------------------------------------------------------------------------------------


def test_labels_are_of_one_space_by_name() -> None:
    first, second = (PIXELS[:4], [0, 1, 2, -1]), (PIXELS[4:8], [1, 0, -1, 1])
    opened = {
        "a": vg.open_source(first, classes=["ant", "bee", "cat"]),
        "b": vg.open_source(second, classes=["cat", "dog"]),
    }
    mixture = vg.Mixture(opened)
    assert mixture.classes == ("ant", "bee", "cat", "dog")
    assert [mixture.read(i).label for i in range(8)] == [0, 1, 2, -1, 3, 2, -1, 3]
    assert str(mixture.name(5)) == "images: item 1 of b"
    assert repr(mixture) == "Mixture(a, b: 8 samples, 4 classes)"
    unnamed = vg.Mixture({"a": first, "b": second})
    assert (unnamed.classes, unnamed.read(5).label) == ((), 0)
    with pytest.raises(SourceError, match=r"sources\['b'\]: names no classes, and others do, such as 'ant'; accepted"):
        vg.Mixture({"a": opened["a"], "b": second})


class Boxed(MemorySource):
    has_targets, has_image_labels, has_edges = True, False, True

    def __init__(self, number: int, classes: Sequence[str]) -> None:
        super().__init__(number)
        self.classes = tuple(classes)  # type: ignore[assignment]

    def read(self, index: int) -> Item:
        boxes = np.array([[2, 2, 9, 9]], np.float32)
        return Item(super().read(index).data, -1, {"boxes": boxes, "labels": np.array([index % 2])})


def test_classes_of_objects_are_united() -> None:
    mixture = vg.Mixture({"a": Boxed(4, "xy"), "b": Boxed(4, "yz")}, stop="all_exhausted")
    batch = next(iter(load(mixture, T.Resize((32, 32)), batch_size=8)))
    labels = {int(i): int(each[0]) for i, each in zip(batch.ids, batch["labels"], strict=True)}
    assert labels == {0: 0, 1: 1, 2: 0, 3: 1, 4: 1, 5: 2, 6: 1, 7: 2}
    assert (batch.source == (batch.ids > 3)).all()
    beyond = vg.Mixture({"a": Boxed(4, "x"), "b": Boxed(4, "xy")})
    assert beyond.read(5).targets["labels"] == [1]
    with pytest.raises(ValueError, match=r"sources\['a'\]: a sample has the label 1; accepted: 0 to 0"):
        beyond.read(1)
    both = vg.Mixture({"a": Boxed(4, "xy"), "b": MemorySource(4)})
    with pytest.raises(SourceError, match="sources: has_targets is True, False of a, b; accepted: targets in all of"):
        load(both)
    assert len(next(iter(load(both, targets=False))).ids) == 4
    items = [({"image": PIXELS[i], "boxes": [[1, 1, 5, 5]], "labels": [i]}) for i in range(4)]
    own = load(vg.Mixture({"a": items, "b": items}), T.Resize((32, 32)), targets=vg.Targets(), batch_size=8)
    assert [len(boxes) for boxes in next(iter(own))["boxes"]] == [1] * len(next(iter(own)).ids)


def test_sources_have_transforms_of_their_own() -> None:
    mixture = vg.Mixture(
        {"plain": (PIXELS[:30], np.arange(30)), "odd": (PIXELS[30:40], np.arange(10))},
        transforms={"odd": [T.RandomInvert(1.0), T.CenterCrop(12)]},
        stop="all_exhausted",
    )
    transform = T.Compose([T.CenterCrop(8), T.Normalize(0.5, 0.25)])
    for batch in load(mixture, transform, batch_size=8):
        for row, (sample, source) in enumerate(zip(batch.ids.astype(int), batch.source, strict=True)):
            pixels = PIXELS[sample][6:14, 6:14]
            wanted = ((255 - pixels if source else pixels) / 255 - 0.5) / 0.25
            np.testing.assert_allclose(batch.images[row].permute(1, 2, 0), wanted, atol=1e-5)
    by_name = T.Compose([T.Cond("source", {"odd": T.RandomInvert(1.0)}), T.CenterCrop(8)])
    bare = vg.Mixture({"plain": (PIXELS[:30], None), "odd": (PIXELS[30:40], None)})
    batch = next(iter(load(bare, by_name, batch_size=40, conditions=lambda epoch: lambda ids: {"other": ids})))
    for image, sample, source in zip(batch.images, batch.ids.astype(int), batch.source, strict=True):
        pixels = PIXELS[sample][6:14, 6:14]
        assert (image.permute(1, 2, 0).numpy() == (255 - pixels if source else pixels)).all()
    with pytest.raises(
        ValueError, match=r"transforms: got transforms of sources with several views; accepted: T\.Cond"
    ):
        load(mixture, T.CenterCrop(8), views=2)


def test_partners_are_of_any_source() -> None:
    transform = T.Compose([T.CenterCrop(16), T.MixUp(num_classes=64)])
    mixture = vg.Mixture({"a": (PIXELS[:40], np.arange(40)), "b": (PIXELS[40:], np.arange(40, 64))}, [1, 1], stop=70)
    expected = by_key(load(mixture, transform, batch_size=35))
    assert by_key(load(mixture, transform, batch_size=8, rank=0, world_size=1)) == expected
    order = MixtureOrders(mixture, 0).order_of(0)
    places = np.arange(70)
    pairs = [
        mixture.source_of(order.at(each)[0].astype(np.uint64))
        for each in (places, partner_positions(places, 70, 1)[:, 0])
    ]
    assert len({*zip(*(pair.tolist() for pair in pairs), strict=True)}) == 4


def test_bad_samples_are_named_and_replaced() -> None:
    broken = {3: b"no image", 5: DecodeError("x", "gone")}
    mixture = vg.Mixture({"a": MemorySource(8), "b": MemorySource(8, broken)}, stop="all_exhausted")
    loader = load(mixture, on_error="replace", batch_size=16)
    batch = next(iter(loader))
    assert sorted(batch.ids[batch.padding].tolist()) == [11, 13]
    assert sorted(str(failure).partition(": no")[0] for failure in loader.errors)[0] == "memory: 3.jpg of b"
    skipped = next(iter(load(mixture, on_error="skip", batch_size=16)))
    assert len(skipped.ids) == len(skipped.source) == 14
    with pytest.raises(DecodeError, match=r"memory: 3\.jpg of b: |x: gone"):
        list(load(mixture))


class Flat(MemorySource):
    """Images of one value, which is their label."""

    classes = ()  # type: ignore[assignment]

    def __init__(self, number: int, value: int, broken: Sequence[int] = ()) -> None:
        super().__init__(number, {index: DecodeError("x", "broken") for index in broken})
        self.value = value

    def read(self, index: int) -> Item:
        super().read(index)
        return Item(np.full((16, 16, 3), self.value, np.uint8), self.value)


@pytest.mark.parametrize("places", [{}, {"device": "auto", "workers": "thread", "devices": ["cpu:0", "cpu:1"]}])
def test_replaced_rows_have_the_source_and_the_transforms_of_their_pixels(places: dict[str, Any]) -> None:
    mixture = vg.Mixture(
        {"a": Flat(6, 10, range(4)), "b": Flat(6, 200, range(3))}, [1, 1], {"b": T.RandomInvert(1.0)}, stop=12
    )
    loader = load(mixture, T.CenterCrop(16), on_error="replace", batch_size=12, **places)
    [batch] = loader
    assert 5 <= batch.padding.sum() <= 9
    assert mixture.source_of(batch.ids[batch.padding]).tolist() != batch.source[batch.padding].tolist()
    expected = {0: (10, 10), 1: (200, 55)}
    found = zip(batch.labels.tolist(), batch.images[:, 0, 0, 0].tolist(), strict=True)
    assert list(found) == [expected[number] for number in batch.source.tolist()]
    assert {failure.id for failure in loader.errors} == set(batch.ids[batch.padding].tolist())


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vg.Mixture([MemorySource(3)]), "sources: got list; accepted: a dict {name: source}, not empty"),  # type: ignore[arg-type]
        (
            lambda: vg.Mixture({"a": of(3)}),
            "sources['a']: got a mixture; accepted: anything else that vg.open",
        ),
        (lambda: of(0), "sources['a']: has no samples"),
        (lambda: vg.Mixture({"a": 3}), "open_source: got 3 (int); accepted: "),
        (lambda: of(3, 3, weights=[1]), "weights: got [1]; accepted: 2 numbers from 0 on, not all of them 0: one for"),
        (lambda: of(3, 3, weights=[1, -1]), "weights: got [1, -1]; accepted: 2 numbers from 0 on"),
        (lambda: of(3, 3, weights=[1e308, 1e308]), "weights: got [1e+308, 1e+308]; accepted: 2 numbers"),
        (lambda: of(3, 3, weights={"a": 1}), "weights: none for 'b'; accepted: one for each source"),
        (lambda: of(3, 3, weights={"a": 1, "c": 1}), "weights: got 'c'; accepted: the sources 'a', 'b'"),
        (lambda: of(3, 3, weights={1: [1, 1]}), "weights: none for epoch 0; accepted: a mapping {0: weights, later"),
        (
            lambda: of(3, 3, stop="longest"),
            "stop: got 'longest'; accepted: 'first_exhausted', 'all_exhausted' or a num",
        ),
        (lambda: of(3, 3, transforms={"c": CROPPED}), "transforms: got 'c'; accepted: the sources 'a', 'b'"),
        (
            lambda: of(3, 3, transforms={"a": 3}),
            "transforms['a']: got 3; accepted: a transform of one image, or a list",
        ),
        (
            lambda: load(of(3, 3), sampler=[0]),
            "sampler: got it with a Mixture, which says what is drawn; accepted: None",
        ),
        (lambda: load(of(3, 3), shuffle=False), "shuffle: got False with weights; accepted: True, as what is drawn"),
        (
            lambda: load(of(10**6, 10**6, weights=[1, 1e-9], stop="all_exhausted")),
            "stop: got 'all_exhausted', which by the weights (1.0, 1e-09) takes more than 68,719,476,736 samples;",
        ),
    ],
)
def test_wrong_arguments_are_named(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)

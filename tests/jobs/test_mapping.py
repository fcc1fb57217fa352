"""Streams of images through engines: the pixels of one ``Augmenter``, whatever makes them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T
from variegate.jobs import mapping

AUGMENT = T.Compose(
    [
        T.RandomResizedCrop(48),
        T.RandomHorizontalFlip(),
        T.RandAugment(2, 9),
        T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
    ]
)
KEEPS_SIZE = T.RandAugment(2, 9)


def pictures(number: int) -> list[Any]:
    """Of several sizes, gray ones among them."""
    made: list[Any] = [photo(60 + n % 5, 70 + n % 3) if n % 4 else gray(50, 40 + n % 3) for n in range(number)]
    made[1] = torch.from_numpy(made[1])
    return made


def threads(number: int = 2, **options: Any) -> vg.Engine:
    return vg.Engine(
        [f"cpu:{n}" for n in range(number)], "thread", **{"transform": AUGMENT, "num_threads": 1, **options}
    )


def check_equal(made: Any, expected: Any) -> None:
    made = list(made)
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.parametrize("options", [{}, {"seed": 5, "dtype": "bfloat16", "layout": "NHWC", "geometry": "exact"}])
def test_threads_make_the_pixels_of_one_augmenter(options: Any) -> None:
    """In order, or each with its id."""
    images, ids = pictures(100), [2**64 - 1 - 7 * n for n in range(100)]
    expected = vg.Augmenter(AUGMENT, **options)(images, ids=ids, epoch=3, copy=2)
    check_equal(threads(3, **options).map(iter(images), iter(ids), epoch=3, copy=2), expected)
    made = dict(threads(3, ordered=False, **options).map(images, ids, epoch=3, copy=2))
    check_equal([made[id] for id in ids], expected)


@pytest.mark.process
def test_processes_make_the_pixels_of_one_augmenter() -> None:
    images = pictures(80)
    engine = vg.Engine(["cpu:0"], "process", num_threads=1)
    check_equal(engine.map(images, transform=KEEPS_SIZE), vg.Augmenter(KEEPS_SIZE)(images))


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_images_may_be_one_array_with_values_for_conditions(kind: Any) -> None:
    labels = [n % 2 for n in range(40)]
    transform = T.Cond("label", {0: T.Invert(), 1: T.RandomHorizontalFlip(1.0)})
    stacked = np.stack([photo(20, 24)] * 40)
    made = threads(transform=transform).map(kind(stacked), conditions={"label": iter(labels)})
    check_equal(made, vg.Augmenter(transform)(stacked, conditions={"label": labels}))


@pytest.mark.parametrize(("ahead_bytes", "furthest"), [(1 << 40, 2 * 256 + 32), (1 << 20, 200)])
def test_an_endless_stream_is_read_a_bounded_way_ahead(
    monkeypatch: pytest.MonkeyPatch, ahead_bytes: int, furthest: int
) -> None:
    """In images, and in bytes: one of these is 12 kB, and 28 kB when it is made; the last task may reach over."""
    monkeypatch.setattr(mapping, "_AHEAD_BYTES", ahead_bytes)
    image, read = photo(64, 64), 0

    def endless() -> Iterator[Any]:
        nonlocal read
        for read in itertools.count(1):  # noqa: B007
            yield image

    results = threads(2).map(endless())
    for made, _ in enumerate(itertools.islice(results, 1500)):
        assert read - made <= furthest
    results.close()  # type: ignore[attr-defined]


def test_whoever_stops_early_leaves_nothing_behind() -> None:
    before = set(threading.enumerate())
    results = threads().map(itertools.repeat(photo(64, 64)))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("variegate cpu:")] == []


BAD = r"; accepted: uint8"
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([*pictures(40), photo(8, 8).astype(np.float64)], {}, r"images\[40\]: got dtype float64" + BAD),
    ([*pictures(40), np.zeros((2, 8, 8, 3), np.uint8)], {}, r"images\[40\]: got shape \(2, 8, 8, 3\)" + BAD),
    ([*pictures(40), "cat.jpg"], {}, r"images\[40\]: got str" + BAD),
    (photo(8, 8), {}, r"images: got shape \(8, 8, 3\); accepted: one \[N, H, W, C\]"),
    (7, {}, "images: got int; accepted: images one by one"),
    (pictures(3), {"ids": [0, 1]}, r"ids: ended after 2; accepted: one for each image"),
    (pictures(3), {"ids": [0, -1, 2]}, r"ids\[1\]: got -1; accepted: an integer from 0 to 2\*\*64 - 1"),
    (pictures(3), {"ids": [0, 1, 2.0]}, r"ids\[2\]: got 2\.0; accepted: an integer"),
]


@pytest.mark.parametrize(("images", "options", "message"), REFUSED)
def test_wrong_images_and_ids_are_named(images: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        list(threads().map(images, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": -1}, "epoch: got -1"),
        ({"copy": 2**32}, "copy: got 4294967296"),
        ({"on_error": "replace"}, "on_error: got 'replace'; accepted: one of 'raise', 'skip'"),
        ({"transform": T.Cond("label", {0: T.Invert()})}, "label"),
    ],
)
def test_what_is_not_accepted_is_named_before_anything_starts(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        threads().map([], **options)
    with pytest.raises(
        ValueError, match=r"transform: got none; give one to this method, or to Engine\(transform=...\)"
    ):
        vg.Engine(["cpu:0"], "thread").map([])


# The crop is larger than two of the images, and does not pad.
CROP = T.RandomCrop(32)


def test_an_image_that_cannot_be_made_is_named_by_its_id() -> None:
    images = [photo(40, 40)] * 10
    images[6] = photo(16, 16)
    with pytest.raises(vg.EngineError, match=r"images\[6\] \(id 106\): ValueError: .*"):
        list(threads(transform=CROP).map(images, range(100, 110)))


@pytest.mark.parametrize("ordered", [True, False])
def test_or_left_out_and_noted(ordered: bool) -> None:
    images = [photo(40, 40 + n) for n in range(50)]
    images[6] = images[33] = photo(16, 16)
    engine = threads(transform=CROP, ordered=ordered, max_failures=2)
    made = list(engine.map(images, range(100, 150), on_error="skip"))
    good = [n for n in range(50) if n not in (6, 33)]
    expected = vg.Augmenter(CROP)([images[n] for n in good], ids=[100 + n for n in good])
    if ordered:
        check_equal(made, expected)
    else:
        assert sorted(id for id, _ in made) == [100 + n for n in good]
    assert sorted(id for id, _ in engine.quarantined) == [106, 133]
    assert all("ValueError" in reason for _, reason in engine.quarantined)
    list(engine.map(images[:2], on_error="skip"))
    assert engine.quarantined == []

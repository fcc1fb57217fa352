"""Arrays as a source: what is accepted, what stays where it is, and what the errors say."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.images import gray, noise, photo
from variegate.data.base import SourceError
from variegate.data.objects.arrays import open_arrays


def stack(count: int = 5, channels: int = 3) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.stack([noise(6, 7, channels, seed) for seed in range(count)])


@pytest.mark.parametrize("as_tensor", [False, True])
def test_one_array_is_stacked_and_not_copied(as_tensor: bool) -> None:
    images = stack()
    labels = np.arange(5)
    source = open_arrays(*map(torch.from_numpy, (images, labels))) if as_tensor else open_arrays(images, labels)
    assert source.is_stacked
    item = source.read(3)
    assert np.shares_memory(item.data, images)
    assert item.label == 3
    picked = source.pixels(np.array([4, 0, 4]))
    np.testing.assert_array_equal(picked, images[[4, 0, 4]])
    assert not np.shares_memory(picked, images)
    with pytest.raises(IndexError, match="index: got -1; accepted: 0 to 4"):
        source.pixels(np.array([0, -1]))


def test_gray_stacks_gain_a_channel() -> None:
    source = open_arrays(stack(channels=1)[..., 0])
    assert source.read(1).data.shape == (6, 7, 1)
    assert source.pixels(np.array([2, 1])).shape == (2, 6, 7, 1)
    np.testing.assert_array_equal(source.pixels(np.array([2]))[0], source.read(2).data)
    assert source.pixels(np.array([], np.int64)).shape == (0, 6, 7, 1)


def test_a_list_may_hold_any_sizes() -> None:
    source = open_arrays([photo(8, 9), gray(5, 4)[..., 0], torch.from_numpy(photo(3, 3)), gray(1, 1)])
    found = [source.read(i) for i in range(4)]
    assert [item.data.shape for item in found] == [(8, 9, 3), (5, 4, 1), (3, 3, 3), (1, 1, 1)]
    assert [item.label for item in found] == [-1] * 4
    with pytest.raises(TypeError, match="pixels: these images may differ in size"):
        source.pixels(np.array([0]))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([3, 1, 2], 1),
        ((0.5, 0.25, 1.0), 0.25),
        (np.array([7, 8, 9], np.uint8), 8),
        (np.array([True, False, True]), 0),
        (torch.tensor([1.5, 2.5, 3.5]), 2.5),
        ([torch.tensor(4), torch.tensor(5), torch.tensor(6)], 5),
    ],
)
def test_labels_of_many_kinds(labels: Any, expected: Any) -> None:
    label = open_arrays(stack(3), labels).read(1).label
    assert label == expected
    assert type(label) is type(expected)


def test_labels_may_be_rows_and_are_copied() -> None:
    labels = np.eye(4, dtype=np.float32)[:3]
    label = open_arrays(stack(3), labels).read(2).label
    np.testing.assert_array_equal(label, [0, 0, 1, 0])
    label[:] = 5
    np.testing.assert_array_equal(labels[2], [0, 0, 1, 0])


def test_a_memory_map_travels_as_its_name_and_a_part_of_one_as_pixels(tmp_path: Path) -> None:
    images = stack(50)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    source = open_arrays(mapped)
    assert np.shares_memory(source.read(0).data, mapped)
    pickled = pickle.dumps(source)
    assert len(pickled) < 2000 < images.nbytes
    np.testing.assert_array_equal(pickle.loads(pickled).pixels(np.arange(50)), images)
    part = pickle.loads(pickle.dumps(open_arrays(mapped[2:])))
    np.testing.assert_array_equal(part.pixels(np.arange(48)), images[2:])


def test_the_fingerprint_sees_pixels_labels_and_classes() -> None:
    images = stack()
    prints = {
        open_arrays(images).fingerprint,
        open_arrays(images, [0, 1, 0, 1, 0]).fingerprint,
        open_arrays(images, [0, 1, 0, 1, 1]).fingerprint,
        open_arrays(images, [0, 1, 0, 1, 1], ["a", "b"]).fingerprint,
        open_arrays(images[:, ::-1]).fingerprint,
        open_arrays(images.reshape(5, 7, 6, 3)).fingerprint,
    }
    assert len(prints) == 6
    assert open_arrays(list(images)).fingerprint == open_arrays(list(images.copy())).fingerprint


LONG = np.zeros((40_000, 1), np.uint8)
REFUSED: list[tuple[Any, Any, type[Exception], str]] = [
    (stack().astype(np.float64), None, TypeError, r"images: got dtype float64; accepted: uint8, uint16 or float32 "),
    (np.repeat(stack(), 11, 3), None, SourceError, r"images: got shape \(5, 6, 7, 33\); accepted: uint8"),
    (stack().transpose(0, 3, 1, 2), None, SourceError, r"\(5, 3, 6, 7\).*channels come last: transpose\(0, 2, 3, 1\)"),
    (np.empty((0, 4, 4, 3), np.uint8), None, SourceError, r"got shape \(0, 4, 4, 3\); .*not empty"),
    ([], None, SourceError, "images: got an empty list"),
    ("photo.jpg", None, TypeError, "images: got str; accepted: uint8"),
    ([photo(4, 4), photo(4, 4) / 255], None, TypeError, r"images\[1\]: got dtype float64"),
    ([photo(4, 4), photo(4, 4)[None]], None, SourceError, r"images\[1\]: got shape \(1, 4, 4, 3\)"),
    ([photo(4, 4), "b.jpg"], None, TypeError, r"images\[1\]: got str; accepted: uint8, uint16 or float32 \[H, W, 3\]"),
    (torch.zeros(2, 4, 4, 3).half(), None, TypeError, "images: got dtype float16"),
    (torch.zeros(2, 4, 4, 3, device="meta").byte(), None, TypeError, "a tensor on meta; accepted: CPU"),
    ([photo(4, 4), LONG], None, SourceError, r"images\[1\]: got shape \(40000, 1\); accepted: sides of at most 32,767"),
    (LONG[None], None, SourceError, r"images: got shape \(1, 40000, 1\); accepted: sides of at most 32,767"),
    (stack(3), [1, 2], SourceError, "labels: got 2 labels; accepted: 3 labels, one for each image"),
    (stack(3), 4, SourceError, "labels: got a single number; accepted: 3 labels"),
    (stack(3), ["a", "b", "c"], TypeError, "labels: got dtype <U1; accepted: 3 labels"),
    (stack(3), [[1], [1, 2], [3]], SourceError, "labels: arrays of different shapes; accepted: 3 labels"),
    (stack(3), [0, 2, 1], SourceError, r"labels\[1\]: got 2; accepted: 0 to 1 for 2 classes, or -1 for none"),
]


@pytest.mark.parametrize(("images", "labels", "error", "message"), REFUSED, ids=[row[-1][:40] for row in REFUSED])
def test_others_are_named(images: Any, labels: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_arrays(images, labels, classes=["a", "b"])


def test_classes_are_different_names() -> None:
    with pytest.raises(TypeError, match="classes: got 'ab'; accepted: a sequence of names"):
        open_arrays(stack(3), [0, 1, 1], classes="ab")
    with pytest.raises(SourceError, match="classes: 'a' is named twice"):
        open_arrays(stack(3), [0, 1, 1], classes=["a", "a"])

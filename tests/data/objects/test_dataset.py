"""Data sets as sources: the kinds of images and labels, names, locks, and what goes wrong inside them."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from tests.data.contract import CLASSES, FilesOfPictures, dataset_of_files, encoded, pictures
from tests.images import gray, photo
from variegate.data.objects.dataset import open_dataset
from variegate.errors import DecodeError

RGB, GRAY = photo(6, 9), gray(6, 9)


class Pairs(Dataset[Any]):
    """Not one of those that are known to bear many threads."""

    def __init__(self, samples: list[Any]) -> None:
        self.held = samples

    def __len__(self) -> int:
        return len(self.held)

    def __getitem__(self, index: int) -> Any:
        if isinstance(self.held[index], Exception):
            raise self.held[index]
        return self.held[index]


def read_one(sample: Any) -> Any:
    return open_dataset(Pairs([sample])).read(0)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.fromarray(RGB), RGB),
        (Image.fromarray(GRAY[..., 0]), GRAY),
        (Image.fromarray(GRAY[..., 0]).convert("LA"), GRAY),
        (Image.fromarray(RGB).convert("RGBA"), RGB),
        (Image.fromarray(RGB).quantize(4), np.array(Image.fromarray(RGB).quantize(4).convert("RGB"))),
        (Image.new("1", (3, 2), 1), np.full((2, 3, 1), 255, np.uint8)),
        (RGB, RGB),
        (GRAY, GRAY),
        (GRAY[..., 0], GRAY),
        (RGB[:, ::-1], RGB[:, ::-1]),
        (torch.from_numpy(RGB).permute(2, 0, 1), RGB),
        (torch.from_numpy(GRAY).permute(2, 0, 1), GRAY),
        (torch.from_numpy(GRAY[..., 0]), GRAY),
        (torch.from_numpy(RGB), RGB),  # [6, 9, 3]: no channels in front
        (torch.from_numpy(RGB[:3, :, :]), RGB[:3].transpose(1, 2, 0)),  # [3, 9, 3]: in front where they may be
    ],
)
def test_images_become_pixels(image: Any, expected: Any) -> None:
    if isinstance(image, torch.Tensor) and tuple(image.shape) == (3, 9, 3):
        assert read_one((image, 0)).data.shape == expected.shape == (9, 3, 3)
    data = read_one((image, 0)).data
    assert data.dtype == np.uint8
    np.testing.assert_array_equal(data, expected)


def test_encoded_bytes_stay_bytes(tmp_path: Path) -> None:
    data = encoded(Image.fromarray(RGB), "PNG")
    (tmp_path / "x.png").write_bytes(data)
    for image in (data, bytearray(data), {"bytes": data, "path": None}, {"bytes": None, "path": tmp_path / "x.png"}):
        assert read_one((image, 0)).data == data


def test_the_exif_orientation_is_the_owners_business() -> None:
    with Image.open(io.BytesIO(pictures()[5].data)) as image:
        assert read_one((image, 0)).data.shape == (20, 30, 3)


@pytest.mark.parametrize(
    ("sample", "label"),
    [
        ((RGB, 3), 3),
        ([RGB, 3, "more", {}], 3),
        ({"image": RGB, "label": 4}, 4),
        ({"img": RGB, "fine_label": 5, "coarse_label": 1}, 5),
        ((RGB, np.int32(6)), 6),
        ((RGB, torch.tensor(7)), 7),
        ((RGB, 0.5), 0.5),
        ((RGB, torch.tensor(0.25)), 0.25),
        ((RGB, None), -1),
        ({"image": RGB}, -1),
        ((RGB,), -1),
        (RGB, -1),
    ],
)
def test_samples_and_labels(sample: Any, label: Any) -> None:
    got = read_one(sample).label
    assert got == label
    assert type(got) is type(label)


def test_labels_may_be_arrays() -> None:
    for label in ([0, 1, 0], torch.tensor([0, 1, 0]), np.array([0, 1, 0])):
        np.testing.assert_array_equal(read_one((RGB, label)).label, [0, 1, 0])


@pytest.mark.parametrize(
    ("sample", "error", "message"),
    [
        ((torch.rand(3, 4, 4), 0), TypeError, "Pairs: item 0: got an image of dtype torch.float32; .*Leave ToTensor"),
        ((RGB / 255, 0), TypeError, "Pairs: item 0: got an image of dtype float64; accepted: uint8"),
        (("x.jpg", 0), TypeError, "Pairs: item 0: got str for an image; accepted: a PIL image"),
        ((RGB, "dog"), TypeError, "got the label 'dog'; accepted: an int, a float, an array or list of numbers$"),
        ((RGB, object()), TypeError, "got object for a label; accepted: an int"),
        ({"pixels": RGB, "y": 1}, TypeError, "got a dict with 'pixels', 'y'; accepted: "),
        ((), TypeError, "got an empty tuple; accepted: "),
        (ValueError("bad row"), DecodeError, "^Pairs: item 0: ValueError: bad row$"),
        (DecodeError("a.jpg", "truncated"), DecodeError, "^Pairs: item 0: truncated$"),
        ((np.zeros((4, 4, 33), np.uint8), 0), DecodeError, r"item 0: got shape \(4, 4, 33\); accepted: a PIL image"),
        ((torch.zeros(33, 40, 40, dtype=torch.uint8), 0), DecodeError, r"got shape \(33, 40, 40\)"),
        ((Image.open(io.BytesIO(pictures()[0].data[:900])), 0), DecodeError, "item 0: truncated"),
        ({"image": {"bytes": None, "path": "gone.png"}}, DecodeError, r"Pairs: item 0: gone\.png: no such file"),
    ],
)
def test_other_samples_are_named(sample: Any, error: type[Exception], message: str) -> None:
    """What is of another kind is the caller's mistake; what is damaged is one bad sample."""
    with pytest.raises(error, match=message):
        read_one(sample)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(())


class Endless:
    def __getitem__(self, index: int) -> Any:
        return RGB


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Stream(), "dataset: got Stream, an IterableDataset; accepted: a map-style data set"),
        (Endless(), "dataset: got Endless, which has no length"),
        (iter([RGB]), "dataset: got list_iterator; accepted"),
        ({"train": [], "test": []}, "dataset: got dict with the keys 'train', 'test'; accepted: .*one value of it"),
        ("folder", "dataset: got str; accepted"),
    ],
)
def test_only_what_can_be_indexed(dataset: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        open_dataset(dataset)


def test_files_give_the_names_through_subsets(tmp_path: Path) -> None:
    files = dataset_of_files(tmp_path / "data", pictures()).source.store.dataset  # type: ignore[attr-defined]
    source = open_dataset(Subset(Subset(files, [4, 2, 0]), [2, 1]))
    assert source.classes == CLASSES
    assert [source.name(i).file for i in range(2)] == [str(tmp_path / "data" / name) for name in ("000", "002")]
    other = open_dataset(Subset(Subset(files, [4, 2, 0]), [1, 2]))
    assert source.fingerprint != other.fingerprint
    assert source.read(1).label == 1


def test_labels_that_are_known_are_in_the_fingerprint() -> None:
    images = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    prints = {open_dataset(TensorDataset(images, torch.tensor(labels))).fingerprint for labels in ([0, 1], [1, 1])}
    prints |= {open_dataset([(RGB, 0), (RGB, label)]).fingerprint for label in (0, 1)}
    assert len(prints) == 4


class Feature:
    names = ("ant", "bee")


def test_classes_of_hugging_face_features_name_strings() -> None:
    dataset = Pairs([{"image": RGB, "label": "bee"}, {"image": RGB, "label": "wasp"}])
    dataset.features = {"image": object(), "label": Feature()}  # type: ignore[attr-defined]
    source = open_dataset(dataset)
    assert source.classes == ("ant", "bee")
    assert source.read(0).label == 1
    with pytest.raises(TypeError, match="got the label 'wasp'; accepted: one of the classes ant, bee"):
        source.read(1)


def test_a_data_set_is_locked_unless_its_samples_are_known_to_be_apart(tmp_path: Path) -> None:
    def is_locked(dataset: Any, lock: bool | None = None) -> bool:
        store: Any = open_dataset(dataset, lock=lock).store
        return bool(store.is_locked)

    assert is_locked(Pairs([RGB]))
    assert not is_locked(Pairs([RGB]), lock=False)
    assert is_locked([RGB], lock=True)
    assert not is_locked([RGB])
    assert not is_locked(TensorDataset(torch.zeros(1, 3, 4, 4)))
    assert not is_locked(FilesOfPictures(tmp_path, [("a.jpg", 0)]))
    assert is_locked(Subset(Pairs([RGB]), [0]))


class Seeking(Pairs):
    """Goes wrong where two threads are inside at once; ``meet`` has the second wait for the first."""

    def __init__(self, meet: threading.Barrier | None) -> None:
        super().__init__([RGB] * 8)
        self.meet, self.inside, self.most = meet, 0, 0

    def __getitem__(self, index: int) -> Any:
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.meet is not None:
            self.meet.wait(10)
        self.inside -= 1
        return super().__getitem__(index)


@pytest.mark.parametrize("lock", [None, False])
def test_the_lock_lets_one_thread_in(lock: bool | None) -> None:
    # Without a lock, the two meet inside; with one, they could not, and would wait for each other in vain.
    dataset = Seeking(threading.Barrier(2) if lock is False else None)
    source = open_dataset(dataset, lock=lock)
    threads = [threading.Thread(target=lambda: [source.read(i) for i in range(8)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dataset.most == (2 if lock is False else 1)

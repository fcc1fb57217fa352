"""Variegate in a torch DataLoader: the same pixels whoever makes them, and never the same random numbers twice."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

import variegate as vg
from tests.images import PHOTOS, gray, photo
from variegate import transforms as T

POLICY = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.RandAugment(2, 9)])
FLOATS = T.Compose([POLICY, T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)])
# Two images that noise makes of one photo are never equal, which two crops by chance may be.
NOISE = T.GaussianNoise(sigma=0.1)


class Photos(Dataset[Any]):
    """16 photos of four sizes; ``transform`` as torchvision's data sets take it."""

    classes = PHOTOS

    def __init__(self, transform: Any = None, with_id: bool = False) -> None:
        self.transform = transform
        self.with_id = with_id

    def __len__(self) -> int:
        return 16

    def image(self, i: int) -> Any:
        return photo(30 + i % 4, 40, PHOTOS[i % 4])

    def __getitem__(self, i: int) -> tuple[Any, int]:
        if not 0 <= i < 16:
            raise IndexError(i)
        image = self.image(i)
        if self.transform is not None:
            image = self.transform(image, id=i) if self.with_id else self.transform(image)
        return image, i % 4


class SamePhoto(Photos):
    """One photo over and over: what differs is chance."""

    def image(self, i: int) -> Any:
        return photo(16, 16)


def images_of(loader: Any) -> list[torch.Tensor]:
    return [image for images, _ in loader for image in images]


def distinct(images: list[torch.Tensor]) -> int:
    return len({image.numpy().tobytes() for image in images})


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def load(dataset: Any, workers: int = 0, collate: Any = None, **arguments: Any) -> DataLoader[Any]:
    return DataLoader(dataset, 4, num_workers=workers, collate_fn=collate, **arguments)


# -- as_transform: one image -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "channels"),
    [
        (photo(30, 40), 3),
        (gray(30, 40), 1),
        (gray(30, 40)[:, :, 0], 1),
        (torch.from_numpy(photo(30, 40)).permute(2, 0, 1), 3),
        (torch.from_numpy(photo(30, 40)).permute(2, 0, 1).contiguous(), 3),
        (torch.from_numpy(photo(30, 40)), 3),
        (torch.from_numpy(gray(30, 40)[:, :, 0]), 1),
        (Image.fromarray(photo(30, 40)), 3),
        (Image.fromarray(gray(30, 40)[:, :, 0]), 1),
    ],
    ids=["HWC", "HW1", "HW", "CHW view", "CHW", "HWC tensor", "HW tensor", "PIL", "PIL gray"],
)
def test_every_form_of_an_image_gives_the_same_tensor(image: Any, channels: int) -> None:
    pixels = photo(30, 40) if channels == 3 else gray(30, 40)
    expected = vg.Augmenter(FLOATS, seed=5)([pixels], ids=[7])[0]
    got = vg.as_transform(FLOATS, seed=5)(image, id=7)
    assert got.shape == (channels, 24, 24)
    assert got.dtype == torch.float32
    assert torch.equal(got, expected)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "La", "P", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "LAB", "HSV"])
def test_every_mode_of_pillow(mode: str) -> None:
    # A palette has gray ramps of its own: of equal pixels "P" means another image than "L".
    image = Image.fromarray(photo(9, 7))
    image = image.quantize(16) if mode == "P" else Image.frombytes(mode, (7, 9), _bytes(mode))
    out = vg.as_transform(T.Pad(0), layout="NHWC")(image)
    is_gray = mode in ("1", "L", "LA", "La")
    plain = image.convert("LA") if mode == "La" else image
    expected = np.asarray(plain.convert("L" if is_gray else "RGB")).reshape(9, 7, -1)
    np.testing.assert_array_equal(out.numpy(), expected)


def _bytes(mode: str) -> bytes:
    count = 9 if mode == "1" else 63 * len(Image.new(mode, (1, 1)).getbands())
    return np.random.default_rng(0).integers(0, 256, count, dtype=np.uint8).tobytes()


def test_16_bits_are_kept() -> None:
    values = np.array([[0, 100, 257], [300, 30000, 65535]], np.uint16)
    np.testing.assert_array_equal(vg.as_transform(T.Pad(0))(Image.fromarray(values)).numpy(), values[None])


def test_the_bytes_of_a_file_are_decoded() -> None:
    file = io.BytesIO()
    Image.fromarray(photo(9, 7)).save(file, "PNG")
    for image in (file.getvalue(), {"bytes": file.getvalue(), "path": None}):
        np.testing.assert_array_equal(vg.as_transform(T.Pad(0), layout="NHWC")(image).numpy(), photo(9, 7))
    with pytest.raises(vg.DecodeError, match="image: "):
        vg.as_transform(POLICY)(b"no image")


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (
            torch.rand(3, 8, 8).double(),
            TypeError,
            r"image: got .* torch.float64; accepted: uint8 or uint16 or float32\. Leave ToTensor",
        ),
        (
            np.zeros((8, 8, 3)),
            TypeError,
            r"image: got an image of dtype float64; accepted: uint8 or uint16 or float32\. Leave",
        ),
        (np.zeros((3, 8, 8), np.uint8), ValueError, r"image: got shape \(3, 8, 8\); accepted: a PIL image"),
        (np.zeros((0, 8, 3), np.uint8), ValueError, r"image: got shape \(0, 8, 3\)"),
        ("cat.jpg", TypeError, "image: got str for an image; accepted: a PIL image"),
    ],
)
def test_other_images_are_refused(image: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        vg.as_transform(POLICY)(image)


def test_a_transform_takes_what_the_augmenter_takes() -> None:
    out = vg.as_transform(FLOATS, dtype="bfloat16", layout="NHWC", geometry="exact")(photo(30, 40))
    assert (out.shape, out.dtype) == ((24, 24, 3), torch.bfloat16)
    with pytest.raises(ValueError, match="layout: got 'CHW'; accepted: one of 'NCHW', 'NHWC'"):
        vg.as_transform(FLOATS, layout="CHW")
    with pytest.raises(ValueError, match="accepted: integers from 0 to"):
        vg.as_transform(FLOATS)(photo(), id=-1)
    chosen = T.Cond(by="label", cases={1: T.Invert()})
    white = vg.as_transform(chosen)(np.zeros((2, 2), np.uint8), conditions={"label": 1})
    assert white.min() == 255


def test_chance_comes_from_id_and_epoch_and_no_global_generator() -> None:
    transform = vg.as_transform(NOISE, seed=1)
    torch.manual_seed(0)
    np.random.seed(0)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    first, second = transform(photo()), transform(photo())
    assert not torch.equal(first, second)
    assert torch.equal(transform(photo(), id=1), second)
    transform.set_epoch(1)
    assert transform.epoch == 1
    assert torch.equal(transform(photo(), id=1), vg.Augmenter(NOISE, seed=1)([photo()], ids=[1], epoch=1)[0])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]
    for epoch in (-1, 1.5, True, 1 << 63):
        with pytest.raises(ValueError, match=r"epoch: got .*; accepted: an integer from 0 to 2\*\*63 - 1"):
            transform.set_epoch(epoch)  # type: ignore[arg-type]


def test_copies_do_not_share_what_they_count() -> None:
    transform = vg.as_transform(NOISE)
    transform.set_epoch(3)
    first = transform(photo())
    for other in (pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)):
        assert other.epoch == 3
        assert torch.equal(other(photo()), first)
        other.set_epoch(4)
        assert transform.epoch == 3


# -- as_transform: workers ---------------------------------------------------------------------------------------------


@pytest.mark.process
def test_workers_never_repeat_one_another_nor_an_epoch_until_a_seed_repeats_the_run() -> None:
    def run(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        loader = load(SamePhoto(vg.as_transform(NOISE)), workers=2)
        return images_of(loader) + images_of(loader)

    first = run(0)
    assert same(run(0), first)
    assert distinct(first + run(1)) == 64
    # Whatever the transform was used for before.
    transform = vg.as_transform(NOISE)
    transform(photo())
    torch.manual_seed(0)
    assert same(images_of(load(SamePhoto(transform), workers=2)), first[:16])


@pytest.mark.process
def test_an_id_makes_workers_irrelevant() -> None:
    transform = vg.as_transform(POLICY, seed=2)
    expected = [vg.Augmenter(POLICY, seed=2)([Photos().image(i)], ids=[i])[0] for i in range(16)]
    for workers in (0, 2):
        assert same(images_of(load(Photos(transform, with_id=True), workers)), expected)


# -- Collate -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.process)])
def test_a_batch_with_ids_is_the_augmenters(workers: int) -> None:
    collate = vg.Collate(FLOATS, seed=9)
    aug = vg.Augmenter(FLOATS, seed=9)
    loader = load(vg.WithIds(Photos()), workers, collate)
    for epoch in (0, 5):
        collate.set_epoch(epoch)
        for step, (images, labels) in enumerate(loader):
            ids = range(4 * step, 4 * step + 4)
            assert torch.equal(images, aug([Photos().image(i) for i in ids], ids=ids, epoch=epoch))
            assert labels.tolist() == [0, 1, 2, 3]
            assert labels.dtype == torch.int64


@pytest.mark.process
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_epoch_reaches_workers_that_run_already(method: str) -> None:
    collate = vg.Collate(NOISE, seed=9)
    arguments = {"persistent_workers": True, "multiprocessing_context": method}
    loader = load(vg.WithIds(SamePhoto()), 1 if method == "spawn" else 2, collate, **arguments)
    by_epoch: dict[int, Any] = {}
    for epoch in (0, 1, 0):
        collate.set_epoch(epoch)
        images = images_of(loader)
        assert same(by_epoch.setdefault(epoch, images), images)
        expected = vg.Augmenter(NOISE, seed=9)([SamePhoto().image(0)] * 16, ids=range(16), epoch=epoch)
        assert same(images, list(expected))
    assert distinct(by_epoch[0] + by_epoch[1]) == 32


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from (({"image": photo(16, 16), "label": 0.5}) for _ in range(8))


@pytest.mark.process
def test_without_ids_no_batch_repeats_another() -> None:
    collate = vg.Collate(NOISE)
    torch.manual_seed(0)
    loader = load(SamePhoto(), 2, collate)
    first = images_of(loader)
    assert distinct(first + images_of(loader) + images_of(load(SamePhoto(), 0, collate))) == 48
    torch.manual_seed(0)
    assert same(images_of(load(SamePhoto(), 2, vg.Collate(NOISE))), first)
    # Persistent workers, which keep the seed that they were given.
    persistent = load(SamePhoto(), 2, vg.Collate(NOISE), persistent_workers=True)
    assert distinct(images_of(persistent) + images_of(persistent)) == 32
    # A stream of dicts, of which each worker reads the whole.
    batches = list(load(Stream(), 2, vg.Collate(NOISE)))
    assert distinct([image for images, _ in batches for image in images]) == 16
    assert batches[0][1].tolist() == [0.5] * 4


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, np.int32(2)], torch.tensor([1, 2])),
        ([1, 2.5], torch.tensor([1, 2.5])),
        ([True, np.False_], torch.tensor([True, False])),
        ([torch.tensor(3), torch.tensor(4)], torch.tensor([3, 4])),
        ([np.array([0, 1.0]), np.array([1.0, 0])], torch.tensor([[0, 1], [1, 0]], dtype=torch.float64)),
    ],
)
def test_labels_become_a_tensor(labels: list[Any], expected: torch.Tensor) -> None:
    images, got = vg.Collate(POLICY)([(photo(), label) for label in labels])
    assert images.shape == (2, 3, 24, 24)
    assert got.dtype == expected.dtype
    assert torch.equal(got, expected)


def test_other_labels_stay_what_they_are() -> None:
    collate = vg.Collate(POLICY)
    assert collate([(photo(), "cat"), (photo(), None)])[1] == ["cat", None]
    assert collate([(photo(), {"kind": 1}), (photo(), {"kind": 2})])[1]["kind"].tolist() == [1, 2]


def test_labels_choose_for_cond() -> None:
    black = np.zeros((4, 5, 3), np.uint8)
    collate = vg.Collate(T.Cond(by="label", cases={1: T.Invert()}))
    images, _ = collate([(black, label) for label in (0, 1, 2, 1)])
    assert images.amax(dim=(1, 2, 3)).tolist() == [0, 255, 0, 255]
    with pytest.raises(ValueError, match="no value 'label' was given"):
        collate([(black, "cat")])


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([], ValueError, "items: got none; accepted: at least one"),
        (
            [photo()],
            TypeError,
            r"items\[0\]: got a ndarray; accepted: \(image, label\), \(image, label, id\), or a dict",
        ),
        ([(photo(),)], TypeError, r"items\[0\]: got a tuple of 1; accepted"),
        ([{"image": photo(), "target": 1}], TypeError, r"items\[0\]: got a dict with 'image', 'target'; accepted"),
        ([(photo(), 1, 2), (photo(), 1)], ValueError, r"items\[1\]: got no id where others have one"),
        ([(photo(), 1, "a")], ValueError, r"items\[0\]: got the id 'a'; accepted: an integer from 0 to 2\*\*64 - 1"),
        (
            [(photo(), 1), (torch.rand(3, 4, 4).double(), 1)],
            TypeError,
            r"the image of items\[1\]: got .*float64.*Leave",
        ),
        ([(photo(), np.zeros(2)), (photo(), np.zeros(3))], ValueError, r"items\[1\]: got \(3,\) where items\[0\] has"),
    ],
)
def test_other_items_are_refused(items: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        vg.Collate(POLICY)(items)


def test_threads_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    from variegate.interop import torch_data

    collate, four = vg.Collate(POLICY), vg.Collate(POLICY, num_threads=4)
    assert collate._get_augmenter().num_threads is None
    monkeypatch.setattr(torch_data, "get_worker_info", lambda: object())
    assert collate._get_augmenter().num_threads == 1
    assert four._get_augmenter().num_threads == 4


def test_a_gpu_is_not_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from variegate.interop import torch_data

    collate = vg.Collate(POLICY)
    collate._device = "cuda:0"
    monkeypatch.setattr(torch_data, "get_worker_info", lambda: object())
    with pytest.raises(
        ValueError, match="device: got 'cuda:0' in a worker process of a DataLoader; accepted there: 'cpu'"
    ):
        collate([(photo(), 0)])


@pytest.mark.gpu
def test_a_batch_on_a_gpu() -> None:
    images, labels = vg.Collate(POLICY, device="cuda")([(photo(), 1, 4)])
    assert images.device.type == "cuda"
    assert torch.equal(images.cpu(), vg.Collate(POLICY)([(photo(), 1, 4)])[0])
    assert labels.device.type == "cpu"


# -- WithIds -----------------------------------------------------------------------------------------------------------


def test_with_ids_adds_the_index() -> None:
    dataset = vg.WithIds(Photos())
    assert len(dataset) == 16
    assert dataset[5][1:] == (1, 5)
    assert dataset[np.int64(-1)][1:] == (3, 15)
    assert [item[1:] for item in dataset.__getitems__([2, 0])] == [(2, 2), (0, 0)]
    assert [item[2] for item in Subset(dataset, [7, 3]).__getitems__([0, 1])] == [7, 3]
    assert dataset.classes == PHOTOS
    assert pickle.loads(pickle.dumps(dataset)).classes == PHOTOS
    assert copy.copy(dataset)[1][2] == 1
    with pytest.raises(IndexError, match="index: got 16; accepted: -16 to 15"):
        dataset[16]
    with pytest.raises(AttributeError, match="no attribute 'samples'"):
        _ = dataset.samples


def test_with_ids_fetches_a_batch_at_once_where_the_data_set_can() -> None:
    class AtOnce(Photos):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [("at once", i) for i in indices]

    assert vg.WithIds(AtOnce()).__getitems__([3, 1]) == [("at once", 3, 3), ("at once", 1, 1)]


def test_with_ids_takes_dicts_and_refuses_the_rest() -> None:
    assert vg.WithIds([{"image": 1, "label": 2}])[0] == {"image": 1, "label": 2, "id": 0}
    with pytest.raises(TypeError, match=r"dataset\[0\]: got a tuple of 3; accepted: \(image, label\), or a dict"):
        vg.WithIds([(1, 2, 3)])[0]
    with pytest.raises(TypeError, match="dataset: got Stream; accepted: a map-style data set"):
        vg.WithIds(Stream())


def test_collate_mixes_within_the_batch() -> None:
    images = [np.full((8, 8, 3), 10 * n, np.uint8) for n in range(4)]
    made, labels = vg.Collate(T.MixUp(num_classes=4))([(image, n) for n, image in enumerate(images)])
    assert isinstance(made, torch.Tensor)
    assert made.shape == (4, 3, 8, 8)
    assert labels.shape == (4, 4)
    for n in range(4):
        share = labels[n, n].item()
        assert abs(made[n, 0, 0, 0].item() - (10 * n * share + 10 * ((n - 1) % 4) * (1 - share))) <= 0.5

"""Boxes, masks and key points in the batches of a loader: those that an ``Augmenter`` gives, beside the same images."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.data.annotated.made import put_coco
from tests.loader.loading import load
from tests.loader.samples import MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.data.base import Item
from variegate.errors import DecodeError
from variegate.loader import TargetBatch

CROP = T.Compose([T.RandomResizedCrop(24, scale=(0.5, 1.0)), T.RandomHorizontalFlip(), T.ColorJitter(0.4)])
BY_BOXES = T.Compose([T.RandomHorizontalFlip(), T.RandomIoUCrop(), T.SanitizeBoundingBoxes(2), T.Resize((24, 24))])
MIXERS = [T.Mosaic(num_classes=2), T.CutMix(num_classes=2), T.MixUp(num_classes=2)]


def size_of(index: int) -> tuple[int, int]:
    return 40 + index % 7, 48 + index % 5


def targets_of(index: int) -> dict[str, Any]:
    """As many boxes as the index says, modulo 3, a mask of the first and two key points of each."""
    height, width = size_of(index)
    boxes = np.array([[2 + k, 3, 20 + 5 * k, 30] for k in range(index % 3)], np.float32).reshape(-1, 4)
    mask = np.zeros((height, width), np.uint8)
    mask[3:30, 2:20] = len(boxes)
    points = np.array([[[left, 3, 2], [8, 8, 2]] for left in boxes[:, 0]], np.float32).reshape(-1, 2, 3)
    return {"boxes": boxes, "labels": np.arange(len(boxes)), "keypoints": points, "mask": mask}


class AnnotatedMemory(MemorySource):
    """``wrong``: changes to what belongs to some images; None for nothing at all."""

    has_targets = True

    def __init__(self, number: int, broken: dict[int, Any] | None = None, wrong: dict[int, Any] | None = None) -> None:
        super().__init__(number, broken)
        self.wrong = wrong or {}

    def read(self, index: int) -> Item:
        data, label = super().read(index)
        change = self.wrong.get(index, {})
        return Item(data, label, None if change is None else targets_of(index) | change)


def plain(value: Any) -> Any:
    """Fit to be compared by ==."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype, value.numpy().tobytes()
    return [plain(each) for each in value] if isinstance(value, list) else value


def rows(loader: vg.Loader) -> dict[tuple[int, int], dict[str, Any]]:
    """What each sample has, by id and copy, without those that are padding."""
    found = {}
    for batch in loader:
        for n, key in enumerate(zip(batch.ids.tolist(), batch.copies.tolist(), strict=True)):
            if not batch.padding[n]:
                assert key not in found
                found[key] = {name: plain(values[n]) for name, values in batch.items()}
    return found


def decoded(index: int) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg(index)), formats=["JPEG", "PNG"]))


def test_a_batch_has_what_an_augmenter_gives() -> None:
    loader = load(AnnotatedMemory(6), CROP, shuffle=False, seed=3)
    augmenter = vg.Augmenter(CROP, device="cpu", seed=3)
    samples = [{"image": decoded(i), **targets_of(i), "label": i % 2} for i in range(4)]
    expected = augmenter(samples, ids=[1000, 1001, 1002, 1003])
    batch = next(iter(loader))
    assert isinstance(batch, TargetBatch)
    assert list(batch) == ["image", "boxes", "labels", "keypoints", "mask", "label"]
    assert batch["image"].shape == (4, 3, 24, 24)
    assert batch["mask"].shape == (4, 24, 24)
    assert batch["label"].tolist() == [0, 1, 0, 1]
    for n, sample in enumerate(expected):
        for key in ("boxes", "labels", "keypoints", "mask"):
            assert plain(batch[key][n]) == plain(sample[key]), key
    assert sum(map(len, batch["boxes"])) >= 3
    assert loader.stats().augment.samples >= 4


@pytest.mark.parametrize("transform", [CROP, *MIXERS], ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("options", [{}, {"cache": "host"}], ids=["files", "cache"])
def test_images_are_those_without_targets(transform: Any, options: dict[str, Any]) -> None:
    t = transform if transform is CROP else T.Compose([T.Resize((24, 24)), transform])
    annotated = load(AnnotatedMemory(9), t, **options)
    alone = load(AnnotatedMemory(9), t, targets=False, **options)
    for _ in range(2):  # the second epoch from the cache
        for batch, (images, labels) in zip(annotated, alone, strict=True):
            assert torch.equal(batch.images, images)
            assert torch.equal(batch["label"], labels)
            assert [len(boxes) for boxes in batch["boxes"]] == [len(labels) for labels in batch["labels"]]


@pytest.mark.parametrize("first", [T.Resize((24, 24)), BY_BOXES], ids=["resize", "by boxes"])
def test_partners_bring_their_boxes(first: T.Transform) -> None:
    mosaic = T.Compose([first, T.Mosaic(num_classes=2), T.SanitizeBoundingBoxes(2)])
    loader = load(AnnotatedMemory(9), mosaic, shuffle=False)
    batch = loader.batch(0)
    partners = [loader.partners(n) for n in range(4)]
    augmenter = loader.augmenter
    for n in range(4):
        indices = [n, *(i - 1000 for i in partners[n])]
        samples = [{"image": decoded(i), **targets_of(i), "label": i % 2} for i in indices]
        [result] = augmenter(samples, ids=[1000 + i for i in indices], partners=[[1, 2, 3]])
        for key in ("boxes", "labels", "keypoints", "mask"):
            assert plain(batch[key][n]) == plain(result[key]), key


def test_objects_of_partners_and_conditions_by_classes(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    source = vg.open_source(tmp_path / "images", annotations=f"{file},mask=each")
    flip = T.Cond(by="objects", any_of=[source.classes[0]], then=T.RandomHorizontalFlip(1.0))
    t = T.Compose([flip, T.CopyPaste(share=1.0)])
    options: dict[str, Any] = {"batch_size": 2, "device": "cpu", "seed": 2}
    found = rows(vg.Loader(source, t, **options))
    assert rows(vg.Loader(source, t, **(options | {"batch_size": 3}), num_threads=1, shuffle=False)) == found
    with pytest.raises(ValueError, match="Cond: got the class 'text'; accepted: the source's classes"):
        next(iter(vg.Loader(source, T.Cond(by="objects", any_of=["text"], then=flip), **options)))


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_transforms_that_choose_by_boxes_want_them(on_error: str) -> None:
    loader = load(AnnotatedMemory(4), BY_BOXES, targets=False, on_error=on_error)
    with pytest.raises(TypeError, match=r"RandomIoUCrop: got images without boxes.*accepted: .*a source with annot"):
        next(iter(loader))


def test_padded() -> None:
    source = AnnotatedMemory(4)
    batch = next(iter(load(source, T.Resize((32, 32)), shuffle=False, targets=vg.Targets(padded=True))))
    lists = next(iter(load(source, T.Resize((32, 32)), shuffle=False)))
    assert batch["count"].tolist() == [0, 1, 2, 0]
    assert batch["boxes"].shape == (4, 2, 4)
    assert batch["labels"].tolist() == [[-1, -1], [0, -1], [0, 1], [-1, -1]]
    assert batch["keypoints"].shape == (4, 2, 2, 3)
    assert batch["boxes"][1, 1].tolist() == [0, 0, 0, 0]
    for n, count in enumerate(batch["count"].tolist()):
        assert torch.equal(batch["boxes"][n, :count], lists["boxes"][n])
    with pytest.raises(ValueError, match="padded=True; accepted: False"):
        vg.Augmenter(CROP, device="cpu")([{"image": decoded(0)}], targets=vg.Targets(padded=True))


WRONG = [
    ({"boxes": np.array([[5, 5, 2, 9]], np.float32)}, r"5\.jpg: sample\['boxes'\]\[0\]: got \[5.0, 5.0, 2.0, 9.0\]"),
    ({"mask": np.zeros((4, 4), np.uint8)}, r"5\.jpg: sample\['mask'\]: got shape \(4, 4\)"),
    ({"labels": np.arange(9)}, r"5\.jpg: sample\['labels'\]: got 9 for 2 boxes"),
    ({"mask": np.zeros((45, 48), np.float32)}, r"5\.jpg: sample\['mask'\]: got float32"),
    ({"unknown": 1}, r"5\.jpg: sample: got the key 'unknown'"),
    (None, r"5\.jpg: has no targets"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG)
@pytest.mark.parametrize("mixer", [None, MIXERS[1]], ids=["alone", "mixed"])
def test_wrong_targets_are_a_bad_sample(change: Any, message: str, mixer: Any) -> None:
    t = CROP if mixer is None else T.Compose([T.Resize((24, 24)), mixer])
    source = AnnotatedMemory(8, wrong={5: change}, broken={2: b"no image", 6: jpeg(6)[:300]})
    with pytest.raises(DecodeError, match=r"5\.jpg" if mixer else message):
        list(load(replace_broken(source), t, shuffle=False))
    skipping = load(source, t, on_error="skip")
    good = rows(skipping)
    assert sorted(key - 1000 for key, _ in good) == [0, 1, 3, 4, 7]
    [told] = [error for error in skipping.errors if error.member == "5.jpg"]
    assert message.split(": ", 1)[1].replace("\\", "")[:6] in told.reason
    if mixer is None:
        assert good == {key: row for key, row in rows(load(AnnotatedMemory(8), t)).items() if key in good}
    replacing = load(source, t, on_error="replace")
    assert all(len(batch.ids) == 4 and len(batch["boxes"]) == 4 for batch in replacing)


def test_samples_have_the_same_keys() -> None:
    source = AnnotatedMemory(8, wrong={5: {"masks": np.zeros((2, *size_of(5)), np.uint8)}})
    loader = load(source, CROP, shuffle=False, on_error="skip")
    assert [batch.ids.tolist() for batch in loader] == [[1000, 1001, 1002, 1003], [1004, 1006, 1007]]
    [told] = loader.errors
    assert "'masks', most of its batch 'boxes', 'keypoints', 'labels', 'mask'; accepted" in told.reason


def test_masks_have_names_in_all_samples_or_in_none() -> None:
    source = AnnotatedMemory(8, wrong={5: {"mask": {"depth": np.zeros(size_of(5), np.uint8)}}})
    loader = load(source, CROP, shuffle=False, on_error="skip")
    assert sorted(key - 1000 for key, _ in rows(loader)) == [0, 1, 2, 3, 4, 6, 7]
    [told] = loader.errors
    assert "'mask' with the names ['depth'], and most of its batch 'mask' without names" in told.reason


def replace_broken(source: AnnotatedMemory) -> AnnotatedMemory:
    """Its files as they should be."""
    return AnnotatedMemory(source.number, wrong=source.wrong)


def test_shards_have_targets() -> None:
    class Shards(MemoryShards):
        def __init__(self, number: int) -> None:
            super().__init__(number)
            self.samples = AnnotatedMemory(number)

    assert rows(load(Shards(9), CROP, targets=vg.Targets())) == rows(load(AnnotatedMemory(9), CROP))


def test_annotated_folders_have_targets_by_default(tmp_path: Path) -> None:
    from tests.data.annotated.made import put_coco

    file = put_coco(tmp_path)
    source = vg.open_source(tmp_path / "images", annotations={"file": file, "mask": "each"}, exclude=["b.png"])
    [batch] = load(source, T.Resize((20, 20)), shuffle=False)
    assert list(batch) == ["image", "boxes", "labels", "masks"]
    assert [tuple(masks.shape) for masks in batch["masks"]] == [(2, 20, 20), (1, 20, 20)]
    assert batch["boxes"][1].tolist() == [[0, 0, 20, pytest.approx(4.8)]]
    annotations = {"file": file, "mask": "each"}
    named = load(tmp_path / "images", T.Resize((20, 20)), shuffle=False, annotations=annotations)
    for loader in (named, pickle.loads(pickle.dumps(named))):
        assert next(iter(loader))["boxes"][0].tolist() == batch["boxes"][0].tolist()
    [(images, labels)] = load(source, T.Resize((20, 20)), shuffle=False, targets=False)
    assert torch.equal(images, batch.images)
    assert labels.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"views": 2}, "views: got a MultiView"),
        ({"cache": "host", "cache_side": 32}, "cache_side: got 32 with targets"),
        ({"cache": "folder"}, "cache: got 'folder' with targets"),
        ({"targets": True}, "targets: got True"),
        ({"targets": {"clip": True}}, r"targets: got \{'clip': True\}"),
    ],
)
def test_what_does_not_go_with_targets_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match=message):
        load(AnnotatedMemory(4), CROP, **options)


def test_a_source_without_targets() -> None:
    with pytest.raises(DecodeError, match=r"\.jpg: has no targets"):
        list(load(MemorySource(4), CROP, targets=vg.Targets()))
    with pytest.raises(ValueError, match="transform: got 5 crops of 8x8 for samples"):
        list(load(AnnotatedMemory(4), T.Compose([T.Resize((24, 24)), T.FiveCrop(8)])))


def test_a_batch_is_made_anew_and_copied() -> None:
    batch = next(iter(load(AnnotatedMemory(4), CROP)))
    again = pickle.loads(pickle.dumps(batch))
    assert isinstance(again, TargetBatch)
    assert again.ids.tolist() == batch.ids.tolist()
    assert again.keys() == batch.keys()
    assert type(batch)({"image": batch["image"]}).images is batch["image"]

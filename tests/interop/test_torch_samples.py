"""Samples with boxes and masks through transforms that are called, ``vg.as_transform`` and ``vg.Collate``."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import variegate as vg
from tests.images import photo
from variegate import transforms as T

HEIGHT, WIDTH = 40, 60
RGB = photo(HEIGHT, WIDTH)
FLIP = T.RandomHorizontalFlip(1.0)
RANDOM = T.Compose([T.RandomAffine(20, scale=(0.7, 1.3)), T.RandomHorizontalFlip(), T.ColorJitter(0.4)])
BOX, FLIPPED = [10, 5, 30, 25], [30, 5, 50, 25]
LABELLED = {"boxes": [BOX], "labels": [3]}


def mask() -> Any:
    made = np.zeros((HEIGHT, WIDTH), np.uint8)
    made[5:25, 10:30] = 1
    return made


@pytest.mark.parametrize("image", [RGB, Image.fromarray(RGB), torch.from_numpy(RGB).permute(2, 0, 1)])
def test_a_dict_comes_back_as_a_dict(image: Any) -> None:
    result = FLIP({"image": image, **LABELLED, "mask": mask(), "label": 7})
    assert list(result) == ["image", "boxes", "labels", "mask", "label"]
    assert torch.equal(result["image"], torch.from_numpy(RGB[:, ::-1].copy()).permute(2, 0, 1))
    assert result["boxes"].tolist() == [FLIPPED]
    assert (result["labels"], result["label"]) == ([3], 7)
    np.testing.assert_array_equal(result["mask"], mask()[:, ::-1])


def test_one_dict_is_augmented_as_the_list_of_it() -> None:
    sample = {"image": RGB, **LABELLED, "mask": mask(), "keypoints": [[11.5, 7]]}
    for device in ("cpu", "oracle"):
        augmenter = vg.Augmenter(RANDOM, device=device, seed=4)
        [expected] = augmenter([sample], ids=[9], epoch=2, copy=1)
        one = augmenter(sample, ids=9, epoch=2, copy=1)
        transform = vg.as_transform(RANDOM, seed=4)
        transform.set_epoch(2)
        for key in ("image", "boxes", "mask", "keypoints"):
            assert torch.equal(one[key], expected[key])
            expected_there = augmenter(sample, ids=9, epoch=2)[key]
            assert torch.equal(transform(sample, id=9)[key], expected_there)


def test_values_of_one_sample_are_seen_by_cond() -> None:
    by_label = T.Cond(by="label", cases={7: FLIP})
    assert by_label(RGB, 7)[1] == 7
    assert by_label({"image": RGB, **LABELLED, "label": 7})["boxes"].tolist() == [FLIPPED]
    assert by_label({"image": RGB, **LABELLED, "label": 6})["boxes"].tolist() == [BOX]
    by_weather = vg.as_transform(T.Cond(by="weather", cases={1: FLIP}))
    assert by_weather({"image": RGB, **LABELLED}, conditions={"weather": 1})["boxes"].tolist() == [FLIPPED]


def test_an_image_and_what_belongs_to_it_as_torchvision_has_it() -> None:
    image, target = FLIP(RGB, LABELLED)
    assert image.shape == (3, HEIGHT, WIDTH)
    assert target["boxes"].tolist() == [FLIPPED]
    assert list(target) == ["boxes", "labels"]
    *_, label, name = FLIP(RGB, LABELLED, 5, "cat.jpg")
    assert (label, name) == (5, "cat.jpg")
    options = vg.Targets(passed=["image_id"], box_format="xywh")
    for call in (lambda *pair: FLIP(*pair, targets=options), vg.as_transform(FLIP, targets=options)):
        _, target = call(RGB, {"boxes": [[10, 5, 20, 20]], "image_id": "a"})
        assert (target["boxes"].tolist(), target["image_id"]) == ([[30, 5, 20, 20]], "a")


def test_calls_draw_anew() -> None:
    found = {str(RANDOM({"image": RGB, **LABELLED})["boxes"].tolist()) for _ in range(8)}
    assert len(found) == 8


class _Tensor(torch.Tensor):
    format: Any = types.SimpleNamespace(name="XYWH")
    canvas_size = (HEIGHT, WIDTH)


def test_tensors_of_torchvision_beside_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torchvision.tv_tensors")
    module.wrap = lambda tensor, *, like, **_: tensor.as_subclass(type(like))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision.tv_tensors", module)
    kinds: Any = {name: type(name, (_Tensor,), {"__module__": module.__name__}) for name in ("BoundingBoxes", "Mask")}
    boxes: Any = torch.tensor([[10.0, 5.0, 20.0, 20.0]]).as_subclass(kinds["BoundingBoxes"])
    masks: Any = torch.from_numpy(mask())[None].as_subclass(kinds["Mask"])
    _, moved, moved_masks = FLIP(RGB, boxes, masks)
    assert type(moved) is kinds["BoundingBoxes"]
    assert moved.tolist() == [[30.0, 5.0, 20.0, 20.0]]
    assert type(moved_masks) is kinds["Mask"]
    assert torch.equal(moved_masks.as_subclass(torch.Tensor)[0], torch.from_numpy(mask()[:, ::-1].copy()))
    with pytest.raises(ValueError, match=r"inputs\[2\]: got 'boxes', which the sample has already"):
        FLIP(RGB, boxes, {"boxes": [BOX]})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((RGB, [{"bbox": BOX}]), r"inputs\[1\]: got \[\{'bbox': .*; accepted: beside an image a dict of what belongs"),
        ((RGB, Image.fromarray(mask())), r"inputs\[1\]: got <PIL.Image.Image .*; accepted: beside an image a dict"),
        ((RGB, {"image_id": 3}), r"sample: got the key 'image_id'; .* list it in vg.Targets\(passed=\)"),
        ((RGB, {"boxes": [BOX], "labels": [1, 2]}), r"sample\['labels'\]: got 2 for 1 boxes"),
        (({"boxes": [BOX]},), r"image: got dict for an image"),
    ],
)
def test_what_is_wrong_is_named(inputs: tuple[Any, ...], message: str) -> None:
    for call in (FLIP, vg.as_transform(FLIP)):
        with pytest.raises((TypeError, ValueError), match="^" + message):
            call(*inputs)
    with pytest.raises(TypeError, match=r"sample: got .* with targets=; accepted: a dict with 'image'"):
        FLIP(RGB, targets=vg.Targets())


# -- batches -----------------------------------------------------------------------------------------------------

ITEMS = [
    {"image": photo(HEIGHT, WIDTH), "boxes": [BOX] * n, "labels": torch.arange(n), "mask": mask(), "name": f"{n}.jpg"}
    for n in range(4)
]
NAMED = vg.Targets(passed=["name"])


def test_batches_are_those_of_a_loader() -> None:
    t = T.Compose([RANDOM, T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)])
    dataset = vg.WithIds(ITEMS)
    collate = vg.Collate(t, seed=3, targets=NAMED)
    loader = vg.Loader(ITEMS, t, batch_size=2, seed=3, shuffle=False, targets=NAMED, device="cpu")
    for epoch in range(2):
        collate.set_epoch(epoch)
        loader.set_epoch(epoch)
        for batch, expected in zip(DataLoader(dataset, 2, collate_fn=collate), loader, strict=True):
            assert list(batch) == list(expected)
            assert batch.ids.tolist() == expected.ids.tolist()
            for key, value in expected.items():
                assert len(batch[key]) == len(value)
                pairs = zip(batch[key], value, strict=True)
                assert all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


@pytest.mark.process
def test_workers_give_them_too_and_padded() -> None:
    collate = vg.Collate(FLIP, targets=vg.Targets(passed=["name"], padded=True))
    [batch] = DataLoader(vg.WithIds(ITEMS), 4, collate_fn=collate, num_workers=1)
    assert batch["boxes"].shape == (4, 3, 4)
    assert batch["count"].tolist() == [0, 1, 2, 3]
    assert batch["boxes"][3].tolist() == [FLIPPED] * 3
    assert batch["name"] == ["0.jpg", "1.jpg", "2.jpg", "3.jpg"]
    assert batch.ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "items",
    [
        [(RGB, {"boxes": [BOX], "labels": [3]}), (RGB, {"boxes": [], "labels": []})],
        [(RGB, {"boxes": [BOX], "labels": [3]}, 5), (RGB, {"boxes": [], "labels": []}, 8)],
        [(RGB, [{"bbox": [10, 5, 20, 20], "category_id": 3}]), (RGB, [])],
    ],
)
def test_forms_of_items(items: list[Any]) -> None:
    batch = vg.Collate(FLIP, targets=vg.Targets())(items)
    assert [boxes.tolist() for boxes in batch["boxes"]] == [[FLIPPED], []]
    assert [list(labels) for labels in batch["labels"]] == [[3], []]
    assert batch.ids.tolist() == ([5, 8] if len(items[0]) == 3 else [0, 1])


def test_dicts_of_boxes_without_targets_are_told_of_them() -> None:
    with pytest.raises(TypeError, match=r"got a dict with 'image', 'boxes'; accepted: .*; targets=vg.Targets\(\) for"):
        vg.Collate(T.Invert())([{"image": photo(), "boxes": np.zeros((0, 4))}])


def test_mixed_batches_have_soft_labels() -> None:
    items = [{"image": RGB, "boxes": [BOX], "labels": [n], "label": n} for n in range(4)]
    batch = vg.Collate(T.Mosaic(num_classes=4), targets=vg.Targets())(items)
    assert batch["label"].shape == (4, 4)
    assert torch.allclose(batch["label"].sum(1), torch.ones(4))
    assert max(map(len, batch["boxes"])) > 1


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "items: got none"),
        ([(RGB, 3)], r"items\[0\]: got a tuple of ndarray, int; accepted with targets=: a dict"),
        ([ITEMS[1], {**ITEMS[1], "boxes": [[5, 0, 1, 5]]}], r"items\[1\]: sample\['boxes'\]\[0\]: got .*left <= right"),
        ([ITEMS[1], {**ITEMS[1], "image": "a.jpg"}], r"the image of items\[1\]: got str for an image"),
        ([{**ITEMS[1], "label": 3}, ITEMS[1]], r"items\[1\]: got no label where others have one"),
    ],
)
def test_wrong_items_are_named(items: list[Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match="^" + message):
        vg.Collate(FLIP, targets=NAMED)(items)


def test_arguments_and_copies() -> None:
    with pytest.raises(TypeError, match=r"targets: got \{\}; accepted: vg.Targets\(...\), or None"):
        vg.Collate(FLIP, targets={})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="t with targets: got a MultiView"):
        vg.as_transform(T.MultiView([FLIP], counts=[2]), targets=NAMED)
    with pytest.raises(TypeError, match=r"items\[0\]\['boxes'\]: got .*vg.Collate or vg.as_transform with targets="):
        vg.Collate(FLIP)([{"image": RGB, "label": 1, "boxes": [BOX]}])
    copied = pickle.loads(pickle.dumps(vg.Collate(FLIP, targets=NAMED)))
    assert copied(ITEMS[1:2])["boxes"][0].tolist() == [FLIPPED]

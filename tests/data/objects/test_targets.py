"""Masks, boxes and key points beside an image are refused where augmenting the image alone would leave them behind."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.images import photo
from variegate import transforms as T
from variegate.data.objects.arrays import open_arrays
from variegate.data.objects.dataset import open_dataset
from variegate.data.objects.samples import check_is_image

H, W = 30, 40
IMAGE = photo(H, W)
MASK = np.zeros((H, W), np.uint8)


def _tv_tensor(name: str, data: torch.Tensor) -> torch.Tensor:
    """A tensor of a class called as torchvision's, which is not installed everywhere."""
    cls = type(name, (torch.Tensor,), {"__module__": f"torchvision.tv_tensors._{name.lower()}"})
    return torch.Tensor._make_subclass(cls, data)  # type: ignore[no-any-return]


def _png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(MASK).save(file, "PNG")
    return file.getvalue()


# What came along, as the label of (image, label), and the end of the message's place with what was found.
ALONGSIDE: dict[str, tuple[Any, str]] = {
    "mask array": (MASK, r": got an array uint8\[30, 40\] of the image's height and width"),
    "mask tensor": (torch.zeros(H, W, dtype=torch.int64), r": got an array int64\[30, 40\] of the image's"),
    "masks of objects": (torch.zeros(5, H, W, dtype=torch.bool), r": got an array bool\[5, 30, 40\] of the image's"),
    "depth": (np.zeros((H, W), np.float32), r": got an array float32\[30, 40\] of the image's"),
    "one-hot mask": (np.zeros((H, W, 21), np.float32), r": got an array float32\[30, 40, 21\] of the image's"),
    "second image": (photo(20, 20), r": got a picture uint8\[20, 20, 3\]"),
    "small mask": (np.zeros((15, 20), bool), r": got a picture bool\[15, 20\]"),
    "PIL mask": (Image.fromarray(MASK), r": got a PIL image of 30 x 40"),
    "file of a mask": (_png(), r": got an image file"),
    "undecoded mask": ({"bytes": _png(), "path": None}, r": got an image file"),
    "tv_tensor": (_tv_tensor("Mask", torch.zeros(3, 3)), r": got a tv_tensors.Mask"),
    "boxes": (torch.zeros(2, 4), r": got boxes float32\[2, 4\]"),
    "no boxes": (np.zeros((0, 4), np.float32), r": got boxes float32\[0, 4\]"),
    "list of boxes": ([[1, 2, 3, 4], [5.0, 6, 7, 8]], r": got 2 boxes"),
    "detection": ({"labels": torch.tensor([1]), "boxes": torch.zeros(1, 4)}, r"\['boxes'\]: got boxes"),
    "COCO": ([{"category_id": 3, "bbox": [1, 2, 3, 4]}], r"\[0\]\['bbox'\]: got a list"),
    "Hugging Face": ({"objects": {"bbox": [[1, 2, 3, 4]], "category": [2]}}, r"\['objects'\]\['bbox'\]: got 1 boxes"),
    "key points": ({"keypoints": [1.0, 2.0]}, r"\['keypoints'\]: got a list"),
    "polygon": ({"segmentation": [[1, 2, 3]]}, r"\['segmentation'\]: got a list"),
    "path of a mask": ({"mask": "cat_mask.png"}, r"\['mask'\]: got a str"),
    "other spellings": ({"gtBoxes": (1, 2)}, r"\['gtBoxes'\]: got a tuple"),
    "pair": ((3, MASK), r"\[1\]: got an array uint8\[30, 40\]"),
}
HARMLESS: dict[str, Any] = {
    "class": 3,
    "numpy class": np.int64(3),
    "soft label": np.full(10, 0.1, np.float32),
    "four classes": torch.tensor([0.1, 0.2, 0.3, 0.4]),
    "tokens": torch.arange(7),
    "captcha": np.zeros((5, 36), np.float32),
    "flags": {"label": 1, "mask": True, "depth": 3.5, "num_boxes": 4, "mask_path": "cat.png", "flow_rate": [1, 2]},
    "words": {"label": 1, "name": "mask of a cat", "instance_id": "a", "masked": (0.5,)},
}
ACCEPTED = "; accepted: labels, ids, names and numbers beside an image; masks, boxes, key points and further images"


def _collate_tuple(beside: Any) -> Any:
    return vg.Collate(T.RandomHorizontalFlip())([(IMAGE, 0), (IMAGE, beside)])


def _collate_dict(beside: Any) -> Any:
    return vg.Collate(T.RandomHorizontalFlip())([{"image": IMAGE, "label": 0}, {"image": IMAGE, "label": beside}])


def _dataset(beside: Any) -> Any:
    return open_dataset([(Image.fromarray(IMAGE), 0), (Image.fromarray(IMAGE), beside)]).read(1)


def _dataset_dict(beside: Any) -> Any:
    return open_dataset([{"img": IMAGE, "label": 0}, {"img": IMAGE, "label": 3, "extra": beside}]).read(1)


DOORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "collate, tuples": (_collate_tuple, r"items\[1\]\[1\]"),
    "collate, dicts": (_collate_dict, r"items\[1\]\['label'\]"),
    "loader, tuples": (_dataset, r"item 1\[1\]"),
    "loader, dicts": (_dataset_dict, r"item 1\['extra'\]"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", ALONGSIDE)
def test_what_would_no_longer_fit_is_refused_by_name(case: str, door: str) -> None:
    beside, message = ALONGSIDE[case]
    through, where = DOORS[door]
    with pytest.raises(TypeError, match=where + message) as raised:
        through(beside)
    assert ACCEPTED in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("case", HARMLESS)
def test_what_is_harmless_passes(case: str) -> None:
    through = vg.Collate(T.RandomHorizontalFlip())
    out, labels = through([(IMAGE, HARMLESS[case])] * 2)
    assert out.shape == (2, 3, H, W)  # type: ignore[union-attr]
    assert labels is not None
    assert open_dataset([{"image": IMAGE, "label": 3, "extra": HARMLESS[case]}]).read(0).label == 3


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_a_loader_over_a_data_set_names_it_whatever_is_put_up_with(on_error: str) -> None:
    source = open_dataset([(IMAGE, MASK)] * 4)
    loader = vg.Loader(source, T.RandomHorizontalFlip(), batch_size=2, device="cpu", on_error=on_error)
    with pytest.raises(vg.DecodeError, match=r"item \d\[1\]: got an array uint8\[30, 40\]"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((3, H, W), np.int64), r"labels\[0\]: got an array int64\[30, 40\] of the image's height and width"),
        (np.zeros((3, 5, 4), np.float32), r"labels\[0\]: got boxes float32\[5, 4\]"),
    ],
)
@pytest.mark.parametrize("stacked", [True, False])
def test_arrays_with_masks_for_labels_are_refused(labels: Any, message: str, stacked: bool) -> None:
    images = np.stack([IMAGE] * 3) if stacked else [IMAGE] * 3
    with pytest.raises(TypeError, match=message):
        open_arrays(images, labels)
    assert len(open_arrays(images, np.zeros((3, 10), np.float32))) == 3


def test_a_mask_in_the_place_of_an_image_is_refused() -> None:
    mask = _tv_tensor("Mask", torch.zeros(1, H, W, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"image: got a tv_tensors.Mask; accepted: an image"):
        vg.as_transform(T.RandomHorizontalFlip())(mask)
    check_is_image(_tv_tensor("Image", torch.zeros(3, H, W, dtype=torch.uint8)), "image")

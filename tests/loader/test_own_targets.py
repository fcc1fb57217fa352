"""Data sets and lists whose samples have boxes, masks and the like beside their images."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
import torch
from PIL import Image

import variegate as vg
from tests.loader.loading import load
from tests.loader.samples import NUM_PAIRS, TARGETS, WIDTH, Pairs, own, png
from variegate import transforms as T
from variegate.errors import DecodeError

FLIP = T.RandomHorizontalFlip(1.0)


@pytest.mark.parametrize(
    "source",
    [Pairs(), [{"image": png(n), **own(n)} for n in range(NUM_PAIRS)], [(png(n), own(n)) for n in range(NUM_PAIRS)]],
    ids=["pairs", "list", "list of pairs"],
)
def test_a_loader_gives_what_stands_beside_the_images(source: Any) -> None:
    loader = load(source, FLIP, batch_size=NUM_PAIRS, shuffle=False, targets=TARGETS)
    batch = next(iter(loader))
    assert set(batch) == {"image", "boxes", "labels", "masks", "image_id", "area"}
    assert batch["image_id"] == list(range(NUM_PAIRS))
    for n in range(NUM_PAIRS):
        x1, y1, x2, y2 = own(n)["boxes"].T
        assert torch.equal(batch["boxes"][n], torch.stack([WIDTH - x2, y1, WIDTH - x1, y2], 1))
        assert torch.equal(batch["masks"][n], own(n)["masks"].flip(2))
        assert batch["area"][n].tolist() == [2.0 * k for k in range(n)]


def objects(n: int) -> list[dict[str, Any]]:
    """Those of ``own``, as COCO has them."""
    boxes = own(n)["boxes"].tolist()
    return [{"bbox": [x1, y1, x2 - x1, y2 - y1], "category_id": k} for k, (x1, y1, x2, y2) in enumerate(boxes)]


class Listed(Pairs):
    def __getitem__(self, n: int) -> Any:
        return Image.open(io.BytesIO(png(n)), formats=["PNG"]), objects(n)


def columns(n: int) -> dict[str, Any]:
    listed = objects(n)
    return {"bbox": [one["bbox"] for one in listed], "category": [one["category_id"] for one in listed]}


ROWS = [{"image": png(n), "objects": columns(n)} for n in range(NUM_PAIRS)]


@pytest.mark.parametrize("source", [Listed(), ROWS], ids=["coco", "hugging face"])
def test_objects_become_boxes_by_their_edges(source: Any) -> None:
    batch = next(iter(load(source, FLIP, batch_size=NUM_PAIRS, shuffle=False, targets=vg.Targets())))
    for n in range(NUM_PAIRS):
        x1, y1, x2, y2 = own(n)["boxes"].T
        assert torch.equal(batch["boxes"][n], torch.stack([WIDTH - x2, y1, WIDTH - x1, y2], 1))
        assert batch["labels"][n].tolist() == list(range(n))
    wrong = [{"image": png(0), "objects": {"bbox": [[1, 2, -3, 4]], "category": [0]}}]
    with pytest.raises(DecodeError, match="list: item 0: its objects: object 0: bbox, read as xywh: the box"):
        list(load(wrong, targets=vg.Targets()))


@pytest.mark.parametrize("source", [Listed(), ROWS], ids=["coco", "hugging face"])
def test_objects_stay_in_the_format_that_they_are_written_in(source: Any) -> None:
    batch = next(iter(load(source, FLIP, batch_size=NUM_PAIRS, shuffle=False, targets=vg.Targets(box_format="xywh"))))
    for n in range(NUM_PAIRS):
        x1, y1, x2, y2 = own(n)["boxes"].T
        assert torch.equal(batch["boxes"][n], torch.stack([WIDTH - x2, y1, x2 - x1, y2 - y1], 1))


@pytest.mark.parametrize(
    ("name", "options", "accepted"),
    [
        ("bbox", {"box_format": "cxcywh"}, "box_format='xyxy'), for edges, or box_format='xywh', in pixels"),
        ("bbox", {"box_format": "xywh", "normalized": True}, "or box_format='xywh', in pixels"),
        ("bboxes", {"box_format": "xywh"}, "box_format='xyxy'), for edges"),
    ],
)
def test_objects_are_not_in_a_format_that_they_are_not_written_in(
    name: str, options: dict[str, Any], accepted: str
) -> None:
    samples = [{"image": png(0), "objects": {name: [[1, 2, 3, 4]], "category": [0]}}]
    with pytest.raises(DecodeError, match=re.escape(accepted)):
        list(load(samples, FLIP, targets=vg.Targets(**options)))


def test_an_image_may_have_a_label_of_its_own() -> None:
    samples = [{"image": png(n), "label": n % 3, "boxes": own(n)["boxes"]} for n in range(NUM_PAIRS)]
    batch = next(iter(load(samples, batch_size=NUM_PAIRS, shuffle=False, targets=vg.Targets())))
    assert batch["label"].tolist() == [0, 1, 2, 0, 1]


def test_without_being_asked_for_they_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"accepted: .*vg.Loader.* with targets=vg.Targets"):
        list(load([{"image": png(1), **own(1)}]))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"boxes": [[9, 2, 3, 4]]}, r"sample\['boxes'\]\[0\]: got \[9.0, 2.0, 3.0, 4.0\]; accepted: left <= right"),
        ({"labels": [1, 2]}, r"sample\['labels'\]: got 2 for 1 boxes; accepted: one for each box"),
        ({"depth": 3}, "got the key 'depth'; accepted: .*; list it in vg.Targets"),
    ],
)
def test_a_wrong_sample_is_named_and_skipped(change: dict[str, Any], what: str) -> None:
    samples = [{"image": png(1), **own(1)}, {"image": png(1), **own(1)} | change]
    with pytest.raises(ValueError, match=rf"list: item 1: .*{what}"):
        list(load(samples, batch_size=2, targets=TARGETS))
    skipped = load(samples, batch_size=2, targets=TARGETS, on_error="skip")
    assert [len(batch["boxes"]) for batch in skipped] == [1]


def test_samples_that_are_no_dicts() -> None:
    samples = [{"image": png(0), **own(0)}, (png(0), 3)]
    with pytest.raises(DecodeError, match="got a tuple of bytes, int; accepted with targets=: a dict, an image and a"):
        list(load(samples, batch_size=2, shuffle=False, targets=TARGETS))

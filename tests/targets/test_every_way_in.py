"""One image and its box, mirrored, through every way that boxes come in, to every format that they are written in."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import variegate as vg
from tests.data.tars import as_json, write_tar
from variegate import transforms as T
from variegate.loader import TargetBatch

HEIGHT, WIDTH = 100, 200
PIXELS = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
FLIP = T.RandomHorizontalFlip(1.0)
# What the box (20, 20, 50, 50) is, and what it has become, in each format.
WRITTEN: dict[str, tuple[dict[str, Any], list[float], list[float]]] = {
    "xyxy": ({}, [20, 20, 50, 50], [150, 20, 180, 50]),
    "xywh": ({"box_format": "xywh"}, [20, 20, 30, 30], [150, 20, 30, 30]),
    "cxcywh": ({"box_format": "cxcywh"}, [35, 35, 30, 30], [165, 35, 30, 30]),
    "yolo": (
        {"box_format": "cxcywh", "normalized": True},
        [0.175, 0.35, 0.15, 0.3],
        [0.825, 0.35, 0.15, 0.3],
    ),
    "turned": ({"box_format": "cxcywhr"}, [35, 35, 30, 30, 0], [165, 35, 30, 30, -180]),
}
COCO = [{"bbox": [20, 20, 30, 30], "category_id": 0}]


def png() -> bytes:
    out = io.BytesIO()
    Image.fromarray(PIXELS).save(out, "PNG")
    return out.getvalue()


def coco(root: Path) -> Any:
    point = {"keypoints": [29, 24, 2]}
    entries = {
        "images": [{"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}],
        "annotations": [{"id": 1, "image_id": 7, "iscrowd": 0, **COCO[0], **point}],
        "categories": [{"id": 0, "name": "thing", "keypoints": ["nose"]}],
    }
    (root / "a.png").write_bytes(png())
    (root / "a.json").write_text(json.dumps(entries))
    return vg.open_source(root, annotations=root / "a.json")


def voc(root: Path) -> Any:
    corners = "<xmin>21</xmin><ymin>21</ymin><xmax>50</xmax><ymax>50</ymax>"
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    thing = f"<object><name>thing</name><bndbox>{corners}</bndbox></object>"
    for folder in ("JPEGImages", "Annotations"):
        (root / folder).mkdir()
    (root / "JPEGImages" / "a.png").write_bytes(png())
    (root / "Annotations" / "a.xml").write_text(f"<annotation><filename>a.png</filename>{size}{thing}</annotation>")
    return vg.open_source(root)


def yolo(root: Path) -> Any:
    for folder in ("images", "labels"):
        (root / folder).mkdir()
    (root / "images" / "a.png").write_bytes(png())
    (root / "labels" / "a.txt").write_text("0 0.175 0.35 0.15 0.3\n")
    (root / "data.yaml").write_text("train: images\nnames: [thing]\n")
    return vg.open_source(root)


def columns(root: Path) -> Any:
    table = {"image": [{"bytes": png(), "path": None}], "objects": [{"bbox": [[20.0, 20.0, 30.0, 30.0]]}]}
    pq.write_table(pa.table(table), root / "a.parquet")
    return vg.open_source(root / "a.parquet", annotations="columns")


def members(root: Path, stream: bool = False) -> Any:
    write_tar(root / "a.tar", [("7.png", png()), ("7.json", as_json(COCO))])
    return vg.open_source(str(root / "a.tar"), annotations="members", stream=stream)


def excluded(root: Path) -> Any:
    """The second of two is left out."""
    source = coco(root)
    entries = json.loads((root / "a.json").read_text())
    entries["images"].append({**entries["images"][0], "id": 8, "file_name": "b.png"})
    (root / "b.png").write_bytes(png())
    (root / "a.json").write_text(json.dumps(entries))
    (root / "left.txt").write_text("b.png\n")
    source = vg.open_source(root, annotations=root / "a.json", exclude=root / "left.txt")
    assert len(source) == 1
    return source


SOURCES: dict[str, Callable[[Path], Any]] = {
    **{"coco": coco, "voc": voc, "yolo": yolo, "columns": columns, "members": members, "excluded": excluded},
    "shards": lambda root: members(root, stream=True),
}


def first(source: Any, **options: Any) -> TargetBatch:
    loader = vg.Loader(source, FLIP, batch_size=1, device="cpu", targets=vg.Targets(**options), shuffle=False)
    found: TargetBatch = next(iter(loader))
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_knows_its_boxes_gives_them_in_the_format_that_is_asked_for(tmp_path: Path, name: str) -> None:
    source = SOURCES[name](tmp_path)
    for options, _, mirrored in WRITTEN.values():
        np.testing.assert_allclose(first(source, **options)["boxes"][0], [mirrored], atol=1e-4)


def test_a_source_that_knows_its_points_gives_them_in_the_frame_that_is_asked_for(tmp_path: Path) -> None:
    source = coco(tmp_path)  # COCO's 29, 24 name a pixel, whose centre is at 29.5, 24.5
    options: list[tuple[dict[str, Any], list[float]]] = [
        ({}, [170.5, 24.5, 2]),
        ({"point_origin": "center"}, [170, 24, 2]),
        ({"normalized": True}, [0.8525, 0.245, 2]),
    ]
    for asked, mirrored in options:
        np.testing.assert_allclose(first(source, **asked)["keypoints"][0], [[mirrored]], atol=1e-4)


def test_what_albumentations_says_of_boxes_fits_a_source_that_knows_them(tmp_path: Path) -> None:
    described = {"bbox_params": {"format": "coco", "label_fields": ["labels"]}}
    compose = {"transform": {"__class_fullname__": "Compose", "transforms": [], "p": 1.0, **described}}
    targets = vg.targets_from_albumentations(compose)
    [batch] = vg.Loader(coco(tmp_path), FLIP, batch_size=1, device="cpu", targets=targets)
    assert batch["boxes"][0].tolist() == [[150, 20, 30, 30]]
    assert batch["labels"][0].tolist() == [0]


def by_augmenter(beside: dict[str, Any], targets: vg.Targets) -> Any:
    return vg.Augmenter(FLIP, device="cpu")({"image": PIXELS, **beside}, targets=targets)["boxes"]


def by_call(beside: dict[str, Any], targets: vg.Targets) -> Any:
    return vg.as_transform(FLIP, targets=targets)(PIXELS, beside)[1]["boxes"]


def by_collate(beside: dict[str, Any], targets: vg.Targets) -> Any:
    return vg.Collate(FLIP, targets=targets)([{"image": PIXELS, **beside}])["boxes"][0]


def by_loader(beside: dict[str, Any], targets: vg.Targets) -> Any:
    [batch] = vg.Loader([{"image": png(), **beside}], FLIP, batch_size=1, device="cpu", targets=targets)
    return batch["boxes"][0]


WAYS: dict[str, Callable[[dict[str, Any], vg.Targets], Any]] = {
    **{"augmenter": by_augmenter, "call": by_call, "collate": by_collate, "loader": by_loader}
}


@pytest.mark.parametrize("way", WAYS)
def test_dicts_have_the_same_format_before_and_after(way: str) -> None:
    for options, given, mirrored in WRITTEN.values():
        found = WAYS[way]({"boxes": [given]}, vg.Targets(**options))
        np.testing.assert_allclose(found, [mirrored], atol=1e-4)


class Pairs:
    """As torchvision's CocoDetection is."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, n: int) -> Any:
        return Image.fromarray(PIXELS), COCO


@pytest.mark.parametrize("written", ["xyxy", "xywh"])
def test_annotations_of_coco_beside_an_image(written: str) -> None:
    options, _, mirrored = WRITTEN[written]
    targets = vg.Targets(**options)
    [batch] = vg.Loader(Pairs(), FLIP, batch_size=1, device="cpu", targets=targets)
    for found in (batch, vg.Collate(FLIP, targets=targets)([(PIXELS, COCO)])):
        assert found["boxes"][0].tolist() == [mirrored]

"""Small data sets with annotations in every layout, of the same three images and their objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tests.images import photo

CLASSES = ("ant", "bee", "cat")


class Thing(NamedTuple):
    """A box by its edges, in pixels."""

    image: int
    label: int
    box: tuple[float, float, float, float]


SIZES = ((40, 60), (30, 20), (50, 50))  # height, width
THINGS = (Thing(0, 2, (5, 10, 25, 30)), Thing(0, 0, (20, 5, 60, 40)), Thing(2, 1, (0, 0, 50, 12)))
NAMES = ("a.png", "b.png", "c.png")


def put_images(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in zip(NAMES, SIZES, strict=True):
        Image.fromarray(photo(*size)).save(folder / name)


def coco_entries() -> dict[str, Any]:
    """Category ids have gaps, and come in another order than their numbers."""
    categories = [{"id": id, "name": name} for id, name in zip((70, 3, 18), CLASSES, strict=True)]
    images: list[dict[str, Any]] = [
        {"id": 100 - i, "file_name": name, "height": height, "width": width}
        for i, (name, (height, width)) in enumerate(zip(NAMES, SIZES, strict=True))
    ]
    annotations = []
    for k, (image, label, (x1, y1, x2, y2)) in enumerate(THINGS):
        ring = [x1, y1, x2, y1, x2, y2, x1, y2]
        annotation = {"id": 500 + k, "image_id": 100 - image, "category_id": (70, 3, 18)[label], "iscrowd": 0}
        annotations.append({**annotation, "bbox": [x1, y1, x2 - x1, y2 - y1], "segmentation": [ring]})
    return {"info": {"year": 2020}, "annotations": annotations, "images": images, "categories": categories}


def put_coco(root: Path, entries: dict[str, Any] | None = None) -> Path:
    """-> the JSON file; images lie in ``root/images``."""
    put_images(root / "images")
    file = root / "instances.json"
    file.write_text(json.dumps(coco_entries() if entries is None else entries))
    return file


def voc_xml(image: int, **more: str) -> str:
    """Corners by the first and the last pixel, from 1."""
    height, width = SIZES[image]
    objects = [
        f"<object><name>{CLASSES[label]}</name><difficult>{more.get('difficult', '0')}</difficult><bndbox>"
        f"<xmax>{x2}</xmax><xmin>{x1 + 1}</xmin><ymin>{y1 + 1}</ymin><ymax>{y2}</ymax></bndbox></object>"
        for i, label, (x1, y1, x2, y2) in THINGS
        if i == image
    ]
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation><filename>{NAMES[image]}</filename>{size}{''.join(objects)}</annotation>"


def put_voc(root: Path) -> Path:
    put_images(root / "JPEGImages")
    (root / "Annotations").mkdir()
    (root / "ImageSets" / "Main").mkdir(parents=True)
    (root / "ImageSets" / "Main" / "train.txt").write_text("c\na\n")
    (root / "ImageSets" / "Main" / "bee_train.txt").write_text("a -1\nc  1\n")
    for i, name in enumerate(NAMES):
        (root / "Annotations" / f"{name[0]}.xml").write_text(voc_xml(i))
    return root


def put_yolo(root: Path) -> Path:
    put_images(root / "images")
    (root / "labels").mkdir()
    (root / "data.yaml").write_text("names: [ant, bee, cat]\n")
    for i, (name, (height, width)) in enumerate(zip(NAMES, SIZES, strict=True)):
        rows = [
            f"{label} {(x1 + x2) / 2 / width} {(y1 + y2) / 2 / height} {(x2 - x1) / width} {(y2 - y1) / height}"
            for image, label, (x1, y1, x2, y2) in THINGS
            if image == i
        ]
        (root / "labels" / f"{name[0]}.txt").write_text("\n".join(rows))
    return root


def expected(image: int) -> tuple[np.ndarray[Any, Any], list[int]]:
    """Boxes float32 [M, 4] and labels."""
    own = [thing for thing in THINGS if thing.image == image]
    return np.array([thing.box for thing in own], np.float32).reshape(-1, 4), [thing.label for thing in own]


def check_objects(source: Any, order: tuple[int, ...] = (0, 1, 2)) -> None:
    """The source has the boxes and labels of these images."""
    assert source.classes == CLASSES
    assert len(source) == len(order)
    for index, image in enumerate(order):
        item = source.read(index)
        boxes, labels = expected(image)
        assert item.label == -1
        assert item.targets["boxes"].dtype == np.float32
        assert item.targets["labels"].dtype == np.int64
        assert item.targets["boxes"].shape == (len(labels), 4)
        np.testing.assert_allclose(item.targets["boxes"], boxes, atol=1e-4)
        assert item.targets["labels"].tolist() == labels

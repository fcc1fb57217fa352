"""The rows: what a batch is like, and what every library does to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["affine", "two_affines", "mosaic", "crop", "flip", "elastic"]
# Of the jitter in every row that has one: brightness, contrast and saturation; and hue.
JITTER, HUE = 0.4, 0.1
DEGREES, TRANSLATE, SCALE = 15.0, 0.1, (0.8, 1.2)
CROP_SCALE = (0.25, 1.0)


@dataclass(frozen=True)
class Row:
    """``side`` of the images and ``out`` of what comes out, in pixels; ``boxes`` an image; semantic ``masks`` an image;
    ``has_instances``: a mask for each box beside them. ``target``: how many times the peer's speed is asked for."""

    name: str
    title: str
    kind: Kind
    side: int
    out: int
    batch: int
    boxes: int = 10
    masks: int = 1
    has_instances: bool = False
    target: float = 3.0


ROWS = (
    Row("detection", "bilinear affine, jitter, flip", "affine", 640, 640, 8),
    Row("mosaic", "flip, jitter, Mosaic", "mosaic", 640, 640, 8),
    Row("many_boxes", "the same as detection, 100 boxes", "affine", 640, 640, 8, boxes=100),
    Row("instances", "the same as detection, a mask for each box", "affine", 640, 640, 8, masks=0, has_instances=True),
    Row("three_masks", "the same as detection, three masks", "affine", 640, 640, 8, masks=3),
    Row("affine_224", "bilinear affine, jitter, flip", "affine", 224, 224, 32),
    Row("small", "bilinear affine, jitter, flip", "affine", 32, 32, 256, boxes=2),
    Row("two_affines", "two bilinear affine maps, flip", "two_affines", 640, 640, 8),
    Row("crop", "RandomResizedCrop, flip, jitter", "crop", 480, 224, 32),
    Row("flip", "flip", "flip", 640, 640, 8),
    Row("elastic", "elastic deformation, flip", "elastic", 224, 224, 32),
)
BY_NAME = {row.name: row for row in ROWS}


def select(names: str) -> list[Row]:
    """Rows by name, with commas; all for none. Raises ValueError for others."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in BY_NAME:
            raise ValueError(f"--rows {name}: accepted, with commas: {', '.join(BY_NAME)}")
    return [BY_NAME[name] for name in wanted] or list(ROWS)

"""Write albumentations_rules.json: which boxes Albumentations keeps by which rule, its formats of boxes, and how its
box-safe crops are distributed.

Run from the repository's root with a Python that has it: ``python tests/targets/make_albumentations_rules.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

HEIGHT, WIDTH = 33, 41
OUT = Path(__file__).with_name("albumentations_rules.json")
BOXES = [[0, 0, 41, 33], [20.98, 10.88, 38.97, 26.02], [5.91, 10.01, 38.89, 14.97], [12.79, 4.42, 17.36, 13.3]]
SAFE_BOXES = [[40.0, 30, 50, 50], [60, 40, 80, 90]]
SAFE_SIZE, SAFE_COUNT = (120, 160), 4000
# The whole image, thin boxes, small and large ones; some of them are cut by a crop, or outside of it.
FILTERED = [[0.0, 0, 41, 33], [20, 5, 40, 12], [2, 2, 5, 31], [33, 20, 36, 22], [10, 10, 20, 20], [36, 1, 41, 4]]
FILTERED += [[3, 8, 13, 13], [24, 18, 30, 30], [6, 4, 8.5, 9.5]]
KEPT_BY: list[dict[str, float]] = [
    {},
    *({"min_area": area} for area in (6, 20, 100, 300)),
    *({"min_visibility": share} for share in (0.05, 0.3, 0.5, 0.9, 1.0)),
    *({"min_size": side} for side in (2, 4, 8)),
    {"min_area": 30, "min_visibility": 0.4, "min_size": 3},
]
FORMATS = {"coco": ("xywh", False), "pascal_voc": ("xyxy", False), "albumentations": ("xyxy", True)}
FORMATS |= {"yolo": ("cxcywh", True), "cxcywh": ("cxcywh", False)}
# A box-safe crop's name and arguments, those of this library, and boxes.
Safe = tuple[str, dict[str, Any], str, dict[str, Any], list[list[float]]]


def safe_crop(rate: float, boxes: list[list[float]]) -> Safe:
    return "BBoxSafeRandomCrop", {"erosion_rate": rate}, "RandomBoxSafeCrop", {"erosion_rate": rate}, boxes


def one_box_crop(factor: float, boxes: list[list[float]]) -> Safe:
    theirs, ours = {"height": 40, "width": 50}, {"size": [40, 50]}
    name, erosion = "AtLeastOneBBoxRandomCrop", {"erosion_factor": factor}
    return name, {**theirs, **erosion}, "RandomAtLeastOneBoxCrop", {**ours, **erosion}, boxes


SAFE = [
    *(safe_crop(rate, boxes) for rate, boxes in ((0.0, SAFE_BOXES), (0.5, SAFE_BOXES), (0.3, []))),
    *(one_box_crop(factor, SAFE_BOXES) for factor in (0.0, 0.4, 1.0)),
    one_box_crop(0.0, []),
]


def kept() -> list[dict[str, Any]]:
    """Which boxes a crop leaves, by each rule."""
    import albumentations as A

    made = []
    for options in KEPT_BY:
        side = options.get("min_size", 0)
        theirs = {key: value for key, value in options.items() if key != "min_size"}
        rules = A.BboxParams(
            coord_format="pascal_voc", label_fields=["labels"], min_width=side, min_height=side, **theirs
        )
        run = A.Compose([A.Crop(x_min=5, y_min=6, x_max=28, y_max=24)], bbox_params=rules)
        image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        result = run(image=image, bboxes=np.array(FILTERED), labels=list(range(len(FILTERED))))
        labels = np.array(result["labels"], int).tolist()
        made.append({"options": options, "labels": labels, "boxes": np.round(result["bboxes"], 3).tolist()})
    return made


def formats() -> dict[str, Any]:
    """Flipped boxes as each format gives them."""
    import albumentations as A

    boxes = np.array(BOXES, float)
    low, high = boxes[:, :2], boxes[:, 2:]
    shapes = {"xyxy": [low, high], "xywh": [low, high - low], "cxcywh": [(low + high) / 2, high - low]}
    made = {}
    for name, (shape, normalized) in FORMATS.items():
        given = np.concatenate(shapes[shape], axis=1) / ([WIDTH, HEIGHT, WIDTH, HEIGHT] if normalized else 1)
        run = A.Compose([A.HorizontalFlip(p=1)], bbox_params=A.BboxParams(coord_format=name, label_fields=["labels"]))
        result = run(image=np.zeros((HEIGHT, WIDTH, 3), np.uint8), bboxes=given, labels=list(range(len(boxes))))
        made[name] = {"given": np.round(given, 5).tolist(), "flipped": np.round(result["bboxes"], 5).tolist()}
    return made


def distributions() -> list[list[list[int]]]:
    """Of each safe crop how often its left, top, right and bottom lie at each pixel."""
    import albumentations as A

    made = []
    for name, arguments, _, _, boxes in SAFE:
        run = A.Compose(
            [getattr(A, name)(**arguments, p=1)],
            bbox_params=A.BboxParams(coord_format="pascal_voc", label_fields=["labels"]),
            save_applied_params=True,
            seed=7,
        )
        image, drawn = np.zeros((*SAFE_SIZE, 3), np.uint8), []
        for _ in range(SAFE_COUNT):
            run(image=image, bboxes=np.array(boxes).reshape(-1, 4), labels=list(range(len(boxes))))
            drawn.append(run.transforms[0].params["params"]["crop_coords"])
        made.append([np.bincount(np.array(side, int)).tolist() for side in zip(*drawn, strict=True)])
    return made


def main() -> None:
    import albumentations as A

    head = {"albumentations": A.__version__, "formats": formats(), "kept": kept()}
    lines = ",\n".join(json.dumps(line) for line in distributions())
    OUT.write_text(json.dumps(head)[:-1] + f',\n"distributions": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()

"""Write three photos with boxes, masks and key points, drawn by hand, as a data set in COCO's format, to try things on.

``python examples/annotated_photos.py`` writes ``annotated/images`` and ``annotated/instances.json``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import variegate as vg
from variegate.data.sample_photos import sample_photo

FACE: dict[str, Any] = {"keypoints": ["nose", "left_eye", "right_eye"], "skeleton": [[1, 2], [1, 3], [2, 3]]}
CATEGORIES: dict[str, Any] = {
    "person": {
        "keypoints": [*FACE["keypoints"], "left_shoulder", "right_shoulder"],
        "skeleton": [*FACE["skeleton"], [1, 4], [1, 5], [4, 5]],
    },
    "helmet": {}, "space shuttle": {}, "cat": FACE, "saucer": {}, "cup": {}, "spoon": {},
}  # fmt: skip
# Of each photo: a class, its outline as x and y, and its key points as x, y and visibility (1: hidden).
OBJECTS: dict[str, list[tuple[str, list[int], list[int]]]] = {
    "astronaut": [
        ("person", [78, 60, 85, 25, 115, 10, 150, 12, 180, 35, 190, 65, 178, 92, 158, 98, 157, 130, 188, 165, 194, 200,
                    230, 225, 241, 272, 200, 290, 176, 345, 182, 400, 0, 400, 0, 185, 42, 160, 60, 122, 100, 115, 98,
                    95, 82, 85], [130, 98, 2, 147, 82, 2, 113, 80, 2, 222, 225, 2, 22, 205, 1]),
        ("helmet", [182, 400, 173, 350, 190, 300, 235, 271, 285, 270, 320, 288, 320, 400], []),
        ("space shuttle", [258, 30, 266, 0, 288, 0, 298, 30, 301, 125, 313, 165, 313, 218, 243, 218, 234, 170, 248, 140,
                           250, 70], []),
    ],
    "cat": [
        ("cat", [45, 0, 290, 0, 340, 40, 348, 105, 335, 160, 302, 250, 250, 272, 180, 262, 90, 200, 40, 120, 30, 50],
         [255, 235, 2, 306, 130, 2, 163, 110, 2]),
    ],
    "coffee": [
        ("saucer", [62, 160, 80, 105, 120, 72, 224, 60, 330, 85, 375, 140, 383, 195, 355, 260, 300, 300, 225, 311, 150,
                    290, 95, 245, 68, 195], []),
        ("cup", [138, 80, 148, 40, 185, 18, 232, 13, 285, 24, 320, 55, 327, 95, 310, 150, 290, 200, 255, 222, 205, 225,
                 200, 242, 170, 245, 157, 222, 172, 190, 150, 150], []),
        ("spoon", [262, 225, 275, 200, 297, 180, 322, 65, 330, 53, 339, 62, 307, 190, 322, 215, 318, 245, 295, 261, 268,
                   252], []),
    ],
}  # fmt: skip


def write(root: Path) -> Path:
    """``root/images`` and ``root/instances.json``."""
    (root / "images").mkdir(parents=True, exist_ok=True)
    names = list(CATEGORIES)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for i, (photo, objects) in enumerate(OBJECTS.items()):
        path = root / "images" / f"{photo}.jpg"
        shutil.copyfile(sample_photo(photo), path)
        images.append({"id": i, "file_name": path.name})
        for name, outline, points in objects:
            first, last = (np.reshape(outline, (-1, 2)).min(0), np.reshape(outline, (-1, 2)).max(0))
            entry = {
                "id": len(annotations),
                "image_id": i,
                "category_id": names.index(name),
                "bbox": [*first.tolist(), *(last - first).tolist()],
                "segmentation": [outline],
                "iscrowd": 0,
            }
            annotations.append({**entry, "keypoints": points} if points else entry)
    categories = [{"id": n, "name": name, **more} for n, (name, more) in enumerate(CATEGORIES.items())]
    file = root / "instances.json"
    file.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return file


if __name__ == "__main__":
    written = write(Path("annotated"))
    source = vg.open_source(written.parent / "images", annotations=f"{written},mask=each")
    for index in range(len(source)):
        item = source.read(index)
        print(source.relative_path(index), *(source.classes[label] for label in item.targets["labels"]), sep="  ")
    print(f"variegate preview {written.parent}/images --annotations {written},mask=each --out sheet.png")

"""Train a small detector for an epoch: data in COCO's format, boxes that go where images go, padded batches.

``python examples/detection.py``. The images are photos on which a disc or a square was painted in one to three places.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn

import variegate as vg
from variegate import transforms as T

SIZE, CELL = 96, 8
POLICY = T.Compose([
    T.RandomResizedCrop(SIZE, scale=(0.6, 1.0)), T.RandomHorizontalFlip(), T.ColorJitter(0.3, 0.3),
    T.Normalize(0.5, 0.25),
])  # fmt: skip


def write_data(root: Path, number: int = 320) -> None:
    """``root/images`` and ``root/instances.json``."""
    (root / "images").mkdir()
    photos = [Image.fromarray(photo).resize((128, 128)) for photo in vg.sample_images(8)]
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for i in range(number):
        rng, picture = np.random.default_rng(i), photos[i % 8].copy()
        draw = ImageDraw.Draw(picture)
        for _ in range(rng.integers(1, 4)):
            side, category = int(rng.integers(20, 44)), int(rng.integers(0, 2))
            x, y = (int(v) for v in rng.integers(0, 128 - side, 2))
            paint = draw.ellipse if category else draw.rectangle
            paint((x, y, x + side - 1, y + side - 1), fill=(250, 60, 40) if category else (40, 90, 250))
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": i,
                    "category_id": category,
                    "bbox": [x, y, side, side],
                    "iscrowd": 0,
                }
            )
        picture.save(root / "images" / f"{i:03d}.png")
        images.append({"id": i, "file_name": f"{i:03d}.png", "height": 128, "width": 128})
    categories = [{"id": 0, "name": "square"}, {"id": 1, "name": "disc"}]
    (root / "instances.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )


def wanted(boxes: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the model should say of each cell: 0 for nothing, else the label + 1 of the box whose middle is in it."""
    cells = torch.zeros(len(boxes), SIZE // CELL, SIZE // CELL, dtype=torch.int64)
    edges = torch.zeros(len(boxes), 4, SIZE // CELL, SIZE // CELL)
    image, box = torch.nonzero(labels >= 0, as_tuple=True)  # the others fill up the batch
    of_image = boxes[image, box]
    x, y = ((of_image[:, :2] + of_image[:, 2:]) / 2 / CELL).long().clamp(0, SIZE // CELL - 1).T
    cells[image, y, x] = labels[image, box] + 1
    edges[image, :, y, x] = of_image / SIZE
    return cells, edges


def main(root: Path) -> None:
    torch.manual_seed(0)
    source = vg.open_source(root / "images", annotations=root / "instances.json")
    options = vg.Targets(padded=True, min_visibility=0.3)
    loader = vg.Loader(source, POLICY, batch_size=16, device="cpu", seed=0, targets=options)
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Conv2d(64, 64, 5, 1, 2), nn.ReLU(), nn.Conv2d(64, len(source.classes) + 1 + 4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    weight = torch.tensor([0.2, 1.0, 1.0])  # most cells hold nothing
    losses = []
    for batch in loader:
        cells, edges = wanted(batch["boxes"], batch["labels"])
        said = model(batch["image"])
        loss = nn.functional.cross_entropy(said[:, :3], cells, weight)
        is_box = (cells > 0)[:, None].expand_as(edges)
        loss = loss + nn.functional.l1_loss(said[:, 3:][is_box], edges[is_box])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(source.classes, f"{len(source)} images")
    print(f"first batches: loss {np.mean(losses[:4]):.4f}, last batches: loss {np.mean(losses[-4:]):.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        main(Path(folder))

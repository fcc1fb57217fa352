"""Train a small segmentation model for an epoch: folders of images and masks, rotated and cropped together.

``python examples/segmentation.py``. The images are photos on which leaves and coins were painted, one to four; a mask
says of each pixel what it shows. Pixels that an augmentation fills up are 255 in masks, and do not count.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn

import variegate as vg
from variegate import transforms as T

SIZE, IGNORED = 64, 255
CLASSES = ("photo", "leaf", "coin")
END = T.Normalize(0.5, 0.25)
TRAINING = T.Compose([
    T.RandomResizedCrop(SIZE, scale=(0.5, 1.0)), T.RandomHorizontalFlip(),
    T.RandomRotation(20, interpolation="bilinear"), T.ColorJitter(0.3, 0.3, 0.3), END,
])  # fmt: skip
TEST = T.Compose([T.Resize((SIZE, SIZE)), END])


def write_data(root: Path, number: int) -> None:
    """``root/images`` and ``root/masks``, PNG files of the same names."""
    for folder in ("images", "masks"):
        (root / folder).mkdir(parents=True)
    photos = [Image.fromarray(photo).resize((96, 96)) for photo in vg.sample_images(8)]
    for i in range(number):
        rng = np.random.default_rng([number, i])
        picture, mask = photos[i % 8].copy(), Image.new("L", (96, 96))
        for _ in range(rng.integers(1, 5)):
            kind, side = int(rng.integers(1, 3)), int(rng.integers(16, 44))
            x, y = (int(v) for v in rng.integers(0, 96 - side, 2))
            place = (x, y, x + side - 1, y + side - 1 if kind == 2 else y + side // 2)
            shade = int(rng.integers(-30, 30))
            color = (60 + shade, 170 + shade, 60 + shade) if kind == 1 else (200 + shade, 160 + shade, 60 + shade)
            ImageDraw.Draw(picture).ellipse(place, color)
            ImageDraw.Draw(mask).ellipse(place, kind)
        picture.save(root / "images" / f"{i:03d}.png")
        mask.save(root / "masks" / f"{i:03d}.png")


def open_loader(root: Path, transform: T.Transform, batch_size: int) -> vg.Loader:
    source = vg.open_source(root, annotations="masks", classes=CLASSES)
    options = vg.Targets(mask_fill=IGNORED)
    return vg.Loader(source, transform, batch_size=batch_size, device="cpu", seed=0, targets=options)


def make_model() -> nn.Module:
    """At a quarter of the size, and up again."""
    layers: list[nn.Module] = []
    for before, after, kernel, stride in ((3, 16, 5, 2), (16, 32, 3, 2), (32, 32, 5, 1)):
        layers += [nn.Conv2d(before, after, kernel, stride, kernel // 2), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(32, len(CLASSES), 1), nn.Upsample(scale_factor=4, mode="bilinear"))


@torch.no_grad()
def overlap(model: nn.Module, loader: vg.Loader) -> list[float]:
    """IoU per class: intersection of prediction and ground truth, divided by their union."""
    model.eval()
    both, either = torch.zeros(len(CLASSES)), torch.zeros(len(CLASSES))
    for batch in loader:
        is_said, is_true = (
            nn.functional.one_hot(kinds.long(), len(CLASSES)).bool()
            for kinds in (model(batch["image"]).argmax(1), batch["mask"])
        )
        both += (is_said & is_true).sum((0, 1, 2))
        either += (is_said | is_true).sum((0, 1, 2))
    return (both / either).tolist()


def main(root: Path) -> None:
    torch.manual_seed(0)
    training, test = open_loader(root / "training", TRAINING, 8), open_loader(root / "test", TEST, 32)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=len(training))
    weight = torch.tensor([0.3, 1.0, 1.0])  # most pixels are photo
    losses = []
    for batch in training:
        loss = nn.functional.cross_entropy(model(batch["image"]), batch["mask"].long(), weight, ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    print(f"{len(losses)} batches of 8 images")
    print(f"first batches: loss {np.mean(losses[:4]):.4f}, last batches: loss {np.mean(losses[-4:]):.4f}")
    told = ", ".join(f"{name} {share:.2f}" for name, share in zip(CLASSES, overlap(model, test), strict=True))
    print(f"IoU on 32 other images: {told}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder, "training"), 320)
        write_data(Path(folder, "test"), 32)
        main(Path(folder))

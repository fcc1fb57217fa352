"""A transform for data sets that take one, such as torchvision's ``ImageFolder``.

``python examples/dataset_transform.py``. The data set opens images with Pillow, and its items are augmented tensors.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

import variegate as vg
from variegate import transforms as T


class Folder(Dataset[tuple[torch.Tensor, int]]):
    """Image files and a ``transform``: what ImageFolder is, where torchvision is not installed."""

    def __init__(self, root: str, transform: Callable[[Image.Image], torch.Tensor]) -> None:
        self.files = sorted(Path(root).glob("*/*.jpg"))
        self.classes = sorted({file.parent.name for file in self.files})
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        file = self.files[index]
        with Image.open(file, formats=("JPEG",)) as image:  # whatever else a file may hold, its name says JPEG
            return self.transform(image), self.classes.index(file.parent.name)


def write_files(root: str) -> None:
    for number in range(32):
        colour = "red" if number % 2 else "blue"
        pixels = np.random.default_rng(number).integers(0, 100, (40 + number, 60, 3), dtype=np.uint8)
        pixels[:, :, 0 if colour == "red" else 2] += 120
        (Path(root) / colour).mkdir(exist_ok=True)
        Image.fromarray(pixels).save(Path(root) / colour / f"{number}.jpg")


def main() -> None:
    transform = vg.as_transform(
        T.Compose([
            T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9),
            T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
        ])
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as root:
        write_files(root)
        torch.manual_seed(0)  # Workers draw from here where their random numbers begin.
        loader = DataLoader(Folder(root, transform), batch_size=8, shuffle=True, num_workers=2)
        for epoch in range(2):
            for images, labels in loader:
                print(f"epoch {epoch}: {tuple(images.shape)} {images.dtype}, labels {labels.tolist()}")


if __name__ == "__main__":
    main()

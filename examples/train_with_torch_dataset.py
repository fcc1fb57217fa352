"""Train from a torch Dataset of raw images: the DataLoader's collate_fn augments the batch.

``python examples/train_with_torch_dataset.py [workers]``. The losses do not depend on the number of workers.
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import DataLoader, Dataset

import variegate as vg
from variegate import transforms as T


class Stripes(Dataset[tuple[npt.NDArray[np.uint8], int]]):
    """Noisy stripes, horizontal (0) or vertical (1), as uint8 images."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> tuple[npt.NDArray[np.uint8], int]:
        noise = np.random.default_rng(index).integers(0, 128, (32, 32, 3))
        lines = (np.arange(32) // 4 % 2 * 127)[:, None, None]
        label = index % 2
        return (noise + (lines.transpose(1, 0, 2) if label else lines)).astype(np.uint8), label


def main(workers: int = 0, epochs: int = 3) -> None:
    collate = vg.Collate(
        T.Compose([T.RandomCrop(32, padding=4), T.TrivialAugmentWide(), T.Normalize(mean=0.5, std=0.25)])
    )
    torch.manual_seed(0)
    order = torch.Generator().manual_seed(0)
    # WithIds adds the index to every item: what happens to an image depends on it, not on the worker.
    dataset = vg.WithIds(Stripes())
    loader = DataLoader(dataset, 64, shuffle=True, num_workers=workers, collate_fn=collate, generator=order)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(8, 2),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        collate.set_epoch(epoch)
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        print(f"epoch {epoch}: loss {total / 512:.4f}")


if __name__ == "__main__":
    main(workers=int(sys.argv[1]) if len(sys.argv) > 1 else 0)

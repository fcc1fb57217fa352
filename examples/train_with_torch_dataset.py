"""Train from a torch Dataset of raw images: the DataLoader's collate_fn augments the batch.

``python examples/train_with_torch_dataset.py [workers]``. The losses do not depend on the number of workers.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import variegate as vg
from variegate import transforms as T


class Stripes(Dataset):
    """Noisy stripes, across (0) or upright (1). Items: uint8 image, label, and the index, which serves as the id."""

    def __len__(self):
        return 512

    def __getitem__(self, index):
        noise = np.random.default_rng(index).integers(0, 128, (32, 32, 3))
        lines = (np.arange(32) // 4 % 2 * 127)[:, None, None]
        label = index % 2
        return (noise + (lines.transpose(1, 0, 2) if label else lines)).astype(np.uint8), label, index


class AugmentingCollate:
    """Workers get a copy of it whenever an epoch starts, so that setting ``epoch`` before is enough."""

    def __init__(self, transform):
        self.epoch = 0
        # The workers are the parallelism; one thread in each.
        self.augmenter = vg.Augmenter(transform, seed=0, num_threads=1)

    def __call__(self, items):
        images, labels, ids = zip(*items, strict=True)
        return self.augmenter(list(images), ids=ids, epoch=self.epoch), torch.tensor(labels)


def main(workers=0, epochs=3):
    collate = AugmentingCollate(
        T.Compose([T.RandomCrop(32, padding=4), T.TrivialAugmentWide(), T.Normalize(mean=0.5, std=0.25)])
    )
    torch.manual_seed(0)
    order = torch.Generator().manual_seed(0)
    loader = DataLoader(Stripes(), 64, shuffle=True, num_workers=workers, collate_fn=collate, generator=order)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(8, 2),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        collate.epoch = epoch
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

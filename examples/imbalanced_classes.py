"""Train with a rare class: ``vg.Loader(weights="balanced")``, and what it draws.

``python examples/imbalanced_classes.py``
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

import variegate as vg
from variegate import transforms as T

POLICY = T.Compose([T.RandomCrop(32), T.RandomHorizontalFlip(), T.TrivialAugmentWide(), T.Normalize(0.5, 0.25)])


def make_pictures(number: int = 400, rare: int = 20) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Horizontal stripes, and a few vertical ones, with noise."""
    labels = np.array([int(i < rare) for i in range(number)])
    pictures = np.random.default_rng(0).integers(0, 160, (number, 40, 40, 3))
    lines = (np.arange(40) // 5 % 2 * 95)[:, None, None]
    pictures += np.where(labels[:, None, None, None] == 1, lines.transpose(1, 0, 2), lines)
    return pictures.astype(np.uint8), labels


def main() -> None:
    source = make_pictures()
    for weights in (None, {0: 1, 1: 4}, "balanced"):
        batches = list(vg.Loader(source, POLICY, batch_size=50, device="cpu", weights=weights))
        rare = sum(int(batch.labels.sum()) for batch in batches)
        most = 1 + max(int(batch.copies.max()) for batch in batches)
        print(f"weights={weights!r}: {rare} of 400 are of the rare class; a picture comes up to {most} times")

    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, 2),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = vg.Loader(source, POLICY, batch_size=50, device="cpu", weights="balanced")
    for epoch in range(5):
        loader.set_epoch(epoch)
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        print(f"epoch {epoch}: loss {total:.4f}")


if __name__ == "__main__":
    main()

"""Train from image files with ``vg.Loader``, stop in the middle of an epoch, and resume from the checkpoint.

``python examples/train_with_loader.py``, or with two processes:
``torchrun --nproc-per-node 2 examples/train_with_loader.py``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import variegate as vg
from variegate import transforms as T

POLICY = T.Compose([
    T.RandomResizedCrop(32, scale=(0.5, 1.0)), T.RandomHorizontalFlip(), T.TrivialAugmentWide(),
    T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
])  # fmt: skip


def write_photos(root: Path, number: int = 96, size: int = 64) -> None:
    """Two classes of JPEG files, stripes across and upright, and one file that is not an image."""
    for label, name in enumerate(("across", "upright")):
        (root / name).mkdir()
        for i in range(number):
            pixels = np.random.default_rng(i).integers(0, 128, (size, size, 3))
            lines = (np.arange(size) // 8 % 2 * 127)[:, None, None]
            pixels += lines.transpose(1, 0, 2) if label else lines
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{i:03d}.jpg")
    (root / "across" / "broken.jpg").write_bytes(b"")


class Training:
    """A model, its optimizer and its loader: what a checkpoint holds."""

    def __init__(self, folder: str, batch_size: int) -> None:
        torch.manual_seed(0)
        self.loader = vg.Loader(folder, POLICY, batch_size=batch_size, seed=0, on_error="skip", max_errors=0.01)
        self.model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
            torch.nn.Linear(16, 2),
        ).to(self.loader.device)  # fmt: skip
        self.parallel: torch.nn.Module = self.model
        if torch.distributed.is_initialized():
            self.parallel = torch.nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

    def state_dict(self) -> dict[str, Any]:
        return {
            "loader": self.loader.state_dict(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loader.load_state_dict(state["loader"])
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def run(self, epochs: int, stop_after: int | None = None) -> None:
        """Train from the loader's epoch on; stop after ``stop_after`` batches."""
        done = 0
        for epoch in range(self.loader.epoch, epochs):
            self.loader.set_epoch(epoch)
            total = count = 0.0
            for images, labels in self.loader:
                loss = torch.nn.functional.cross_entropy(self.parallel(images), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total, count, done = total + loss.item() * len(labels), count + len(labels), done + 1
                if done == stop_after:
                    return
            if self.loader.rank == 0:
                print(f"epoch {epoch}: loss {total / count:.4f}")


def main(folder: str) -> None:
    first = Training(folder, batch_size=16)
    first.run(epochs=5, stop_after=20)  # something happens in epoch 1
    checkpoint = first.state_dict()

    second = Training(folder, batch_size=32)
    second.load_state_dict(checkpoint)
    second.run(epochs=5)
    if second.loader.rank == 0:
        print("resumed at", checkpoint["loader"]["done"], "samples of epoch", checkpoint["loader"]["epoch"])
        print(*second.loader.errors, sep="\n")


if __name__ == "__main__":
    if "RANK" in os.environ:
        torch.distributed.init_process_group()
    with tempfile.TemporaryDirectory() as folder:  # each process has its own copy of the same data set
        write_photos(Path(folder))
        main(folder)

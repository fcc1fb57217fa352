"""Search augmentation for a segmentation model, by training of your own, and race the result.

    python examples/search_segmentation.py

A small network marks leaves and coins on photos, after training on 16 images. ``vg.search`` evolves a schedule of four
operations in a population of such networks, scored by their overlap (IoU) on darker images. ``vg.race`` then compares
the schedule with no augmentation and with flips, on new seeds. Takes less than a minute on one core; ``--quick`` takes
seconds, and learns nothing worth knowing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw
from torch import nn

import variegate as vg
from variegate import transforms as T

Array = npt.NDArray[np.uint8]
SIZE, IGNORED, CLASSES = 48, 255, 3  # photo, leaf, coin
OPERATIONS = ["Rotate", "TranslateX", "Brightness", "Contrast"]


def make_samples(number: int, photos: list[Array], seed: int, darkest: float = 1.0) -> list[dict[str, Array]]:
    """Photos with leaves and coins on them, as bright as ``darkest`` to 1; masks say of each pixel what it shows."""
    samples = []
    for i in range(number):
        rng = np.random.default_rng([seed, i])
        picture = Image.fromarray(photos[i % len(photos)]).resize((SIZE, SIZE))
        mask = Image.new("L", (SIZE, SIZE))
        for _ in range(rng.integers(1, 4)):
            kind, side = int(rng.integers(1, 3)), int(rng.integers(10, 24))
            x, y = (int(v) for v in rng.integers(0, SIZE - side, 2))
            place = (x, y, x + side - 1, y + side - 1 if kind == 2 else y + side // 2)
            shade = int(rng.integers(-50, 50))
            color = (60 + shade, 150 + shade, 60 + shade) if kind == 1 else (190 + shade, 160 + shade, 60 + shade)
            ImageDraw.Draw(picture).ellipse(place, color)
            ImageDraw.Draw(mask).ellipse(place, kind)
        light = rng.uniform(darkest, 1.0)
        samples.append({"image": (np.array(picture) * light).astype(np.uint8), "mask": np.array(mask)})
    return samples


class Segmentation:
    """Train a segmentation model with a policy, some epochs at a time."""

    def __init__(self) -> None:
        photos = vg.sample_images(8)
        self.train, self.scored = make_samples(16, photos[:4], 1), make_samples(48, photos[4:], 2, 0.3)

    def step(self, policy: T.Transform, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for before, after, stride in ((3, 12, 2), (12, 24, 1), (24, 24, 1)):
            layers += [nn.Conv2d(before, after, 5, stride, 2), nn.BatchNorm2d(after), nn.ReLU()]
        model = nn.Sequential(*layers, nn.Conv2d(24, CLASSES, 1), nn.Upsample(scale_factor=2, mode="bilinear"))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        done = 0
        if checkpoint is not None:
            model.load_state_dict(checkpoint["model"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            done = checkpoint["epochs"]
        augment = vg.Augmenter(T.Compose([policy, T.Normalize(0.5, 0.25)]), "cpu", seed=seed)
        targets = vg.Targets(mask_fill=IGNORED)  # pixels that a policy fills up do not count
        model.train()
        for epoch in range(done, done + epochs):
            order = np.random.default_rng([seed, epoch]).permutation(len(self.train))
            for rows in order.reshape(-1, 8):
                batch = augment([self.train[row] for row in rows], ids=rows, epoch=epoch, targets=targets)
                images, masks = (torch.stack([one[key] for one in batch]) for key in ("image", "mask"))
                loss = nn.functional.cross_entropy(model(images), masks.long(), ignore_index=IGNORED)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs": done + epochs}
        return self.score(model), kept

    @torch.no_grad()
    def score(self, model: nn.Module) -> float:
        """Mean IoU of leaves and coins: the intersection of prediction and truth, divided by their union."""
        model.eval()
        samples = vg.Augmenter(T.Normalize(0.5, 0.25), "cpu")(self.scored)
        images, masks = (torch.stack([one[key] for one in samples]) for key in ("image", "mask"))
        said, true = (nn.functional.one_hot(kinds.long(), CLASSES).bool() for kinds in (model(images).argmax(1), masks))
        both, either = (said & true).sum((0, 1, 2)), (said | true).sum((0, 1, 2))
        return float((both / either)[1:].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as short as it goes")
    parser.add_argument("--folder", type=Path, default=None, help="for the results (a temporary one)")
    given = parser.parse_args()
    members, epochs, rounds = (2, 2, 2) if given.quick else (8, 32, 4)
    training = Segmentation()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        options: dict[str, Any] = {
            "population": members,
            "epochs": epochs,
            "interval": max(1, epochs // 16),
        }
        found = vg.search(training, OPERATIONS, out=folder / "search", **options)
        print(f"search: IoU {found.score:.3f} of the best member")
        for segment in found.schedule.segments:
            used = [f"{name} {magnitude} ({share:.0%})" for name, share, magnitude in segment.policy if share > 0]
            print(f"{segment.epochs:3} epochs: {', '.join(used) or 'no augmentation'}")

        policies = {"none": T.Identity(), "flip": T.RandomHorizontalFlip(), "searched": found.policy}
        result = vg.race(training, policies, epochs=epochs, rounds=rounds, out=folder / "race")
        for row in result.standings:
            print(f"{row.candidate:9} IoU {row.mean:.3f} in {row.rounds} rounds")
        print(result.verdict)


if __name__ == "__main__":
    main()

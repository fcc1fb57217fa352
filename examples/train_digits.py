"""Train a small network on handwritten digits with ``variegate train``, to an accuracy of 97 %.

    python examples/train_digits.py

Writes scikit-learn's digits (8x8 pixels) to class folders, trains on 1,297 of them, and scores with the other 500.
Half a minute on one core; ``--quick`` takes seconds, and learns less. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits

from variegate.cli import main as variegate


def write_digits(root: Path) -> None:
    """``root/train`` has 1,297 digits, ``root/test`` 500, every class in both."""
    digits: Any = load_digits()
    pixels = np.round(digits.images * 255 / 16).astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(pixels))
    for place, number in enumerate(order.tolist()):
        folder = root / ("test" if place < 500 else "train") / str(digits.target[number])
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number]).save(folder / f"{number:04d}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as short as it goes")
    parser.add_argument("--folder", type=Path, default=None, help="for digits and results (a temporary one)")
    given = parser.parse_args()
    torch.set_num_threads(1)  # threads that wait for each other gain nothing on images as small as these
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        write_digits(root)
        epochs = "2" if given.quick else "20"
        data = [f"{root}/train", "--validation", f"{root}/test", "--policy", "crop1"]
        training = ["--model", "wrn-10-1", "--epochs", epochs, "--batch-size", "64", "--warmup", "1", "--lr", "0.2"]
        return variegate(["train", *data, *training, "--devices", "cpu", "--out", f"{root}/out"])


if __name__ == "__main__":
    sys.exit(main())

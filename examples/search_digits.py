"""Learn an augmentation schedule for handwritten digits, and measure whether it helps.

    python examples/search_digits.py

Writes scikit-learn's digits (8x8 pixels) to class folders, searches with four small members. Then trains the
same model with other policies and with the learned one. A few minutes on one core; ``--quick`` takes seconds, and
learns nothing worth knowing. Needs scikit-learn and matplotlib.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

from variegate.cli import main as variegate


def write_digits(root: Path) -> None:
    """``root/train`` has 500 digits, ``root/test`` the other 1,297."""
    digits: Any = load_digits()
    pixels = np.round(digits.images * 255 / 16).astype(np.uint8)
    for number, (image, label) in enumerate(zip(pixels, digits.target, strict=True)):
        folder = root / ("train" if number < 500 else "test") / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number:04d}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as short as it goes")
    parser.add_argument("--folder", type=Path, default=None, help="for digits and results (a temporary one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        write_digits(root)
        model = ["--model", "wrn-10-1" if given.quick else "wrn-16-1"]
        training = [*model, "--batch-size", "32", "--padding", "1", "--no-flip", "--cutout", "0", "--lr", "0.05"]
        epochs, interval, train = ("2", "1", "100") if given.quick else ("60", "2", "200")
        learnt = root / "search"
        search = ["search", f"{root}/train", "--method", "pba", "--out", f"{learnt}"]
        search += ["--train", train, "--population", "4"]
        search += ["--around", "fixed", "--repeats", "0"]  # as the paper searches; evaluate compares below
        code = variegate([*search, "--epochs", epochs, "--interval", interval, *training])
        if code:
            return code
        learned = ("randaugment", "trivialaugment", "autoaugment", f"{learnt}/schedule.json")
        policies = ",".join(["none", "crop", *(f"{name}+crop" for name in learned)])
        evaluate = ["evaluate", f"{root}/train", "--test", f"{root}/test", "--train", train, "--policies", policies]
        repeats = ["--repeats", "1" if given.quick else "5", "--epochs", epochs, "--out", f"{root}/evaluate.png"]
        return variegate([*evaluate, *repeats, *training])


if __name__ == "__main__":
    sys.exit(main())

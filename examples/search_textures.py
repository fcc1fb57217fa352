"""Search augmentation for gray textures, with operations of their own instead of the usual fifteen.

    python examples/search_textures.py

Cuts patches of brick, grass and gravel (scikit-image), each turned, in and out of focus, and noisy, as under a
microscope. Then searches with blur, noise, elastic distortion and quarter turns. Patches from another part of the
pictures compare the result with no augmentation and with flip and crop. About two minutes on one core; ``--quick``
takes seconds, and learns nothing worth knowing. Needs scikit-image and matplotlib.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import skimage.data
from PIL import Image, ImageFilter

from variegate.cli import main as variegate

SIDE = 16
OPERATIONS = "RandomRotate90,VerticalFlip,GaussianBlur:0.3..1.5,GaussianNoise:0..0.2,ElasticTransform:0..60"


def write_patches(root: Path, tested: int = 150) -> None:
    """40 patches of each texture in ``root/train``; ``tested`` in ``root/test``, from the pictures' lower halves."""
    textures: Any = skimage.data
    for name in ("brick", "grass", "gravel"):
        picture = getattr(textures, name)()
        for part, count, first in (("train", 40, 0), ("test", tested, 256)):
            rng = np.random.default_rng([count, len(name)])
            folder = root / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                y, x = first + rng.integers(256 - SIDE), rng.integers(512 - SIDE)
                patch = Image.fromarray(np.rot90(picture[y : y + SIDE, x : x + SIDE], int(rng.integers(4))))
                blurred = np.asarray(patch.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1))), np.float64)
                # Brightness and contrast say nothing about the texture.
                scaled = (
                    128 + 40 * (blurred - blurred.mean()) / max(blurred.std(), 1) + rng.normal(0, 12, blurred.shape)
                )
                Image.fromarray(np.clip(scaled, 0, 255).astype(np.uint8)).save(folder / f"{number:03d}.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="as short as it goes")
    parser.add_argument("--folder", type=Path, default=None, help="for patches and results (a temporary one)")
    parser.add_argument("--operations", default=OPERATIONS, help="the operations to search; empty for the paper's")
    parser.add_argument("--epochs", type=int, default=60, help="of each training")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.folder or Path(temporary)
        write_patches(root, 30 if given.quick else 150)
        search = ["search", f"{root}/train", "--method", "pba", "--test", f"{root}/test", "--out", f"{root}/search"]
        if given.operations:
            search += ["--operations", given.operations]
        epochs, interval = (2, 1) if given.quick else (given.epochs, max(1, given.epochs // 15))
        sizes = ["--train", "90", "--batch-size", "16", "--model", "wrn-10-1", "--lr", "0.05", "--population", "4"]
        length = ["--epochs", f"{epochs}", "--interval", f"{interval}"]
        length += ["--repeats", "1" if given.quick else "5"]
        return variegate([*search, *sizes, *length])


if __name__ == "__main__":
    sys.exit(main())

"""Replay programs of Variegate by torchvision v2 on Pillow images, the meaning that pixels are held to.

``python -m benchmarks.replay`` runs in the peers' environment.
"""

from __future__ import annotations

import math
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks.peers_env import peers_python, run_child, write_result

# For each image, the operations of its program: name and arguments.
Programs = list[list[tuple[str, list[float]]]]


def replay(images: Sequence[npt.NDArray[np.uint8]], programs: Programs) -> npt.NDArray[np.uint8]:
    """Return the results [N, H, W, 3], which must have one size."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs.pickle"
        inputs.write_bytes(pickle.dumps((images, programs)))
        replayed: npt.NDArray[np.uint8] = run_child(peers_python(), "benchmarks.replay", [str(inputs)])
    return replayed


def make_operations() -> dict[str, Callable[..., Any]]:
    """Return torchvision's calls by the names of our operations: those of RandAugment, crops and flips."""
    from benchmarks.libraries.torchvision import import_v2

    F = import_v2().functional

    def affine(image: Any, translate: tuple[float, float], shear: tuple[float, float]) -> Any:
        degrees = [math.degrees(math.atan(value)) for value in shear]
        center = [0, 0] if any(shear) else None
        return F.affine(image, 0, [int(pixels) for pixels in translate], 1.0, degrees, center=center)

    def resized_crop(image: Any, top: float, left: float, height: float, width: float, *size: float) -> Any:
        # Pillow's resample of a box, which Variegate promises. torchvision cuts the box out first, so that the filter
        # does not see past its border; the outermost pixels differ.
        box = (left, top, left + width, top + height)
        return image.resize((int(size[1]), int(size[0])), Image.Resampling.BILINEAR, box=box)

    return {
        "HorizontalFlip": lambda image, *_: F.horizontal_flip(image),
        "ResizedCrop": resized_crop,
        "Rotate": lambda image, angle, *_: F.rotate(image, angle),
        "ShearX": lambda image, shear, *_: affine(image, (0, 0), (shear, 0)),
        "ShearY": lambda image, shear, *_: affine(image, (0, 0), (0, shear)),
        "TranslateX": lambda image, pixels, *_: affine(image, (pixels, 0), (0, 0)),
        "TranslateY": lambda image, pixels, *_: affine(image, (0, pixels), (0, 0)),
        "Brightness": lambda image, factor, *_: F.adjust_brightness(image, factor),
        "Color": lambda image, factor, *_: F.adjust_saturation(image, factor),
        "Contrast": lambda image, factor, *_: F.adjust_contrast(image, factor),
        "Sharpness": lambda image, factor, *_: F.adjust_sharpness(image, factor),
        "Posterize": lambda image, bits, *_: F.posterize(image, int(bits)),
        "Solarize": lambda image, threshold, *_: F.solarize(image, threshold),
        "AutoContrast": lambda image, *_: F.autocontrast(image),
        "Equalize": lambda image, *_: F.equalize(image),
    }


def main(out: Path, inputs: Path) -> None:
    images, programs = pickle.loads(inputs.read_bytes())  # written by our parent
    operations = make_operations()
    replayed = []
    for pixels, program in zip(images, programs, strict=True):
        image = Image.fromarray(pixels)
        for name, arguments in program:
            image = operations[name](image, *arguments)
        replayed.append(np.asarray(image))
    write_result(out, np.stack(replayed))


if __name__ == "__main__":
    main(Path(sys.argv[2]), Path(sys.argv[3]))

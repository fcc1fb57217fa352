"""Replay programs of Variegate by torchvision v2 on Pillow images, the meaning that pixels are held to.

``python -m benchmarks.replay`` runs in the peers' environment.
"""

from __future__ import annotations

import math
import pickle
import sys
import tempfile
from collections.abc import Sequence
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


# torchvision's function for each of our operations, and the number of arguments that it takes.
FUNCTIONS = {
    "HorizontalFlip": ("horizontal_flip", 0),
    "Rotate": ("rotate", 1),
    "Brightness": ("adjust_brightness", 1),
    "Color": ("adjust_saturation", 1),
    "Contrast": ("adjust_contrast", 1),
    "Sharpness": ("adjust_sharpness", 1),
    "Solarize": ("solarize", 1),
    "AutoContrast": ("autocontrast", 0),
    "Equalize": ("equalize", 0),
}


def apply(F: Any, image: Any, name: str, arguments: list[float]) -> Any:
    """Apply one operation of RandAugment, a crop or a flip by ``F``, torchvision's functions."""
    if name in FUNCTIONS:
        function, count = FUNCTIONS[name]
        return getattr(F, function)(image, *arguments[:count])
    if name == "Posterize":
        return F.posterize(image, int(arguments[0]))
    if name == "ResizedCrop":
        # Pillow's resample of a box, which Variegate promises. torchvision cuts the box out first, so that the filter
        # does not see past its border; the outermost pixels differ.
        top, left, height, width, new_height, new_width = arguments[:6]
        box = (left, top, left + width, top + height)
        return image.resize((int(new_width), int(new_height)), Image.Resampling.BILINEAR, box=box)
    amounts = [0.0, 0.0]
    amounts["XY".index(name[-1])] = arguments[0]
    if name.startswith("Shear"):
        degrees = [math.degrees(math.atan(amount)) for amount in amounts]
        return F.affine(image, 0, [0, 0], 1.0, degrees, center=[0, 0])
    if name.startswith("Translate"):
        return F.affine(image, 0, [int(amount) for amount in amounts], 1.0, [0.0, 0.0])
    raise ValueError(f"{name}: no operation of torchvision's for it")


def main(out: Path, inputs: Path) -> None:
    from benchmarks.libraries.torchvision import import_v2

    F = import_v2().functional
    images, programs = pickle.loads(inputs.read_bytes())  # written by our parent
    replayed = []
    for pixels, program in zip(images, programs, strict=True):
        image = Image.fromarray(pixels)
        for name, arguments in program:
            image = apply(F, image, name, arguments)
        replayed.append(np.asarray(image))
    write_result(out, np.stack(replayed))


if __name__ == "__main__":
    main(Path(sys.argv[2]), Path(sys.argv[3]))

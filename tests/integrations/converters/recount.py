"""Count what converts of the installed AlbumentationsX: ``python -m tests.integrations.converters.recount``.

Every public class with its default arguments, or the least that it takes, goes through ``vg.from_albumentations``. Runs
where both libraries are installed; ``albumentationsx-2.5.1-defaults.json`` holds what 2.5.1 describes.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

import variegate as vg

_SIZE = {"height": 32, "width": 32}
LEAST: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("AtLeastOneBBoxRandomCrop", "CenterCrop", "CropNonEmptyMaskIfExists", "RandomCrop", "Resize"), _SIZE
    ),
    **{name: {"size": (32, 32)} for name in ("RandomResizedCrop", "LetterBox")},
    **{name: {"max_size": 32} for name in ("LongestMaxSize", "SmallestMaxSize")},
    "CropAndPad": {"px": 4},
    "Lambda": {"name": "nothing"},
    "RandomSizedBBoxSafeCrop": _SIZE,
    "RandomSizedCrop": {"min_max_height": (16, 24), "size": (32, 32)},
    "XYMasking": {"num_masks_x_range": (1, 1), "mask_x_length_range": (3, 9)},
    "GridElasticDeform": {"num_grid_xy": (4, 4), "magnitude": 10},
    "UniformTemporalSubsample": {"num_frames": 4},
}
IMAGES = [np.zeros((8, 8, 3), np.uint8)]
METADATA = {f"{name}_metadata": IMAGES for name in ("hm", "pda", "fda")}


def outcomes() -> dict[str, str]:
    """The same, close or refused, by class; volumes are left out."""
    import albumentations as A

    bases = {"BaseCompose", "BasicTransform", "DualTransform", "ImageOnlyTransform"}
    found: dict[str, str] = {}
    for name, cls in sorted(vars(A).items()):
        if not inspect.isclass(cls) or not issubclass(cls, (A.BasicTransform, A.BaseCompose)) or name in bases:
            continue
        if issubclass(cls, (A.Transform3D, A.VolumeOnlyTransform)):
            continue
        steps = {"transforms": [A.HorizontalFlip(), A.VerticalFlip()]} if issubclass(cls, A.BaseCompose) else {}
        _, report = vg.from_albumentations(cls(**LEAST.get(name, steps)), report=True, metadata=METADATA)
        found[name] = "refused" if report.refused else "close" if report.approximate else "the same"
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    counted = outcomes()
    for outcome in ("the same", "close", "refused"):
        names = [name for name, what in counted.items() if what == outcome]
        print(f"{outcome}, {len(names)}: {', '.join(names)}")
    print(f"{sum(what != 'refused' for what in counted.values())} of {len(counted)} convert")

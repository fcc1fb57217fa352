"""Runs a transform of another library, if installed, to compare it with its counterpart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from PIL import Image

from variegate.interop.convert.report import parameters
from variegate.ops.base import Transform
from variegate_studio.pictures import Image_HWC

_Draw = Callable[[int], Any]  # by a seed


def certain(transform: Transform) -> Transform:
    """``transform`` without a chance to do nothing."""
    return dataclasses.replace(transform, p=1.0) if "p" in parameters(type(transform)) else transform  # type: ignore[type-var]


def run_original(original: Any, img_HWC: Image_HWC, draws: int) -> tuple[list[Image_HWC], str]:
    """``draws`` of a ``Counterpart.original``; none, and a line on why, where the library is not there or refuses."""
    library = "albumentations" if isinstance(original, Mapping) else "torchvision"
    try:
        draw = (_albumentations if library == "albumentations" else _torchvision)(original, img_HWC)
        return [_checked(draw(seed)) for seed in range(draws)], ""
    except ImportError:
        return [], f"{library} is not installed here, so its own pictures are not shown"
    except Exception as error:  # whatever another version of the library says to these arguments
        return [], f"the {library} installed here does not run it: {type(error).__name__}: {error}"[:200]


def _albumentations(described: Mapping[str, Any], img_HWC: Image_HWC) -> _Draw:
    library = import_module("albumentations")
    only = library.from_dict({"transform": {**described, "p": 1.0}})
    return lambda seed: library.Compose([only], seed=seed)(image=img_HWC)["image"]


def _torchvision(written: Any, img_HWC: Image_HWC) -> _Draw:
    """``written``: an object of the class's name with the arguments as attributes."""
    library = import_module("torchvision.transforms.v2")
    cls, given = getattr(library, type(written).__name__), dict(vars(written))
    if "interpolation" in given:
        given["interpolation"] = library.InterpolationMode(given["interpolation"])
    only = cls(**{**given, "p": 1.0} if "p" in given else given)
    image: Any = torch.from_numpy(np.ascontiguousarray(img_HWC.transpose(2, 0, 1)))
    if given.get("antialias") is False and img_HWC.shape[2] == 3:  # which differs where images are of PIL
        image = Image.fromarray(img_HWC)

    def draw(seed: int) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = only(image)
            return np.asarray(made) if isinstance(made, Image.Image) else made.permute(1, 2, 0).numpy()

    return draw


def _checked(made: Any) -> Image_HWC:
    """Raises ValueError unless it is a picture."""
    if not isinstance(made, np.ndarray) or made.dtype != np.uint8 or made.ndim not in (2, 3) or made.size == 0:
        raise ValueError("gave no uint8 image")
    return np.ascontiguousarray(made if made.ndim == 3 else made[:, :, None])

"""Names, order and defaults of arguments are those of torchvision.transforms.v2 (0.20 and later), written down here,
since it is not installed everywhere. What we add comes after, and has a default.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.images import photo
from variegate import transforms as T
from variegate.transforms import functional as F

# Where torchvision has InterpolationMode.NEAREST, the name; fill None and 0 are both black; sequences are tuples.
CLASSES: dict[str, dict[str, Any]] = {
    "AugMix": {
        **{"severity": 3, "mixture_width": 3, "chain_depth": -1, "alpha": 1.0, "all_ops": True},
        **{"interpolation": "bilinear", "fill": None},
    },
    "AutoAugment": {"policy": "imagenet", "interpolation": "nearest", "fill": None},
    "CenterCrop": {"size": ...},
    "ColorJitter": {"brightness": None, "contrast": None, "saturation": None, "hue": None},
    "Compose": {"transforms": ...},
    "ConvertImageDtype": {"dtype": "float32"},
    "CutMix": {"alpha": 1.0, "num_classes": None},
    "FiveCrop": {"size": ...},
    "GaussianBlur": {"kernel_size": ..., "sigma": (0.1, 2.0)},
    "MixUp": {"alpha": 1.0, "num_classes": None},
    "GaussianNoise": {"mean": 0.0, "sigma": 0.1, "clip": True},
    "JPEG": {"quality": ...},
    "Grayscale": {"num_output_channels": 1},
    "Identity": {},
    "Normalize": {"mean": ..., "std": None, "inplace": False},  # which Normalize("dataset") leaves out
    "PILToTensor": {},
    "Pad": {"padding": ..., "fill": 0, "padding_mode": "constant"},
    "RandAugment": {
        **{"num_ops": 2, "magnitude": 9, "num_magnitude_bins": 31, "interpolation": "nearest", "fill": None},
    },
    "ElasticTransform": {"alpha": 50.0, "sigma": 5.0, "interpolation": "bilinear", "fill": 0},
    "RandomAdjustSharpness": {"sharpness_factor": ..., "p": 0.5},
    "RandomAffine": {
        **{"degrees": ..., "translate": None, "scale": None, "shear": None, "interpolation": "nearest"},
        **{"fill": 0, "center": None},
    },
    "RandomApply": {"transforms": ..., "p": 0.5},
    "RandomAutocontrast": {"p": 0.5},
    "RandomChannelPermutation": {},
    "RandomChoice": {"transforms": ..., "p": None},
    "RandomCrop": {"size": ..., "padding": None, "pad_if_needed": False, "fill": 0, "padding_mode": "constant"},
    "RandomEqualize": {"p": 0.5},
    "RandomErasing": {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0.0, "inplace": False},
    "RandomGrayscale": {"p": 0.1},
    "RandomHorizontalFlip": {"p": 0.5},
    "RandomInvert": {"p": 0.5},
    "RandomOrder": {"transforms": ...},
    "RandomPerspective": {"distortion_scale": 0.5, "p": 0.5, "interpolation": "bilinear", "fill": 0},
    "RandomPhotometricDistort": {
        **{"brightness": (0.875, 1.125), "contrast": (0.5, 1.5), "saturation": (0.5, 1.5), "hue": (-0.05, 0.05)},
        "p": 0.5,
    },
    "RandomPosterize": {"bits": ..., "p": 0.5},
    "RandomResize": {"min_size": ..., "max_size": ..., "interpolation": "bilinear", "antialias": True},
    "RandomResizedCrop": {
        **{"size": ..., "scale": (0.08, 1.0), "ratio": (3 / 4, 4 / 3), "interpolation": "bilinear", "antialias": True},
    },
    "RandomRotation": {"degrees": ..., "interpolation": "nearest", "expand": False, "center": None, "fill": 0},
    "RandomShortestSize": {"min_size": ..., "max_size": None, "interpolation": "bilinear", "antialias": True},
    "RandomSolarize": {"threshold": ..., "p": 0.5},
    "RandomVerticalFlip": {"p": 0.5},
    "RandomZoomOut": {"fill": 0, "side_range": (1.0, 4.0), "p": 0.5},
    "Resize": {"size": ..., "interpolation": "bilinear", "max_size": None, "antialias": True},
    "ScaleJitter": {"target_size": ..., "scale_range": (0.1, 2.0), "interpolation": "bilinear", "antialias": True},
    "TenCrop": {"size": ..., "vertical_flip": False},
    "ToDtype": {"dtype": ..., "scale": False},
    "ToImage": {},
    "ToPureTensor": {},
    "ToTensor": {},
    "TrivialAugmentWide": {"num_magnitude_bins": 31, "interpolation": "nearest", "fill": None},
}
FUNCTIONS: dict[str, dict[str, Any]] = {
    "adjust_brightness": {"brightness_factor": ...},
    "adjust_contrast": {"contrast_factor": ...},
    "adjust_gamma": {"gamma": ..., "gain": 1},
    "adjust_hue": {"hue_factor": ...},
    "adjust_saturation": {"saturation_factor": ...},
    "adjust_sharpness": {"sharpness_factor": ...},
    "affine": {
        **{"angle": ..., "translate": ..., "scale": ..., "shear": ..., "interpolation": "nearest", "fill": None},
        "center": None,
    },
    "autocontrast": {},
    "center_crop": {"output_size": ...},
    "crop": {"top": ..., "left": ..., "height": ..., "width": ...},
    "equalize": {},
    "erase": {"i": ..., "j": ..., "h": ..., "w": ..., "v": ..., "inplace": False},
    "five_crop": {"size": ...},
    "gaussian_blur": {"kernel_size": ..., "sigma": None},
    "gaussian_noise": {"mean": 0.0, "sigma": 0.1, "clip": True},
    "jpeg": {"quality": ...},
    "horizontal_flip": {},
    "invert": {},
    "normalize": {"mean": ..., "std": ..., "inplace": False},
    "pad": {"padding": ..., "fill": None, "padding_mode": "constant"},
    "permute_channels": {"permutation": ...},
    "perspective": {
        **{"startpoints": ..., "endpoints": ..., "interpolation": "bilinear", "fill": None, "coefficients": None},
    },
    "posterize": {"bits": ...},
    "resize": {"size": ..., "interpolation": "bilinear", "max_size": None, "antialias": True},
    "resized_crop": {
        **{"top": ..., "left": ..., "height": ..., "width": ..., "size": ...},
        **{"interpolation": "bilinear", "antialias": True},
    },
    "rgb_to_grayscale": {"num_output_channels": 1},
    "rotate": {"angle": ..., "interpolation": "nearest", "expand": False, "center": None, "fill": None},
    "solarize": {"threshold": ...},
    "ten_crop": {"size": ..., "vertical_flip": False},
    "to_grayscale": {"num_output_channels": 1},
    "vertical_flip": {},
}


def _black(name: str, default: Any) -> Any:
    return 0 if name == "fill" and default in (None, 0, (0, 0, 0)) else default


def _check(of: str, ours: list[inspect.Parameter], theirs: dict[str, Any]) -> None:
    assert [parameter.name for parameter in ours[: len(theirs)]] == list(theirs), of
    for parameter, (name, default) in zip(ours, theirs.items(), strict=False):
        # What torchvision requires may have a default of ours; no other default may differ.
        if default is not ...:
            assert _black(name, parameter.default) == _black(name, default), f"{of}: {name}"
    further = [parameter for parameter in ours[len(theirs) :] if parameter.kind is not parameter.VAR_POSITIONAL]
    assert all(parameter.default is not parameter.empty for parameter in further)


def test_classes() -> None:
    for name, arguments in CLASSES.items():
        _check(name, list(inspect.signature(getattr(T, name)).parameters.values()), arguments)


def test_functions() -> None:
    for name, arguments in FUNCTIONS.items():
        image, *rest = inspect.signature(getattr(F, name)).parameters.values()
        assert image.name == "img", name
        _check(name, rest, arguments)


class Image:
    """A kind of input, by whose name torchvision's is known."""


class Mask(Image):
    pass


@pytest.mark.parametrize(
    ("given", "same"),
    [
        (lambda: T.GaussianBlur(3, sigma=[1.5]), T.GaussianBlur(3, 1.5)),
        (lambda: T.Normalize(torch.tensor([0.5, 0.25, 1.0]), np.array([0.5])), T.Normalize((0.5, 0.25, 1.0), (0.5,))),
        (lambda: T.RandomInvert(torch.tensor(0.25)), T.RandomInvert(0.25)),
        (lambda: T.RandomRotation(torch.tensor([1.0, 2.0])), T.RandomRotation((1.0, 2.0))),
        (lambda: T.AutoAugment(T.AutoAugmentPolicy.SVHN), T.AutoAugment("svhn")),  # type: ignore[arg-type]
        (lambda: T.Pad(2, fill={"Image": 3, "others": 0}), T.Pad(2, 3)),
        (lambda: T.RandomRotation(5, fill={Image: [1, 2, 3], Mask: 0}), T.RandomRotation(5, fill=(1, 2, 3))),
        (lambda: T.RandAugment(fill={"others": 7}), T.RandAugment(fill=7)),
        (lambda: T.RandomZoomOut({Mask: 0}), T.RandomZoomOut(0)),
        (
            lambda: T.RandomAffine(5, shear=[1, 2, 3, 4], interpolation=2),
            T.RandomAffine(5, shear=(1, 2, 3, 4), interpolation="bilinear"),
        ),
    ],
)
def test_arguments_come_in_all_of_torchvisions_ways(given: Any, same: T.Transform) -> None:
    assert given() == same


def test_what_a_dict_of_fills_cannot_say() -> None:
    with pytest.raises(ValueError, match=r"Pad: fill=.*; accepted: 0 for Mask: vg.Targets\(mask_fill=\)"):
        T.Pad(2, fill={Mask: 255, "others": 3})


def test_areas_may_begin_at_nothing() -> None:
    """Boxes without a pixel are drawn again, as in torchvision."""
    batch = vg.Augmenter(T.RandomResizedCrop(8, scale=(0.0, 1.0)), seed=0)([photo(9, 9)] * 200)
    assert tuple(batch.shape) == (200, 3, 8, 8)
    assert T.RandomResizedCrop(8, scale=(0.0, 0.0)).scale == (0.0, 0.0)

"""What can be done to an image: one class per operation, with torchvision.transforms.v2 names and arguments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from variegate.transforms.affine import RandomAffine, RandomPerspective, RandomRotation
from variegate.transforms.arguments import ArgumentError
from variegate.transforms.base import Transform
from variegate.transforms.blur import GaussianBlur, MotionBlur, Sharpness
from variegate.transforms.color import (
    AutoContrast,
    Brightness,
    ChannelPermutation,
    Color,
    Contrast,
    Equalize,
    Gamma,
    Hue,
    Invert,
    Posterize,
    RGBShift,
    Solarize,
    SolarizeAdd,
)
from variegate.transforms.compose import Compose, OneOf, RandomApply, RandomChoice, RandomOrder, SomeOf
from variegate.transforms.cond import Cond
from variegate.transforms.crop import CenterCrop, Pad, RandomCrop
from variegate.transforms.custom import CustomOp, Magnitude
from variegate.transforms.erase import CoarseDropout, Cutout, GridMask, RandomErasing
from variegate.transforms.flips import RandomHorizontalFlip, RandomRotate90, RandomVerticalFlip
from variegate.transforms.geometry import Rotate, ShearX, ShearY, Stretch, TranslateX, TranslateY
from variegate.transforms.jitter import (
    ColorJitter,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from variegate.transforms.noise import GaussianNoise, SaltAndPepper, ShotNoise
from variegate.transforms.output import ConvertImageDtype, Grayscale, Identity, Normalize, ToDtype, ToImage
from variegate.transforms.resize import RandomResizedCrop, Resize

if TYPE_CHECKING:
    from variegate.policies import (
        PBA,
        Augmentation,
        AugMix,
        AutoAugment,
        RandAugment,
        Schedule,
        ThreeAugment,
        TimmRandAugment,
        TrivialAugmentWide,
        from_dict,
    )

__all__ = [
    "PBA",
    "ArgumentError",
    "AugMix",
    "Augmentation",
    "AutoAugment",
    "AutoContrast",
    "Brightness",
    "CenterCrop",
    "ChannelPermutation",
    "CoarseDropout",
    "Color",
    "ColorJitter",
    "Compose",
    "Cond",
    "Contrast",
    "ConvertImageDtype",
    "CustomOp",
    "Cutout",
    "Equalize",
    "Gamma",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "GridMask",
    "Hue",
    "Identity",
    "Invert",
    "Magnitude",
    "MotionBlur",
    "Normalize",
    "OneOf",
    "Pad",
    "Posterize",
    "RGBShift",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotate90",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "Rotate",
    "SaltAndPepper",
    "Schedule",
    "Sharpness",
    "ShearX",
    "ShearY",
    "ShotNoise",
    "Solarize",
    "SolarizeAdd",
    "SomeOf",
    "Stretch",
    "ThreeAugment",
    "TimmRandAugment",
    "ToDtype",
    "ToImage",
    "Transform",
    "TranslateX",
    "TranslateY",
    "TrivialAugmentWide",
    "from_dict",
]


if not TYPE_CHECKING:  # a type checker would take it for a promise that every name exists

    def __getattr__(name: str) -> Any:
        # Policies choose among operations, so that they stand above this package; they are found here as well.
        if name in __all__:
            value = globals()[name] = getattr(import_module("variegate.policies"), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})

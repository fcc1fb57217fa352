"""Image transforms: one class per operation, with names and arguments of torchvision.transforms.v2.

Policies, which choose among operations, are listed here as well. Nothing below imports this file.
``functional`` has each operation as a function of one image, without randomness.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from variegate.checks import missing_name
from variegate.ops.arguments import ArgumentError, AutoAugmentPolicy, InterpolationMode
from variegate.ops.base import Transform
from variegate.ops.box_crops import (
    ClampBoundingBoxes,
    RandomAtLeastOneBoxCrop,
    RandomBoxSafeCrop,
    RandomIoUCrop,
    RandomResizedBoxSafeCrop,
    SanitizeBoundingBoxes,
)
from variegate.ops.color import (
    CLAHE,
    AutoContrast,
    ChannelDropout,
    ChannelPermutation,
    Color,
    ColorJitter,
    ColorTemperature,
    Contrast,
    Equalize,
    Hue,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomPhotometricDistort,
    RandomToneCurve,
    ToSepia,
)
from variegate.ops.compose import (
    Compose,
    Cond,
    OneOf,
    RandomApply,
    RandomChoice,
    RandomOrder,
    SomeOf,
)
from variegate.ops.copy_paste import CopyPaste
from variegate.ops.crop import (
    D4,
    AlternatingHorizontalFlip,
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomRotate90,
    RandomVerticalFlip,
    Transpose,
)
from variegate.ops.custom import CustomOp, Magnitude
from variegate.ops.deform import (
    ElasticTransform,
    GridDistortion,
    OpticalDistortion,
    OpticalFlowWarp,
    ThinPlateSpline,
)
from variegate.ops.description import from_dict
from variegate.ops.erase import (
    CoarseDropout,
    Cutout,
    GridMask,
    OcclusionDiffusion,
    RandomErasing,
)
from variegate.ops.filters import (
    JPEG,
    Convolve,
    Edges,
    Emboss,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    Morphological,
    MotionBlur,
    PixelDropout,
    SaltAndPepper,
    Sharpness,
    ShotNoise,
    UnsharpMask,
)
from variegate.ops.finish import (
    FiveCrop,
    Lambda,
    TenCrop,
)
from variegate.ops.geometry import (
    RandomAffine,
    RandomPerspective,
    RandomRotation,
    Rotate,
    ShearX,
    ShearY,
    Stretch,
    TranslateX,
    TranslateY,
)
from variegate.ops.lighting import (
    Illumination,
    RandomShadow,
    RandomSunFlare,
)
from variegate.ops.mix import (
    CutMix,
    MixUp,
    Mosaic,
    ResizeMix,
)
from variegate.ops.optics import (
    ChromaticAberration,
    Defocus,
    GlassBlur,
    ZoomBlur,
)
from variegate.ops.output import (
    ConvertImageDtype,
    Grayscale,
    Identity,
    Normalize,
    PILToTensor,
    ToDtype,
    ToImage,
    ToPureTensor,
    ToTensor,
)
from variegate.ops.overlay import Overlay
from variegate.ops.resize import Fit, RandomResizedCrop, Resize
from variegate.ops.sizes import (
    Downscale,
    LetterBox,
    LongestMaxSize,
    RandomResize,
    RandomShortestSize,
    RandomZoomOut,
    ScaleJitter,
    SmallestMaxSize,
)
from variegate.ops.tone import (
    Brightness,
    Gamma,
    Invert,
    Posterize,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
    RGBShift,
    Solarize,
    SolarizeAdd,
)
from variegate.ops.weather import (
    RandomFog,
    RandomGravel,
    RandomRain,
    RandomSnow,
    Spatter,
)
from variegate.ops.windows import PercentileStretch, Window
from variegate.pipelines.pipeline import Pipeline
from variegate.policies.augmentation import Augmentation
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.pba import PBA
from variegate.policies.schedule import Schedule
from variegate.policies.timm import TimmAugMix, TimmRandAugment
from variegate.policies.uniform import AdaptiveRandAugment, RandAugment, ThreeAugment, TrivialAugmentWide
from variegate.policies.views import MultiView

if TYPE_CHECKING:
    from variegate.transforms import functional as functional

__all__ = [
    "CLAHE",
    "D4",
    "JPEG",
    "PBA",
    "AdaptiveRandAugment",
    "AlternatingHorizontalFlip",
    "ArgumentError",
    "AugMix",
    "Augmentation",
    "AutoAugment",
    "AutoAugmentPolicy",
    "AutoContrast",
    "Brightness",
    "CenterCrop",
    "ChannelDropout",
    "ChannelPermutation",
    "ChromaticAberration",
    "ClampBoundingBoxes",
    "CoarseDropout",
    "Color",
    "ColorJitter",
    "ColorTemperature",
    "Compose",
    "Cond",
    "Contrast",
    "ConvertImageDtype",
    "Convolve",
    "CopyPaste",
    "CustomOp",
    "CutMix",
    "Cutout",
    "Defocus",
    "Downscale",
    "Edges",
    "ElasticTransform",
    "Emboss",
    "Equalize",
    "Fit",
    "FiveCrop",
    "Gamma",
    "GaussianBlur",
    "GaussianNoise",
    "GlassBlur",
    "Grayscale",
    "GridDistortion",
    "GridMask",
    "Hue",
    "Identity",
    "Illumination",
    "InterpolationMode",
    "Invert",
    "Lambda",
    "LetterBox",
    "LongestMaxSize",
    "Magnitude",
    "MedianBlur",
    "MixUp",
    "Morphological",
    "Mosaic",
    "MotionBlur",
    "MultiView",
    "Normalize",
    "OcclusionDiffusion",
    "OneOf",
    "OpticalDistortion",
    "OpticalFlowWarp",
    "Overlay",
    "PILToTensor",
    "Pad",
    "PercentileStretch",
    "Pipeline",
    "PixelDropout",
    "Posterize",
    "RGBShift",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAtLeastOneBoxCrop",
    "RandomAutocontrast",
    "RandomBoxSafeCrop",
    "RandomChannelPermutation",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomFog",
    "RandomGravel",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomIoUCrop",
    "RandomOrder",
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomRain",
    "RandomResize",
    "RandomResizedBoxSafeCrop",
    "RandomResizedCrop",
    "RandomRotate90",
    "RandomRotation",
    "RandomShadow",
    "RandomShortestSize",
    "RandomSnow",
    "RandomSolarize",
    "RandomSunFlare",
    "RandomToneCurve",
    "RandomVerticalFlip",
    "RandomZoomOut",
    "Resize",
    "ResizeMix",
    "Rotate",
    "SaltAndPepper",
    "SanitizeBoundingBoxes",
    "ScaleJitter",
    "Schedule",
    "Sharpness",
    "ShearX",
    "ShearY",
    "ShotNoise",
    "SmallestMaxSize",
    "Solarize",
    "SolarizeAdd",
    "SomeOf",
    "Spatter",
    "Stretch",
    "TenCrop",
    "ThinPlateSpline",
    "ThreeAugment",
    "TimmAugMix",
    "TimmRandAugment",
    "ToDtype",
    "ToImage",
    "ToPureTensor",
    "ToSepia",
    "ToTensor",
    "Transform",
    "TranslateX",
    "TranslateY",
    "Transpose",
    "TrivialAugmentWide",
    "UnsharpMask",
    "Window",
    "ZoomBlur",
    "from_dict",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The functions, which are made of these transforms, are imported on first access."""
        if name == "functional":
            return import_module(f"{__name__}.functional")
        raise missing_name(__name__, name, __all__)

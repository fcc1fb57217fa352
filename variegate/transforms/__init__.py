"""What can be done to an image: one class per operation, with torchvision.transforms.v2 names and arguments.

Policies choose among operations and stand above them; they are found here as well. Nothing below imports this file.
"""

from variegate.checks import spelt
from variegate.ops.arguments import ArgumentError, AutoAugmentPolicy, InterpolationMode
from variegate.ops.base import Transform
from variegate.ops.box_crops import (
    ClampBoundingBoxes,
    RandomAtLeastOneBoxCrop,
    RandomBoxSafeCrop,
    RandomResizedBoxSafeCrop,
    SanitizeBoundingBoxes,
)
from variegate.ops.color import (
    CLAHE,
    AutoContrast,
    Brightness,
    ChannelDropout,
    ChannelPermutation,
    Color,
    ColorTemperature,
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
from variegate.ops.compose import Compose, Cond, OneOf, RandomApply, RandomChoice, RandomOrder, SomeOf
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
from variegate.ops.deform import ElasticTransform, GridDistortion, OpticalDistortion, OpticalFlowWarp, ThinPlateSpline
from variegate.ops.description import from_dict
from variegate.ops.erase import CoarseDropout, Cutout, GridMask, OcclusionDiffusion, RandomErasing
from variegate.ops.filters import (
    JPEG,
    Convolve,
    Edges,
    Emboss,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    MotionBlur,
    PixelDropout,
    SaltAndPepper,
    Sharpness,
    ShotNoise,
    UnsharpMask,
)
from variegate.ops.finish import FiveCrop, Lambda, TenCrop
from variegate.ops.fitting import Downscale, LetterBox, LongestMaxSize, SmallestMaxSize
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
from variegate.ops.iou_crop import RandomIoUCrop
from variegate.ops.jitter import (
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
from variegate.ops.mix import CutMix, MixUp, Mosaic, ResizeMix
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
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.ops.sizes import RandomResize, RandomShortestSize, RandomZoomOut, ScaleJitter
from variegate.ops.traced import Function, Measure, TracedPipeline
from variegate.policies.augmentation import Augmentation
from variegate.policies.augmix import AugMix, TimmAugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.pba import PBA
from variegate.policies.schedule import Schedule
from variegate.policies.timm import TimmRandAugment
from variegate.policies.uniform import AdaptiveRandAugment, RandAugment, ThreeAugment, TrivialAugmentWide
from variegate.policies.views import MultiView

__all__ = ["ArgumentError", "AutoAugmentPolicy", "CustomOp", "InterpolationMode", "Magnitude", "Transform", "from_dict"]
__all__ += ["Compose", "Cond", "OneOf", "RandomApply", "RandomChoice", "RandomOrder", "SomeOf"]
__all__ += ["Function", "Measure", "TracedPipeline"]
__all__ += ["CenterCrop", "FiveCrop", "Pad", "RandomCrop", "RandomResizedCrop", "Resize", "TenCrop"]
__all__ += ["ClampBoundingBoxes", "SanitizeBoundingBoxes"]
__all__ += ["RandomAtLeastOneBoxCrop", "RandomBoxSafeCrop", "RandomIoUCrop", "RandomResizedBoxSafeCrop"]
__all__ += ["RandomResize", "RandomShortestSize", "RandomZoomOut", "ScaleJitter"]
__all__ += ["AlternatingHorizontalFlip", "RandomHorizontalFlip", "RandomRotate90", "RandomVerticalFlip"]
__all__ += ["D4", "Downscale", "LetterBox", "LongestMaxSize", "SmallestMaxSize", "Transpose"]
__all__ += ["RandomAffine", "RandomPerspective", "RandomRotation"]
__all__ += ["Rotate", "ShearX", "ShearY", "Stretch", "TranslateX", "TranslateY"]
__all__ += ["ElasticTransform", "GridDistortion", "OpticalDistortion", "OpticalFlowWarp", "ThinPlateSpline"]
__all__ += ["CLAHE", "AutoContrast", "Brightness", "ChannelPermutation", "Color", "Contrast", "Equalize", "Gamma"]
__all__ += ["ChannelDropout", "ColorTemperature"]
__all__ += ["Hue", "Invert", "Posterize", "RGBShift", "Solarize", "SolarizeAdd"]
__all__ += ["ColorJitter", "RandomAdjustSharpness", "RandomAutocontrast", "RandomChannelPermutation", "RandomEqualize"]
__all__ += ["RandomGrayscale", "RandomInvert", "RandomPhotometricDistort", "RandomPosterize", "RandomSolarize"]
__all__ += ["JPEG", "GaussianBlur", "GaussianNoise", "MedianBlur", "MotionBlur", "PixelDropout", "SaltAndPepper"]
__all__ += ["Convolve", "Edges", "Emboss", "Sharpness", "ShotNoise", "UnsharpMask"]
__all__ += ["CoarseDropout", "Cutout", "GridMask", "OcclusionDiffusion", "RandomErasing"]
__all__ += ["CutMix", "MixUp", "Mosaic", "ResizeMix"]
__all__ += ["ConvertImageDtype", "Grayscale", "Identity", "Lambda", "Normalize", "PILToTensor", "ToDtype"]
__all__ += ["ToImage", "ToPureTensor", "ToTensor"]
__all__ += ["PBA", "Augmentation", "AutoAugment", "Schedule", "TimmAugMix", "TimmRandAugment"]
__all__ += ["AdaptiveRandAugment", "AugMix", "MultiView", "RandAugment", "ThreeAugment", "TrivialAugmentWide"]

# Dataclasses, whose constructors are made when their bodies are read.
for _transform in (*Transform.registry.values(), Lambda):
    if "__init__" in vars(_transform):
        _transform.__init__ = spelt()(vars(_transform)["__init__"])  # type: ignore[misc]

"""Albumentations' transforms, and what becomes of them.

A class with arguments that mean the same is one line here, ``of(Class, argument="its name there")``; names that older
versions used follow today's. Others have a function in ``albumentations_rules.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from variegate.integrations.converters import albumentations_boxes as boxes
from variegate.integrations.converters import albumentations_crops as crops
from variegate.integrations.converters import albumentations_filters as filters
from variegate.integrations.converters import albumentations_geometry as geometry
from variegate.integrations.converters import albumentations_rules as rules
from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.ops.base import Transform
from variegate.ops.colour import ChannelDropout, ChannelPermutation
from variegate.ops.crop import RandomHorizontalFlip, RandomVerticalFlip, Transpose
from variegate.ops.tone import Posterize, RandomInvert

Rule = Callable[[Arguments], Transform | None]


def of(cls: type[Transform], constants: Mapping[str, Any] | None = None, **names: str) -> Rule:
    """A rule: ``cls`` with ``constants``, and the arguments that are called ``names`` there, where they are given."""

    def rule(given: Arguments) -> Transform:
        taken = {argument: given.take(name) for argument, name in names.items()}
        there = {argument: value for argument, value in taken.items() if value is not None}
        called = {argument: name.split()[0] for argument, name in names.items()}
        return given.place.build(cls, {**(constants or {}), **there}, called)

    return rule


def nothing(given: Arguments) -> None:
    return None


ALWAYS = {"p": 1.0}  # the probability is put in afterwards

RULES: Mapping[str, Rule] = {
    # Exact.
    "HorizontalFlip": of(RandomHorizontalFlip, ALWAYS),
    "VerticalFlip": of(RandomVerticalFlip, ALWAYS),
    "Transpose": of(Transpose, ALWAYS),
    "InvertImg": of(RandomInvert, ALWAYS),
    "ChannelDropout": of(ChannelDropout, ALWAYS, channel_drop_range="channel_drop_range", fill="fill fill_value"),
    "Posterize": of(Posterize, {"bits": 4}, bits="num_bits"),
    "ChannelSwap": of(ChannelPermutation, order="channel_order"),
    "NoOp": nothing,
    "ChannelShuffle": rules.channel_shuffle,
    "MedianBlur": filters.median_blur,
    "PixelDropout": filters.pixel_dropout,
    "RandomRotate90": rules.rotate90,
    "D4": rules.square_symmetry,
    "SquareSymmetry": rules.square_symmetry,
    "Solarize": rules.solarize,
    "RandomBrightnessContrast": rules.brightness_contrast,
    "RandomCrop": crops.random_crop,
    "BBoxSafeRandomCrop": boxes.safe_crop,
    "RandomSizedBBoxSafeCrop": boxes.resized_safe_crop,
    "AtLeastOneBBoxRandomCrop": boxes.crop_with_one,
    "Pad": crops.pad,
    "PadIfNeeded": crops.pad_if_needed,
    "RandomCropFromBorders": crops.crop_from_borders,
    "CoarseDropout": rules.coarse_dropout,
    "MultiplicativeNoise": rules.multiplied,
    "TimeReverse": of(RandomHorizontalFlip, ALWAYS),
    # Close, each with a warning that says how.
    "Crop": crops.crop,
    "CropAndPad": crops.crop_and_pad,
    "CenterCrop": crops.center_crop,
    "Resize": crops.resize,
    "SmallestMaxSize": crops.smallest_side,
    "LongestMaxSize": crops.longest_side,
    "LetterBox": crops.letter_box,
    "Downscale": crops.downscale,
    "RandomResizedCrop": crops.resized_crop,
    "RandomScale": crops.random_scale,
    "RandomSizedCrop": crops.sized_crop,
    "Rotate": geometry.rotate,
    "SafeRotate": geometry.safe_rotate,
    "Perspective": geometry.perspective,
    "ElasticTransform": geometry.elastic,
    "ShiftScaleRotate": geometry.shift_scale_rotate,
    "Affine": geometry.affine,
    "GridDistortion": geometry.grid_distortion,
    "OpticalDistortion": geometry.optical_distortion,
    "ThinPlateSpline": geometry.thin_plate_spline,
    "ColorJitter": rules.color_jitter,
    "HueSaturationValue": rules.hue,
    "PhotoMetricDistort": rules.photometric_distort,
    "PlanckianJitter": rules.planckian_jitter,
    "RandomGamma": rules.gamma,
    "ToGray": rules.to_gray,
    "RGBShift": rules.rgb_shift,
    "Equalize": rules.equalize,
    "AutoContrast": rules.autocontrast,
    "Blur": filters.box_blur,
    "Sharpen": filters.sharpen,
    "GaussianBlur": filters.gaussian_blur,
    "MotionBlur": filters.motion_blur,
    "CLAHE": rules.clahe,
    "Emboss": filters.emboss,
    "UnsharpMask": filters.unsharp_mask,
    "GaussNoise": filters.gauss_noise,
    "ShotNoise": filters.shot_noise,
    "SaltAndPepper": filters.salt_and_pepper,
    "Erasing": rules.erasing,
    "GridDropout": rules.grid_dropout,
    "Mosaic": rules.mosaic,
    "ImageCompression": filters.image_compression,
}

# What has no counterpart, and what comes nearest to it.
_OF_VOLUMES = "transforms of images: there are no volumes here"
_OF_SPECTROGRAMS = "CoarseDropout, which erases rectangles"
_BLURS = "GaussianBlur, MotionBlur or MedianBlur"
_LIGHT = "RandomBrightnessContrast or RandomGamma, of the whole image"
_WEATHER = "RandomBrightnessContrast, GaussianBlur and CoarseDropout: nothing is drawn into images here"
_REFERENCES = "ColorJitter: there are no reference images here"
_HOLES = "CoarseDropout or Erasing, which know nothing of masks and boxes"
_NOISE = "GaussNoise or ShotNoise"
_PASTED = "Mosaic, or vg.transforms.CutMix behind the pipeline"
_BENDS = "GridDistortion, OpticalDistortion or ThinPlateSpline"
_PRINTED = "Posterize or Downscale"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("Affine3D", "Anisotropy3D", "BiasField", "CenterCrop3D", "CoarseDropout3D", "CubicSymmetry"),
            *("ElasticTransform3D", "Flip3D", "GhostingArtifact", "GibbsRinging", "GridShuffle3D", "KSpaceSpikeNoise"),
            *("MotionArtifact", "Pad3D", "PadIfNeeded3D", "RandomCrop3D", "RandomResizedCrop3D", "RandomRotate90_3D"),
            *("Resize3D", "StochasticConvolution", "ToTensor3D", "UniformTemporalSubsample"),
        ),
        _OF_VOLUMES,
    ),
    **dict.fromkeys(("FrequencyMasking", "TimeMasking", "XYMasking"), _OF_SPECTROGRAMS),
    **dict.fromkeys(("AdvancedBlur", "Defocus", "GlassBlur", "ZoomBlur", "ModeFilter", "RingingOvershoot"), _BLURS),
    **dict.fromkeys(
        (
            *("Illumination", "PlasmaBrightnessContrast", "PlasmaShadow", "RandomToneCurve", "Vignetting"),
            *("ExposureMatching", "RandomShadow"),
        ),
        _LIGHT,
    ),
    **dict.fromkeys(
        (
            *("AtmosphericFog", "LensFlare", "RandomFog", "RandomGravel", "RandomRain", "RandomSnow", "RandomSunFlare"),
            *("Spatter", "AnnotationArtifacts", "TextImage", "OverlayElements"),
        ),
        _WEATHER,
    ),
    **dict.fromkeys(("FDA", "HistogramMatching", "PixelDistributionAdaptation", "TemplateTransform"), _REFERENCES),
    **dict.fromkeys(("ConstrainedCoarseDropout", "GuidedCoarseDropout", "MaskDropout"), _HOLES),
    **dict.fromkeys(("AdditiveNoise", "FilmGrain", "ISONoise", "RicianNoise"), _NOISE),
    **dict.fromkeys(("CopyAndPaste",), _PASTED),
    **dict.fromkeys(("GridElasticDeform", "PiecewiseAffine", "PixelSpread", "WaterRefraction"), _BENDS),
    **dict.fromkeys(("Dithering", "Halftone", "Superpixels"), _PRINTED),
    **dict.fromkeys(("ChromaticAberration", "FancyPCA", "HEStain"), "ColorJitter or RGBShift"),
    **dict.fromkeys(("Colorize", "ToSepia"), "a CustomOp with color_matrix, docs/custom.md"),
    "BBoxSubsetSafeRandomCrop": "BBoxSafeRandomCrop",
    "CropNonEmptyMaskIfExists": "RandomCrop, or AtLeastOneBBoxRandomCrop for samples with boxes",
    "Enhance": "Sharpen or UnsharpMask",
    "FromFloat": "nothing in its place: images are bytes here until they are normalised",
    "GridMask": "GridDropout, which erases squares: lines are erased there",
    "Lambda": "a CustomOp, docs/custom.md, or a call behind the pipeline",
    "Morphological": "MedianBlur: there is no erosion and no dilation here",
    "RandomCropNearBBox": "AtLeastOneBBoxRandomCrop or BBoxSafeRandomCrop",
    "RandomGridShuffle": "GridDropout or vg.transforms.CutMix",
    "SelectiveChannelTransform": "its transforms without it: all channels are transformed here",
}

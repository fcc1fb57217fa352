"""Albumentations' transforms, and the rule of each: ``of`` where arguments are taken as they are, else a function."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from variegate.integrations.converters import albumentations_others as others
from variegate.integrations.converters import albumentations_places as places
from variegate.integrations.converters import albumentations_values as values
from variegate.integrations.converters.albumentations_arguments import Argument, Arguments, Range, Rule, odd, of, ranged
from variegate.ops import box_crops, colour, crop, deform, filters, geometry, lighting, optics, sizes, tone, weather
from variegate.ops.base import Transform
from variegate.ops.compose import Compose
from variegate.ops.resize import Resize

_ALWAYS = {"p": 1.0}  # the probability is put in afterwards
_SIZE = Argument("height, width")
_RESAMPLED, _WARPED, _FILLED = (Arguments.resampled,), (Arguments.warped,), (Arguments.filled, Arguments.resampled)
_BOX_KEPT = "there a single box is not eroded, as it is here, and the crop's last row and column may be a pixel less"

_SYMMETRY = {"transforms": [crop.RandomRotate90(p=0.75), crop.RandomHorizontalFlip(p=0.5)]}


def _whole_levels(ends: Range) -> tuple[int, ...]:
    white = 255 if all(abs(end) <= 1 for end in ends) else 1  # shares of it, as version 2.0 takes them
    return tuple(round(white * end) for end in ends)


def _drawn(cls: type[Transform], differs: str, **older: str) -> Rule:
    """Arguments of the same names, or of ``older`` ones."""
    names = [field.name for field in dataclasses.fields(cls) if field.init and field.name != "p"]  # type: ignore[arg-type]
    arguments: dict[str, Any] = {name: f"{name} {older.get(name, '')}".strip() for name in names}
    return of(cls, _ALWAYS, differs=differs, **arguments)


RULES: Mapping[str, Rule] = {
    # Exact.
    "HorizontalFlip": of(crop.RandomHorizontalFlip, _ALWAYS),
    "VerticalFlip": of(crop.RandomVerticalFlip, _ALWAYS),
    "Transpose": of(crop.Transpose, _ALWAYS),
    "TimeReverse": of(crop.RandomHorizontalFlip, _ALWAYS),
    "InvertImg": of(tone.RandomInvert, _ALWAYS),
    "ChannelDropout": of(
        colour.ChannelDropout, _ALWAYS, channel_drop_range="channel_drop_range", fill="fill fill_value"
    ),
    "Posterize": of(tone.Posterize, {"bits": 4}, bits="num_bits"),
    "ChannelSwap": of(colour.ChannelPermutation, order="channel_order"),
    "NoOp": lambda given: None,
    "ChannelShuffle": values.channel_shuffle,
    "MedianBlur": of(filters.MedianBlur, kernel_size=ranged("blur_range blur_limit", (3, 7), to=odd)),
    "PixelDropout": of(
        filters.PixelDropout,
        require={"per_channel": (False,), "mask_drop_value": (None,)},
        dropout_prob=Argument("dropout_prob", 0.01),
        drop_value=Argument(
            "drop_value", 0, to=lambda level: int(level) if isinstance(level, float) and level.is_integer() else level
        ),
    ),
    "RandomRotate90": values.rotate90,
    **dict.fromkeys(("D4", "SquareSymmetry"), of(Compose, _SYMMETRY, require={"group_element": (None,)})),
    "Solarize": values.solarize,
    "RandomBrightnessContrast": values.brightness_contrast,
    "RandomCrop": of(
        crop.RandomCrop, require=places.CROPPED, why=places.CROPPED_WHY, ignore=places.OF_BORDERS, size=_SIZE
    ),
    "BBoxSafeRandomCrop": of(
        box_crops.RandomBoxSafeCrop, differs=_BOX_KEPT, erosion_rate=Argument("erosion_rate", 0.0)
    ),
    "RandomSizedBBoxSafeCrop": of(
        box_crops.RandomResizedBoxSafeCrop,
        differs=_BOX_KEPT,
        also=_RESAMPLED,
        size=_SIZE,
        erosion_rate=Argument("erosion_rate", 0.0),
    ),
    "AtLeastOneBBoxRandomCrop": of(
        box_crops.RandomAtLeastOneBoxCrop,
        differs="drawn among the places that hold enough of the box, in whole pixels: 1 pixel at most",
        size=_SIZE,
        erosion_factor=Argument("erosion_factor", 0.0),
    ),
    "Pad": of(crop.Pad, also=(Arguments.bordered,), padding=Argument("padding", 0)),
    "PadIfNeeded": places.pad_if_needed,
    "RandomCropFromBorders": places.crop_from_borders,
    "CoarseDropout": values.coarse_dropout,
    "MultiplicativeNoise": of(
        tone.Brightness,
        require={"per_channel": (False,), "elementwise": (False,)},
        why="one factor for the image",
        factor=ranged("multiplier", (0.9, 1.1)),
    ),
    "AdditiveNoise": others.additive_noise,
    "RandomToneCurve": of(
        colour.RandomToneCurve, scale=Argument("scale", 0.1), per_channel=Argument("per_channel", False)
    ),
    "ToSepia": of(colour.ToSepia),
    **dict.fromkeys(("FrequencyMasking", "TimeMasking", "XYMasking"), others.masking),
    # Close, each with a warning that says how.
    "Crop": places.crop,
    "CropAndPad": places.crop_and_pad,
    "CenterCrop": of(
        crop.CenterCrop,
        require=places.CROPPED,
        why=places.CROPPED_WHY,
        ignore=places.OF_BORDERS,
        differs="where an odd number of pixels is left over, the place may be one pixel off",
        size=_SIZE,
    ),
    "Resize": of(Resize, also=_RESAMPLED, size=_SIZE),
    "SmallestMaxSize": of(
        sizes.SmallestMaxSize, require={"max_size_hw": (None,)}, also=_RESAMPLED, max_size=Argument("max_size")
    ),
    "LongestMaxSize": of(
        sizes.LongestMaxSize, require={"max_size_hw": (None,)}, also=_RESAMPLED, max_size=Argument("max_size")
    ),
    "LetterBox": of(sizes.LetterBox, require={"position": ("center",)}, also=_FILLED, size=Argument("size")),
    "Downscale": places.downscale,
    "RandomResizedCrop": places.resized_crop,
    "RandomScale": places.random_scale,
    "RandomSizedCrop": places.sized_crop,
    "Rotate": of(
        geometry.Rotate, require={"crop_border": (False,)}, also=_WARPED, degrees=ranged("angle_range limit", (-90, 90))
    ),
    "SafeRotate": places.safe_rotate,
    "Perspective": places.perspective,
    "ElasticTransform": places.elastic,
    "ShiftScaleRotate": places.shift_scale_rotate,
    "Affine": places.affine,
    "GridDistortion": of(
        deform.GridDistortion,
        require=places.EXACT_MAP,
        why=places.EXACT_MAP_WHY,
        differs="strips follow one another evenly here; there two pixels along their borders show the same place: key "
        "points differ by up to 6 pixels",
        also=_WARPED,
        num_steps=Argument("num_steps", 5),
        distort_limit=ranged("distort_range distort_limit", (-0.3, 0.3)),
        normalized=Argument("normalized", True),
    ),
    "OpticalDistortion": places.optical_distortion,
    "ThinPlateSpline": places.thin_plate,
    "ColorJitter": values.color_jitter,
    "HueSaturationValue": values.hue,
    "PhotoMetricDistort": values.photometric_distort,
    "PlanckianJitter": values.planckian_jitter,
    "RandomGamma": of(
        tone.Gamma, gamma=ranged("gamma_range gamma_limit", (80, 120), 100, lambda ends: tuple(e / 100 for e in ends))
    ),
    "ToGray": of(
        colour.RandomGrayscale, _ALWAYS, require={"num_output_channels": (3,), "method": ("weighted_average",)}
    ),
    "RGBShift": of(
        tone.RGBShift,
        ignore="approximation noise_params noise_type spatial_mode",
        red=ranged("r_shift_range r_shift_limit", (-20, 20), to=_whole_levels),
        green=ranged("g_shift_range g_shift_limit", (-20, 20), to=_whole_levels),
        blue=ranged("b_shift_range b_shift_limit", (-20, 20), to=_whole_levels),
    ),
    "Equalize": values.equalize,
    "AutoContrast": values.autocontrast,
    "Blur": values.box_blur,
    "Sharpen": values.sharpen,
    "GaussianBlur": values.gaussian_blur,
    "MotionBlur": values.motion_blur,
    "CLAHE": of(
        colour.CLAHE,
        differs="in color images the luma is equalized here, LAB lightness there: 5 to 11 levels on average; "
        "gray is the same",
        clip_limit=ranged("clip_range clip_limit", (1.0, 4.0), 1.0),
        tile_grid_size=Argument("tile_grid_size", (8, 8)),
    ),
    "Emboss": of(
        filters.Emboss,
        differs=values.MIRRORED,
        alpha=ranged("alpha_range alpha", (0.2, 0.5)),
        strength=ranged("strength_range strength", (0.2, 0.7)),
    ),
    "UnsharpMask": of(
        filters.UnsharpMask,
        differs="pixels below the threshold do not change here; there the outline of the rest is blurred: 5 levels "
        "at most, 20 in version 2.0",
        at="threshold",
        blur_limit=ranged("blur_range blur_limit", (3, 7), to=odd),
        sigma_limit=ranged("sigma_range sigma_limit", (0.0, 0.0)),
        alpha=ranged("alpha_range alpha", (0.2, 0.5)),
        threshold=Argument("threshold", 10),
    ),
    "GaussNoise": values.gauss_noise,
    "ShotNoise": values.shot_noise,
    "SaltAndPepper": values.salt_and_pepper,
    "Erasing": values.erasing,
    "GridDropout": values.grid_dropout,
    "ImageCompression": values.image_compression,
    "RandomFog": _drawn(
        weather.RandomFog,
        "clouds are drawn here, and the image itself is not blurred: with defaults they are 1.4 times as dense on "
        "400 x 320 pixels, three times on 80 x 60",
    ),
    "RandomRain": _drawn(
        weather.RandomRain, "the image itself is blurred and streaks are fainter here: 6 levels darker on average"
    ),
    "Illumination": _drawn(
        lighting.Illumination, 'in mode \'corner\', "brighten" and "darken" mean the opposite there'
    ),
    "Defocus": of(
        optics.Defocus,
        differs=values.MIRRORED,
        radius_range=Argument("radius_range radius", (3, 10)),
        alias_blur_range=Argument("alias_blur_range alias_blur", (0.1, 0.5)),
    ),
    "ZoomBlur": of(
        optics.ZoomBlur,
        differs="zooms are exactly about the center here, and about up to a pixel beside it there",
        max_factor_range=Argument("max_factor_range max_factor", (1.0, 1.31)),
        step_factor_range=Argument("step_factor_range step_factor", (0.01, 0.03)),
    ),
    "ChromaticAberration": of(
        optics.ChromaticAberration,
        require={"interpolation": (1,)},
        differs="bent about the center here, and half a pixel beside it there",
        primary_distortion_range=Argument("primary_distortion_range primary_distortion_limit", (-0.02, 0.02)),
        secondary_distortion_range=Argument("secondary_distortion_range secondary_distortion_limit", (-0.05, 0.05)),
        mode=Argument("mode", "green_purple"),
    ),
    "GlassBlur": of(
        optics.GlassBlur,
        ignore="mode",
        differs="pixels are read from random places here, and change places there, but for the outermost max_delta: "
        "images change 5 to 10 % more here; with max_delta=10 up to 90 % more on 80 x 60 pixels",
        sigma=Argument("sigma", 0.7),
        max_delta=Argument("max_delta", 4),
        iterations=Argument("iterations", 2),
    ),
    "Morphological": of(
        filters.Morphological,
        differs="masks and boxes do not change here; there masks grow or shrink by up to half of scale, 1.5 pixels by "
        "default, and boxes are found in them anew",
        scale=Argument("scale", (2, 3)),
        operation=Argument("operation", "dilation"),
    ),
}

# What comes nearest to those without a counterpart.
_NEAREST = {
    "transforms of images: there are no volumes here": (
        *("Affine3D", "Anisotropy3D", "BiasField", "CenterCrop3D", "CoarseDropout3D", "CubicSymmetry"),
        *("ElasticTransform3D", "Flip3D", "GhostingArtifact", "GibbsRinging", "GridShuffle3D", "KSpaceSpikeNoise"),
        *("MotionArtifact", "Pad3D", "PadIfNeeded3D", "RandomCrop3D", "RandomResizedCrop3D", "RandomRotate90_3D"),
        *("Resize3D", "StochasticConvolution", "ToTensor3D", "UniformTemporalSubsample"),
    ),
    "RandomBrightnessContrast or RandomGamma, of the whole image": (*("PlasmaBrightnessContrast", "ExposureMatching"),),
    "RandomFog": ("AtmosphericFog",),
    "Illumination or RandomFog": ("LensFlare",),
    "Illumination": ("PlasmaShadow", "Vignetting"),
    "vg.transforms.Overlay of pictures of your own": ("AnnotationArtifacts", "TextImage", "OverlayElements"),
    "ColorJitter or AutoContrast: there are no transforms with reference images here": (
        "FDA",
        "HistogramMatching",
        "PixelDistributionAdaptation",
        "TemplateTransform",
    ),
    "CoarseDropout or Erasing, which know nothing of masks and boxes": (
        *("ConstrainedCoarseDropout", "GuidedCoarseDropout", "MaskDropout"),
    ),
    "GaussNoise or ShotNoise": ("FilmGrain", "ISONoise", "RicianNoise"),
    "GaussianBlur": ("AdvancedBlur",),
    "Sharpen or UnsharpMask": ("Enhance", "RingingOvershoot"),
    "MedianBlur": ("ModeFilter",),
    "GlassBlur": ("PixelSpread",),
    "RandomFog or RandomRain; vg.transforms.RandomSnow and RandomGravel draw differently": (
        "RandomGravel",
        "RandomSnow",
    ),
    "Illumination; vg.transforms.RandomSunFlare draws differently": ("RandomSunFlare",),
    "Illumination; vg.transforms.RandomShadow draws differently": ("RandomShadow",),
    "RandomRain; vg.transforms.Spatter draws differently": ("Spatter",),
    "ToGray; images of three channels do not change there": ("Colorize",),
    "vg.transforms.CopyPaste, whose objects are of the batch": ("CopyAndPaste",),
    "vg.transforms.Mosaic, whose partners are of the batch": ("Mosaic",),
    "GridDistortion, OpticalDistortion or ThinPlateSpline": (
        *("GridElasticDeform", "PiecewiseAffine", "WaterRefraction"),
    ),
    "Posterize or Downscale": ("Dithering", "Halftone", "Superpixels"),
    "ColorJitter or RGBShift": ("FancyPCA", "HEStain"),
    "BBoxSafeRandomCrop": ("BBoxSubsetSafeRandomCrop",),
    "RandomCrop, or AtLeastOneBBoxRandomCrop for samples with boxes": ("CropNonEmptyMaskIfExists",),
    "GridDropout, which erases squares: lines are erased there": ("GridMask",),
    "a CustomOp, docs/custom.md, or a call behind the pipeline": ("Lambda",),
    "AtLeastOneBBoxRandomCrop or BBoxSafeRandomCrop": ("RandomCropNearBBox",),
    "GridDropout or vg.transforms.CutMix": ("RandomGridShuffle",),
    "the pipeline without it: images are bytes here": ("FromFloat",),
    "its transforms without it: all channels are transformed here": ("SelectiveChannelTransform",),
}
REFUSED = {name: nearest for nearest, names in _NEAREST.items() for name in names}

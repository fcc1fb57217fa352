"""Rules of Albumentations' transforms: a row where arguments are only renamed, else a function.

``REFUSED`` has transforms without a rule, with what to use instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from variegate.interop.convert import albumentations_geometry as geometric
from variegate.interop.convert import albumentations_pixels as pixels
from variegate.interop.convert.albumentations_arguments import Argument, Arguments, Row, Rule, pair, same_names
from variegate.interop.convert.albumentations_pixels import MIRRORED_EDGES, levels, odd
from variegate.ops import box_crops, colour, crop, deform, filters, geometry, lighting, optics, sizes, tone, weather
from variegate.ops.compose import Compose
from variegate.ops.resize import Resize

_ALWAYS = {"p": 1.0}  # the probability is put in afterwards
_NOT_PADDED = {"pad_if_needed": (False,)}
_OF_PADDING = "pad_position border_mode fill"
_EXACT_MAP = {"map_resolution_range": ((1.0, 1.0),)}
_KEPT_BOX = "a single box is eroded here, not there, and the crop's last row and column may be a pixel less there"
_TURN_AND_FLIP = [crop.RandomRotate90(p=0.75), crop.RandomHorizontalFlip(p=0.5)]
_D4 = Row(Compose, constants={"transforms": _TURN_AND_FLIP}, require={"group_element": (None,)})
_SIZE_OF_SIDE = Row(
    sizes.SmallestMaxSize,
    same_names("max_size"),
    require={"max_size_hw": (None,)},
    also=(Arguments.resample,),
)


def _drop_value(value: float) -> float:
    return int(value) if value == int(value) else value


RULES: Mapping[str, Rule] = {
    # Flips, turns and channels.
    "NoOp": lambda given: None,
    "HorizontalFlip": Row(crop.RandomHorizontalFlip, constants=_ALWAYS),
    "VerticalFlip": Row(crop.RandomVerticalFlip, constants=_ALWAYS),
    "TimeReverse": Row(crop.RandomHorizontalFlip, constants=_ALWAYS),
    "Transpose": Row(crop.Transpose, constants=_ALWAYS),
    "RandomRotate90": geometric.rotate90,
    "D4": _D4,
    "SquareSymmetry": _D4,
    "ChannelShuffle": pixels.channel_shuffle,
    "ChannelSwap": Row(colour.ChannelPermutation, {"order": "channel_order"}),
    "ChannelDropout": Row(colour.ChannelDropout, same_names("channel_drop_range fill"), constants=_ALWAYS),
    # Crops and borders.
    "RandomCrop": Row(crop.RandomCrop, require=_NOT_PADDED, ignore=_OF_PADDING, also=(Arguments.size,)),
    "CenterCrop": Row(
        crop.CenterCrop,
        require=_NOT_PADDED,
        ignore=_OF_PADDING,
        note="where an odd number of pixels is left over, the crop may be one pixel off",
        also=(Arguments.size,),
    ),
    "Crop": geometric.crop,
    "CropAndPad": geometric.crop_and_pad,
    "RandomCropFromBorders": geometric.crop_from_borders,
    "Pad": Row(crop.Pad, {"padding": Argument("padding", 0)}, also=(Arguments.border,)),
    "PadIfNeeded": geometric.pad_if_needed,
    "BBoxSafeRandomCrop": Row(
        box_crops.RandomBoxSafeCrop, {"erosion_rate": Argument("erosion_rate", 0.0)}, note=_KEPT_BOX
    ),
    "RandomSizedBBoxSafeCrop": Row(
        box_crops.RandomResizedBoxSafeCrop,
        {"erosion_rate": Argument("erosion_rate", 0.0)},
        note=_KEPT_BOX,
        also=(Arguments.size, Arguments.resample),
    ),
    "AtLeastOneBBoxRandomCrop": Row(
        box_crops.RandomAtLeastOneBoxCrop,
        {"erosion_factor": Argument("erosion_factor", 0.0)},
        note="drawn among the places that hold enough of the box, in whole pixels: 1 pixel at most",
        also=(Arguments.size,),
    ),
    # Resizes.
    "Resize": Row(Resize, also=(Arguments.size, Arguments.resample)),
    "SmallestMaxSize": _SIZE_OF_SIDE,
    "LongestMaxSize": Row(
        sizes.LongestMaxSize, _SIZE_OF_SIDE.arguments, require=_SIZE_OF_SIDE.require, also=_SIZE_OF_SIDE.also
    ),
    "LetterBox": Row(
        sizes.LetterBox,
        same_names("size"),
        require={"position": ("center",)},
        also=(Arguments.fill, Arguments.resample),
    ),
    "Downscale": geometric.downscale,
    "RandomScale": geometric.random_scale,
    "RandomSizedCrop": geometric.sized_crop,
    "RandomResizedCrop": geometric.resized_crop,
    # Maps of coordinates.
    "Rotate": Row(
        geometry.Rotate,
        {"degrees": pair("angle_range limit", -90, 90)},
        require={"crop_border": (False,)},
        also=(Arguments.warp,),
    ),
    "SafeRotate": geometric.safe_rotate,
    "ShiftScaleRotate": geometric.shift_scale_rotate,
    "Affine": geometric.affine,
    "Perspective": geometric.perspective,
    "ElasticTransform": geometric.elastic,
    "GridDistortion": Row(
        deform.GridDistortion,
        {
            "num_steps": Argument("num_steps", 5),
            "distort_limit": pair("distort_range distort_limit", -0.3, 0.3),
            "normalized": Argument("normalized", True),
        },
        require=_EXACT_MAP,
        note="strips follow one another evenly here; there two pixels along their borders show the same position: "
        "key points differ by up to 6 pixels",
        also=(Arguments.warp,),
    ),
    "OpticalDistortion": Row(
        deform.OpticalDistortion,
        {"distort_limit": pair("distort_range distort_limit", -0.05, 0.05), "mode": "mode"},
        require=_EXACT_MAP,
        note="about the image's center here, half a pixel up and to the left of it there: positions differ by up to "
        "1.7 pixels at a distort_range of 0.3",
        also=(Arguments.warp,),
    ),
    "ThinPlateSpline": geometric.thin_plate,
    # Colors.
    "InvertImg": Row(tone.RandomInvert, constants=_ALWAYS),
    "Posterize": Row(tone.Posterize, {"bits": Argument("num_bits", 4)}),
    "Solarize": Row(
        tone.Solarize,
        {"threshold": pair("threshold_range", 0.5, 0.5, lambda ends: (255.0 * ends[0], 255.0 * ends[1]))},
    ),
    "RandomGamma": Row(
        tone.Gamma, {"gamma": pair("gamma_range gamma_limit", 80, 120, lambda ends: (ends[0] / 100, ends[1] / 100))}
    ),
    "RandomBrightnessContrast": pixels.brightness_contrast,
    "RGBShift": Row(
        tone.RGBShift,
        {
            "red": pair("r_shift_range r_shift_limit", -20, 20, levels),
            "green": pair("g_shift_range g_shift_limit", -20, 20, levels),
            "blue": pair("b_shift_range b_shift_limit", -20, 20, levels),
        },
        ignore="approximation noise_params noise_type spatial_mode",
    ),
    "MultiplicativeNoise": Row(
        tone.Brightness,
        {"factor": pair("multiplier", 0.9, 1.1)},
        require={"per_channel": (False,), "elementwise": (False,)},
    ),
    "RandomToneCurve": Row(
        colour.RandomToneCurve, {"scale": Argument("scale", 0.1), "per_channel": Argument("per_channel", False)}
    ),
    "ToSepia": Row(colour.ToSepia),
    "ToGray": Row(
        colour.RandomGrayscale,
        constants=_ALWAYS,
        require={"num_output_channels": (3,), "method": ("weighted_average",)},
    ),
    "ColorJitter": pixels.color_jitter,
    "HueSaturationValue": pixels.hue_saturation_value,
    "PhotoMetricDistort": pixels.photometric_distort,
    "Equalize": pixels.equalize,
    "AutoContrast": pixels.autocontrast,
    "CLAHE": Row(
        colour.CLAHE,
        {
            "clip_limit": pair("clip_range clip_limit", 1.0, 4.0),
            "tile_grid_size": Argument("tile_grid_size", (8, 8)),
        },
        note="in color images the luma is equalized here, LAB lightness there: up to 14 levels on average",
    ),
    "Illumination": Row(
        lighting.Illumination,
        same_names(
            "mode intensity_range effect_type angle_range center_range sigma_range num_spots_range gaussian_spots"
        ),
        constants=_ALWAYS,
        note='in mode \'corner\', "brighten" and "darken" mean the opposite there',
    ),
    # Filters and compression.
    "Blur": pixels.box_blur,
    "GaussianBlur": pixels.gaussian_blur,
    "MedianBlur": Row(filters.MedianBlur, {"kernel_size": pair("blur_range blur_limit", 3, 7, odd)}),
    "MotionBlur": pixels.motion_blur,
    "Defocus": Row(
        optics.Defocus,
        {
            "radius_range": pair("radius_range radius", 3, 10),
            "alias_blur_range": pair("alias_blur_range alias_blur", 0.1, 0.5),
        },
        note=MIRRORED_EDGES,
    ),
    "ZoomBlur": Row(
        optics.ZoomBlur,
        {
            "max_factor_range": pair("max_factor_range max_factor", 1.0, 1.31),
            "step_factor_range": pair("step_factor_range step_factor", 0.01, 0.03),
        },
        note="zooms are exactly about the center here, up to about a pixel beside it there: 1.5 levels on average",
    ),
    "GlassBlur": Row(
        optics.GlassBlur,
        {
            "sigma": Argument("sigma", 0.7),
            "max_delta": Argument("max_delta", 4),
            "iterations": Argument("iterations", 2),
        },
        ignore="mode",
        note="pixels are read from random places here, and change places there, but for the outermost max_delta: "
        "images change up to 10 % more here",
    ),
    "ChromaticAberration": Row(
        optics.ChromaticAberration,
        {
            "primary_distortion_range": pair("primary_distortion_range primary_distortion_limit", -0.02, 0.02),
            "secondary_distortion_range": pair("secondary_distortion_range secondary_distortion_limit", -0.05, 0.05),
            "mode": Argument("mode", "green_purple"),
        },
        require={"interpolation": (1,)},
        note="bent about the center here, half a pixel beside it there: 0.1 levels on average",
    ),
    "Emboss": Row(
        filters.Emboss,
        {"alpha": pair("alpha_range alpha", 0.2, 0.5), "strength": pair("strength_range strength", 0.2, 0.7)},
        note=MIRRORED_EDGES,
    ),
    "Sharpen": pixels.sharpen,
    "UnsharpMask": Row(
        filters.UnsharpMask,
        {
            "blur_limit": pair("blur_range blur_limit", 3, 7, odd),
            "sigma_limit": pair("sigma_range sigma_limit", 0.0, 0.0),
            "alpha": pair("alpha_range alpha", 0.2, 0.5),
            "threshold": Argument("threshold", 10),
        },
        note="pixels below the threshold stay here, and there the outline of the rest is blurred: 20 levels at most",
    ),
    "Morphological": Row(
        filters.Morphological,
        {"scale": pair("scale", 2, 3), "operation": Argument("operation", "dilation")},
        note="masks and boxes do not change here; there they grow or shrink by half of scale, 1.5 pixels by default",
    ),
    "ImageCompression": pixels.image_compression,
    # Noise, erasing and weather.
    "GaussNoise": pixels.gauss_noise,
    "AdditiveNoise": pixels.additive_noise,
    "SaltAndPepper": pixels.salt_and_pepper,
    "PixelDropout": Row(
        filters.PixelDropout,
        {"dropout_prob": Argument("dropout_prob", 0.01), "drop_value": Argument("drop_value", 0, _drop_value)},
        require={"per_channel": (False,), "mask_drop_value": (None,)},
    ),
    "CoarseDropout": pixels.coarse_dropout,
    "GridDropout": pixels.grid_dropout,
    "Erasing": pixels.erasing,
    "XYMasking": geometric.xy_masking,
    "TimeMasking": geometric.time_masking,
    "FrequencyMasking": geometric.frequency_masking,
    "RandomFog": Row(
        weather.RandomFog,
        same_names("fog_coef_range alpha_coef"),
        constants=_ALWAYS,
        note="clouds are drawn here, and the image itself is not blurred: they are about 1.4 times as dense on "
        "400 x 320 pixels",
    ),
    "RandomRain": Row(
        weather.RandomRain,
        same_names("slant_range drop_length drop_width drop_color blur_value brightness_coefficient rain_type"),
        constants=_ALWAYS,
        note="the image itself is blurred and streaks are fainter here: 6 levels darker on average",
    ),
}

_VOLUMES = (
    "Affine3D Anisotropy3D BiasField CenterCrop3D CoarseDropout3D CubicSymmetry ElasticTransform3D Flip3D "
    "GhostingArtifact GibbsRinging GridShuffle3D KSpaceSpikeNoise MotionArtifact Pad3D PadIfNeeded3D RandomCrop3D "
    "RandomResizedCrop3D RandomRotate90_3D Resize3D StochasticConvolution ToTensor3D UniformTemporalSubsample"
)
# What is nearest to transforms without a rule.
_NEAREST = {
    "transforms of images: there are no volumes here": _VOLUMES,
    "RandomBrightnessContrast or RandomGamma, of the whole image": "PlasmaBrightnessContrast ExposureMatching",
    "RandomFog": "AtmosphericFog",
    "Illumination or RandomFog": "LensFlare",
    "Illumination": "PlasmaShadow Vignetting",
    "vg.transforms.Overlay of pictures of your own": "AnnotationArtifacts TextImage OverlayElements",
    "ColorJitter or RandomToneCurve": "FDA HistogramMatching PixelDistributionAdaptation TemplateTransform",
    "CoarseDropout or Erasing, which know nothing of masks and boxes": (
        "ConstrainedCoarseDropout GuidedCoarseDropout MaskDropout"
    ),
    "GaussNoise": "FilmGrain ISONoise RicianNoise",
    "GaussNoise; vg.transforms.ShotNoise draws differently": "ShotNoise",
    "GaussianBlur": "AdvancedBlur",
    "Sharpen or UnsharpMask": "Enhance RingingOvershoot",
    "MedianBlur": "ModeFilter",
    "GlassBlur": "PixelSpread",
    "RandomFog or RandomRain; vg.transforms.RandomSnow and RandomGravel draw differently": "RandomGravel RandomSnow",
    "Illumination; vg.transforms.RandomSunFlare draws differently": "RandomSunFlare",
    "Illumination; vg.transforms.RandomShadow draws differently": "RandomShadow",
    "RandomRain; vg.transforms.Spatter draws differently": "Spatter",
    "ToGray; images of three channels do not change there": "Colorize",
    "vg.transforms.CopyPaste, whose objects are of the batch": "CopyAndPaste",
    "vg.transforms.Mosaic, whose partners are of the batch": "Mosaic",
    "GridDistortion, OpticalDistortion or ThinPlateSpline": "GridElasticDeform PiecewiseAffine WaterRefraction",
    "Posterize or Downscale": "Dithering Halftone Superpixels",
    "ColorJitter or RGBShift": "FancyPCA HEStain",
    "RGBShift; vg.transforms.ColorTemperature, in linear light, is half as strong": "PlanckianJitter",
    "BBoxSafeRandomCrop": "BBoxSubsetSafeRandomCrop",
    "RandomCrop, or AtLeastOneBBoxRandomCrop for samples with boxes": "CropNonEmptyMaskIfExists",
    "GridDropout, which erases squares: lines are erased there": "GridMask",
    "a CustomOp, docs/custom.md, or a call behind the pipeline": "Lambda",
    "AtLeastOneBBoxRandomCrop or BBoxSafeRandomCrop": "RandomCropNearBBox",
    "GridDropout or vg.transforms.CutMix": "RandomGridShuffle",
    "the pipeline without it: images are bytes here": "FromFloat",
    "its transforms without it: all channels are transformed here": "SelectiveChannelTransform",
}
REFUSED = {name: nearest for nearest, names in _NEAREST.items() for name in names.split()}

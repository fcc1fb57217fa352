"""Arguments with which ``benchmarks/albumentations_audit.py`` compares Albumentations' classes with their conversions.

Names are those of AlbumentationsX 2.5.1; ``OLDER`` has those of Albumentations 2.0.8. Each class is also compared with
its default arguments, or with the first of its cases if it has required ones. A case with fixed draws is compared
pixel by pixel; others by their distributions.
"""

from __future__ import annotations

from typing import Any

# Draws of "(-20, 20)" and the like stay random; equal ends fix them.
_SIZE = {"height": 60, "width": 80}
_IGNORED = {"fill": 9, "fill_mask": 255}
_MIRRORED = {"border_mode": 4}

# Classes without default arguments; the first case stands for these.
REQUIRED = (
    "AtLeastOneBBoxRandomCrop",
    "CenterCrop",
    "Crop",
    "CropAndPad",
    "LetterBox",
    "LongestMaxSize",
    "RandomCrop",
    "RandomResizedCrop",
    "RandomSizedBBoxSafeCrop",
    "RandomSizedCrop",
    "Resize",
    "SmallestMaxSize",
    "XYMasking",
)

CASES: dict[str, list[dict[str, Any]]] = {
    "AdditiveNoise": [
        {"noise_params": {"ranges": [(0.1, 0.1)]}},
        {"spatial_mode": "per_pixel", "noise_type": "gaussian",
         "noise_params": {"mean_range": (0.0, 0.0), "std_range": (0.1, 0.1)}},
    ],
    "Affine": [
        {"rotate": (20, 20)},
        {"rotate": (20, 20), **_IGNORED},
        {"rotate": (30, 30), **_MIRRORED},
        {"scale": (0.7, 0.7), "translate_percent": (0.1, 0.1)},
        {"shear": {"x": (10, 10), "y": (-5, -5)}, "rotate": (-15, -15)},
        {"translate_px": {"x": (7, 7), "y": (-5, -5)}},
        {"rotate": (-30, 30), "scale": (0.8, 1.2)},
    ],
    "AtLeastOneBBoxRandomCrop": [_SIZE],
    "AutoContrast": [{"method": "pil"}],
    "Blur": [{"blur_range": (5, 5)}],
    "CLAHE": [{"clip_range": (2.0, 2.0)}],
    "CenterCrop": [_SIZE, {"height": 61, "width": 79}],
    "ChannelDropout": [{"channel_drop_range": (1, 2), "fill": 7}],
    "ChannelSwap": [{"channel_order": (2, 1, 0)}],
    "ChromaticAberration": [
        {"primary_distortion_range": (0.02, 0.02), "secondary_distortion_range": (0.05, 0.05)}
    ],
    "CoarseDropout": [
        {"num_holes_range": (3, 3), "hole_height_range": (0.2, 0.3), "hole_width_range": (0.2, 0.3), "fill": 255},
        {"fill_mask": 255},
        {"num_holes_range": (1, 1), "hole_height_range": (0.9, 0.9), "hole_width_range": (0.9, 0.9)},
        {"hole_height_range": (1.0, 1.0), "hole_width_range": (1.0, 1.0), "num_holes_range": (1, 1)},
    ],
    "ColorJitter": [
        {"brightness_range": (1.2, 1.2), "contrast_range": (1, 1), "saturation_range": (1, 1), "hue_range": (0, 0)},
        {"brightness_range": (1, 1), "contrast_range": (0.7, 0.7), "saturation_range": (1, 1), "hue_range": (0, 0)},
        {"brightness_range": (1, 1), "contrast_range": (1, 1), "saturation_range": (0.5, 0.5), "hue_range": (0, 0)},
        {"brightness_range": (1, 1), "contrast_range": (1, 1), "saturation_range": (1, 1), "hue_range": (0.1, 0.1)},
    ],
    "Colorize": [{"white_range": ((200, 100, 50), (200, 100, 50))}],
    "Crop": [{"x_min": 10, "y_min": 5, "x_max": 90, "y_max": 70}],
    "CropAndPad": [
        {"px": 4},
        {"px": (-6, 3, -2, 5), "keep_size": False, **_IGNORED},
        {"percent": (0.1, 0.1), "sample_independently": False, "keep_size": False, "border_mode": 4},
        {"percent": (-0.1, 0.1)},
    ],
    "Defocus": [{"radius_range": (4, 4), "alias_blur_range": (0.3, 0.3)}],
    "Downscale": [{"scale_range": (0.5, 0.5)}],
    "ElasticTransform": [{"alpha": 100, "sigma": 8}],
    "Emboss": [{"alpha_range": (0.3, 0.3), "strength_range": (0.5, 0.5)}],
    "Equalize": [{"mode": "pil"}],
    "Erasing": [{"scale": (0.1, 0.1), "ratio": (1.0, 1.0), "fill": 200}, {"fill": "random"}, {"fill_mask": 255}],
    "FrequencyMasking": [{"freq_mask_param": 60}],
    "GaussNoise": [{"std_range": (0.1, 0.1), "per_channel": True}],
    "GaussianBlur": [
        {"sigma_range": (2.0, 2.0)},
        {"blur_range": (5, 5), "sigma_range": (1.5, 1.5)},
    ],
    "GlassBlur": [{"max_delta": 2, "iterations": 1}],
    "GridDistortion": [{"distort_range": (0.2, 0.2)}, {"border_mode": 4}, {**_IGNORED}],
    "GridDropout": [{"fill_mask": 255}],
    "HorizontalFlip": [],
    "HueSaturationValue": [
        {"hue_shift_range": (20, 20), "sat_shift_range": (0, 0), "val_shift_range": (0, 0)},
        {"hue_shift_range": (0, 0), "sat_shift_range": (30, 30), "val_shift_range": (0, 0)},
        {"hue_shift_range": (0, 0), "sat_shift_range": (0, 0), "val_shift_range": (20, 20)},
        {"hue_shift_range": (0, 0), "sat_shift_range": (0, 0), "val_shift_range": (0, 0)},
    ],
    "Illumination": [{"mode": "corner"}, {"mode": "gaussian"}],
    "ImageCompression": [{"quality_range": (50, 50)}, {"quality_range": (90, 90)}],
    "InvertImg": [],
    "LetterBox": [
        {"size": (80, 80)},
        {"size": (200, 200), "fill": 9, "fill_mask": 255},
        {"size": (160, 150)},
    ],
    "LongestMaxSize": [{"max_size": 64}, {"max_size": 200}, {"max_size": 128}],
    "MedianBlur": [{"blur_range": (5, 5)}],
    "Morphological": [{"scale": (3, 3), "operation": "erosion"}],
    "MotionBlur": [
        {"blur_range": (7, 7), "angle_range": (30, 30), "direction_range": (0, 0), "allow_shifted": False}
    ],
    "MultiplicativeNoise": [{"multiplier": (1.3, 1.3)}, {"multiplier": (0.5, 1.5), "per_channel": True}],
    "Normalize": [{"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}],
    "OpticalDistortion": [
        {"distort_range": (0.3, 0.3)},
        {"distort_range": (0.3, 0.3), "mode": "fisheye"},
        {"distort_range": (-0.3, -0.3), **_IGNORED},
        {"border_mode": 4},
    ],
    "Pad": [{"padding": 10}, {"padding": (3, 5, 7, 9), **_IGNORED}, {"padding": 12, "border_mode": 4}],
    "PadIfNeeded": [
        {"min_height": 120, "min_width": 150},
        {"min_height": 121, "min_width": 151, "position": "top_left", **_IGNORED},
        {"min_height": 120, "min_width": 150, "border_mode": 4},
        {"min_height": None, "min_width": None, "pad_height_divisor": 50, "pad_width_divisor": 50},
    ],
    "Perspective": [{"scale": (0.1, 0.1), **_IGNORED}, {"border_mode": 4}],
    "PhotoMetricDistort": [],
    "PixelDropout": [{"dropout_prob": 0.3}, {"dropout_prob": 0.2, "drop_value": 255}],
    "PlanckianJitter": [{"temperature_range": (5000, 7000)}],
    "Posterize": [{"num_bits": (3, 3)}],
    "RGBShift": [{"r_shift_range": (20, 20), "g_shift_range": (-10, -10), "b_shift_range": (0, 0)}],
    "RandomBrightnessContrast": [
        {"brightness_range": (0.2, 0.2), "contrast_range": (0, 0)},
        {"brightness_range": (0, 0), "contrast_range": (0.3, 0.3)},
        {"brightness_range": (-0.2, -0.2), "contrast_range": (0.3, 0.3)},
        {"brightness_by_max": False, "brightness_range": (0.2, 0.2), "contrast_range": (0.2, 0.2)},
    ],
    "RandomCrop": [_SIZE],
    "RandomCropFromBorders": [{"crop_left": 0.3, "crop_right": 0.3, "crop_top": 0.3, "crop_bottom": 0.3}],
    "RandomFog": [{"fog_coef_range": (0.5, 0.5)}],
    "RandomGamma": [{"gamma_range": (150, 150)}, {"gamma_range": (60, 60)}],
    "RandomRain": [{"blur_value": 1}, {"brightness_coefficient": 1.0}],
    "RandomResizedCrop": [{"size": (48, 48)}, {"size": (96, 96)}],
    "RandomScale": [{"scale_range": (0.5, 0.5)}, {"scale_range": (-0.5, -0.5)}],
    "RandomSizedBBoxSafeCrop": [_SIZE],
    "RandomSizedCrop": [{"min_max_height": (48, 80), "size": (60, 80)}],
    "RandomToneCurve": [{"scale": 0.2, "per_channel": True}],
    "Resize": [{"height": 12, "width": 16}, {"height": 192, "width": 200}, {"height": 50, "width": 77}],
    "Rotate": [
        {"angle_range": (30, 30)},
        {"angle_range": (30, 30), **_IGNORED},
        {"angle_range": (30, 30), **_MIRRORED},
        {"angle_range": (30, 30), "interpolation": 0},
        {"angle_range": (30, 30), "interpolation": 2},
    ],
    "SafeRotate": [
        {"angle_range": (30, 30)},
        {"angle_range": (30, 30), **_IGNORED},
        {"angle_range": (30, 30), **_MIRRORED},
    ],
    "SaltAndPepper": [{"amount_range": (0.1, 0.1), "salt_vs_pepper_range": (0.5, 0.5)}],
    "Sharpen": [
        {"alpha_range": (0.5, 0.5), "lightness_range": (1.0, 1.0)},
        {"method": "gaussian", "alpha_range": (0.5, 0.5)},
    ],
    "ShiftScaleRotate": [
        {"shift_range": (0.1, 0.1), "scale_range": (0.2, 0.2), "rotate_range": (20, 20)},
        {**_IGNORED},
        {**_MIRRORED},
    ],
    "ShotNoise": [{"scale_range": (0.1, 0.1)}],
    "SmallestMaxSize": [{"max_size": 48}, {"max_size": 150}],
    "Solarize": [{"threshold_range": (0.3, 0.3)}],
    "ThinPlateSpline": [{**_IGNORED}, {"border_mode": 4}],
    "TimeMasking": [{"time_mask_param": 60}],
    "ToGray": [],
    "ToSepia": [],
    "UnsharpMask": [
        {"blur_range": (5, 5), "sigma_range": (1.5, 1.5), "alpha_range": (0.5, 0.5)},
        {"blur_range": (5, 5), "sigma_range": (1.5, 1.5), "alpha_range": (0.5, 0.5), "threshold": 0},
    ],
    "XYMasking": [
        {"num_masks_x_range": (1, 1), "mask_x_length_range": (10, 30)},
        {"num_masks_y_range": (1, 1), "mask_y_length_range": (10, 30), "fill_mask": 255},
        {"num_masks_y_range": (1, 1), "mask_y_length_range": (10, 30), "fill": 200},
    ],
    "ZoomBlur": [{"max_factor_range": (1.2, 1.2), "step_factor_range": (0.02, 0.02)}],
}  # fmt: skip

_ENDS = "brightness contrast saturation hue"
# Names of version 2.0.8.
OLDER: dict[str, dict[str, str]] = {
    "Blur": {"blur_range": "blur_limit"},
    "CLAHE": {"clip_range": "clip_limit"},
    "ChromaticAberration": {
        "primary_distortion_range": "primary_distortion_limit",
        "secondary_distortion_range": "secondary_distortion_limit",
    },
    "ColorJitter": {f"{name}_range": name for name in _ENDS.split()},
    "Defocus": {"radius_range": "radius", "alias_blur_range": "alias_blur"},
    "Emboss": {"alpha_range": "alpha", "strength_range": "strength"},
    "GaussianBlur": {"blur_range": "blur_limit", "sigma_range": "sigma_limit"},
    "GridDistortion": {"distort_range": "distort_limit"},
    "HueSaturationValue": {f"{name}_shift_range": f"{name}_shift_limit" for name in ("hue", "sat", "val")},
    "MedianBlur": {"blur_range": "blur_limit"},
    "MotionBlur": {"blur_range": "blur_limit"},
    "OpticalDistortion": {"distort_range": "distort_limit"},
    "PlanckianJitter": {"temperature_range": "temperature_limit"},
    "RGBShift": {f"{name}_shift_range": f"{name}_shift_limit" for name in "rgb"},
    "RandomBrightnessContrast": {"brightness_range": "brightness_limit", "contrast_range": "contrast_limit"},
    "RandomGamma": {"gamma_range": "gamma_limit"},
    "RandomScale": {"scale_range": "scale_limit"},
    "Rotate": {"angle_range": "limit"},
    "SafeRotate": {"angle_range": "limit"},
    "SaltAndPepper": {"amount_range": "amount", "salt_vs_pepper_range": "salt_vs_pepper"},
    "Sharpen": {"alpha_range": "alpha", "lightness_range": "lightness"},
    "ShiftScaleRotate": {"shift_range": "shift_limit", "scale_range": "scale_limit", "rotate_range": "rotate_limit"},
    "UnsharpMask": {"blur_range": "blur_limit", "sigma_range": "sigma_limit", "alpha_range": "alpha"},
    "XYMasking": {f"{name}_range": name for name in ("num_masks_x", "num_masks_y", "mask_x_length", "mask_y_length")},
    "ZoomBlur": {"max_factor_range": "max_factor", "step_factor_range": "step_factor"},
}


def arguments_of(name: str, arguments: dict[str, Any], is_older: bool) -> dict[str, Any]:
    """``arguments`` under the names of the installed version."""
    names = OLDER.get(name, {}) if is_older else {}
    return {names.get(key, key): value for key, value in arguments.items()}

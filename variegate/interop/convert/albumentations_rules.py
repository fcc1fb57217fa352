"""Conversion rules for each class of Albumentations: ``RULES``, and replacements of the classes in ``REFUSED``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from variegate.interop.convert import drawn
from variegate.interop.convert.albumentations_arguments import Arguments, Pair
from variegate.ops import box_crops, color, crop, deform, filters, geometry, lighting, optics, sizes, tone, weather
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf, RandomApply
from variegate.ops.erase import CoarseDropout, GridMask, RandomErasing
from variegate.ops.output import Normalize, ToDtype
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.pipelines import Pipeline

# Albumentations' names of arguments that all rules call alike.
_THEIR_NAMES = {"padding_mode": "border_mode"}


class Rule:
    """Makes a transform of one of Albumentations.

    Args:
        make: a class, a pipeline, or a function of values (and of ``arguments``, the ``Arguments`` that have them).
        names: of a class, the names of its arguments, or "name=library's name". A function's or pipeline's own
            parameters are its defaults, so that only differing names are listed.
        ignored: arguments without a meaning here.
        difference: what differs, if any, of ``targets``, or of images.
        constants: further arguments of a class.
    """

    def __init__(
        self,
        make: Any,
        names: str = "",
        *,
        ignored: str = "",
        difference: str = "",
        targets: str = "",
        **constants: Any,
    ) -> None:
        pairs = [text.partition("=")[::2] for text in names.split()]
        if not isinstance(make, type):
            parameters = inspect.signature(make.function if isinstance(make, Pipeline) else make).parameters
            self._takes_arguments = "arguments" in parameters
            pairs = [*((name, "") for name in parameters if name not in ("image", "arguments")), *pairs]
        # The library's name of each argument.
        self._names = {name: theirs or _THEIR_NAMES.get(name, name) for name, theirs in pairs}
        self._make = make
        self._ignored, self._difference, self._targets = ignored, difference, targets
        self._constants = constants

    def convert(self, arguments: Arguments) -> Transform | None:
        """Raises ConversionError for a value that this rule does not convert."""
        values = {name: arguments.read(theirs) for name, theirs in self._names.items()}
        if self._difference:
            arguments.add_difference(self._difference, self._targets)
        converted = self._apply(arguments, values)
        arguments.finish(self._ignored)
        return converted

    def _apply(self, arguments: Arguments, values: dict[str, Any]) -> Transform | None:
        make = self._make
        if isinstance(make, Pipeline):
            return _pipeline(arguments, make, **values)
        if isinstance(make, type):
            stated = {name: value for name, value in values.items() if value is not None}
            return arguments.node.build(make, self._names, **{**self._constants, **stated})
        if self._takes_arguments:
            values["arguments"] = arguments
        try:
            made: Transform | None = make(**values)
        except ArgumentError as error:
            raise arguments.node.error(self._names.get(error.argument, ""), error.got, error.accepted) from error
        return made


# -- functions of rules that need arithmetic -------------------------------------------------------------------------


def _levels(ends: Pair) -> tuple[int, int]:
    """Whole levels. Version 2.0 takes shares of 255 as well."""
    white = 255 if all(abs(end) <= 1 for end in ends) else 1
    return round(white * ends[0]), round(white * ends[1])


def _plus_one(ends: Pair) -> Pair:
    return 1 + ends[0], 1 + ends[1]


def _choose(transforms: list[Transform]) -> Transform:
    return transforms[0] if len(transforms) == 1 else OneOf(transforms)


def _in_order(transforms: list[Transform]) -> Transform | None:
    if len(transforms) > 1:
        return Compose(transforms)
    return transforms[0] if transforms else None


def _no_op() -> None:
    return None


def _channel_shuffle(channel_order: Any) -> Transform:
    return color.ChannelPermutation(channel_order) if channel_order else color.RandomChannelPermutation()


def _brightness_contrast(
    arguments: Arguments, brightness_range: Pair, contrast_range: Pair, brightness_by_max: bool
) -> Transform:
    """Contrast and brightness of torchvision in AlbumentationsX; ``c x + b`` in 2.0, b a share of 255 or the mean."""
    if not (arguments.is_older or brightness_by_max):
        return Compose([color.Contrast(_plus_one(contrast_range)), tone.Brightness(_plus_one(brightness_range))])
    if not brightness_by_max:
        arguments.add_difference("3 levels: the mean of the luma here, of all channels there")
    linear = drawn.linear if brightness_by_max else drawn.linear_of_mean
    return _pipeline(arguments, linear, brightness_range=brightness_range, contrast_range=contrast_range)


def _pipeline(arguments: Arguments, made_by: Pipeline, **constants: Any) -> Transform:
    return arguments.node.build(Pipeline, function=made_by.function, constants=constants)


def _photometric_distort(brightness: Pair, contrast: Pair, saturation: Pair, hue: Pair, p: float) -> Transform:
    """A Compose, because its probability is the probability of each of its parts."""
    return Compose([color.RandomPhotometricDistort(brightness, contrast, saturation, hue, p=p)])


def _hue_saturation_value(
    arguments: Arguments, hue_shift_range: Pair, sat_shift_range: Pair, val_shift_range: Pair
) -> Transform | None:
    steps: list[Transform] = []
    if any(hue_shift_range):
        low, high = hue_shift_range
        steps.append(color.Hue((low / 180, high / 180)))  # cv2 has half as many hues as degrees
    if any(sat_shift_range):
        arguments.add_difference("up to a third of the shift of saturation: blended with the luma here, added there")
        low, high = sat_shift_range
        # Photos come closest where a shift is a share of 130.
        steps.append(color.Color((max(1 + low / 130, 0.0), max(1 + high / 130, 0.0))))
    if any(val_shift_range):
        arguments.add_difference("a third of the shift of value: added to all channels here, to the greatest there")
        low, high = val_shift_range
        steps.append(tone.SolarizeAdd((round(low), round(high)), threshold=256))
    return _in_order(steps)


_EQUALIZED = "6 levels on average, 50 at most: Pillow's Equalize here"


def _equalize(arguments: Arguments, mode: str) -> Transform:
    newer = "; mode='pil' of AlbumentationsX is the same" if mode == "pil" else ""
    arguments.add_difference(_EQUALIZED + newer)
    return color.Equalize()


def _autocontrast(arguments: Arguments, method: str) -> Transform:
    if method == "cdf":  # makes the histogram flat
        arguments.add_difference(_EQUALIZED)
        return color.Equalize()
    arguments.add_difference("1 level on most photos, 29 at most: a channel's ends may be other levels there")
    return color.AutoContrast()


def _box_blur(blur_range: tuple[int, int]) -> Transform:
    sides = range(blur_range[0], blur_range[1] + 1, 2)
    return _choose([filters.Convolve(((1 / side**2,) * side,) * side) for side in sides])


def _gaussian_blur(arguments: Arguments, blur_range: tuple[int, int], sigma_range: Pair) -> Transform:
    low, high = blur_range
    if high == 0:  # as large as the greatest sigma needs; a larger one adds next to nothing
        low = high = int(sigma_range[1] * 3.5) * 2 + 1
        if not arguments.is_older:
            arguments.add_difference("5 levels at most: a Gaussian here, Pillow's three box blurs there")
    return _choose([filters.GaussianBlur(side, sigma_range) for side in range(low or 1, high + 1, 2)])


def _motion_blur(
    arguments: Arguments, blur_range: tuple[int, int], angle_range: Pair, direction_range: Pair
) -> Transform:
    """Angles turn the other way there, and the line runs from its other end."""
    arguments.add_difference(
        f"{1 + blur_range[1] / 12:.0f} levels on average: the line is rounded to whole pixels there"
    )
    angles, directions = ((0.0 - high, 0.0 - low) for low, high in (angle_range, direction_range))
    return filters.MotionBlur(blur_range, angles, directions)


def _sharpen(
    arguments: Arguments, alpha_range: Pair, lightness_range: Pair, kernel_size: int, sigma: float, method: str
) -> Transform:
    if method == "gaussian":
        if arguments.is_older:
            arguments.refuse("method", method, "'kernel': in version 2.0 the bytes of this method wrap around")
        return filters.UnsharpMask(kernel_size, sigma, alpha_range, threshold=0)
    # The factor by which the rounding of the smoothed image grows.
    alpha, lightness = alpha_range[1], lightness_range[0]
    growth = (1 + alpha * (lightness + 12)) / max(1 + alpha * (lightness - 1), 1e-3)
    mean = math.sqrt(min(growth, 255.0)) - 1
    arguments.add_difference(f"up to {mean:.0f} levels on average: of a smoothed image of whole levels here")
    return _pipeline(arguments, drawn.sharpen, alpha_range=alpha_range, lightness_range=lightness_range)


def _image_compression(arguments: Arguments, quality_range: tuple[int, int]) -> Transform:
    differences = {75: 1.0, 20: 2.5, 10: 4.0, -1: 8.0}
    mean = next(mean for least, mean in differences.items() if quality_range[0] >= least)
    arguments.add_difference(
        f"up to {mean:g} levels on average: red and blue change places before the file is written there"
    )
    return filters.JPEG(quality_range)


def _gauss_noise(arguments: Arguments, std_range: Pair, mean_range: Pair, per_channel: bool) -> Transform:
    if not per_channel:
        arguments.add_difference("channels differ by 44 levels: each has its own noise here, as with per_channel=True")
    return filters.GaussianNoise(_constant(arguments, "mean_range", mean_range), std_range)


def _constant(arguments: Arguments, name: str, ends: Pair) -> float:
    if ends[0] != ends[1]:
        arguments.refuse(name, ends, "equal ends, such as (0, 0)")
    return ends[0]


def _additive_noise(
    arguments: Arguments, spatial_mode: str, noise_type: str, noise_params: dict[str, Any]
) -> Transform:
    """A number for each channel; or normal noise of each pixel."""
    if (spatial_mode, noise_type) == ("per_pixel", "gaussian"):
        mean_range = noise_params.get("mean_range", (0.0, 0.0))
        mean = _constant(arguments, "noise_params.mean_range", tuple(mean_range))
        return filters.GaussianNoise(mean, tuple(noise_params["std_range"]))
    if (spatial_mode, noise_type) != ("constant", "uniform"):
        arguments.refuse(
            "spatial_mode", spatial_mode, "'constant' with uniform noise, or 'per_pixel' with Gaussian noise"
        )
    ranges = [_levels(tuple(ends)) for ends in noise_params["ranges"]]
    return tone.RGBShift(*(ranges * 3 if len(ranges) == 1 else ranges[:3]))


def _rgb_shift(r_shift_range: Pair, g_shift_range: Pair, b_shift_range: Pair) -> Transform:
    return tone.RGBShift(_levels(r_shift_range), _levels(g_shift_range), _levels(b_shift_range))


def _solarize(threshold_range: Pair) -> Transform:
    return tone.Solarize((255.0 * threshold_range[0], 255.0 * threshold_range[1]))


def _gamma(gamma_range: Pair) -> Transform:
    return tone.Gamma((gamma_range[0] / 100, gamma_range[1] / 100))


def _salt_and_pepper(arguments: Arguments, amount_range: Pair, salt_vs_pepper_range: Pair) -> Transform:
    low, high = salt_vs_pepper_range
    if low != high:
        arguments.add_difference("0.1 of the salt's share: the middle of salt_vs_pepper for all images")
    return filters.SaltAndPepper(amount_range, salt=(low + high) / 2)


def _coarse_dropout(
    arguments: Arguments, num_holes_range: tuple[int, int], hole_height_range: Pair, hole_width_range: Pair, fill: Any
) -> Transform:
    if hole_height_range != hole_width_range:
        accepted = f"hole_height_range ({hole_height_range}): both sides have one range here"
        arguments.refuse("hole_width_range", hole_width_range, accepted)
    low, high = hole_height_range
    size = (int(low), int(high)) if high >= 1 else (low, high)  # pixels, or shares
    return CoarseDropout(num_holes_range, size, fill)


def _erasing(arguments: Arguments, scale: Pair, ratio: Pair, fill: Any) -> Transform:
    low, high = ratio  # of width to height
    largest = min(low, 1 / high)
    if scale[1] > largest:
        arguments.add_difference(f"areas end at {largest:.2g} of a square image there")
    return RandomErasing(1.0, scale, (1 / high, 1 / low), fill)


_MASK_BANDS = "up to 40 pixels of masks with default arguments: they become 0 in the band there"


def _xy_masking(arguments: Arguments, erased: Any) -> Transform | None:
    """A band of columns and a band of rows."""
    if erased != 0:
        arguments.refuse("fill", erased, "0")
    ranges = (
        (axis, arguments.value(f"num_masks_{axis}_range"), arguments.value(f"mask_{axis}_length_range"))
        for axis in "xy"
    )
    bands = [_band(arguments, *of_axis) for of_axis in ranges]
    return _in_order([band for band in bands if band is not None])


def _time_masking(arguments: Arguments, time_mask_param: int) -> Transform | None:
    return _spectral_band(arguments, "x", time_mask_param)


def _frequency_masking(arguments: Arguments, freq_mask_param: int) -> Transform | None:
    return _spectral_band(arguments, "y", freq_mask_param)


def _spectral_band(arguments: Arguments, axis: str, longest: int) -> Transform | None:
    """In version 2.0 an XYMasking, whose arguments may differ."""
    arguments.add_difference(_MASK_BANDS)
    numbers = arguments.value(f"num_masks_{axis}") if arguments.is_older else (1, 1)
    lengths = arguments.value(f"mask_{axis}_length") if arguments.is_older else (0, longest)
    return _band(arguments, axis, numbers, lengths)


def _band(arguments: Arguments, axis: str, numbers: Any, lengths: Any) -> Transform | None:
    if not lengths[1] or not numbers[1]:
        return None
    if numbers[1] != 1 or not isinstance(lengths[1], int):
        arguments.refuse(f"num_masks_{axis}_range", numbers, "one band along each axis, of a length in pixels")
    band = _pipeline(arguments, drawn.band, is_column=axis == "x", lengths=lengths)
    return band if numbers[0] == 1 else RandomApply([band], p=0.5)


def _downscale(arguments: Arguments, scale_range: Pair, interpolation_pair: Mapping[str, int]) -> Transform:
    kinds = {
        name: arguments.filter_name(code, f"interpolation_pair.{name}") for name, code in interpolation_pair.items()
    }
    upscale = "bilinear" if kinds["upscale"] == "area" else kinds["upscale"]
    filters_here: dict[str, Any] = {"downscale": arguments.resize_filter(kinds["downscale"]), "upscale": upscale}
    return arguments.node.build(sizes.Downscale, scale_range=scale_range, **filters_here)


def _shift_scale_rotate(
    arguments: Arguments, shift_range_x: Pair, shift_range_y: Pair, scale_range: Pair, rotate_range: Pair, warp: Any
) -> Transform:
    shifts = {"x": shift_range_x, "y": shift_range_y}
    scale = _plus_one(scale_range)
    return _pipeline(arguments, drawn.affine, rotate=rotate_range, scale=scale, translate_percent=shifts, warp=warp)


def _elastic(arguments: Arguments, warp: Any) -> Transform:
    """torchvision's, with the same deviation of displacements. AlbumentationsX has splines under this name."""
    if "alpha" not in arguments:
        arguments.refuse("", "a spline of control points", "GridDistortion or ThinPlateSpline")
    alpha, sigma, noise = (arguments.value(name) for name in ("alpha", "sigma", "noise_distribution"))
    # Noise is half of uniform noise here; normal noise there has a 4.5th of alpha as its deviation.
    factor = 2.0 if noise == "uniform" else 2.0 * math.sqrt(3.0) / 4.5
    arguments.add_difference("1 pixel of key points: they are whole pixels there", "keypoints")
    borders = f"positions within sigma={sigma:g} pixels of borders move less here"
    arguments.add_difference(f"2 levels on average at alpha=100 and sigma=8: {borders}")
    return deform.ElasticTransform(alpha * factor, sigma, **warp)


def _thin_plate(arguments: Arguments, scale_range: Pair, num_control_points: int, warp: Any) -> Transform:
    if "map_resolution_range" not in arguments.described_names:
        got = "a spline of version 2.0, whose positions move up to 9 times as far"
        arguments.refuse("", got, "that of AlbumentationsX")
    return deform.ThinPlateSpline(scale_range, num_control_points, **warp)


def _normalize(mean: Any, std: Any, max_pixel_value: float) -> Transform:
    """Divides by ``max_pixel_value`` first."""

    def scaled(values: Any) -> Any:
        factor = max_pixel_value / 255.0
        return tuple(value * factor for value in values) if isinstance(values, tuple) else values * factor

    return Normalize(scaled(mean), scaled(std))


def _to_float(arguments: Arguments, max_value: float | None) -> Transform:
    if max_value not in (None, 255):
        arguments.refuse("max_value", max_value, "None or 255: images are uint8")
    return ToDtype("float32", scale=True)


# -- the table -------------------------------------------------------------------------------------------------------

_WARP = " interpolation fill padding_mode"
_NOT_PADDED = "pad_position border_mode fill"
# Of the Affine that SafeRotate is in version 2.0.
_OF_AFFINE = "rotate scale shear translate_px fit_output keep_ratio balanced_scale"
_MIRRORED_EDGES = "0.2 levels on average: outermost pixels are repeated around the image here, mirrored there"
_KEPT_BOX = "a pixel of the crop's last row and column, and a single box is eroded here, not there"
_TURN_AND_FLIP = [crop.RandomRotate90(p=0.75), crop.RandomHorizontalFlip(p=0.5)]
_D4 = Rule(Compose, transforms=_TURN_AND_FLIP)

RULES: Mapping[str, Rule] = {
    # Flips, turns and channels.
    "NoOp": Rule(_no_op),
    "ToTensorV2": Rule(_no_op),  # all outputs are tensors here
    "ToRGB": Rule(_no_op),
    "HorizontalFlip": Rule(crop.RandomHorizontalFlip, p=1.0),
    "VerticalFlip": Rule(crop.RandomVerticalFlip, p=1.0),
    "TimeReverse": Rule(crop.RandomHorizontalFlip, p=1.0),
    "Transpose": Rule(crop.Transpose, p=1.0),
    "RandomRotate90": Rule(crop.RandomRotate90, p=0.75),  # by 0 degrees as often as by each of the others
    "D4": _D4,
    "SquareSymmetry": _D4,
    "ChannelShuffle": Rule(_channel_shuffle),
    "ChannelSwap": Rule(color.ChannelPermutation, "order=channel_order"),
    "ChannelDropout": Rule(color.ChannelDropout, "channel_drop_range fill", p=1.0),
    # Crops and borders.
    "RandomCrop": Rule(crop.RandomCrop, "size", ignored=_NOT_PADDED),
    "CenterCrop": Rule(
        crop.CenterCrop,
        "size",
        ignored=_NOT_PADDED,
        difference="a pixel off where an odd number of pixels is left over",
    ),
    "Crop": Rule(
        drawn.crop, ignored=_NOT_PADDED, difference="black pixels beyond a smaller image, which is an error there"
    ),
    "RandomCropFromBorders": Rule(drawn.crop_from_borders),
    "CropAndPad": Rule(drawn.crop_and_pad),
    "Pad": Rule(crop.Pad, "padding fill padding_mode"),
    "PadIfNeeded": Rule(drawn.pad_if_needed, ignored="padding"),
    "BBoxSafeRandomCrop": Rule(box_crops.RandomBoxSafeCrop, "erosion_rate", difference=_KEPT_BOX),
    "RandomSizedBBoxSafeCrop": Rule(
        box_crops.RandomResizedBoxSafeCrop, "size erosion_rate interpolation", difference=_KEPT_BOX
    ),
    "AtLeastOneBBoxRandomCrop": Rule(
        box_crops.RandomAtLeastOneBoxCrop,
        "size erosion_factor",
        difference="1 pixel at most: drawn among whole pixels of the positions that hold enough of the box",
    ),
    # Resizes.
    "Resize": Rule(Resize, "size interpolation"),
    "SmallestMaxSize": Rule(sizes.SmallestMaxSize, "max_size interpolation"),
    "LongestMaxSize": Rule(sizes.LongestMaxSize, "max_size interpolation"),
    "LetterBox": Rule(sizes.LetterBox, "size fill interpolation"),
    "Downscale": Rule(_downscale),
    "RandomScale": Rule(drawn.random_scale),
    "RandomSizedCrop": Rule(drawn.sized_crop),
    "RandomResizedCrop": Rule(RandomResizedCrop, "size scale ratio interpolation", edges="crop"),
    # Maps of coordinates.
    "Rotate": Rule(geometry.Rotate, "degrees=angle_range" + _WARP),
    "SafeRotate": Rule(
        drawn.safe_rotate,
        ignored=_OF_AFFINE,
        difference="0.5 pixels of boxes: they are up and to the left of their image there",
        targets="boxes",
    ),
    "ShiftScaleRotate": Rule(_shift_scale_rotate),
    "Affine": Rule(drawn.affine),
    "Perspective": Rule(drawn.perspective),
    "ElasticTransform": Rule(_elastic),
    "GridDistortion": Rule(
        deform.GridDistortion,
        "num_steps distort_limit=distort_range normalized" + _WARP,
        difference="6 pixels of key points at most: two pixels along borders of strips show the same position there",
    ),
    "OpticalDistortion": Rule(
        deform.OpticalDistortion,
        "distort_limit=distort_range mode" + _WARP,
        difference="1.7 pixels of positions at a distort_range of 0.3: the center is half a pixel off there",
    ),
    "ThinPlateSpline": Rule(_thin_plate),
    # Colors.
    "InvertImg": Rule(tone.RandomInvert, p=1.0),
    "Posterize": Rule(tone.Posterize, "bits=num_bits"),
    "Solarize": Rule(_solarize),
    "RandomGamma": Rule(_gamma),
    "RandomBrightnessContrast": Rule(_brightness_contrast),
    "RGBShift": Rule(_rgb_shift, ignored="noise_params noise_type spatial_mode"),
    "MultiplicativeNoise": Rule(tone.Brightness, "factor=multiplier"),
    "RandomToneCurve": Rule(color.RandomToneCurve, "scale per_channel"),
    "ToSepia": Rule(color.ToSepia),
    "ToGray": Rule(color.RandomGrayscale, p=1.0),
    "ColorJitter": Rule(
        color.ColorJitter,
        "brightness=brightness_range contrast=contrast_range saturation=saturation_range hue=hue_range",
    ),
    "HueSaturationValue": Rule(_hue_saturation_value),
    "PhotoMetricDistort": Rule(
        _photometric_distort,
        "brightness=brightness_range contrast=contrast_range saturation=saturation_range hue=hue_range p=distort_p",
    ),
    "Equalize": Rule(_equalize),
    "AutoContrast": Rule(_autocontrast),
    "CLAHE": Rule(
        color.CLAHE,
        "clip_limit=clip_range tile_grid_size",
        difference="14 levels on average in color images: the luma is equalized here, LAB lightness there",
    ),
    "Illumination": Rule(
        lighting.Illumination,
        "mode intensity_range effect_type angle_range center_range sigma_range num_spots_range gaussian_spots",
        p=1.0,
        difference='1 level; in mode \'corner\', "brighten" and "darken" are exchanged',
    ),
    # Filters and compression.
    "Blur": Rule(_box_blur, difference=_MIRRORED_EDGES),
    "GaussianBlur": Rule(_gaussian_blur),
    "MedianBlur": Rule(filters.MedianBlur, "kernel_size=blur_range"),
    "MotionBlur": Rule(_motion_blur, ignored="allow_shifted"),
    "Defocus": Rule(optics.Defocus, "radius_range alias_blur_range", difference=_MIRRORED_EDGES),
    "ZoomBlur": Rule(
        optics.ZoomBlur,
        "max_factor_range step_factor_range",
        difference="1.5 levels on average: about the center here, up to a pixel beside it there",
    ),
    "GlassBlur": Rule(
        optics.GlassBlur,
        "sigma max_delta iterations",
        ignored="mode",
        difference="10 % more change: pixels are read from random positions here, and exchanged there",
    ),
    "ChromaticAberration": Rule(
        optics.ChromaticAberration,
        "primary_distortion_range secondary_distortion_range mode",
        difference="0.1 levels on average: the center is half a pixel off there",
    ),
    "Emboss": Rule(filters.Emboss, "alpha=alpha_range strength=strength_range", difference=_MIRRORED_EDGES),
    "Sharpen": Rule(_sharpen),
    "UnsharpMask": Rule(
        filters.UnsharpMask,
        "blur_limit=blur_range sigma_limit=sigma_range alpha=alpha_range threshold",
        difference="20 levels at most: the outline of pixels above the threshold is blurred there",
    ),
    "Morphological": Rule(
        filters.Morphological,
        "scale operation",
        difference="1.5 pixels of masks and boxes by default: they do not grow or shrink here",
    ),
    "ImageCompression": Rule(_image_compression),
    # Noise, erasing and weather.
    "GaussNoise": Rule(_gauss_noise),
    "AdditiveNoise": Rule(
        _additive_noise, ignored="patch_count_range patch_height_range patch_width_range per_channel"
    ),
    "SaltAndPepper": Rule(_salt_and_pepper),
    "PixelDropout": Rule(filters.PixelDropout, "dropout_prob drop_value"),
    "CoarseDropout": Rule(_coarse_dropout, "fill=erased"),
    "GridDropout": Rule(
        GridMask,
        "unit=unit_size_range ratio fill=erased",
        unit=0.1,
        difference="2 % more is erased there, where each square has its own position: one regular grid here",
    ),
    "Erasing": Rule(_erasing, "fill=erased"),
    "XYMasking": Rule(_xy_masking),
    "TimeMasking": Rule(_time_masking),
    "FrequencyMasking": Rule(_frequency_masking),
    "RandomFog": Rule(
        weather.RandomFog,
        "fog_coef_range alpha_coef",
        p=1.0,
        difference="1.4 times as dense on 400 x 320 pixels: clouds are drawn here, and the image is not blurred",
    ),
    "RandomRain": Rule(
        weather.RandomRain,
        "slant_range drop_length drop_width drop_color blur_value brightness_coefficient rain_type",
        p=1.0,
        difference="6 levels darker on average: the image is blurred and streaks are fainter here",
    ),
}
# Formats of the output: of the main line of a pipeline only.
FORMATS: Mapping[str, Rule] = {"Normalize": Rule(_normalize), "ToFloat": Rule(_to_float)}

_VOLUMES = (
    "Affine3D Anisotropy3D BiasField CenterCrop3D CoarseDropout3D CubicSymmetry ElasticTransform3D Flip3D "
    "GhostingArtifact GibbsRinging GridShuffle3D KSpaceSpikeNoise MotionArtifact Pad3D PadIfNeeded3D RandomCrop3D "
    "RandomResizedCrop3D RandomRotate90_3D Resize3D StochasticConvolution ToTensor3D UniformTemporalSubsample"
)
# Closest replacements of transforms without a rule.
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

"""Rules of Albumentations' additive noise and bands."""

from __future__ import annotations

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.report import Drawing, Value
from variegate.ops import filters, tone
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply


def additive_noise(given: Arguments) -> Transform:
    """A number for each channel; or normal noise of each pixel."""
    mode, kind = given.take("spatial_mode", "constant"), given.take("noise_type", "uniform")
    params = given.take("noise_params") or {"ranges": ((-0.1, 0.1),)}
    # Of patches, and of the speed.
    for name in ("patch_count_range", "patch_height_range", "patch_width_range", "per_channel", "approximation"):
        given.take(name)
    if (mode, kind) == ("per_pixel", "gaussian"):
        means, sigmas = params["mean_range"], params["std_range"]
        if means[0] != means[1]:
            given.refuse("noise_params", means, "one mean, such as (0, 0)")
        return given.build(filters.GaussianNoise, mean=means[0], sigma=tuple(sigmas))
    if (mode, kind) != ("constant", "uniform"):
        given.refuse("spatial_mode", mode, "'constant' with uniform noise, or 'per_pixel' with Gaussian noise")
    ranges = [tuple(round(255 * end) for end in ends) for ends in params["ranges"]]
    red, green, blue, *_ = ranges * 3 if len(ranges) == 1 else ranges
    return given.build(tone.RGBShift, red=red, green=green, blue=blue)


def masking(given: Arguments) -> Transform | None:
    """Bands across the whole image, one of columns and one of lines."""
    given.require("fill fill_value", 0, 0.0)
    if "time_mask_param" in given or "freq_mask_param" in given:
        given.take("fill_mask")  # always 0
        given.differs("masks do not change here; there they become 0 in the band, which has 30 or 40 pixels at most")
    given.keep_masks()
    given.keep_boxes()
    bands: list[Transform] = []
    for axis, longest in (("x", given.take("time_mask_param")), ("y", given.take("freq_mask_param"))):
        lengths = given.take(f"mask_{axis}_length_range mask_{axis}_length", (0, longest or 0))
        numbers = given.take(f"num_masks_{axis}_range num_masks_{axis}", (1, 1) if longest else (0, 0))
        if not lengths[1] or not numbers[1]:
            continue
        if numbers[1] != 1 or not isinstance(lengths[1], int):
            given.refuse(f"num_masks_{axis}_range", numbers, "one band along each axis, of a length in pixels")
        drawing = Drawing(given.place)
        height, width = drawing.size()
        side = width if axis == "x" else height
        length = drawing.value("min", drawing.between(*lengths), side)
        begin = drawing.between(0, drawing.value("-", side, length))
        if not lengths[0]:  # a band of no length lies behind the image
            begin = drawing.value("where", drawing.value("<", length, 1), side, begin)
            length = drawing.value("max", length, 1)
        place: dict[str, Value] = {"i": 0, "j": begin, "h": height, "w": length}
        if axis == "y":
            place = {"i": begin, "j": 0, "h": length, "w": width}
        band = drawing.do("erase", **place, v=0).made()
        bands.append(band if numbers[0] == 1 else RandomApply([band], p=0.5))
    return Compose(bands) if len(bands) > 1 else next(iter(bands), None)

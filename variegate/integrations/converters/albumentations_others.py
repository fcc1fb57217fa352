"""Rules of Albumentations' additive noise, bands, and transforms with reference images."""

from __future__ import annotations

from typing import Any

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.report import Drawing, Value
from variegate.ops import domain, filters, tone
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


def _references(given: Arguments, default: str) -> Any:
    key = given.take("metadata_key", default)
    found = given.place.report.metadata.get(key)
    if found is None:
        accepted = f"reference images in vg.from_albumentations(..., metadata={{{key!r}: images}})"
        given.refuse("metadata_key", key, accepted)
    return found


_SIZED = "statistics of the reference at its own size here, there of the size of the image"


def histogram_matching(given: Arguments) -> Transform:
    given.differs(f"{_SIZED}; levels are rounded here and truncated there: 1 to 2 levels on average")
    share = given.take("blend_ratio", (0.5, 1.0))
    return given.build(domain.HistogramMatching, references=_references(given, "hm_metadata"), blend_ratio=share)


def fourier(given: Arguments) -> Transform:
    given.differs(
        "the frequencies around zero here, a square beside them there: 2 levels on average at beta 0.1, 3 at 0.05, 15 "
        "at 0.01; those of the reference at its own size, below 64 cycles"
    )
    limits = given.take("beta_range beta_limit", (0.0, 0.1))
    references = _references(given, "fda_metadata")
    return given.build(domain.FDA, {"beta_limit": "beta_range"}, references=references, beta_limit=limits, p=1.0)


def pixel_distribution(given: Arguments) -> Transform:
    kind = given.take("transform_type", "pca")
    if kind == "pca":
        given.differs("no axis is reversed here; there, colors may come out inverted")
    given.differs(f"{_SIZED}, where AlbumentationsX 2.5.1 blends with black instead")
    return given.build(
        domain.PixelDistributionAdaptation,
        references=_references(given, "pda_metadata"),
        blend_ratio=given.take("blend_ratio", (0.25, 1.0)),
        transform_type=kind,
    )

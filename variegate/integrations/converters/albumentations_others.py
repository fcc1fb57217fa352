"""Rules of Albumentations' noise, kernels, bands and splines that come close by something else here, and of references
from other domains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from variegate.integrations.converters.albumentations_arguments import Arguments, odd
from variegate.integrations.converters.report import Drawing, Value
from variegate.ops import colour, deform, domain, filters, optics, tone
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, OneOf, RandomApply

# Values of a range that are drawn among, where each has a kernel of its own.
_STEPS = 8


def _steps(ends: tuple[float, float]) -> list[float]:
    return np.linspace(*ends, 1 if ends[0] == ends[1] else _STEPS).tolist()


def additive_noise(given: Arguments) -> Transform:
    """A number for the image, or for each channel; or normal noise of each pixel."""
    is_old = "approximation" in given  # of version 2.0, where each channel always has noise of its own
    mode, kind = given.take("spatial_mode", "constant"), given.take("noise_type", "uniform")
    params = given.take("noise_params") or {"ranges": ((-0.1, 0.1),)}
    for name in ("patch_count_range", "patch_height_range", "patch_width_range", "approximation"):
        given.take(name)
    if not is_old and "per_channel" not in given:
        given.differs("one number for all channels here, as in AlbumentationsX; each has one of its own in version 2.0")
    per_channel = given.take("per_channel", is_old)
    if (mode, kind) == ("per_pixel", "gaussian") and per_channel:
        means, sigmas = params["mean_range"], params["std_range"]
        if means[0] != means[1]:
            given.refuse("noise_params", means, "one mean, such as (0, 0)")
        return given.build(filters.GaussianNoise, mean=means[0], sigma=tuple(sigmas))
    if (mode, kind) != ("constant", "uniform"):
        given.refuse(
            "spatial_mode", mode, "'constant' with uniform noise, or 'per_pixel' with Gaussian of each channel"
        )
    ranges = [tuple(round(255 * end) for end in ends) for ends in params["ranges"]]
    if per_channel:
        red, green, blue = ranges * (3 // len(ranges))
        return given.build(tone.RGBShift, red=red, green=green, blue=blue)
    return given.build(tone.SolarizeAdd, addition=ranges[0], threshold=256)


def rician_noise(given: Arguments) -> Transform:
    given.take("per_channel")
    given.differs("normal noise of each channel here; there dark levels become lighter, by 1.25 deviations at black")
    return given.build(filters.GaussianNoise, {"sigma": "std_range"}, sigma=given.take("std_range", (0.05, 0.15)))


def film_grain(given: Arguments) -> Transform:
    low, high = given.take("intensity_range", (0.1, 0.3))
    given.take("grain_size_range")
    how = (
        "normal noise of single pixels here, half as strong as the intensity; there of grains, the stronger the darker"
    )
    given.differs(how)
    return given.build(filters.GaussianNoise, {"sigma": "intensity_range"}, sigma=(low / 2, high / 2))


def advanced_blur(given: Arguments) -> Transform:
    sizes, sigmas = (
        odd(given.take("blur_range blur_limit", (3, 7))),
        given.take("sigma_x_range sigma_x_limit", (0.2, 1.0)),
    )
    for name in ("sigma_y_range", "sigma_y_limit", "rotate_range", "rotate_limit", "beta_range", "beta_limit"):
        given.take(name)
    given.take("noise_range noise_limit")
    given.differs(
        "round Gaussians here; there of two widths, turned, of other exponents, and with noise in their weights"
    )
    names = {"kernel_size": "blur_range", "sigma": "sigma_x_range"}
    kernels = range(sizes[0], sizes[1] + 1, 2)
    return OneOf([given.build(filters.GaussianBlur, names, kernel_size=size, sigma=sigmas) for size in kernels])


def mode_filter(given: Arguments) -> Transform:
    given.differs("the median of the levels around a pixel here, the most frequent one there")
    sizes = odd(given.take("kernel_range", (3, 7)))
    return given.build(filters.MedianBlur, {"kernel_size": "kernel_range"}, kernel_size=sizes)


_IDENTITY = np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]], np.float64)
# Pillow's EDGE_ENHANCE and DETAIL.
_ENHANCED = {
    "edge": np.array([[-1, -1, -1], [-1, 10, -1], [-1, -1, -1]]) / 2,
    "detail": np.array([[0, -1, 0], [-1, 10, -1], [0, -1, 0]]) / 6,
}


def enhance(given: Arguments) -> Transform:
    whole, alphas = _ENHANCED[given.take("mode", "edge")], _steps(given.take("alpha_range", (0.5, 1.0)))
    given.differs(f"alpha has {len(alphas)} values here, and the image's outermost pixels are repeated around it")
    kernels = [((1 - alpha) * _IDENTITY + alpha * whole).tolist() for alpha in alphas]
    return OneOf([given.build(filters.Convolve, kernel=kernel) for kernel in kernels])


def ringing(given: Arguments) -> Transform:
    """Ideal low-pass filters, cut off at the kernel's edges."""
    low, high = given.take("blur_range blur_limit", (7, 15))
    cutoffs = _steps(given.take("cutoff_range cutoff", (math.pi / 4, math.pi / 2)))
    given.differs(f"the cutoff has {len(cutoffs)} values here, and the image's outermost pixels are repeated around it")
    kernels = [_sinc(size | 1, cutoff).tolist() for size in range(low, high + 1, 2) for cutoff in cutoffs]
    return OneOf([given.build(filters.Convolve, {"kernel": "blur_range"}, kernel=kernel) for kernel in kernels])


def _sinc(size: int, cutoff: float) -> Any:
    """``cutoff J1(cutoff r) / (2 pi r)``, of sum 1; J1 by its integral."""
    along = np.arange(size) - size // 2
    radius = np.maximum(np.hypot(along, along[:, None]), 1e-6)
    turn = (np.arange(256) + 0.5) * (math.pi / 256)
    bessel = np.cos(turn - (cutoff * radius)[..., None] * np.sin(turn)).mean(axis=-1)
    kernel = cutoff * bessel / (2 * math.pi * radius)
    return kernel / kernel.sum()


def masking(given: Arguments) -> Transform | None:
    """Bands across the whole image, one of columns and one of lines."""
    given.require("fill fill_value", 0, 0.0)
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


def pixel_spread(given: Arguments) -> Transform:
    given.require("map_resolution_range", (1.0, 1.0), (1, 1))
    for name in ("interpolation", "border_mode", "fill"):
        given.take(name)
    given.differs("masks, boxes and key points stay here; the image's outermost pixels are repeated around it")
    radius = given.take("radius", 2)
    return given.build(optics.GlassBlur, {"max_delta": "radius"}, sigma=0.0, max_delta=radius, iterations=1)


def spline(given: Arguments) -> Transform:
    """A control point of a cubic spline moves the image by a quarter of its variance."""
    low, high = given.take("displacement_range", (0.02, 0.05))
    rows, columns = given.take("control_grid_shape", (7, 7))
    if rows != columns:
        given.refuse("control_grid_shape", (rows, columns), "as many rows as columns")
    given.differs(
        "a thin plate through normal points here, a cubic spline of uniform ones there; of the same deviation"
    )
    scale = tuple(10 * end / math.sqrt(12.0) for end in (low, high))
    names = {"num_control_points": "control_grid_shape", "scale_range": "displacement_range"}
    return given.build(deform.ThinPlateSpline, names, scale_range=scale, num_control_points=rows, **given.warped())


def from_float(given: Arguments) -> None:
    for name in ("dtype", "max_value"):
        given.take(name)
    given.differs("nothing in its place: images are bytes here until they are normalized")


def colorize(given: Arguments) -> Transform:
    given.require("black_range", ((0, 0, 0), (0, 0, 0)))
    given.require("white_range", ((255, 255, 255), (255, 255, 255)))
    given.require("mid_range", None)
    given.take("mid_value_range")
    return given.build(colour.RandomGrayscale, p=1.0)


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

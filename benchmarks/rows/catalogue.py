"""The rows of W2o: their names, sizes and kinds, and the strengths that every library is given alike.

A row's own code is in ``benchmarks/rows/libraries``, once per library. Everything here is read in the peers'
environment as well, so it imports nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A file pipeline begins with decoding, which is the same library's work for nearly all, as in W1.
Kind = Literal["operation", "pipeline", "file pipeline"]
TARGETS: dict[Kind, float] = {"operation": 2.0, "pipeline": 4.0, "file pipeline": 2.0}
FLOOR = 1.0  # of every row

# Degrees of rotation to either side; tangent of a shear; pixels of a translation at 224.
ANGLE, SHEAR, TRANSLATE = 30.0, 0.3, 32
# RandomAffine: degrees, translation as a share of the side, scale, degrees of shear along x.
AFFINE_ANGLE, AFFINE_SHIFT, AFFINE_SCALE, AFFINE_SHEAR = 15.0, 0.1, (0.8, 1.2), 10.0
STRETCH = (0.8, 1.25)
DISTORTION = 0.5
FACTOR, HUE, GAMMA = 0.4, 0.1, (0.8, 1.2)
SHARPNESS, BITS, THRESHOLD, SHIFT = 2.0, 4, 128, 20
QUALITY = (50, 95)
SIGMA, NOISE, SALT, PHOTONS = (0.1, 2.0), 0.1, 0.05, (1.0, 8.0)
HOLE, HOLES, HOLE_SIZES, GRID = 56, (1, 8), (8, 32), (96, 224)
PADDING, SMALLER, CUT = 16, 160, 192
KELVIN, DROPPED, COARSER = (3000, 15000), 0.01, 0.25
# Of Beta(alpha, alpha); labels become soft, of so many classes.
ALPHA, CLASSES = 1.0, 1000
# Brightness, contrast, saturation, hue.
JITTER, SIMCLR_JITTER, BYOL_JITTER = (0.4, 0.4, 0.4, 0.1), (0.8, 0.8, 0.8, 0.2), (0.4, 0.4, 0.2, 0.1)
SIMCLR_KERNEL, DINO_KERNEL, THREE_KERNEL = 23, 9, 13
GLOBAL_SCALE, LOCAL_SCALE = (0.4, 1.0), (0.05, 0.4)
NUM_OPS, MAGNITUDE = 2, 9


@dataclass(frozen=True)
class Case:
    """``size``: side of the inputs, ``out`` of the outputs; ``fixed``: no chance in it, so libraries can be compared
    image by image; ``views``: made of JPEG files, several of each, by the steps of these names, in groups."""

    name: str
    title: str
    kind: Kind
    size: int = 224
    out: int = 224
    dtype: Literal["float32", "uint8"] = "float32"
    fixed: bool = False
    views: tuple[tuple[str, ...], ...] = ()

    @property
    def target(self) -> float:
        return TARGETS[self.kind]

    @property
    def sides(self) -> tuple[int, ...]:
        """Of the outputs, by group."""
        return tuple(BY_NAME[names[-1]].out for names in self.views)

    def batch(self, at_224: int) -> int:
        """An eighth of it for large images, and where each is several."""
        return at_224 if self.size <= 224 and not self.views else max(1, at_224 // 8)


# Layers over the image, by default arguments.
LAYERS = {
    "fog": "fog",
    "rain": "rain, blurred and darkened",
    "snow": "snow, bleached",
    "snow_texture": "snow, drawn",
    "sun_flare": "sun flare",
    "sun_flare_physics": "sun flare with rays",
    "shadow": "1 or 2 shadows of 5 corners",
    "gravel": "2 patches of gravel",
    "spatter": "drops of rain on the lens",
    "spatter_mud": "drops of mud on the lens",
    "illumination": "a gradient of light",
    "illumination_corner": "light from a corner",
    "illumination_spot": "a spot of light",
}


def _operations() -> list[Case]:
    made: list[Case] = []

    def add(name: str, title: str, out: int = 224, fixed: bool = False) -> None:
        made.append(Case(name, title, "operation", out=out, fixed=fixed))

    add("normalize", "normalize only", fixed=True)
    add("hflip", "horizontal flip", fixed=True)
    add("vflip", "vertical flip", fixed=True)
    add("rotate90", "quarter turns: 90, 180 or 270 degrees")
    add("pad", f"pad by {PADDING}", out=224 + 2 * PADDING, fixed=True)
    add("center_crop", f"center crop of {CUT}", out=CUT, fixed=True)
    add("random_crop", f"random crop of 224, padded by {PADDING}")
    add("resize", f"resize to {SMALLER}, bilinear", out=SMALLER, fixed=True)
    add("resize_bicubic", f"resize to {SMALLER}, bicubic", out=SMALLER, fixed=True)
    add("resized_crop", "RandomResizedCrop(224), bilinear")
    add("resized_crop_bicubic", "RandomResizedCrop(224), bicubic")
    for word in ("", "_bilinear", "_bicubic"):
        how = word[1:] or "nearest"
        add(f"rotate{word}", f"rotate by up to {ANGLE:g} degrees, {how}")
        add(f"affine{word}", f"affine (rotation, translation, scale, shear), {how}")
        if word != "_bicubic":
            add(f"shear_x{word}", f"shear along x, {how}")
            add(f"perspective{word}", f"perspective, {how}")
    add("elastic", "elastic transform, alpha 50, sigma 5, bilinear")
    add("grid_distortion", "grid distortion, 5 steps, 0.3, bilinear")
    add("optical_distortion", "lens, 0.05, bilinear")
    add("thin_plate", "thin plate spline, 4 x 4 control points, bilinear")
    add("shear_y", "shear along y, nearest")
    add("translate_x", "translate along x, nearest")
    add("translate_y", "translate along y, nearest")
    add("stretch", "stretch about the center, bilinear")
    add("brightness", "brightness 1 +- 0.4")
    add("contrast", "contrast 1 +- 0.4")
    add("saturation", "saturation 1 +- 0.4")
    add("hue", "hue +- 0.1")
    add("color_jitter", "color jitter (0.4, 0.4, 0.4, 0.1)")
    add("photometric_distort", "RandomPhotometricDistort")
    add("gamma", "gamma 0.8 to 1.2")
    add("sharpness", "sharpness 2", fixed=True)
    add("posterize", "posterize to 4 bits", fixed=True)
    add("solarize", "solarize from 128", fixed=True)
    add("solarize_add", "solarize-add 20 below 128", fixed=True)
    add("invert", "invert", fixed=True)
    add("autocontrast", "autocontrast", fixed=True)
    add("equalize", "equalize", fixed=True)
    add("grayscale", "grayscale, 3 channels", fixed=True)
    add("channel_permutation", "random permutation of the channels")
    add("rgb_shift", "shift of each channel by up to 20")
    add("blur_5", "Gaussian blur, kernel 5, sigma 0.1 to 2")
    add("blur_23", "Gaussian blur, kernel 23, sigma 0.1 to 2")
    add("motion_blur", "motion blur, length 7")
    add("jpeg", "JPEG of quality 50 to 95, written and read")
    add("median_blur_3", "median of 3 x 3", fixed=True)
    add("median_blur_5", "median of 5 x 5", fixed=True)
    add("median_blur_7", "median of 7 x 7", fixed=True)
    add("clahe", "CLAHE, limit 2, 8 x 8 tiles", fixed=True)
    add("gaussian_noise", "Gaussian noise, sigma 0.1")
    add("salt_and_pepper", "salt and pepper, 5 % of the pixels")
    add("shot_noise", "shot noise, 1 to 8 levels a photon")
    add("cutout", f"cutout of {HOLE} x {HOLE}")
    add("random_erasing", "random erasing by black")
    add("coarse_dropout", "coarse dropout, 1 to 8 holes of 8 to 32")
    add("grid_mask", "grid mask, units of 96 to 224")
    add("transpose", "transpose", fixed=True)
    add("d4", "one of the eight symmetries of a square")
    add("downscale", "to a quarter of the size and back, nearest")
    add("color_temperature", "color temperature, 3,000 to 15,000 K")
    add("channel_dropout", "one channel black")
    add("pixel_dropout", "1 % of the pixels black")
    add("emboss", "emboss")
    add("unsharp_mask", "unsharp mask, kernel 3 to 7")
    add("edges", "edges (Sobel)")
    add("mixup", "MixUp, within the batch, with labels")
    add("cutmix", "CutMix, within the batch, with labels")
    add("resizemix", "ResizeMix, within the batch, with labels")
    add("mosaic", "Mosaic, within the batch, with labels")
    add("occlusion_diffusion", "occlusion grown from 1 to 4 seeds over 2 to 20 %")
    for name, title in LAYERS.items():
        made.append(Case(name, f"{title}, uint8 out", "operation", dtype="uint8"))
    return made


CASES: tuple[Case, ...] = (
    *_operations(),
    Case("imagenet", "RandomResizedCrop(224), flip", "pipeline"),
    Case("cifar", "RandomCrop(32, padding 4), flip, cutout 8, at 32 px", "pipeline", 32, 32),
    Case("simclr", "SimCLR: crop, flip, jitter 0.8 (p 0.8), gray 0.2, blur 23 (p 0.5)", "pipeline"),
    Case("byol", "BYOL's first view: bicubic crop, flip, jitter (p 0.8), gray 0.2, blur 23", "pipeline"),
    Case("dino_global", "DINO's second global crop: bicubic, flip, jitter, gray, blur 0.1, solarize 0.2", "pipeline"),
    Case("dino_local", "DINO's local crop of 96: bicubic, flip, jitter, gray, blur 9 (p 0.5)", "pipeline", 224, 96),
    Case("jitter_affine", "color jitter, affine bilinear", "pipeline"),
    Case("jitter_perspective", "flip, color jitter, perspective bilinear (p 0.5)", "pipeline"),
    Case("autoaugment", "flip, AutoAugment (ImageNet)", "pipeline"),
    Case("trivialaugment", "flip, TrivialAugmentWide", "pipeline"),
    Case("augmix", "AugMix", "pipeline"),
    Case("three_augment", "3-Augment: flip; gray, solarize or blur; jitter 0.3", "pipeline"),
    Case("randaugment_32", "flip, RandAugment(2, 9) at 32 px", "pipeline", 32, 32),
    Case("randaugment", "flip, RandAugment(2, 9) at 224 px", "pipeline"),
    Case("randaugment_1024", "flip, RandAugment(2, 9) at 1,024 px", "pipeline", 1024, 1024),
    Case("randaugment_uint8", "flip, RandAugment(2, 9) at 224 px, uint8 out", "pipeline", dtype="uint8"),
    Case(
        "dino",
        "DINO from one JPEG: two global crops of 224, six local ones of 96",
        "file pipeline",
        views=(("dino_first", "dino_global"), ("dino_local",) * 6),
    ),
)
BY_NAME = {case.name: case for case in CASES}


def select(names: str) -> tuple[Case, ...]:
    """Of names with commas, in the catalogue's order; all for none. Raises ValueError naming one that is not there."""
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in BY_NAME]
    if unknown:
        raise ValueError(f"--rows {unknown[0]}: accepted: {', '.join(BY_NAME)}")
    return tuple(case for case in CASES if not wanted or case.name in wanted)

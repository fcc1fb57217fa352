"""The benchmarks: a table of cases for each work, and the common strengths of operations.

How a library makes a case is in ``benchmarks/libraries``. The peers' environment reads this module, so it imports
nothing of Variegate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SIZE = 224

# -- strengths ---------------------------------------------------------------------------------------------------------

NUM_OPS = 2
MAGNITUDE = 9
# Degrees of rotation to either side; tangent of a shear; pixels of a translation at 224.
ANGLE = 30.0
SHEAR = 0.3
TRANSLATE = 32
# RandomAffine: degrees, translation as a share of the side, scale, degrees of shear along x.
AFFINE_ANGLE = 15.0
AFFINE_SHIFT = 0.1
AFFINE_SCALE = (0.8, 1.2)
AFFINE_SHEAR = 10.0
STRETCH = (0.8, 1.25)
DISTORTION = 0.5
FACTOR = 0.4
HUE = 0.1
GAMMA = (0.8, 1.2)
SHARPNESS = 2.0
BITS = 4
THRESHOLD = 128
SHIFT = 20
QUALITY = (50, 95)
SIGMA = (0.1, 2.0)
NOISE = 0.1
SALT = 0.05
PHOTONS = (1.0, 8.0)
HOLE = 56
HOLES = (1, 8)
HOLE_SIZES = (8, 32)
GRID = (96, 224)
PADDING = 16
SMALLER = 160
CUT = 192
KELVIN = (3000, 15000)
DROPPED = 0.01
COARSER = 0.25
# Beta(ALPHA, ALPHA) of MixUp and CutMix; number of classes of the soft labels.
ALPHA = 1.0
CLASSES = 1000
# Brightness, contrast, saturation, hue.
JITTER = (0.4, 0.4, 0.4, 0.1)
SIMCLR_JITTER = (0.8, 0.8, 0.8, 0.2)
BYOL_JITTER = (0.4, 0.4, 0.2, 0.1)
SIMCLR_KERNEL = 23
DINO_KERNEL = 9
THREE_KERNEL = 13
GLOBAL_SCALE = (0.4, 1.0)
LOCAL_SCALE = (0.05, 0.4)
IMAGENET_SCALE = (0.08, 1.0)
# Samples with targets.
TARGETS_ANGLE = 15.0
TARGETS_SHIFT = 0.1
TARGETS_SCALE = (0.8, 1.2)
TARGETS_CROP = (0.25, 1.0)

# -- cases -------------------------------------------------------------------------------------------------------------

Kind = Literal[
    "operation",
    "pipeline",
    "file pipeline",
    "function",
    "as_transform",
    "call",
    "targets",
    "gpu",
    "loader",
    "deep operation",
]
# Required speeds, as ratios to the best peer. A file pipeline begins with decoding, which costs all libraries the same.
ASKED: dict[Kind, float] = {
    "operation": 2.0,
    "pipeline": 4.0,
    "file pipeline": 2.0,
    "function": 1.0,
}
ASKED |= {"as_transform": 5.0, "call": 0.0, "targets": 3.0, "gpu": 20.0, "loader": 2.0, "deep operation": 2.0}


@dataclass(frozen=True)
class Objects:
    """The targets of a sample: boxes and semantic masks per image, and a mask for each box if ``has_instances``."""

    boxes: int = 10
    masks: int = 1
    has_instances: bool = False


ONE_MASK = Objects()


@dataclass(frozen=True)
class Case:
    """A row of a table.

    ``size``: side of the square inputs; 0 for JPEG files, or for images of different sizes. ``out``: side of the
    outputs. ``steps``: the name in the libraries' tables, ``name`` by default. ``views``: several outputs of each JPEG
    file, by these steps, in groups. ``depth``: the type of the inputs. ``asked``: overrides the kind's required speed.
    """

    name: str
    title: str
    kind: Kind
    size: int = SIZE
    out: int = SIZE
    dtype: Literal["float32", "uint8", "uint16", "bfloat16"] = "float32"
    steps: str = ""
    batch: int = 0
    views: tuple[tuple[str, ...], ...] = ()
    objects: Objects = ONE_MASK
    depth: Literal["uint8", "uint16", "float32"] = "uint8"
    asked: float = 0.0

    @property
    def key(self) -> str:
        return self.steps or self.name

    @property
    def reads_files(self) -> bool:
        return self.kind == "file pipeline"

    @property
    def is_single(self) -> bool:
        """True if a call takes one image."""
        return self.kind in ("function", "as_transform", "call")

    @property
    def sides(self) -> tuple[int, ...]:
        """Sides of the outputs, by group of views."""
        return tuple(BY_NAME[names[-1]].out for names in self.views)

    def batch_of(self, at_224: int) -> int:
        """Fewer of large images, and of several views."""
        if self.batch or self.is_single:
            return self.batch or 1
        return at_224 if self.size <= SIZE and not self.views else max(1, at_224 // 8)


# Layers over the image, with default arguments.
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
    "illumination_spot": "a spot of light",
}
OPERATIONS = {
    "normalize": "normalize only",
    "hflip": "horizontal flip",
    "vflip": "vertical flip",
    "pad": f"pad by {PADDING}",
    "center_crop": f"center crop of {CUT}",
    "resize": f"resize to {SMALLER}, bilinear",
    "resize_bicubic": f"resize to {SMALLER}, bicubic",
    "transpose": "transpose",
    "sharpness": "sharpness 2",
    "posterize": "posterize to 4 bits",
    "solarize": "solarize from 128",
    "solarize_add": "solarize-add 20 below 128",
    "invert": "invert",
    "autocontrast": "autocontrast",
    "equalize": "equalize",
    "grayscale": "grayscale, 3 channels",
    "median_blur_5": "median of 5 x 5",
    "clahe": "CLAHE, limit 2, 8 x 8 tiles",
    "rotate90": "quarter turns: 90, 180 or 270 degrees",
    "random_crop": f"random crop of 224, padded by {PADDING}",
    "resized_crop": "RandomResizedCrop(224), bilinear",
    "resized_crop_bicubic": "RandomResizedCrop(224), bicubic",
    "rotate": f"rotate by up to {ANGLE:g} degrees, nearest",
    "rotate_bilinear": f"rotate by up to {ANGLE:g} degrees, bilinear",
    "rotate_bicubic": f"rotate by up to {ANGLE:g} degrees, bicubic",
    "affine": "affine (rotation, translation, scale, shear), nearest",
    "affine_bilinear": "affine (rotation, translation, scale, shear), bilinear",
    "affine_bicubic": "affine (rotation, translation, scale, shear), bicubic",
    "shear_x": "shear along x, nearest",
    "shear_x_bilinear": "shear along x, bilinear",
    "perspective": "perspective, nearest",
    "perspective_bilinear": "perspective, bilinear",
    "elastic": "elastic transform, alpha 50, sigma 5, bilinear",
    "grid_distortion": "grid distortion, 5 steps, 0.3, bilinear",
    "optical_distortion": "lens, 0.05, bilinear",
    "thin_plate": "thin plate spline, 4 x 4 control points, bilinear",
    "translate_x": "translate along x, nearest",
    "stretch": "stretch about the center, bilinear",
    "d4": "one of the eight symmetries of a square",
    "downscale": "to a quarter of the size and back, nearest",
    "brightness": "brightness 1 +- 0.4",
    "contrast": "contrast 1 +- 0.4",
    "saturation": "saturation 1 +- 0.4",
    "hue": "hue +- 0.1",
    "color_jitter": "color jitter (0.4, 0.4, 0.4, 0.1)",
    "photometric_distort": "RandomPhotometricDistort",
    "gamma": "gamma 0.8 to 1.2",
    "channel_permutation": "random permutation of the channels",
    "rgb_shift": "shift of each channel by up to 20",
    "color_temperature": "color temperature, 3,000 to 15,000 K",
    "blur_5": "Gaussian blur, kernel 5, sigma 0.1 to 2",
    "blur_23": "Gaussian blur, kernel 23, sigma 0.1 to 2",
    "motion_blur": "motion blur, length 7",
    "emboss": "emboss",
    "unsharp_mask": "unsharp mask, kernel 3 to 7",
    "edges": "edges (Sobel)",
    "jpeg": "JPEG of quality 50 to 95, written and read",
    "gaussian_noise": "Gaussian noise, sigma 0.1",
    "salt_and_pepper": "salt and pepper, 5 % of the pixels",
    "shot_noise": "shot noise, 1 to 8 levels a photon",
    "cutout": f"cutout of {HOLE} x {HOLE}",
    "random_erasing": "random erasing by black",
    "coarse_dropout": "coarse dropout, 1 to 8 holes of 8 to 32",
    "grid_mask": "grid mask, units of 96 to 224",
    "channel_dropout": "one channel black",
    "pixel_dropout": "1 % of the pixels black",
    "occlusion_diffusion": "occlusion grown from 1 to 4 seeds over 2 to 20 %",
    "mixup": "MixUp, within the batch, with labels",
    "cutmix": "CutMix, within the batch, with labels",
    "resizemix": "ResizeMix, within the batch, with labels",
    "mosaic": "Mosaic, within the batch, with labels",
}
SIDES = {
    "pad": SIZE + 2 * PADDING,
    "center_crop": CUT,
    "resize": SMALLER,
    "resize_bicubic": SMALLER,
}
SIDES |= {"cifar": 32, "randaugment_32": 32, "randaugment_1024": 1024, "dino_local": 96}
PIPELINES = {
    "imagenet": "RandomResizedCrop(224), flip",
    "cifar": "RandomCrop(32, padding 4), flip, cutout 8, at 32 px",
    "simclr": "SimCLR: crop, flip, jitter 0.8 (p 0.8), gray 0.2, blur 23 (p 0.5)",
    "byol": "BYOL's first view: bicubic crop, flip, jitter (p 0.8), gray 0.2, blur 23",
    "dino_global": "DINO's second global crop: bicubic, flip, jitter, gray, blur 0.1, solarize 0.2",
    "dino_local": "DINO's local crop of 96: bicubic, flip, jitter, gray, blur 9 (p 0.5)",
    "jitter_affine": "color jitter, affine bilinear",
    "jitter_perspective": "flip, color jitter, perspective bilinear (p 0.5)",
    "autoaugment": "flip, AutoAugment (ImageNet)",
    "trivialaugment": "flip, TrivialAugmentWide",
    "augmix": "AugMix",
    "three_augment": "3-Augment: flip; gray, solarize or blur; jitter 0.3",
    "randaugment_32": "flip, RandAugment(2, 9) at 32 px",
    "randaugment": "flip, RandAugment(2, 9) at 224 px",
    "randaugment_1024": "flip, RandAugment(2, 9) at 1,024 px",
}


def _operations() -> list[Case]:
    made = []
    for name, title in OPERATIONS.items():
        made.append(Case(name, title, "operation", out=SIDES.get(name, SIZE)))
    for name, title in LAYERS.items():
        made.append(Case(name, f"{title}, uint8 out", "operation", dtype="uint8"))
    return made


def _pipelines() -> list[Case]:
    made = []
    for name, title in PIPELINES.items():
        out = SIDES.get(name, SIZE)
        size = SIZE if name == "dino_local" else out
        made.append(Case(name, title, "pipeline", size=size, out=out))
    title = f"{PIPELINES['randaugment']}, uint8 out"
    made.append(Case("randaugment_uint8", title, "pipeline", dtype="uint8", steps="randaugment"))
    title = "DINO from one JPEG: two global crops of 224, six local ones of 96"
    views = (("dino_first", "dino_global"), ("dino_local",) * 6)
    made.append(Case("dino", title, "file pipeline", size=0, views=views))
    return made


W2O = (*_operations(), *_pipelines())
BY_NAME = {case.name: case for case in W2O}

_FROM_FILES = "JPEG bytes -> RandomResizedCrop({}), flip, RandAugment(2, 9), normalize -> float32 NCHW, one core"
W1 = Case("w1", _FROM_FILES.format("224"), "file pipeline", size=0)
W1_LOCAL = Case(
    "w1_local",
    _FROM_FILES.format("96, scale=(0.05, 0.4)"),
    "file pipeline",
    size=0,
    out=96,
)
_IN_MEMORY = "uint8 224x224x3 in memory -> flip, RandAugment(2, 9), normalize -> float32 NCHW, one core"
W2 = Case("w2", _IN_MEMORY, "pipeline", steps="randaugment")
_ON_GPU = "{} on the GPU -> {}flip, RandAugment(2, 9), normalize -> bfloat16 NCHW, one GPU"
W3 = Case(
    "w3",
    _ON_GPU.format("uint8 224x224x3", ""),
    "gpu",
    dtype="bfloat16",
    steps="randaugment",
)
_CROPPED = _ON_GPU.format("decoded photos of several sizes", "RandomResizedCrop(224), ")
W3R = Case("w3r", _CROPPED, "gpu", size=0, dtype="bfloat16", steps="w1")

_BY_LOADER = "JPEG files -> RandomResizedCrop(224), flip, RandAugment(2, 9), normalize -> {}, all cores"
LOADER = Case("loader", _BY_LOADER.format("float32 NCHW and labels"), "loader", size=0)
FEEDS = Case("feeds", _BY_LOADER.format("the step of a small training"), "loader", size=0)

# Functions of ``variegate.transforms.functional``, one of each kind of work, with their arguments. W2o has a row for
# every operation.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "horizontal_flip": {},
    "rotate": {"angle": 30.0, "interpolation": "bilinear"},
    "shear_x": {"shear": 0.2},
    "pad": {"padding": 16},
    "crop": {"top": 10, "left": 12, "height": 120, "width": 130},
    "resize": {"size": [160, 160]},
    "adjust_brightness": {"brightness_factor": 1.3},
    "adjust_contrast": {"contrast_factor": 1.3},
    "adjust_hue": {"hue_factor": 0.1},
    "adjust_sharpness": {"sharpness_factor": 1.3},
    "equalize": {},
    "solarize": {"threshold": 128},
    "median_blur": {"kernel_size": 5},
    "gaussian_blur": {"kernel_size": [5, 5], "sigma": [1.0, 1.0]},
    "jpeg": {"quality": 75},
    "normalize": {"mean": list(MEAN), "std": list(STD)},
}
SINGLE_PIPELINES = (
    "normalize",
    "imagenet",
    "randaugment",
    "trivialaugment",
    "jitter_affine",
    "simclr",
    "augmix",
)


def _single() -> list[Case]:
    """Images of one size, and of sizes between 144 and 304 pixels (size 0)."""
    made = []
    for size, word in ((SIZE, ""), (0, ", mixed sizes")):
        for name in FUNCTIONS:
            made.append(Case(f"{name}{word}", f"F.{name}{word}", "function", size, 0, steps=name))
        for name in SINGLE_PIPELINES:
            title = f"as_transform, {name}{word}"
            made.append(Case(title, title, "as_transform", size, 0, steps=name))
            title = f"t(image), {name}{word}"
            made.append(Case(title, title, "call", size, 0, steps=name))
    return made


W8 = tuple(_single())

_AFFINE = "bilinear affine, jitter, flip"


_TARGETS_640 = Case("detection", _AFFINE, "targets", 640, 640, steps="targets_affine", batch=8)
TARGETS = (
    _TARGETS_640,
    replace(_TARGETS_640, name="mosaic_640", title="flip, jitter, Mosaic", steps="targets_mosaic"),
    replace(_TARGETS_640, name="many_boxes", title=f"{_AFFINE}, 100 boxes", objects=Objects(100)),
    replace(
        _TARGETS_640,
        name="instances",
        title=f"{_AFFINE}, a mask for each box",
        objects=Objects(masks=0, has_instances=True),
    ),
    replace(_TARGETS_640, name="three_masks", title=f"{_AFFINE}, three masks", objects=Objects(masks=3)),
    replace(_TARGETS_640, name="small", size=32, out=32, batch=256, objects=Objects(2)),
    Case("crop", "RandomResizedCrop, flip, jitter", "targets", 480, 224, steps="targets_crop", batch=32),
    replace(_TARGETS_640, name="flip", title="flip", steps="targets_flip"),
)

# Operations and pipelines on images of uint16 and float32.
DEEP_GEOMETRY = (
    *("hflip", "vflip", "transpose", "rotate90", "pad", "center_crop", "random_crop", "resize", "resize_bicubic"),
    *("resized_crop", "resized_crop_bicubic", "rotate", "rotate_bilinear", "rotate_bicubic", "affine_bilinear"),
    *("affine_bicubic", "shear_x_bilinear", "perspective_bilinear", "translate_x", "elastic", "grid_distortion"),
    *("optical_distortion", "thin_plate", "imagenet"),
)
DEEP_VALUES = (
    *("normalize", "brightness", "contrast", "saturation", "hue", "gamma", "sharpness", "posterize", "solarize"),
    *("invert", "autocontrast", "equalize", "grayscale", "channel_permutation", "blur_5", "blur_23", "motion_blur"),
    *("median_blur_5", "unsharp_mask", "gaussian_noise", "salt_and_pepper", "cutout", "random_erasing"),
    *("coarse_dropout", "mixup", "cutmix", "simclr", "byol", "randaugment", "trivialaugment"),
)
DEEP_JITTER = ("color_jitter", "jitter_affine")


def _deep(names: Sequence[str], asked: float) -> list[Case]:
    depths: tuple[Literal["uint16", "float32"], ...] = ("uint16", "float32")
    made = []
    for depth in depths:
        for name in names:
            one = BY_NAME[name]
            row = replace(
                one, name=f"{name}_{depth}", title=f"{one.title}, {depth}", kind="deep operation", steps=one.key
            )
            made.append(replace(row, depth=depth, dtype="float32" if name == "normalize" else depth, asked=asked))
    return made


DEEP = (*_deep((*DEEP_GEOMETRY, *DEEP_JITTER), 4.0), *_deep(DEEP_VALUES, 2.0))

# -- works -------------------------------------------------------------------------------------------------------------

ON_ONE_CORE = ("torchvision_pil", "torchvision_tensor", "albumentationsx", "dali")


@dataclass(frozen=True)
class Work:
    """A table, how long its cases are measured, and the peers.

    ``asked``: required ratio to the best peer, in total ("") or by level, overriding the kind's. ``is_indexed``:
    Variegate also runs with an entropy index of the files. ``is_on_gpu``, ``is_on_all_cores``: measured by the clock,
    not by the processor time of one core.
    """

    title: str
    cases: Sequence[Case]
    peers: Sequence[str]
    batches: Sequence[int] = (64,)
    seconds: float = 2.0
    repeats: int = 7
    asked: Mapping[str, float] = field(default_factory=dict)
    is_indexed: bool = False
    is_on_gpu: bool = False
    is_on_all_cores: bool = False


WORKS = {
    "w1": Work(W1.title, (W1,), ON_ONE_CORE, (64, 256)),
    "w1i": Work(
        f"{W1.title}; with an entropy index",
        (W1,),
        ON_ONE_CORE,
        asked={"index": 2.5},
        is_indexed=True,
    ),
    "w1i_local": Work(
        f"{W1_LOCAL.title}; with an entropy index",
        (W1_LOCAL,),
        ON_ONE_CORE,
        asked={"index": 4.0},
        is_indexed=True,
    ),
    "w2": Work(
        W2.title,
        (W2,),
        (*ON_ONE_CORE, "kornia"),
        (64, 256),
        asked={"": 10.0, "v2": 4.0, "v3": 8.0, "v4": 10.0, "vbmi": 10.0, "host": 10.0},
    ),
    "w2o": Work(
        "operations and pipelines, uint8 photos in memory -> float32 NCHW, normalized, one core",
        W2O,
        ON_ONE_CORE,
        seconds=0.3,
        repeats=5,
    ),
    "w8": Work(
        "one image at a time: F.* beside Pillow, as_transform beside torchvision on Pillow images, t(image)",
        W8,
        ("pillow", "torchvision_pil"),
        seconds=0.1,
        repeats=5,
    ),
    "targets": Work(
        "images with masks and boxes",
        TARGETS,
        ("albumentationsx",),
        seconds=0.3,
        repeats=5,
    ),
    "deep": Work(
        "operations and pipelines on uint16 and float32 photos in memory -> the same type, NCHW, one core",
        DEEP,
        ("albumentationsx", "kornia"),
        seconds=0.2,
        repeats=5,
    ),
    "loader": Work(
        LOADER.title,
        (LOADER,),
        ON_ONE_CORE,
        seconds=10.0,
        repeats=5,
        is_on_all_cores=True,
    ),
    "feeds": Work(
        FEEDS.title,
        (FEEDS,),
        ON_ONE_CORE,
        seconds=10.0,
        repeats=5,
        is_on_all_cores=True,
    ),
    "w3": Work(
        W3.title,
        (W3,),
        ("dali_gpu", "kornia_gpu"),
        (64, 256, 1024),
        repeats=5,
        is_on_gpu=True,
    ),
    "w3r": Work(
        W3R.title,
        (W3R,),
        ("dali_gpu", "kornia_gpu"),
        (64, 256, 1024),
        repeats=5,
        is_on_gpu=True,
    ),
}


def select(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """The cases of these names; all cases without names. Raises ValueError for a name that no case has."""
    known = {case.name: case for case in cases}
    for name in names:
        if name not in known:
            raise ValueError(f"--rows {name}: accepted: {', '.join(known)}")
    return [known[name] for name in names or known]

"""Apply one operation to one image, without randomness; names and arguments as torchvision.transforms.v2.functional.

Arguments that have the same meaning in every function:

Args:
    img: a uint8 array [H, W, C] with C = 1 or 3, or [H, W]; a torch tensor of these shapes or [C, H, W] (ambiguous
        shapes, as [3, H, 3], have channels last); or a PIL image, converted to "L" or "RGB" without alpha if it has
        another mode. The result is of the same kind.
    device: executor: "cpu", or a GPU, "cuda:N".
    interpolation: "nearest", "bilinear" or "bicubic", also as a torchvision ``InterpolationMode`` or Pillow's code.
        Resizes accept "box", "hamming" and "lanczos" as well.
    antialias: for torchvision's signature. All interpolations but "nearest" are antialiased, whatever it says.
    fill: level, or three levels, of pixels from outside of the image.
    padding_mode: of maps, what lies beyond the image's edges: "constant" (``fill``), "edge" (its outermost pixels),
        "reflect" (mirrored without these), "symmetric" (mirrored with them) or "wrap" (the opposite side), as NumPy's
        ``pad`` continues it to any distance.
    inplace: for torchvision's signature; only False is accepted.
    size: (height, width) in pixels, or one integer.

x points right, y down, in pixels. A ValueError names an argument that is out of range. In a function
under ``vg.pipeline``, an image without pixels is accepted, and records the operation.
"""

from typing import TYPE_CHECKING, Any

from variegate.checks import missing_name
from variegate.ops.base import Transform
from variegate.transforms.functional.geometry import (
    affine,
    center_crop,
    crop,
    elastic,
    five_crop,
    horizontal_flip,
    pad,
    perspective,
    resize,
    resized_crop,
    rotate,
    shear_x,
    shear_y,
    ten_crop,
    translate_x,
    translate_y,
    vertical_flip,
)
from variegate.transforms.functional.pixels import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    equalize,
    erase,
    gaussian_blur,
    gaussian_noise,
    grayscale,
    grayscale_to_rgb,
    invert,
    jpeg,
    median_blur,
    motion_blur,
    normalize,
    permute_channels,
    posterize,
    rgb_to_grayscale,
    solarize,
    solarize_add,
    to_grayscale,
)
from variegate.transforms.functional.single import function_of

hflip, vflip = horizontal_flip, vertical_flip

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "affine",
    "autocontrast",
    "center_crop",
    "crop",
    "elastic",
    "equalize",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "grayscale",
    "grayscale_to_rgb",
    "hflip",
    "horizontal_flip",
    "invert",
    "jpeg",
    "median_blur",
    "motion_blur",
    "normalize",
    "pad",
    "permute_channels",
    "perspective",
    "posterize",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "shear_x",
    "shear_y",
    "solarize",
    "solarize_add",
    "ten_crop",
    "to_grayscale",
    "translate_x",
    "translate_y",
    "vertical_flip",
    "vflip",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Functions of operations that are declared elsewhere."""
        if name not in Transform.functions:
            raise missing_name(__name__, name, [*__all__, *Transform.functions])
        return globals().setdefault(name, function_of(name))

"""Apply one operation to one image, without randomness; names and arguments as torchvision.transforms.v2.functional.

Arguments that have the same meaning in every function:

Args:
    img: an array [H, W, C] with C = 1 or 3, or [H, W], of uint8, uint16 or float32; a torch tensor of these shapes or
        [C, H, W] (ambiguous shapes, as [3, H, 3], have channels last); or a PIL image, converted to "L" or "RGB"
        without alpha if it has a mode other than "I;16" and "F". The result is of the same kind.
    device: executor: "cpu", or a GPU, "cuda:N".
    interpolation: "nearest", "bilinear" or "bicubic", also as a torchvision ``InterpolationMode`` or Pillow's code.
        Resizes accept "box", "hamming" and "lanczos" as well.
    antialias: for torchvision's signature. All interpolations but "nearest" are antialiased, whatever it says.
    fill: level, or three levels, of pixels from outside of the image.
    padding_mode: of maps, the pixels beyond the image's edges: "constant" (``fill``), "edge" (its outermost pixels),
        "reflect" (mirrored without these), "symmetric" (mirrored with them) or "wrap" (the opposite side). Any distance
        is continued as in NumPy's ``pad``.
    inplace: for torchvision's signature; only False is accepted.
    size: (height, width) in pixels, or one integer.

x points right, y down, in pixels. A ValueError names an argument that is out of range. In a function
under ``vg.pipeline``, an image without pixels is accepted, and records the operation.
"""

from typing import Any

from variegate.checks import missing_name
from variegate.ops.base import Transform
from variegate.transforms.functional.declared import function_of
from variegate.transforms.functional.geometry import (
    affine,
    crop,
    elastic,
    five_crop,
    perspective,
    resized_crop,
    rotate,
    ten_crop,
)
from variegate.transforms.functional.pixels import (
    erase,
    gaussian_blur,
    gaussian_noise,
    grayscale_to_rgb,
    median_blur,
    motion_blur,
    normalize,
    permute_channels,
    rgb_to_grayscale,
)

grayscale = to_grayscale = rgb_to_grayscale
# Further functions are declared by operations.
__all__ = [
    "affine",
    "crop",
    "elastic",
    "erase",
    "five_crop",
    "gaussian_blur",
    "gaussian_noise",
    "grayscale",
    "grayscale_to_rgb",
    "median_blur",
    "motion_blur",
    "normalize",
    "permute_channels",
    "perspective",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "ten_crop",
    "to_grayscale",
    *Transform.functions,
]


def __getattr__(name: str) -> Any:
    """The function that an operation declares, made when it is first used."""
    if name not in Transform.functions:
        raise missing_name(__name__, name, __all__)
    cls = Transform.functions[name]
    globals().update(dict.fromkeys(cls._functions, function_of(cls)))
    return globals()[name]

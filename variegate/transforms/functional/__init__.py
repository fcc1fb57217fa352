"""One operation, without chance, on one image: names and arguments of torchvision.transforms.v2.functional.

Images are uint8 arrays [H, W, C] with C = 1 or 3, or [H, W]; torch tensors of these shapes come back as tensors.
``device`` chooses the executor: "cpu" (compiled) or "reference" (plain NumPy, which defines every meaning).
"""

from variegate.transforms.functional.color import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    autocontrast,
    equalize,
    grayscale,
    invert,
    permute_channels,
    posterize,
    rgb_to_grayscale,
    solarize,
    solarize_add,
    to_grayscale,
)
from variegate.transforms.functional.filters import erase, gaussian_blur, gaussian_noise, motion_blur, normalize
from variegate.transforms.functional.geometry import (
    affine,
    horizontal_flip,
    perspective,
    rotate,
    shear_x,
    shear_y,
    translate_x,
    translate_y,
    vertical_flip,
)
from variegate.transforms.functional.size import center_crop, crop, pad, resize, resized_crop

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
    "equalize",
    "erase",
    "gaussian_blur",
    "gaussian_noise",
    "grayscale",
    "hflip",
    "horizontal_flip",
    "invert",
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
    "to_grayscale",
    "translate_x",
    "translate_y",
    "vertical_flip",
    "vflip",
]

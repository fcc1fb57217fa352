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

# Written by python -m tests.functional_stub.
from variegate.ops.arguments import Fill, FilterName, InterpolationName, Padding, PaddingMode, Size
from variegate.ops.resize import SideOrSize
from variegate.transforms.functional.geometry import affine as affine
from variegate.transforms.functional.geometry import crop as crop
from variegate.transforms.functional.geometry import elastic as elastic
from variegate.transforms.functional.geometry import five_crop as five_crop
from variegate.transforms.functional.geometry import perspective as perspective
from variegate.transforms.functional.geometry import resized_crop as resized_crop
from variegate.transforms.functional.geometry import rotate as rotate
from variegate.transforms.functional.geometry import ten_crop as ten_crop
from variegate.transforms.functional.pixels import erase as erase
from variegate.transforms.functional.pixels import gaussian_blur as gaussian_blur
from variegate.transforms.functional.pixels import gaussian_noise as gaussian_noise
from variegate.transforms.functional.pixels import grayscale_to_rgb as grayscale_to_rgb
from variegate.transforms.functional.pixels import median_blur as median_blur
from variegate.transforms.functional.pixels import motion_blur as motion_blur
from variegate.transforms.functional.pixels import normalize as normalize
from variegate.transforms.functional.pixels import permute_channels as permute_channels
from variegate.transforms.functional.pixels import rgb_to_grayscale as rgb_to_grayscale
from variegate.transforms.functional.single import Img

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
    "percentile_stretch",
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
    "window",
]

def adjust_brightness(
    img: Img,
    brightness_factor: float,
    device: str = "cpu",
) -> Img:
    """Blend with black: ``brightness_factor`` 0 is black, 1 the image, 2 twice as bright
    (``PIL.ImageEnhance.Brightness``).
    """

def adjust_contrast(
    img: Img,
    contrast_factor: float,
    device: str = "cpu",
) -> Img:
    """Blend with the mean gray level: ``contrast_factor`` 0 is gray, 1 the image, -1 inverts
    (``PIL.ImageEnhance.Contrast``).
    """

def adjust_gamma(
    img: Img,
    gamma: float,
    gain: float = 1.0,
    device: str = "cpu",
) -> Img:
    """Correct gamma: ``255 * gain * (x / 255) ** gamma``; above 1 darkens (torchvision's ``adjust_gamma``)."""

def adjust_hue(
    img: Img,
    hue_factor: float,
    device: str = "cpu",
) -> Img:
    """Rotate the hue by ``hue_factor`` of a full circle, -0.5 to 0.5, in Pillow's 8-bit HSV."""

def adjust_saturation(
    img: Img,
    saturation_factor: float,
    device: str = "cpu",
) -> Img:
    """Change saturation: ``saturation_factor`` 0 is gray, 1 the image (``PIL.ImageEnhance.Color``)."""

def adjust_sharpness(
    img: Img,
    sharpness_factor: float,
    device: str = "cpu",
) -> Img:
    """Blend with Pillow's SMOOTH filter: ``sharpness_factor`` 0 is smooth, 1 the image
    (``PIL.ImageEnhance.Sharpness``).
    """

def autocontrast(
    img: Img,
    device: str = "cpu",
) -> Img:
    """Stretch every channel so that its darkest value is 0 and its lightest 255 (``PIL.ImageOps.autocontrast``)."""

def center_crop(
    img: Img,
    output_size: Size,
    device: str = "cpu",
) -> Img:
    """Crop the central ``output_size`` pixels; smaller images are padded with black."""

def equalize(
    img: Img,
    device: str = "cpu",
) -> Img:
    """Equalize the histogram of every channel (``PIL.ImageOps.equalize``)."""

def horizontal_flip(
    img: Img,
    device: str = "cpu",
) -> Img:
    """Mirror left-right."""

def invert(
    img: Img,
    device: str = "cpu",
) -> Img:
    """Invert every value: ``255 - x``."""

def jpeg(
    img: Img,
    quality: int,
    device: str = "cpu",
) -> Img:
    """Compress the image as a JPEG of ``quality`` and decode it.

    ``quality``: 1 to 100. Color is stored at half resolution (4:2:0). Pixels are Pillow's and torchvision's to the bit.
    The compression runs between fused passes. CPU only.
    """

def pad(
    img: Img,
    padding: Padding,
    fill: Fill = 0,
    padding_mode: PaddingMode = "constant",
    device: str = "cpu",
) -> Img:
    """Pad the border of the image.

    Args:
        padding: pixels on all sides, (left and right, top and bottom), or (left, top, right, bottom). Negative values
            crop.
        padding_mode: "constant" (``fill``), "edge" (the outermost pixel), "reflect" (mirrored without it),
            "symmetric" (mirrored with it) or "wrap" (the opposite side).
    """

def percentile_stretch(
    img: Img,
    low: float = 1.0,
    high: float = 99.0,
    device: str = "cpu",
) -> Img:
    """Stretch every channel so that percentile ``low`` of its values is black and percentile ``high`` white, clipped.

    ``low``, ``high``: from 0 to 100, ``low`` below ``high``. On uint8, it is ``PIL.ImageOps.autocontrast`` with
    ``cutoff=(low, 100 - high)``. A channel whose two percentiles are equal does not change.
    """

def posterize(
    img: Img,
    bits: int,
    device: str = "cpu",
) -> Img:
    """Keep the highest ``bits`` bits of every value, 1 to 8. As by Pillow, 0 is refused: the image would be black."""

def resize(
    img: Img,
    size: SideOrSize | None,
    interpolation: FilterName = "bilinear",
    max_size: int | None = None,
    antialias: bool | None = True,
    device: str = "cpu",
) -> Img:
    """Resize the whole image.

    Args:
        size: an integer for the shorter side, keeping the aspect ratio; a (height, width) pair; or None, for a longer
            side of ``max_size``. Images of that size do not change.
        interpolation: "nearest" (or "nearest-exact"), "bilinear", "bicubic", "box", "hamming" or "lanczos", or Pillow's
            code of one.
        max_size: limit of the longer side, above ``size``.
    """

def shear_x(
    img: Img,
    shear: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shift each row left by ``shear`` times its distance from the top edge (AutoAugment's ShearX)."""

def shear_y(
    img: Img,
    shear: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Shift each column up by ``shear`` times its distance from the left edge (AutoAugment's ShearY)."""

def solarize(
    img: Img,
    threshold: float,
    device: str = "cpu",
) -> Img:
    """Invert the values at and above ``threshold``: all at 0 and below, none at 256 and above."""

def solarize_add(
    img: Img,
    addition: float,
    threshold: float = 128,
    device: str = "cpu",
) -> Img:
    """Add ``addition`` (-255 to 255) to the values below ``threshold``, clipped to 0..255."""

def translate_x(
    img: Img,
    pixels: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Move the content right by ``pixels`` pixels."""

def translate_y(
    img: Img,
    pixels: float,
    interpolation: InterpolationName = "nearest",
    fill: Fill = 0,
    device: str = "cpu",
    padding_mode: PaddingMode = "constant",
) -> Img:
    """Move the content down by ``pixels`` pixels."""

def vertical_flip(
    img: Img,
    device: str = "cpu",
) -> Img:
    """Mirror top-bottom."""

def window(
    img: Img,
    center: float,
    width: float,
    device: str = "cpu",
) -> Img:
    """Stretch the values from ``center - width / 2`` to ``center + width / 2`` to black..white, clipped.

    Args:
        center: middle of the window in the image's own numbers, such as Hounsfield units of float32 images, or counts
            of uint16 images: a number, or a range for a random window.
        width: width of the window, above 0: a number or a range.
    """

grayscale = rgb_to_grayscale
hflip = horizontal_flip
to_grayscale = rgb_to_grayscale
vflip = vertical_flip

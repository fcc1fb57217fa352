"""What Pillow makes of an instruction: the golden results that executors are compared with.

``run_pillow("ROTATE", img_HWC, 30.0, nan, nan, 0)`` takes the name and the arguments of docs/operations.md and goes
through Pillow's own functions (and torchvision's recipe on top of them, where it has one), never through Variegate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL
from PIL import Image, ImageEnhance, ImageOps

from tests.oracle.resample import vertical_pass_first

Array = npt.NDArray[np.uint8]

_FILTERS = ("NEAREST", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS")
RESAMPLE = {flags: Image.Resampling[name] for flags, name in enumerate(_FILTERS)}


def run_pillow(op_name: str, img_HWC: Array, *args: float, flags: int = 0, fill: Sequence[int] = (0, 0, 0)) -> Array:
    """uint8 [H, W, C], C = 1 or 3 -> uint8 [H', W', C]. KeyError for instructions that Pillow has no word for."""
    image = to_pillow(img_HWC)
    colour = tuple(int(v) for v in fill) if image.mode == "RGB" else int(fill[0])
    return from_pillow(ORACLES[op_name](image, args, flags, colour))


def to_pillow(img_HWC: Array) -> Image.Image:
    return Image.fromarray(img_HWC if img_HWC.shape[2] == 3 else np.ascontiguousarray(img_HWC[..., 0]))


def from_pillow(image: Image.Image) -> Array:
    array = np.array(image)
    return array if array.ndim == 3 else array[..., None]


# Since Pillow 13, which Python 3.10 cannot have, the vertical pass comes first where it loses more. Rounding between
# them makes that visible, by one level.
_IS_OLD = int(PIL.__version__.split(".")[0]) < 13


def resize(
    image: Image.Image, size: tuple[int, int], filter: Image.Resampling, box: tuple[float, ...] | None = None
) -> Image.Image:
    """As Pillow 13's ``image.resize``, whichever Pillow is installed."""
    width, height = size
    if _IS_OLD and filter != Image.Resampling.NEAREST and vertical_pass_first(image.height, image.width, height, width):
        left, top, right, bottom = box or (0, 0, image.width, image.height)
        image = image.resize((image.width, height), filter, (0, top, image.width, bottom))
        box = (left, 0, right, height)
    return image.resize(size, filter, box, reducing_gap=None)  # type: ignore[arg-type]


def _rotate(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    angle, x, y, expand = args
    center = None if math.isnan(x) else (x, y)
    return image.rotate(angle, RESAMPLE[flags], bool(expand), center, fillcolor=colour)


def _quarter_turns(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    turns = [Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270]
    return image.transpose(turns[int(args[0]) - 1])


def _affine(matrix: Callable[..., tuple[float, ...]]) -> Callable[..., Image.Image]:
    def run(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, matrix(*args), RESAMPLE[flags], fillcolor=colour)

    return run


def _perspective(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    return image.transform(image.size, Image.Transform.PERSPECTIVE, args, RESAMPLE[flags], fillcolor=colour)


def _resized_crop(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    top, left, height, width, out_height, out_width = args[:6]
    box = (left, top, left + width, top + height)
    out = resize(image, (int(out_width), int(out_height)), RESAMPLE[flags], box)
    return ImageOps.mirror(out) if len(args) > 6 and args[6] == 1 else out


def _crop(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    top, left, height, width = (int(v) for v in args)
    out = Image.new(image.mode, (width, height), colour)
    out.paste(image, (-left, -top))
    return out


def _pad(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    if flags:
        raise KeyError("Pillow pads with constants only")
    return ImageOps.expand(image, tuple(int(v) for v in args), colour)


def _enhance(enhancer: Any) -> Callable[..., Image.Image]:
    return lambda image, args, flags, colour: enhancer(image).enhance(args[0])


def _hue(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    # torchvision's adjust_hue on PIL images.
    if image.mode == "L":
        return image
    h, s, v = image.convert("HSV").split()
    turned = np.array(h) + np.int32(args[0] * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert("RGB")


def _window(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    center, width = args
    table = [min(max(int(255 * ((level - center) / width + 0.5) + 0.5), 0), 255) for level in range(256)]
    return image.point(table * len(image.getbands()))


def _gamma(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    # torchvision's adjust_gamma on PIL images.
    gamma, gain = args
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)] * 3
    return image.convert("RGB").point(table).convert(image.mode)


def _table(make: Callable[..., int]) -> Callable[..., Image.Image]:
    def run(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
        return image.point([make(level, *args) for level in range(256)] * len(image.getbands()))

    return run


def _posterize(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    # Pillow 13 refuses 0 bits, which older ones and published policies take as black.
    return ImageOps.posterize(image, int(args[0])) if args[0] else image.point([0] * 256 * len(image.getbands()))


def _grayscale(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    return image.convert("L").convert(image.mode)


def _permute(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    bands = image.split()
    return image if len(bands) == 1 else Image.merge("RGB", [bands[int(i)] for i in args])


def _rgb_shift(image: Image.Image, args: Sequence[float], flags: int, colour: Any) -> Image.Image:
    shifts = args[: len(image.getbands())]
    return image.point([min(max(level + int(shift), 0), 255) for shift in shifts for level in range(256)])


ORACLES: dict[str, Callable[[Image.Image, Sequence[float], int, Any], Image.Image]] = {
    "HFLIP": lambda image, *_: ImageOps.mirror(image),
    "VFLIP": lambda image, *_: ImageOps.flip(image),
    "ROT90": _quarter_turns,
    "CROP": _crop,
    "PAD": _pad,
    "RESIZED_CROP": _resized_crop,
    "ROTATE": _rotate,
    "SHEAR_X": _affine(lambda m: (1, m, 0, 0, 1, 0)),
    "SHEAR_Y": _affine(lambda m: (1, 0, 0, m, 1, 0)),
    "TRANSLATE_X": _affine(lambda p: (1, 0, -p, 0, 1, 0)),
    "TRANSLATE_Y": _affine(lambda p: (1, 0, 0, 0, 1, -p)),
    "AFFINE": _affine(lambda *matrix: matrix),
    "PERSPECTIVE": _perspective,
    "BRIGHTNESS": _enhance(ImageEnhance.Brightness),
    "SATURATION": _enhance(ImageEnhance.Color),
    "CONTRAST": _enhance(ImageEnhance.Contrast),
    "SHARPNESS": _enhance(ImageEnhance.Sharpness),
    "HUE": _hue,
    "GAMMA": _gamma,
    "POSTERIZE": _posterize,
    "SOLARIZE": lambda image, args, *_: ImageOps.solarize(image, args[0]),
    "SOLARIZE_ADD": _table(lambda level, a, t: min(max(level + int(a), 0), 255) if level < t else level),
    "INVERT": lambda image, *_: ImageOps.invert(image),
    "GRAYSCALE": _grayscale,
    "PERMUTE": _permute,
    "RGB_SHIFT": _rgb_shift,
    "AUTOCONTRAST": lambda image, *_: ImageOps.autocontrast(image),
    "PERCENTILE_STRETCH": lambda image, args, *_: ImageOps.autocontrast(image, (args[0], 100 - args[1])),
    "WINDOW": _window,
    "EQUALIZE": lambda image, *_: ImageOps.equalize(image),
}

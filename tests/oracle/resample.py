"""Crop and resize in one: Pillow's antialiased resample of a (float) box.

Pillow 13 ``src/libImaging/Resample.c``: a horizontal and a vertical pass, each with 22-bit fixed-point weights and a
rounded uint8 result. The box is held in float32; its taps may reach beyond the box, never beyond the image. Deeper
images are not rounded between the passes, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tests.oracle.instruction import Image, Instruction, to_pixels, white
from tests.oracle.places import gather_nearest, nearest_affine
from variegate.program.ops import Interpolation

PRECISION_BITS = 22  # 32 bits less 8 for the value and 2 for overshoot

Floats = npt.NDArray[np.floating]


def resized_crop(img_HWC: Image, ins: Instruction) -> Image:
    """Resample a box of floats with antialiasing, as Pillow's ``resize((out_width, out_height), resample, box=(left,
    top, left + width, top + height), reducing_gap=None)``. ``flags``: 0 nearest, 1 bilinear, 2 bicubic (a = -0.5), 3
    box, 4 Hamming, 5 Lanczos. The output is mirrored if the seventh argument is 1.

    There are two passes, one per axis, each with 22-bit fixed-point weights and a result rounded to uint8. Deeper
    images are rounded and clipped once. The box is
    stored as float32; its taps may extend beyond the box, never beyond the image. The vertical pass comes first if ``H
    > out_height and H - out_height > 2 (W - out_width)``, for the size H x W of the whole image, as in Pillow 13. A box
    of whole pixels that has the output's size is copied.

    A CROP within the image, and a RESIZED_CROP of all of it, are torchvision's ``resized_crop`` on PIL images: the
    filter sees nothing beyond the cut. Lowering combines the two into one resample whose box begins at -1 - top, -1 -
    left. ``edges="crop"`` emits this form.
    """
    top, left, height, width = (float(value) for value in ins.args[:4])
    out_height, out_width = int(ins.args[4]), int(ins.args[5])
    box = (left, top, left + width, top + height)
    out = resize(img_HWC, out_height, out_width, box, Interpolation(ins.flags))
    return out[:, ::-1] if ins.args[6] == 1 else out


def resize(
    img_HWC: Image,
    out_height: int,
    out_width: int,
    box: tuple[float, float, float, float],
    interpolation: Interpolation,
) -> Image:
    """As Pillow's ``resize((out_width, out_height), interpolation, box, reducing_gap=None)``.

    ``box`` is left, top, right, bottom in pixels and must lie inside the image.
    """
    height, width, _ = img_HWC.shape
    left, top, right, bottom = np.asarray(box, np.float32)
    if left < 0 or top < 0 or right > width or bottom > height or right < left or bottom < top:
        raise ValueError(f"resize: box={box}; accepted: left, top, right, bottom inside the {width}x{height} image")
    if left % 1 == 0 and top % 1 == 0 and right - left == out_width and bottom - top == out_height:
        return img_HWC[int(top) : int(bottom), int(left) : int(right)]
    if interpolation is Interpolation.NEAREST:
        a, e = float(right - left) / out_width, float(bottom - top) / out_height
        x, y = nearest_affine((a, 0.0, float(left), 0.0, e, float(top)), out_height, out_width)
        return gather_nearest(img_HWC, x, y, np.zeros(img_HWC.shape[2], img_HWC.dtype))
    passes = []
    if out_width != width or left != 0 or right != out_width:
        passes.append((1, weights(width, left, right, out_width, interpolation)))
    if out_height != height or top != 0 or bottom != out_height:
        passes.append((0, weights(height, top, bottom, out_height, interpolation)))
    if vertical_pass_first(height, width, out_height, out_width):
        passes.reverse()
    values_HWC: Floats = img_HWC.astype(np.float64)
    for axis, weights_OI in passes:
        values_HWC = _resample(values_HWC, weights_OI, axis)
        if white() == 255:
            values_HWC = _rounded(values_HWC).astype(np.float64)
    return _rounded(values_HWC)


def vertical_pass_first(height: int, width: int, out_height: int, out_width: int) -> bool:
    """True if Pillow takes the vertical pass first; since 13.0 (python-pillow/Pillow#9549) for lost height.

    The rounding between the passes makes the order visible. The rule looks at the whole image, not at the box; it was
    read off Pillow 13.0.0 by trying sizes, and older versions always began with the horizontal pass.
    """
    return height > out_height and height - out_height > 2 * (width - out_width)


def weights(
    in_size: int, start: np.float32, end: np.float32, out_size: int, interpolation: Interpolation
) -> npt.NDArray[np.int64]:
    """Fixed-point weights int64[out_size, in_size] of every input for every output along one axis."""
    kernel, radius = _KERNELS[interpolation]
    scale = float(end - start) / out_size
    filter_scale = max(scale, 1.0)
    support = radius * filter_scale
    out = np.zeros((out_size, in_size), np.int64)
    for i in range(out_size):
        center = float(start) + (i + 0.5) * scale
        first = max(int(center - support + 0.5), 0)
        last = min(int(center + support + 0.5), in_size)
        w = kernel((np.arange(first, last) - center + 0.5) * (1.0 / filter_scale))
        # In order, as Pillow adds them; NumPy's pairwise sum would round otherwise.
        total = np.add.accumulate(w)[-1]
        if total != 0.0:
            w = w / total
        out[i, first:last] = np.trunc(w * (1 << PRECISION_BITS) + np.where(w < 0, -0.5, 0.5))
    return out


def _resample(values_HWC: Floats, weights_OI: npt.NDArray[np.int64], axis: int) -> Floats:
    # Of uint8, the matrix product is exact: every sum stays below 2**33, and float64 holds integers to 2**53.
    moved = np.moveaxis(values_HWC, axis, 0)
    flat = moved.reshape(moved.shape[0], -1)
    total = weights_OI.astype(np.float64) @ flat / (1 << PRECISION_BITS)
    return np.moveaxis(total.reshape(-1, *moved.shape[1:]), 0, axis)


def _rounded(values: Floats) -> Image:
    return to_pixels(np.floor(values + 0.5))


def _triangle(x: Floats) -> Floats:
    return np.maximum(1.0 - np.abs(x), 0.0)


def _cubic(x: Floats) -> Floats:
    a, x = -0.5, np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _box(x: Floats) -> Floats:
    return np.where((x > -0.5) & (x <= 0.5), 1.0, 0.0)


def _hamming(x: Floats) -> Floats:
    # Pillow has these two numbers in single precision.
    mean, swing = float(np.float32(0.54)), float(np.float32(0.46))
    return np.where(np.abs(x) < 1.0, np.sinc(x) * (mean + swing * np.cos(x * np.pi)), 0.0)


def _lanczos(x: Floats) -> Floats:
    return np.where(np.abs(x) < 3.0, np.sinc(x) * np.sinc(x / 3), 0.0)


_KERNELS: dict[Interpolation, tuple[Callable[[Floats], Floats], float]] = {
    Interpolation.BILINEAR: (_triangle, 1.0),
    Interpolation.BICUBIC: (_cubic, 2.0),
    Interpolation.BOX: (_box, 0.5),
    Interpolation.HAMMING: (_hamming, 1.0),
    Interpolation.LANCZOS: (_lanczos, 3.0),
}

"""Operations on a pixel's own value, tables that operations declare among them (formulas of Pillow 13)."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.oracle import pixel_functions
from tests.oracle.instruction import Image, Instruction, Operation, to_pixels, white
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, OpSpec

Doubles = npt.NDArray[np.float64]


def rgb_to_hsv(img_HWC: Image) -> Image:
    """uint8[H, W, 3] -> uint8[H, W, 3]."""
    r, g, b = (img_HWC[..., i] for i in range(3))
    high, low = img_HWC.max(axis=-1), img_HWC.min(axis=-1)
    is_gray = high == low
    spread = np.where(is_gray, 1, high - low).astype(np.float32)
    from_r, from_g, from_b = ((high - channel).astype(np.float32) / spread for channel in (r, g, b))
    sextant = np.where(
        r == high,
        (from_b - from_g).astype(np.float64),
        np.where(
            g == high,
            2.0 + from_r.astype(np.float64) - from_b,
            4.0 + from_g.astype(np.float64) - from_r,
        ),
    )
    turn = np.fmod(_as_float(sextant) / 6.0 + 1.0, 1.0)
    saturation = _as_float(spread / np.maximum(high, 1).astype(np.float32))
    h = np.where(is_gray, 0, to_pixels(_as_float(turn) * 255.0))
    s = np.where(is_gray, 0, to_pixels(saturation * 255.0))
    return np.stack([h, s, high], axis=-1).astype(np.uint8)


def hsv_to_rgb(hsv_HWC: Image) -> Image:
    """uint8[H, W, 3] -> uint8[H, W, 3]."""
    h, s, v = (hsv_HWC[..., i] for i in range(3))
    turn = h.astype(np.float64) * 6.0 / 255.0
    sextant = np.floor(turn)
    part = (turn - sextant).astype(np.float32)
    strength = (s / 255.0).astype(np.float32)
    value = v.astype(np.float64)
    p = _round(value * (1.0 - strength.astype(np.float64)))
    q = _round(value * (1.0 - (strength * part).astype(np.float64)))
    t = _round(value * (1.0 - strength.astype(np.float64) * (1.0 - part.astype(np.float64))))
    choices = np.array([[v, t, p], [q, v, p], [p, v, t], [p, q, v], [t, p, v], [v, p, q]])
    chosen = (sextant.astype(np.int64) % 6)[None, None]
    rgb = np.take_along_axis(choices, chosen, axis=0)[0]
    return np.where(s == 0, v, rgb).transpose(1, 2, 0).astype(np.uint8)


def _as_float(values: npt.NDArray[np.floating]) -> Doubles:
    """Through a C float and back to double."""
    return values.astype(np.float32).astype(np.float64)


def _round(values: Doubles) -> Image:
    """C's ``round`` on non-negative numbers: halves go up, and 0.49999999999999994 does not."""
    whole = np.trunc(values)
    return to_pixels(whole + (values - whole >= 0.5))


def luma(img_HWC: Image) -> Image:
    """Pillow's mode "L", of deep images torchvision's gray: [H, W, 1]. Gray images are their own luma."""
    if img_HWC.shape[2] == 1:
        return img_HWC
    r, g, b = (img_HWC[..., i : i + 1].astype(np.int64) for i in range(3))
    if white() != 255:
        return to_pixels(0.2989 * r + 0.587 * g + 0.114 * b)
    return to_pixels((LUMA_RED * r + LUMA_GREEN * g + LUMA_BLUE * b + LUMA_HALF) >> LUMA_SHIFT)


def blend(degenerate: npt.ArrayLike, img_HWC: Image, factor: float) -> Image:
    """Pillow's ``Image.blend``: from ``degenerate`` (factor 0) to the image (factor 1) and beyond, in float32."""
    d, x, f = np.asarray(degenerate, np.float32), img_HWC.astype(np.float32), np.float32(factor)
    return to_pixels(d + f * (x - d))


def saturation(img_HWC: Image, ins: Instruction) -> Image:
    """Blend with the luma, as Pillow's ``ImageEnhance.Color``. Gray images do not change."""
    return blend(luma(img_HWC), img_HWC, ins.args[0])


def hue(img_HWC: Image, ins: Instruction) -> Image:
    """Add ``uint8(factor * 255)`` to the hue of Pillow's HSV, which wraps. Gray images do not change."""
    if img_HWC.shape[2] == 1:
        return img_HWC
    if white() != 255:
        return _turned(img_HWC, ins.args[0])
    hsv_HWC = rgb_to_hsv(img_HWC)
    # Adding modulo 256 although hue has 255 steps is what torchvision does.
    hsv_HWC[..., 0] += np.uint8(int(ins.args[0] * 255) % 256)
    return hsv_to_rgb(hsv_HWC)


def _turned(img_HWC: Image, factor: float) -> Image:
    """The hue of a deep image turned, in real numbers."""
    flat = (img_HWC / white()).reshape(-1, 3).tolist()
    hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in flat]
    rgb = [colorsys.hsv_to_rgb((h + factor) % 1.0, s, v) for h, s, v in hsv]
    return to_pixels(np.array(rgb).reshape(img_HWC.shape) * (white() + 0.999))


def grayscale(img_HWC: Image, _: Instruction) -> Image:
    """Set all three channels to the luma. Gray images do not change."""
    return np.repeat(luma(img_HWC), img_HWC.shape[2], axis=2)


def permute(img_HWC: Image, ins: Instruction) -> Image:
    """Output channel i is the input channel that argument i names. Gray images do not change."""
    return img_HWC if img_HWC.shape[2] == 1 else img_HWC[..., ins.integers(3)]


def tabled(spec: OpSpec) -> Operation:
    """Apply a table operation's function of one level to every level of an image."""
    assert spec.level is not None
    level, count, step = spec.level, 1 if spec.per_channel else len(spec.args), int(spec.per_channel)

    def look_up(img_HWC: Image, ins: Instruction) -> Image:
        # Python's scalars, as torchvision has it: NumPy's vectorised power may differ in the last bit.
        args = ins.args.tolist()
        if white() != 255:
            of_channels = (args[step * c :][:count] for c in range(img_HWC.shape[2]))
            planes = [_deep_level(spec, img_HWC[..., c], *given) for c, given in enumerate(of_channels)]
            return to_pixels(np.stack(planes, axis=-1))
        tables = [[level(x, *args[step * c :][:count]) for x in range(256)] for c in range(img_HWC.shape[2])]
        return np.stack([to_pixels(np.array(table))[img_HWC[..., c]] for c, table in enumerate(tables)], axis=-1)

    return look_up


def _deep_level(spec: OpSpec, x: Image, *args: float) -> npt.NDArray[Any]:
    """Values of a channel of a deep image, whose arguments on levels are 255ths of white; as torchvision has them."""
    unit = white() / 255
    if spec.name == "Gamma":
        gamma, gain = args
        return (white() + 0.999) * gain * (x / white()) ** gamma
    if spec.name == "Posterize":
        levels = 1 << int(args[0])
        if white() == 65535:
            return x & -(65536 // levels)
        return np.minimum(np.floor(x / white() * levels), levels - 1) / levels * white()
    if spec.name == "Window":
        center, width = args
        own_unit = 1 if white() == 65535 else white()
        return np.floor(((x / own_unit - center) / width + 0.5) * white() + 0.5)
    level = spec.level
    assert level is not None
    return np.vectorize(lambda value: float(level(value / unit, *args)) * unit, otypes=[np.float64])(x)


def lut(img_HWC: Image, ins: Instruction) -> Image:
    """Look up ``tables.curves[table][channel][x]``, rounded half up. Between 256 levels, curves are straight."""
    curves = ins.side_tables().curves[int(ins.args[0])]
    unit = white() / 255
    channels = [np.interp(img_HWC[..., c] / unit, np.arange(256), curves[c]) for c in range(img_HWC.shape[2])]
    return to_pixels(np.floor(np.stack(channels, axis=-1) * unit + 0.5))


def color_matrix(img_HWC: Image, ins: Instruction) -> Image:
    """Multiply (r, g, b, 1) by ``tables.matrices[table]``, 3x4, summed left to right in float32, rounded half up and
    clipped. A gray image is the value of all three channels, and keeps the first output."""
    matrix = ins.side_tables().matrices[int(ins.args[0])].astype(np.float32)
    r, g, b = _three_channels(img_HWC)
    unit = np.float32(white() / 255)
    rows = [np.floor(m[0] * r + m[1] * g + m[2] * b + m[3] * unit + np.float32(0.5)) for m in matrix]
    return to_pixels(np.stack(rows[: img_HWC.shape[2]], axis=-1))


def pixel_function(img_HWC: Image, ins: Instruction) -> Image:
    """Apply the function ``tables.pixel_functions[function]`` in float32, rounded half up and clipped; NaN is 0. A gray
    image is the value of all three channels, and keeps the first output."""
    known = ins.side_tables().pixel_functions[int(ins.args[0])]
    magnitude = np.float32(ins.args[1])
    channels = np.stack(_three_channels(img_HWC)).reshape(3, -1)
    if known.is_compiled:
        out = channels.astype(np.uint8)
        known.apply_compiled(out, float(magnitude))
        out = out.T
    else:
        values = pixel_functions.apply(known.function, channels, magnitude) + np.float32(0.5)
        out = np.floor(np.nan_to_num(values, nan=0.0, posinf=255.0, neginf=0.0).clip(0, 255)).astype(np.uint8)
    return out.reshape(*img_HWC.shape[:2], 3)[..., : img_HWC.shape[2]]


def _three_channels(img_HWC: Image) -> list[npt.NDArray[np.float32]]:
    """Red, green and blue float32[H, W]; a gray image stands for all three."""
    return [img_HWC[..., min(i, img_HWC.shape[2] - 1)].astype(np.float32) for i in range(3)]

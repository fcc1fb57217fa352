"""The instruction set: every operation a program can hold, its arguments and what it needs to run.

Two layers share one numbering. *Semantic* operations are what transforms emit and the reference executor runs one
after another. *Primitives* (100 and up) are what lowering leaves for the fused executors: one opcode per way of
touching pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Kind(IntEnum):
    """How an operation touches pixels; fusion reasons about kinds only."""

    GEOMETRY = 0  # output pixel <- one source place (or a small interpolation footprint around it)
    RESAMPLE = 1  # output pixel <- an area of the source (antialiased resize)
    VALUE = 2  # a function of the pixel's own value
    STATISTIC = 3  # a per-channel table that depends on the whole image at this stage
    NEIGHBOURHOOD = 4  # a function of the pixel and its neighbours
    POSITION = 5  # depends on where the pixel is in the image of this stage (noise, rectangles)


class Op(IntEnum):
    NOP = 0
    # geometry
    HFLIP = 1
    VFLIP = 2
    ROT90 = 3
    CROP = 4
    PAD = 5
    RESIZED_CROP = 6
    ROTATE = 7
    SHEAR_X = 8
    SHEAR_Y = 9
    TRANSLATE_X = 10
    TRANSLATE_Y = 11
    AFFINE = 12
    PERSPECTIVE = 13
    # values
    BRIGHTNESS = 20
    SATURATION = 21
    HUE = 22
    GAMMA = 23
    POSTERIZE = 24
    SOLARIZE = 25
    SOLARIZE_ADD = 26
    INVERT = 27
    GRAYSCALE = 28
    PERMUTE = 29
    RGB_SHIFT = 30
    LUT = 31
    COLOR_MATRIX = 32
    POINT = 33
    # statistics
    CONTRAST = 40
    AUTOCONTRAST = 41
    EQUALIZE = 42
    # neighbourhood
    SHARPNESS = 50
    GAUSSIAN_BLUR = 51
    MOTION_BLUR = 52
    # position
    GAUSSIAN_NOISE = 60
    SALT_AND_PEPPER = 61
    SHOT_NOISE = 62
    ERASE = 63
    # primitives, left by lowering
    MAP_FIXED = 100  # nearest, 16.16 fixed point
    MAP_SCALE = 101  # nearest, pure scale, double accumulation per axis as Pillow's ImagingScaleAffine
    MAP_FLOAT = 102  # double affine coefficients: bilinear, bicubic, or nearest outside the fixed-point range
    MAP_PERSPECTIVE = 103
    MAP_PAD = 104  # non-constant padding: edge, reflect, symmetric
    CONVOLVE = 105
    MIX = 106  # r, g, b -> blend with luma, Pillow's ImageEnhance.Color and Grayscale


class Interpolation(IntEnum):
    NEAREST = 0
    BILINEAR = 1
    BICUBIC = 2


class PadMode(IntEnum):
    CONSTANT = 0
    EDGE = 1
    REFLECT = 2
    SYMMETRIC = 3


@dataclass(frozen=True)
class OpSpec:
    """One row of the instruction set: a name for humans, argument names in order, and the kind."""

    name: str
    kind: Kind
    args: tuple[str, ...] = ()


SPECS: dict[Op, OpSpec] = {
    Op.HFLIP: OpSpec("HorizontalFlip", Kind.GEOMETRY),
    Op.VFLIP: OpSpec("VerticalFlip", Kind.GEOMETRY),
    Op.ROT90: OpSpec("Rotate90", Kind.GEOMETRY, ("quarter_turns",)),
    Op.CROP: OpSpec("Crop", Kind.GEOMETRY, ("top", "left", "height", "width")),
    Op.PAD: OpSpec("Pad", Kind.GEOMETRY, ("left", "top", "right", "bottom")),
    Op.RESIZED_CROP: OpSpec(
        "ResizedCrop", Kind.RESAMPLE, ("top", "left", "height", "width", "out_height", "out_width")
    ),
    Op.ROTATE: OpSpec("Rotate", Kind.GEOMETRY, ("angle", "center_x", "center_y", "expand")),
    Op.SHEAR_X: OpSpec("ShearX", Kind.GEOMETRY, ("shear",)),
    Op.SHEAR_Y: OpSpec("ShearY", Kind.GEOMETRY, ("shear",)),
    Op.TRANSLATE_X: OpSpec("TranslateX", Kind.GEOMETRY, ("pixels",)),
    Op.TRANSLATE_Y: OpSpec("TranslateY", Kind.GEOMETRY, ("pixels",)),
    Op.AFFINE: OpSpec("Affine", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f")),
    Op.PERSPECTIVE: OpSpec("Perspective", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f", "g", "h")),
    Op.BRIGHTNESS: OpSpec("Brightness", Kind.VALUE, ("factor",)),
    Op.SATURATION: OpSpec("Color", Kind.VALUE, ("factor",)),
    Op.HUE: OpSpec("Hue", Kind.VALUE, ("factor",)),
    Op.GAMMA: OpSpec("Gamma", Kind.VALUE, ("gamma", "gain")),
    Op.POSTERIZE: OpSpec("Posterize", Kind.VALUE, ("bits",)),
    Op.SOLARIZE: OpSpec("Solarize", Kind.VALUE, ("threshold",)),
    Op.SOLARIZE_ADD: OpSpec("SolarizeAdd", Kind.VALUE, ("addition", "threshold")),
    Op.INVERT: OpSpec("Invert", Kind.VALUE),
    Op.GRAYSCALE: OpSpec("Grayscale", Kind.VALUE),
    Op.PERMUTE: OpSpec("ChannelPermutation", Kind.VALUE, ("first", "second", "third")),
    Op.RGB_SHIFT: OpSpec("RGBShift", Kind.VALUE, ("red", "green", "blue")),
    Op.LUT: OpSpec("LUT", Kind.VALUE, ("table",)),
    Op.COLOR_MATRIX: OpSpec("ColorMatrix", Kind.VALUE, ("table",)),
    Op.POINT: OpSpec("Point", Kind.VALUE, ("function", "magnitude")),
    Op.CONTRAST: OpSpec("Contrast", Kind.STATISTIC, ("factor",)),
    Op.AUTOCONTRAST: OpSpec("AutoContrast", Kind.STATISTIC),
    Op.EQUALIZE: OpSpec("Equalize", Kind.STATISTIC),
    Op.SHARPNESS: OpSpec("Sharpness", Kind.NEIGHBOURHOOD, ("factor",)),
    Op.GAUSSIAN_BLUR: OpSpec("GaussianBlur", Kind.NEIGHBOURHOOD, ("kernel_x", "kernel_y", "sigma_x", "sigma_y")),
    Op.MOTION_BLUR: OpSpec("MotionBlur", Kind.NEIGHBOURHOOD, ("kernel", "angle", "direction")),
    Op.GAUSSIAN_NOISE: OpSpec("GaussianNoise", Kind.POSITION, ("mean", "sigma", "slot")),
    Op.SALT_AND_PEPPER: OpSpec("SaltAndPepper", Kind.POSITION, ("amount", "salt", "slot")),
    Op.SHOT_NOISE: OpSpec("ShotNoise", Kind.POSITION, ("scale", "slot")),
    Op.ERASE: OpSpec("Erase", Kind.POSITION, ("first", "count", "random", "slot", "v0", "v1", "v2", "normalized")),
    Op.MAP_FIXED: OpSpec("map_fixed", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f")),
    Op.MAP_SCALE: OpSpec("map_scale", Kind.GEOMETRY, ("a", "c", "e", "f")),
    Op.MAP_FLOAT: OpSpec("map_float", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f")),
    Op.MAP_PERSPECTIVE: OpSpec("map_perspective", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f", "g", "h")),
    Op.MAP_PAD: OpSpec("map_pad", Kind.GEOMETRY, ("left", "top", "right", "bottom")),
    Op.CONVOLVE: OpSpec("convolve", Kind.NEIGHBOURHOOD, ("table", "kernel_x", "kernel_y", "separable")),
    Op.MIX: OpSpec("mix", Kind.VALUE, ("factor",)),
}

NUM_ARGS = 8
MAX_OPCODE = 128

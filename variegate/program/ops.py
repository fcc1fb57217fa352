"""The instruction set: the opcode, arguments and properties of every operation that a program can hold.

Two layers share one numbering. *Semantic* operations (below 100) are emitted by transforms; the reference in
``tests/oracle`` runs them one by one. *Primitives* (100 and up) are emitted by lowering and run by the fused executors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import EnumMeta, IntEnum
from typing import TYPE_CHECKING

import numpy as np


class Kind(IntEnum):
    """Ways of computing a pixel. Lowering decides by kind which operations share a pass."""

    GEOMETRY = 0  # output pixel <- one source position (or the few pixels that interpolation reads around it)
    RESAMPLE = 1  # output pixel <- an area of the source (antialiased resize)
    VALUE = 2  # a function of the pixel's value
    STATISTIC = 3  # a table per channel, computed from the full input image of the operation
    NEIGHBORHOOD = 4  # a function of the pixel and its neighbors
    POSITION = 5  # a function of the pixel's value and its position in the operation's input (noise, rectangles)
    CODEC = 6  # the full image is encoded and decoded before a pass (JPEG)


class _Opcodes(EnumMeta):
    if TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Op:
            """Members that ``declare`` adds at import."""


class Op(IntEnum, metaclass=_Opcodes):
    """Opcodes, grouped by kind. Members here are used by name in kernels or lowering.

    Operations that are a function of one value, such as ``Posterize``, declare their opcodes themselves (``opcode=`` of
    the class, see ``declare``): 15, 20, 23 to 27 and 30. User classes may do the same.

    A number only identifies an operation; its order has no meaning. ``MORPHOLOGY`` and ``OVERLAY`` are therefore listed
    with their kinds, although their numbers are among the VALUE operations. The only boundary with a meaning is
    ``MAP_FIXED``, where primitives start. Free numbers below it: 16 to 19, 34 (used by tests), 35, 38, 39, 44 to 49, 64
    to 69 and 71 to 99. Free numbers of primitives: 108 to ``MAX_OPCODE - 1``.
    """

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
    DISPLACE = 14
    # values
    SATURATION = 21
    HUE = 22
    GRAYSCALE = 28
    PERMUTE = 29
    LUT = 31
    COLOR_MATRIX = 32
    PIXEL_FUNCTION = 33
    # statistics
    CONTRAST = 40
    AUTOCONTRAST = 41
    EQUALIZE = 42
    PERCENTILE_STRETCH = 43
    # neighborhood
    SHARPNESS = 50
    GAUSSIAN_BLUR = 51
    MOTION_BLUR = 52
    CONVOLVE_FLOAT = 53
    UNSHARP_MASK = 54
    MEDIAN = 55
    CLAHE = 56
    MORPHOLOGY = 37
    ZOOM_BLUR = 57
    ABERRATION = 58
    SCATTER = 59
    # position
    OVERLAY = 36
    GAUSSIAN_NOISE = 60
    SALT_AND_PEPPER = 61
    SHOT_NOISE = 62
    ERASE = 63
    # codecs
    JPEG = 70
    # primitives, emitted by lowering
    MAP_FIXED = 100  # nearest, 16.16 fixed point
    MAP_SCALE = 101  # nearest, scale only, accumulated in float64 per axis as in Pillow's ImagingScaleAffine
    MAP_FLOAT = 102  # affine in float64: bilinear, bicubic, or nearest outside the fixed-point range
    MAP_PERSPECTIVE = 103
    MAP_PAD = 104  # non-constant padding
    CONVOLVE_FIXED = 105
    MIX = 106  # blend r, g, b with their luma, as Pillow's ImageEnhance.Color and Grayscale do
    MAP_GRID = 107  # displacements, interpolated between the nodes of a grid


class Interpolation(IntEnum):
    NEAREST = 0
    BILINEAR = 1
    BICUBIC = 2
    # Resizes only.
    BOX = 3
    HAMMING = 4
    LANCZOS = 5
    # Masks only: maps are composed like interpolating maps, then the pixel that contains the position is read.
    CONTAINING_PIXEL = 6


class PadMode(IntEnum):
    CONSTANT = 0
    EDGE = 1
    REFLECT = 2
    SYMMETRIC = 3
    WRAP = 4


# Flags of a map: the Interpolation in these low bits, the PadMode for positions outside the image above them.
INTERPOLATION_BITS = 3
INTERPOLATION_MASK = (1 << INTERPOLATION_BITS) - 1


class LayerMode(IntEnum):
    """Target value that an OVERLAY blends each value toward. Its flags are ``mode + LAYER_PLANES * planes``."""

    OVER = 0  # the layer's color
    SCALE = 1  # twice the value, or 0 if the strength is negative
    ADD = 2  # the value plus the layer's color
    CURVE = 3  # a table lookup by the pixel's lightness; the layer holds the table instead of an image


LAYER_PLANES = 8
# Number of lightness values. Lightness is min(r, g, b) + max(r, g, b), from 0 to 510.
LIGHTNESSES = 511


@dataclass(frozen=True)
class OpSpec:
    """Properties of one instruction: everything except its arithmetic.

    Attributes:
        name: display name, as in manifests and ``explain``.
        kind: how the instruction computes a pixel.
        args: argument names, in order. Internal arguments, such as indices into side tables, begin with an underscore;
            "_slot" is the slot of the instruction's random numbers.
        lowered_to: the primitive that lowering replaces the instruction with, MAP_FIXED for every kind of map; None if
            executors run the instruction directly.
        neutral: the value of the first argument at which the instruction is the identity, or the first and last value
            of a range of such values. Lowering removes the instruction there. None if no value is neutral.
        color_only: the instruction leaves images of one channel unchanged, because it only mixes channels.
        uses_fill: the instruction's fill color appears in its output.
        colors_gray: the instruction can make three equal channels differ. A gray image therefore cannot be expanded to
            three channels after it.
        commutes_with_blend: applying the instruction to a weighted sum of rows equals applying it to each row first. It
            may therefore follow AugMix.
        needs_rgb: the instruction treats its three channels as red, green and blue. It may also change images of one
            channel, but is refused on images of 2 or 4 and more.
        needs_levels: the instruction is defined on 256 levels only, and is refused on uint16 and float32 images.
        labelled_args: ``args`` of instructions that carry a label, because a user's class emits them.
        level: for tables, ``level(x, *args)`` of a value x from 0 to 255 returns the new value, before clipping to
            0..255.
        per_channel: each channel has its table. Channel i passes argument i to ``level``.
    """

    name: str
    kind: Kind
    args: tuple[str, ...] = ()
    lowered_to: Op | None = None
    neutral: float | tuple[float, float] | None = None
    color_only: bool = False
    uses_fill: bool = False
    colors_gray: bool = False
    commutes_with_blend: bool = False
    needs_rgb: bool = False
    needs_levels: bool = False
    labelled_args: tuple[str, ...] | None = None
    level: Callable[..., float] | None = None
    per_channel: bool = False


_MAP = Op.MAP_FIXED

SPECS: dict[Op, OpSpec] = {
    Op.HFLIP: OpSpec("HorizontalFlip", Kind.GEOMETRY, lowered_to=_MAP, commutes_with_blend=True),
    Op.VFLIP: OpSpec("VerticalFlip", Kind.GEOMETRY, lowered_to=_MAP, commutes_with_blend=True),
    Op.ROT90: OpSpec(
        "Rotate90", Kind.GEOMETRY, ("quarter_turns",), lowered_to=_MAP, neutral=0.0, commutes_with_blend=True
    ),
    Op.CROP: OpSpec(
        "Crop",
        Kind.GEOMETRY,
        ("top", "left", "height", "width"),
        lowered_to=_MAP,
        uses_fill=True,
        commutes_with_blend=True,
    ),
    Op.PAD: OpSpec(
        "Pad",
        Kind.GEOMETRY,
        ("left", "top", "right", "bottom"),
        lowered_to=_MAP,
        uses_fill=True,
        commutes_with_blend=True,
    ),
    Op.RESIZED_CROP: OpSpec(
        "ResizedCrop", Kind.RESAMPLE, ("top", "left", "height", "width", "out_height", "out_width")
    ),
    Op.ROTATE: OpSpec(
        "Rotate", Kind.GEOMETRY, ("angle", "center_x", "center_y", "expand"), lowered_to=_MAP, uses_fill=True
    ),
    Op.SHEAR_X: OpSpec("ShearX", Kind.GEOMETRY, ("shear",), lowered_to=_MAP, neutral=0.0, uses_fill=True),
    Op.SHEAR_Y: OpSpec("ShearY", Kind.GEOMETRY, ("shear",), lowered_to=_MAP, neutral=0.0, uses_fill=True),
    Op.TRANSLATE_X: OpSpec("TranslateX", Kind.GEOMETRY, ("pixels",), lowered_to=_MAP, neutral=0.0, uses_fill=True),
    Op.TRANSLATE_Y: OpSpec("TranslateY", Kind.GEOMETRY, ("pixels",), lowered_to=_MAP, neutral=0.0, uses_fill=True),
    Op.AFFINE: OpSpec(
        "Affine",
        Kind.GEOMETRY,
        ("a", "b", "c", "d", "e", "f"),
        lowered_to=_MAP,
        uses_fill=True,
        labelled_args=("_a", "_b", "_c", "_d", "_e", "_f", "magnitude"),
    ),
    Op.PERSPECTIVE: OpSpec(
        "Perspective", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f", "g", "h"), lowered_to=_MAP, uses_fill=True
    ),
    Op.DISPLACE: OpSpec(
        "Displace",
        Kind.GEOMETRY,
        ("_first", "_lines", "_columns", "_turn", "_step_y", "_step_x", "_unit", "displacement"),
        lowered_to=_MAP,
        uses_fill=True,
    ),
    Op.SATURATION: OpSpec("Color", Kind.VALUE, ("factor",), lowered_to=Op.MIX, neutral=1.0, color_only=True),
    Op.HUE: OpSpec("Hue", Kind.VALUE, ("factor",), color_only=True),
    Op.GRAYSCALE: OpSpec("Grayscale", Kind.VALUE, lowered_to=Op.MIX, color_only=True),
    Op.PERMUTE: OpSpec("ChannelPermutation", Kind.VALUE, ("first", "second", "third"), color_only=True),
    Op.LUT: OpSpec("LUT", Kind.VALUE, ("_table",), labelled_args=("_table", "magnitude"), colors_gray=True),
    Op.COLOR_MATRIX: OpSpec(
        "ColorMatrix",
        Kind.VALUE,
        ("_table",),
        labelled_args=("_table", "magnitude"),
        colors_gray=True,
        needs_rgb=True,
    ),
    Op.PIXEL_FUNCTION: OpSpec(
        "PixelFunction", Kind.VALUE, ("_function", "magnitude"), colors_gray=True, needs_rgb=True, needs_levels=True
    ),
    Op.CONTRAST: OpSpec("Contrast", Kind.STATISTIC, ("factor",), neutral=1.0, needs_rgb=True),
    Op.AUTOCONTRAST: OpSpec("AutoContrast", Kind.STATISTIC),
    Op.EQUALIZE: OpSpec("Equalize", Kind.STATISTIC),
    Op.PERCENTILE_STRETCH: OpSpec("PercentileStretch", Kind.STATISTIC, ("low", "high")),
    Op.SHARPNESS: OpSpec("Sharpness", Kind.NEIGHBORHOOD, ("factor",), neutral=1.0),
    Op.GAUSSIAN_BLUR: OpSpec(
        "GaussianBlur",
        Kind.NEIGHBORHOOD,
        ("kernel_x", "kernel_y", "sigma_x", "sigma_y", "shade"),
        lowered_to=Op.CONVOLVE_FIXED,
    ),
    Op.MOTION_BLUR: OpSpec(
        "MotionBlur", Kind.NEIGHBORHOOD, ("kernel", "angle", "direction"), lowered_to=Op.CONVOLVE_FIXED
    ),
    Op.CONVOLVE_FLOAT: OpSpec(
        "Convolve",
        Kind.NEIGHBORHOOD,
        ("_first", "kernel_x", "kernel_y", "kernels"),
        lowered_to=Op.CONVOLVE_FIXED,
        labelled_args=("_first", "_kernel_x", "_kernel_y", "_kernels", "magnitude"),
    ),
    Op.UNSHARP_MASK: OpSpec(
        "UnsharpMask",
        Kind.NEIGHBORHOOD,
        ("kernel_x", "kernel_y", "sigma_x", "sigma_y", "amount", "threshold"),
        lowered_to=Op.CONVOLVE_FIXED,
    ),
    Op.MEDIAN: OpSpec("MedianBlur", Kind.NEIGHBORHOOD, ("kernel",)),
    Op.CLAHE: OpSpec(
        "CLAHE",
        Kind.NEIGHBORHOOD,
        ("clip_limit", "tiles_x", "tiles_y"),
        colors_gray=True,
        needs_rgb=True,
        needs_levels=True,
    ),
    Op.MORPHOLOGY: OpSpec("Morphology", Kind.NEIGHBORHOOD, ("width", "height", "dilates")),
    Op.ZOOM_BLUR: OpSpec("ZoomBlur", Kind.NEIGHBORHOOD, ("zooms", "step"), neutral=0.0),
    Op.ABERRATION: OpSpec(
        "ChromaticAberration",
        Kind.NEIGHBORHOOD,
        ("red_1", "red_2", "blue_1", "blue_2"),
        color_only=True,
        colors_gray=True,
        needs_rgb=True,
    ),
    Op.SCATTER: OpSpec("Scatter", Kind.NEIGHBORHOOD, ("distance", "times", "_slot"), neutral=0.0),
    Op.GAUSSIAN_NOISE: OpSpec("GaussianNoise", Kind.POSITION, ("mean", "sigma", "_slot"), colors_gray=True),
    Op.SALT_AND_PEPPER: OpSpec("SaltAndPepper", Kind.POSITION, ("amount", "salt", "_slot")),
    Op.SHOT_NOISE: OpSpec("ShotNoise", Kind.POSITION, ("scale", "_slot"), colors_gray=True),
    Op.ERASE: OpSpec(
        "Erase",
        Kind.POSITION,
        ("_first", "_count", "random", "_slot", "v0", "v1", "v2", "normalized"),
        uses_fill=True,
        commutes_with_blend=True,
    ),
    Op.OVERLAY: OpSpec(
        "Overlay",
        Kind.POSITION,
        ("_first", "_lines", "_columns", "_step_y", "_step_x", "_top", "_left", "strength"),
        needs_rgb=True,
        needs_levels=True,
    ),
    Op.JPEG: OpSpec("JPEG", Kind.CODEC, ("quality",), colors_gray=True, needs_rgb=True, needs_levels=True),
    Op.MAP_FIXED: OpSpec("map_fixed", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f")),
    Op.MAP_SCALE: OpSpec("map_scale", Kind.GEOMETRY, ("a", "c", "e", "f")),
    Op.MAP_FLOAT: OpSpec("map_float", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f")),
    Op.MAP_PERSPECTIVE: OpSpec("map_perspective", Kind.GEOMETRY, ("a", "b", "c", "d", "e", "f", "g", "h")),
    Op.MAP_PAD: OpSpec("map_pad", Kind.GEOMETRY, ("left", "top", "right", "bottom")),
    Op.CONVOLVE_FIXED: OpSpec(
        "convolve",
        Kind.NEIGHBORHOOD,
        ("_start", "kernel_x", "kernel_y", "separable", "_apart", "_cells", "_more", "_threshold"),
    ),
    Op.MIX: OpSpec("mix", Kind.VALUE, ("factor",)),
    Op.MAP_GRID: OpSpec(
        "map_grid",
        Kind.GEOMETRY,
        ("_first", "lines", "columns", "turn", "step_y", "step_x", "unit", "displacement"),
    ),
}

NUM_ARGS = 8
# Accepted side lengths of MEDIAN's window, in pixels.
MEDIAN_SIZES = (3, 5, 7)
# Most tiles of CLAHE along each axis.
MAX_TILES = 16
# Longest side of MORPHOLOGY's structuring element, in pixels.
MAX_ELEMENT = 31
# Most enlarged copies that ZOOM_BLUR averages: the CPU kernel sums each channel in 21 bits.
MAX_ZOOMS = 30
# Longest distance of SCATTER in pixels, and its most repetitions.
MAX_DISTANCE = 1024
MAX_TIMES = 3
MAX_OPCODE = 128

# Pillow's conversion to "L": (LUMA_RED r + LUMA_GREEN g + LUMA_BLUE b + LUMA_HALF) >> LUMA_SHIFT.
LUMA_RED = 19595
LUMA_GREEN = 38470
LUMA_BLUE = 7471
LUMA_HALF = 1 << 15
LUMA_SHIFT = 16

# SPECS as arrays indexed by opcode, for native code. KIND_OF is -1 for unused opcodes.
KIND_OF = np.full(MAX_OPCODE, -1, np.int8)
IS_COLOR_ONLY = np.zeros(MAX_OPCODE, np.bool_)
# Refused on images of 2 or 4 and more channels.
NEEDS_RGB = np.zeros(MAX_OPCODE, np.bool_)
IS_BLUR = np.zeros(MAX_OPCODE, np.bool_)
# First and last neutral value of the first argument; NaN, which compares unequal to everything, if no value is neutral.
# Passed to the native library at run time, because classes declare opcodes after it is compiled.
NEUTRAL_OF = np.full((MAX_OPCODE, 2), np.nan)
# Interpolating maps. program/coords.py describes their records.
IS_SUBPIXEL_MAP = np.zeros(MAX_OPCODE, np.bool_)
IS_SUBPIXEL_MAP[[Op.MAP_FLOAT, Op.MAP_PERSPECTIVE, Op.MAP_GRID]] = True
# Position of the "_slot" argument; -1 if the instruction draws no random numbers.
NOISE_ARG = np.full(MAX_OPCODE, -1, np.int8)
NEEDS_LEVELS = np.zeros(MAX_OPCODE, np.bool_)
# NEIGHBORHOOD operations that read at a distance instead of in a small window.
IS_WARP = np.zeros(MAX_OPCODE, np.bool_)
IS_WARP[[Op.ZOOM_BLUR, Op.ABERRATION, Op.SCATTER]] = True


def _enter(op: Op, spec: OpSpec) -> None:
    SPECS[op] = spec
    KIND_OF[op] = spec.kind
    NEUTRAL_OF[op] = np.nan if spec.neutral is None else spec.neutral
    IS_COLOR_ONLY[op] = spec.color_only
    NEEDS_RGB[op] = spec.needs_rgb or spec.color_only or spec.per_channel
    NEEDS_LEVELS[op] = spec.needs_levels
    NOISE_ARG[op] = spec.args.index("_slot") if "_slot" in spec.args else -1
    IS_BLUR[op] = spec.lowered_to is Op.CONVOLVE_FIXED


for _op, _spec in SPECS.items():
    _enter(_op, _spec)


def declare(number: int, spec: OpSpec) -> Op:
    """Add opcode ``number`` to ``Op``, named after ``spec.name``: SolarizeAdd becomes ``Op.SOLARIZE_ADD``.

    Raises ValueError if the number or the name is taken, or the number is not from 1 to ``MAX_OPCODE - 1``.
    """
    name = re.sub("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", spec.name).upper()
    if not 0 < number < MAX_OPCODE or number in Op._value2member_map_ or name in Op._member_map_:
        taken = ", ".join(f"{op.value} {op.name}" for op in Op)
        raise ValueError(f"{spec.name}: got opcode {number}; accepted: a number and a name other than {taken}")
    op = int.__new__(Op, number)
    op._name_ = name
    op._value_ = number
    type.__setattr__(Op, name, op)
    Op._member_map_[name] = Op._value2member_map_[number] = op
    Op._member_names_.append(name)
    _enter(op, spec)
    return op

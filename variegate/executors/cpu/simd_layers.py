"""Vector blocks of overlaid layers: numbers of 16 bits, of which products keep the highest bits, rounded half up."""

from __future__ import annotations

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import I32, I64, REGISTER, Value, planes_from, vector_block
from variegate.executors.cpu.simd_values import COLOUR_LANES

LANES = REGISTER // 2
_SCALE = (
    "llvm.x86.avx512.pmul.hr.sw.512"
    if HAS_AVX512
    else "llvm.x86.avx2.pmul.hr.sw"
    if HAS_AVX2
    else "llvm.x86.ssse3.pmul.hr.sw.128"
)


def _scaled(value: Value, share: Value) -> Value:
    """``value * share + 2**14 >> 15`` of i16."""
    if HAS_BYTE_SHUFFLE:
        return value.call(_SCALE, value.value.type, share)
    return (value.signed("i32") * share.signed("i32") + (1 << 14)).ashr(15).narrow("i16")


@vector_block(I64, I64)
def widen_block(nodes: Value, line: Value) -> None:
    """Values of bytes: i16 with 7 fraction bits."""
    (nodes.load("i8", LANES).wide("i16") << 7).store(line)


def _between(upper: Value, lower: Value, down: Value) -> Value:
    """Values ``down / 2**15`` of the way from one line of them to the next."""
    a, b = upper.load("i16", LANES), lower.load("i16", LANES)
    return a + _scaled(b - a, down.narrow("i16").splat(LANES))


def _lay(levels: Value, alpha: Value, strength: Value, colour: Value, of_level: Value) -> None:
    level, weight = levels.load("i8", LANES).wide("i16"), _scaled(alpha, strength.narrow("i16").splat(LANES))
    towards = colour + level * of_level.narrow("i16").splat(LANES)
    (level + _scaled(towards, weight + weight.ashr(8))).within(0, 255).narrow("i8").store(levels)


@vector_block(I64, I64, I64, I64, I32, I32, I32, I32, I32, I32)
def lay_alpha_block(
    planes: Value,
    stride: Value,
    upper: Value,
    lower: Value,
    down: Value,
    strength: Value,
    red: Value,
    green: Value,
    blue: Value,
    of_level: Value,
) -> None:
    """Three planes moved towards a colour plus ``of_level`` times themselves, by one alpha, in place."""
    alpha = _between(upper, lower, down)
    for address, colour in zip(planes_from(planes, stride), (red, green, blue), strict=True):
        _lay(address, alpha, strength, colour.narrow("i16").splat(LANES), of_level)


@vector_block(I64, I64, I64, I32, I32, I64, I64, I32)
def lay_colours_block(
    levels: Value, upper: Value, lower: Value, down: Value, strength: Value, above: Value, below: Value, of_level: Value
) -> None:
    """One plane, its alpha and colours each between two lines, in place."""
    colour = (_between(above, below, down) + 64) >> 7
    _lay(levels, _between(upper, lower, down), strength, colour, of_level)


@vector_block(I64, I64, I64)
def lightness_block(planes: Value, stride: Value, target: Value) -> None:
    """Of 16 pixels of three planes, the least level and the greatest added up, i32."""
    r, g, b = (address.load("i8", COLOUR_LANES) for address in planes_from(planes, stride))
    (r.most(g).most(b).wide("i32") + r.least(g).least(b).wide("i32")).store(target)


@vector_block(I64, I64, I64)
def bend_block(levels: Value, lightness: Value, curve: Value) -> None:
    """16 levels of one plane whose pixels have that lightness, by what the curve has for it: two i16 in an i32, the new
    lightness in 64ths and below it the factor of what differs from it. In place."""
    level, pair = levels.load("i8", COLOUR_LANES).wide("i32"), curve.load("i32", COLOUR_LANES)
    new, factor = (pair << 16).ashr(16), pair.ashr(16)
    away = level + level - lightness.load("i32", COLOUR_LANES)
    ((new << 6) + factor * away + (1 << 11)).ashr(12).within(0, 255).narrow("i8").store(levels)

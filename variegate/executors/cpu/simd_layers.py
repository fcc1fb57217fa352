"""Vector blocks of overlaid layers: numbers of 16 bits, of which products keep the highest bits, rounded half up."""

from __future__ import annotations

from variegate.compiling.levels import HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import I32, I64, REGISTER, Value, kind_of, planes_from, steps, vector_block
from variegate.executors.cpu.simd_values import COLOUR_LANES
from variegate.program.places import STEP_BITS

# Numbers of a row that are made at a time, and of a stretched line. Rows run over by less than MARGIN, and what is
# stretched is read so far from the node before the last place on.
LANES, _STRETCHED = REGISTER // 2, 16
MARGIN, READ = max(LANES, _STRETCHED), _STRETCHED + 1
_SCALE = {8: "llvm.x86.ssse3.pmul.hr.sw.128", 16: "llvm.x86.avx2.pmul.hr.sw", 32: "llvm.x86.avx512.pmul.hr.sw.512"}


def _scaled(value: Value, share: Value) -> Value:
    """``value * share + 2**14 >> 15`` of i16."""
    count = value.count or 1
    if HAS_BYTE_SHUFFLE and 2 * count <= REGISTER:
        return value.call(_SCALE[count], value.value.type, share)
    return (value.signed("i32") * share.signed("i32") + (1 << 14)).ashr(15).narrow("i16")


@vector_block(I64, I64, I64, I64, I64, needs=HAS_BYTE_SHUFFLE)
def stretch_row(nodes: Value, begin: Value, step: Value, line: Value, count: Value) -> None:
    """``count`` i16 with 7 fraction bits between bytes, from ``begin`` on, ``step`` apart, both in 2**-26 of a byte and
    at most one."""
    shuffle = "llvm.x86.ssse3.pshuf.b.128"
    places = step.narrow("i32").splat(_STRETCHED)
    places = places * places.constant(range(_STRETCHED))
    with steps(count, _STRETCHED) as x:
        at = begin + x * step
        first, within = nodes + (at >> STEP_BITS), (at & (1 << STEP_BITS) - 1).narrow("i32").splat(_STRETCHED) + places
        index, across = (within >> STEP_BITS).narrow("i8"), ((within >> STEP_BITS - 15) & 32767).narrow("i16")
        a, b = (
            address.load("i8", _STRETCHED).call(shuffle, kind_of("i8", _STRETCHED), index).wide("i16") << 7
            for address in (first, first + 1)
        )
        (a + _scaled(b - a, across)).store(line + (x << 1))


def _between(upper: Value, lower: Value, down: Value) -> Value:
    """Values ``down / 2**15`` of the way from one line of them to the next."""
    a, b = upper.load("i16", LANES), lower.load("i16", LANES)
    return a + _scaled(b - a, down.narrow("i16").splat(LANES))


@vector_block(I64, I64, I32, I32, I64, I64)
def weigh_row(upper: Value, lower: Value, down: Value, strength: Value, weights: Value, count: Value) -> None:
    """``count`` weights with 15 fraction bits of what is between two lines of alphas."""
    with steps(count, LANES) as x:
        at = x << 1
        weight = _scaled(_between(upper + at, lower + at, down), strength.narrow("i16").splat(LANES))
        (weight + weight.ashr(8)).store(weights + at)


@vector_block(I64, I64, I32, I64, I64)
def mix_row(upper: Value, lower: Value, down: Value, colours: Value, count: Value) -> None:
    """``count`` levels, i16, of what is between two lines of colours."""
    with steps(count, LANES) as x:
        at = x << 1
        ((_between(upper + at, lower + at, down) + 64) >> 7).store(colours + at)


@vector_block(I64, I64, I64, I32, I64)
def lay_row(levels: Value, weights: Value, colours: Value, of_level: Value, count: Value) -> None:
    """``count`` levels moved towards colours plus ``of_level`` times themselves, in place."""
    with steps(count, LANES) as x:
        at, level = x << 1, (levels + x).load("i8", LANES).wide("i16")
        towards = (colours + at).load("i16", LANES) + level * of_level.narrow("i16").splat(LANES)
        moved = level + _scaled(towards, (weights + at).load("i16", LANES))
        moved.within(0, 255).narrow("i8").store(levels + x)


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

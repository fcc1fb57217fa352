"""Multiplications of 16 bits, two products added up in 32: the step of blurs and resizes that is exact in integers.

x86-64 has an instruction for it (``pmaddwd``) and others that narrow the sums; they work within each 16 bytes of a
register, whatever its size, and so does everything here. Elsewhere a register is 16 bytes of plain LLVM.
"""

from __future__ import annotations

from typing import Any

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_SHUFFLE
from variegate.executors.cpu.simd import call_named, i8, i16, i32, same, shuffle, vector

REGISTER = 64 if HAS_AVX512 else 32 if HAS_AVX2 else 16
BYTES, HALVES, WORDS = vector(i8, REGISTER), vector(i16, REGISTER // 2), vector(i32, REGISTER // 4)
_MULTIPLY, _PACK_WORDS, _PACK_HALVES = {
    64: ("llvm.x86.avx512.pmaddw.d.512", "llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packuswb.512"),
    32: ("llvm.x86.avx2.pmadd.wd", "llvm.x86.avx2.packssdw", "llvm.x86.avx2.packuswb"),
    16: ("llvm.x86.sse2.pmadd.wd", "llvm.x86.sse2.packssdw.128", "llvm.x86.sse2.packuswb.128"),
}[REGISTER]


def interleaved(builder: Any, a: Any, b: Any) -> list[Any]:
    """The low and the high halves of each 16 bytes of two registers, lane by lane."""
    lanes = a.type.count
    in_16 = 16 * lanes // REGISTER
    halves = []
    for half in (0, in_16 // 2):
        order = [s + half + i + of for s in range(0, lanes, in_16) for i in range(in_16 // 2) for of in (0, lanes)]
        halves.append(shuffle(builder, a, b, order))
    return halves


def multiplied(builder: Any, a: Any, b: Any) -> Any:
    """HALVES times HALVES, neighbours added up -> WORDS."""
    if HAS_BYTE_SHUFFLE:
        return call_named(builder, _MULTIPLY, WORDS, a, b)
    products = []
    for of in (0, 1):
        order = list(range(of, a.type.count, 2))
        factors = [builder.sext(shuffle(builder, value, value, order), WORDS) for value in (a, b)]
        products.append(builder.mul(*factors))
    return builder.add(*products)


def halves_of(builder: Any, a: Any, b: Any) -> Any:
    """Two WORDS that ``interleaved`` lanes have led to, in 16 bits each -> HALVES."""
    return _packed(builder, _PACK_WORDS, HALVES, a, b, -(1 << 15), (1 << 15) - 1)


def bytes_of(builder: Any, a: Any, b: Any) -> Any:
    """Two HALVES, clipped to levels -> BYTES."""
    return _packed(builder, _PACK_HALVES, BYTES, a, b, 0, 255)


def _packed(builder: Any, name: str, kind: Any, a: Any, b: Any, low: int, high: int) -> Any:
    if HAS_BYTE_SHUFFLE:
        return call_named(builder, name, kind, a, b)
    least, most, halves = same(a.type, low), same(a.type, high), []
    for value in (a, b):
        value = builder.select(builder.icmp_signed("<", value, least), least, value)
        value = builder.select(builder.icmp_signed(">", value, most), most, value)
        halves.append(builder.trunc(value, vector(kind.element, a.type.count)))
    return shuffle(builder, halves[0], halves[1], list(range(kind.count)))

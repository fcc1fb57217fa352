"""Vectors of LLVM's IR: with Python's operators, and multiplied by 16 bits with two products added up in 32.

x86-64 has an instruction for these products (``pmaddwd``) and others that narrow the sums; they work within each 16
bytes of a register, whatever its size, and so does everything here. Elsewhere a register is 16 bytes of plain LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_SHUFFLE
from variegate.executors.cpu import simd
from variegate.executors.cpu.simd import call_named, i8, i16, i32, same, shuffle, vector

_ELEMENTS = {
    **{f"i{bits}": ir.IntType(bits) for bits in (8, 16, 32, 64)},
    "f32": ir.FloatType(),
}


def _operator(of_integers: str, of_floats: str = "") -> Callable[[Lanes, Lanes | float], Lanes]:
    """A method that calls one of a builder's by name."""

    def apply(self: Lanes, other: Lanes | float) -> Lanes:
        name = of_floats if isinstance(self.value.type.element, ir.FloatType) else of_integers
        return Lanes(self.builder, getattr(self.builder, name)(self.value, self._operand(other)))

    return apply


class Lanes:
    """A vector of integers or of float32. A Python number beside one stands for a vector of it.

    Integers are unsigned in comparisons and ``>>``; ``floats``, ``signed`` and ``clipped`` take them as signed.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __truediv__ = _operator("udiv", "fdiv")
    __and__, __or__, __xor__ = _operator("and_"), _operator("or_"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("lshr")
    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: float) -> Lanes:
        return Lanes(self.builder, self._operand(other)) - self

    def __invert__(self) -> Lanes:
        return self ^ -1

    def equals(self, other: Lanes | float) -> Lanes:
        return self._compare("==", other)

    def below(self, other: Lanes | float) -> Lanes:
        return self._compare("<", other)

    def choose(self, yes: Lanes, no: Lanes | float) -> Lanes:
        """Of lanes that are comparisons: ``yes`` where they hold."""
        return Lanes(self.builder, self.builder.select(self.value, yes.value, yes._operand(no)))

    def mask(self, element: str) -> Lanes:
        """Of lanes that are comparisons: all bits where they hold, none elsewhere."""
        return self.signed(element)

    def most(self, other: Lanes | float) -> Lanes:
        return self._compare(">", other).choose(self, other)

    def least(self, other: Lanes | float) -> Lanes:
        return self.below(other).choose(self, other)

    def clipped(self, low: int, high: int) -> Lanes:
        """Integers, as signed ones, within both."""
        above = self._signed_compare(">", low).choose(self, low)
        return above._signed_compare("<", high).choose(above, high)

    def magnitude(self) -> Lanes:
        """Of integers, as signed ones."""
        return self._signed_compare(">", 0).choose(self, 0 - self)

    def root(self) -> Lanes:
        """The square root of float32."""
        kind = self.value.type
        return Lanes(self.builder, simd.call_named(self.builder, f"llvm.sqrt.v{kind.count}f32", kind, self.value))

    def floats(self) -> Lanes:
        return self._convert("sitofp", "f32")

    def truncated(self) -> Lanes:
        """float32 -> i32."""
        return self._convert("fptosi", "i32")

    def narrow(self, element: str) -> Lanes:
        return self._convert("trunc", element)

    def wide(self, element: str) -> Lanes:
        return self._convert("zext", element)

    def signed(self, element: str) -> Lanes:
        """Wider, with the sign kept."""
        return self._convert("sext", element)

    def bits(self, element: str) -> Lanes:
        """The same bits as other lanes of the same width."""
        return self._convert("bitcast", element)

    def store(self, address: Any) -> None:
        simd.store(self.builder, self.value, address)

    def _operand(self, other: Lanes | float) -> Any:
        if isinstance(other, Lanes):
            return other.value
        return ir.Constant(self.value.type, [other] * self.value.type.count)

    def _compare(self, sign: str, other: Lanes | float) -> Lanes:
        is_float = isinstance(self.value.type.element, ir.FloatType)
        compare = self.builder.fcmp_ordered if is_float else self.builder.icmp_unsigned
        return Lanes(self.builder, compare(sign, self.value, self._operand(other)))

    def _signed_compare(self, sign: str, other: Lanes | int) -> Lanes:
        return Lanes(self.builder, self.builder.icmp_signed(sign, self.value, self._operand(other)))

    def _convert(self, how: str, element: str) -> Lanes:
        kind = simd.vector(_ELEMENTS[element], self.value.type.count)
        return Lanes(self.builder, getattr(self.builder, how)(self.value, kind))


def load_lanes(builder: Any, address: Any, element: str, count: int) -> Lanes:
    return Lanes(builder, simd.load(builder, address, simd.vector(_ELEMENTS[element], count)))


def same_lanes(builder: Any, scalar: Any, count: int) -> Lanes:
    """A scalar in every lane."""
    return Lanes(builder, simd.splat(builder, scalar, count))


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

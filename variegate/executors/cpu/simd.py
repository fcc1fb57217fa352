"""Vectors of LLVM's IR with Python's operators, and Numba intrinsics made of them: the moves LLVM does not find itself.

Blocks are plain IR over raw addresses, so that they compile for any processor. Those that use an instruction by name
say which level of processor they need, and have a plain twin for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from variegate.compiling.levels import HAS_AVX2, HAS_AVX512, HAS_BYTE_SHUFFLE

BLOCK = 64
I32, I64, F32 = types.int32, types.int64, types.float32
_ELEMENTS = {**{f"i{bits}": ir.IntType(bits) for bits in (1, 8, 16, 32, 64)}, "f32": ir.FloatType()}


class Block(NamedTuple):
    """The parts of an intrinsic; ``emit(builder, *values)`` writes its code."""

    kinds: tuple[Any, ...]
    result: Any
    needs: bool
    emit: Callable[..., Any]


def vector_block(*kinds: Any, result: Any = types.void, needs: bool = True) -> Any:
    """Make an intrinsic, with arguments of these types, of a function of as many ``Value`` that writes its code.

    ``needs``: whether the processor has the instructions that it names. Where it has not, the code is a trap: LLVM ends
    the process that asks it to compile an instruction that the target lacks, even in a branch that is never taken.
    """

    def decorate(function: Callable[..., Value | None]) -> Any:
        @wraps(function)
        def emit(builder: Any, *values: Any) -> Any:
            made = function(*(Value(builder, value) for value in values))
            return None if made is None else made.value

        # Numba counts the arguments; the first one is its own.
        first, plain = Parameter("builder", Parameter.POSITIONAL_OR_KEYWORD), signature(function).parameters.values()
        emit.__signature__ = Signature([first, *plain])  # type: ignore[attr-defined]

        @wraps(emit)
        def define(typing_context: Any, *args: Any) -> Any:
            def codegen(context: Any, builder: Any, of: Any, values: Any) -> Any:
                if not needs:
                    trap = ir.FunctionType(ir.VoidType(), [])
                    builder.call(cgutils.get_or_insert_function(builder.module, trap, "llvm.trap"), [])
                    return context.get_constant_null(of.return_type)
                value = emit(builder, *values)
                return context.get_dummy_value() if value is None else value

            return result(*kinds), codegen

        made = intrinsic(define)
        made.block = Block(kinds, result, needs, emit)
        return made

    return decorate


def kind_of(element: str, count: int | None = None) -> Any:
    """The IR's type of a number, or of a vector of ``count``."""
    return _ELEMENTS[element] if count is None else ir.VectorType(_ELEMENTS[element], count)


def _operator(of_integers: str, of_floats: str = "") -> Callable[[Value, Value | float], Value]:
    """A method that calls one of a builder's by name."""

    def apply(self: Value, other: Value | float) -> Value:
        name = of_floats if self.is_float else of_integers
        return Value(self.builder, getattr(self.builder, name)(self.value, self._operand(other)))

    return apply


def _comparison(sign: str) -> Callable[[Value, Value | float], Value]:
    """A method that compares floats, or integers as signed ones."""

    def compare(self: Value, other: Value | float) -> Value:
        by = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_signed
        return Value(self.builder, by(sign, self.value, self._operand(other)))

    return compare


class Value:
    """An integer, an address (of 64 bits), a float32, or a vector of them; a Python number beside it stands for it in
    every lane. Integers are unsigned in ``below``, ``least``, ``most``, ``wide`` and ``>>``, and signed elsewhere."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value
        self.count = value.type.count if isinstance(value.type, ir.VectorType) else None
        self.element = value.type if self.count is None else value.type.element
        self.is_float = isinstance(self.element, ir.FloatType)

    __add__ = _operator("add", "fadd")
    __sub__ = _operator("sub", "fsub")
    __mul__ = _operator("mul", "fmul")
    __truediv__ = _operator("udiv", "fdiv")
    __and__, __or__, __xor__ = _operator("and_"), _operator("or_"), _operator("xor")
    __lshift__, __rshift__, ashr = _operator("shl"), _operator("lshr"), _operator("ashr")
    __radd__, __rmul__ = __add__, __mul__
    __lt__, __gt__, __ge__ = _comparison("<"), _comparison(">"), _comparison(">=")
    equals, differs = _comparison("=="), _comparison("!=")

    def __rsub__(self, other: float) -> Value:
        return self.constant(other) - self

    def __neg__(self) -> Value:
        return 0 - self

    def __invert__(self) -> Value:
        return self ^ -1

    def constant(self, number: float | Sequence[float]) -> Value:
        """A value of the same type: a number in every lane, or one for each."""
        return Value(self.builder, self._operand(number))

    def below(self, other: Value | float) -> Value:
        by = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_unsigned
        return Value(self.builder, by("<", self.value, self._operand(other)))

    def choose(self, yes: Value, no: Value | float) -> Value:
        """Of a comparison: ``yes`` where it holds."""
        return Value(self.builder, self.builder.select(self.value, yes.value, yes._operand(no)))

    def mask(self, element: str) -> Value:
        """Of a comparison: all bits where it holds, none elsewhere."""
        return self.signed(element)

    def most(self, other: Value | float) -> Value:
        by = self.builder.fcmp_ordered if self.is_float else self.builder.icmp_unsigned
        return Value(self.builder, by(">", self.value, self._operand(other))).choose(self, other)

    def least(self, other: Value | float) -> Value:
        return self.below(other).choose(self, other)

    def clipped(self, low: Value | int, high: Value | int) -> Value:
        above = (self > low).choose(self, low)
        return (above < high).choose(above, high)

    def within(self, low: int, high: int) -> Value:
        """``clipped`` in the form that LLVM makes saturating instructions of."""
        value = (self < low).choose(self.constant(low), self)
        return (value > high).choose(value.constant(high), value)

    def magnitude(self) -> Value:
        return (self > 0).choose(self, 0 - self)

    def root(self) -> Value:
        """The square root of float32."""
        return self.call(f"llvm.sqrt.v{self.count}f32", self.value.type)

    def floats(self) -> Value:
        return self._convert("sitofp", "f32")

    def unsigned_floats(self) -> Value:
        return self._convert("uitofp", "f32")

    def truncated(self) -> Value:
        """float32 -> i32."""
        return self._convert("fptosi", "i32")

    def narrow(self, element: str) -> Value:
        return self._convert("trunc", element)

    def wide(self, element: str) -> Value:
        return self._convert("zext", element)

    def signed(self, element: str) -> Value:
        """Wider, with the sign kept."""
        return self._convert("sext", element)

    def bits(self, element: str, count: int | None = None) -> Value:
        """The same bits as lanes of another type; by default as many."""
        return Value(self.builder, self.builder.bitcast(self.value, kind_of(element, count or self.count)))

    def as_word(self) -> Value:
        """Of a comparison of vectors: an i32 that has a bit for each lane."""
        return Value(self.builder, self.builder.bitcast(self.value, ir.IntType(self.count))).wide("i32")

    def splat(self, count: int) -> Value:
        """A number in every lane."""
        undefined = ir.Constant(ir.VectorType(self.value.type, count), ir.Undefined)
        one = self.builder.insert_element(undefined, self.value, ir.Constant(_ELEMENTS["i32"], 0))
        return Value(self.builder, one).shuffled(Value(self.builder, undefined), [0] * count)

    def shuffled(self, other: Value, lanes: Sequence[int]) -> Value:
        """Lanes by number, those of ``other`` after its own."""
        order = ir.Constant(kind_of("i32", len(lanes)), list(lanes))
        return Value(self.builder, self.builder.shuffle_vector(self.value, other.value, order))

    def picked(self, lanes: Sequence[int]) -> Value:
        return self.shuffled(self, lanes)

    def joined(self, other: Value) -> Value:
        """Its lanes and then those of ``other``."""
        return self.shuffled(other, range(2 * (self.count or 1)))

    def call(self, name: str, result: ir.Type, *args: Value) -> Value:
        """Call one of LLVM's intrinsics, with this as the first argument."""
        values = [arg.value for arg in (self, *args)]
        function_type = ir.FunctionType(result, [value.type for value in values])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, name)
        return Value(self.builder, self.builder.call(function, values))

    def variable(self) -> Variable:
        """A variable that holds this to begin with."""
        return Variable(self.builder, cgutils.alloca_once_value(self.builder, self.value))

    def load(self, element: str, count: int | None = None) -> Value:
        """Of an address: a number, or a vector, from memory of any alignment."""
        pointer = self.builder.inttoptr(self.value, kind_of(element, count).as_pointer())
        return Value(self.builder, self.builder.load(pointer, align=1))

    def store(self, address: Value) -> None:
        pointer = self.builder.inttoptr(address.value, self.value.type.as_pointer())
        self.builder.store(self.value, pointer, align=1)

    def _operand(self, other: Value | float | Sequence[float]) -> Any:
        if isinstance(other, Value):
            return other.value
        if self.count is None:
            return ir.Constant(self.value.type, other)
        return ir.Constant(self.value.type, list(other) if isinstance(other, Sequence) else [other] * self.count)

    def _convert(self, how: str, element: str) -> Value:
        return Value(self.builder, getattr(self.builder, how)(self.value, kind_of(element, self.count)))


class Variable:
    """A place on the stack that a loop changes."""

    def __init__(self, builder: Any, pointer: Any) -> None:
        self._builder, self._pointer = builder, pointer

    def get(self) -> Value:
        return Value(self._builder, self._builder.load(self._pointer))

    def set(self, value: Value) -> None:
        self._builder.store(value.value, self._pointer)


@contextmanager
def repeat(count: Value) -> Iterator[Value]:
    """A loop over 0, 1, ... ``count`` - 1."""
    with cgutils.for_range(count.builder, count.value) as loop:
        yield Value(count.builder, loop.index)


@contextmanager
def steps(end: Value, by: int, start: Value | int = 0) -> Iterator[Value]:
    """A loop over ``start``, ``start + by``, ... below ``end``, all int64."""
    first, step = end._operand(start), ir.Constant(_ELEMENTS["i64"], by)
    with cgutils.for_range_slice(end.builder, first, end.value, step, _ELEMENTS["i64"]) as (at, _):
        yield Value(end.builder, at)


def planes_from(first: Value, stride: Value | int) -> list[Value]:
    """Addresses in three planes that lie ``stride`` bytes apart, as those of a ``Scratch`` do."""
    second = first + stride
    return [first, second, second + stride]


def prefetch_line(address: Value) -> None:
    """Have a cache line brought into the second level, to be read later. Does no harm where no memory is."""
    builder, i32 = address.builder, _ELEMENTS["i32"]
    pointer = Value(builder, builder.inttoptr(address.value, _ELEMENTS["i8"].as_pointer()))
    how = [Value(builder, ir.Constant(i32, value)) for value in (0, 2, 1)]  # to be read; that level; data
    pointer.call("llvm.prefetch.p0", ir.VoidType(), *how)


# Products of 16 bits, two of them added up in 32. x86-64 has an instruction for these (``pmaddwd``) and others that
# narrow the sums; they work within each 16 bytes of a register, whatever its size, and so does everything here.
REGISTER = 64 if HAS_AVX512 else 32 if HAS_AVX2 else 16
_MULTIPLY = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd", 64: "llvm.x86.avx512.pmaddw.d.512"}
_PACK_WORDS, _PACK_HALVES = {
    64: ("llvm.x86.avx512.packssdw.512", "llvm.x86.avx512.packuswb.512"),
    32: ("llvm.x86.avx2.packssdw", "llvm.x86.avx2.packuswb"),
    16: ("llvm.x86.sse2.packssdw.128", "llvm.x86.sse2.packuswb.128"),
}[REGISTER]


def interleaved(a: Value, b: Value) -> list[Value]:
    """The low and the high halves of each 16 bytes of two registers, lane by lane."""
    lanes = a.count or 1
    in_16 = 16 * lanes // REGISTER
    low = [s + i + of for s in range(0, lanes, in_16) for i in range(in_16 // 2) for of in (0, lanes)]
    return [a.shuffled(b, [half + lane for lane in low]) for half in (0, in_16 // 2)]


def multiplied(a: Value, b: Value) -> Value:
    """Vectors of i16, multiplied, neighbours added up -> i32, half as many."""
    count = a.count or 1
    if HAS_BYTE_SHUFFLE and 2 * count <= REGISTER:
        return a.call(_MULTIPLY[2 * count], kind_of("i32", count // 2), b)
    even, odd = ([value.picked(range(of, count, 2)).signed("i32") for value in (a, b)] for of in (0, 1))
    return even[0] * even[1] + odd[0] * odd[1]


def halves_of(a: Value, b: Value) -> Value:
    """Two registers of i32 that ``interleaved`` lanes have led to, in 16 bits each."""
    return _packed(_PACK_WORDS, "i16", a, b, -(1 << 15), (1 << 15) - 1)


def bytes_of(a: Value, b: Value) -> Value:
    """Two registers of i16, clipped to levels."""
    return _packed(_PACK_HALVES, "i8", a, b, 0, 255)


def _packed(name: str, element: str, a: Value, b: Value, low: int, high: int) -> Value:
    if HAS_BYTE_SHUFFLE:
        return a.call(name, kind_of(element, 2 * (a.count or 1)), b)
    first, second = (value.within(low, high).narrow(element) for value in (a, b))
    return first.joined(second)

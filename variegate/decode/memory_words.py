"""Values of memory that is known by its address, and words of it in the order of a JPEG's bits, for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from variegate.program.compiled import pixel_kernel


def value_at(kind: Any) -> Any:
    """An intrinsic ``(address, i)``: value ``i`` of the integers of ``kind`` that begin at an address."""

    @intrinsic
    def value(typing_context: Any, address: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = builder.inttoptr(args[0], ir.IntType(kind.bitwidth).as_pointer())
            return builder.load(builder.gep(values, [args[1]]))

        return kind(types.int64, types.int64), codegen

    return value


byte_at = value_at(types.uint8)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Of an array's first value. (``array.ctypes.data`` says the same, and takes long to compile.)"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(values.data, ir.IntType(64))

    return types.int64(array), codegen


@intrinsic
def word_at(typing_context: Any, address: Any) -> Any:
    """uint64 of the eight bytes from ``address``, as they lie in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0]), align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def put_word(typing_context: Any, address: Any, value: Any) -> Any:
    """Eight bytes to ``address``, as they lie in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], _pointer(builder, args[0]), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), codegen


@intrinsic
def put_byte(typing_context: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(args[1], ir.IntType(8)), pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def swapped(typing_context: Any, value: Any) -> Any:
    """The eight bytes of a uint64 in the other order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@pixel_kernel(inline="always")
def has_ff(word: Any) -> Any:
    """True if one of the eight bytes is 0xFF."""
    rest = ~word
    return ((rest - _ONES) & ~rest & _TOPS) != np.uint64(0)


@pixel_kernel(inline="always")
def bits_at(buffer: Any, bit: Any) -> Any:
    """uint64 whose upper 57 bits are those from bit ``bit`` of the memory at ``buffer``, first bits first."""
    return swapped(word_at(buffer + (bit >> 3))) << np.uint64(bit & 7)


@pixel_kernel(inline="always")
def short_at(data: Any, at: Any) -> Any:
    """The number in two bytes of a JPEG, ``at`` bytes behind the address ``data``."""
    return np.int64(byte_at(data, at)) << 8 | np.int64(byte_at(data, at + 1))

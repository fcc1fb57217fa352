"""Arguments of kernels written down in memory once, so that a call hands over one address.

Numba takes a tenth of a microsecond for each array of a call, longer for forty than a small image takes. The arrays
must live on, and neither move nor change their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.core.types.containers import NamedTuple
from numba.extending import intrinsic

_i32 = ir.IntType(32)


def kind_of(*arrays: npt.NDArray[Any]) -> list[Any]:
    """The types of contiguous arrays of these dtypes and ranks, as kernels take them."""
    from numba.np.numpy_support import from_dtype

    return [types.Array(from_dtype(array.dtype), array.ndim, "C") for array in arrays]


def plain(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy of one that is read-only or lies in memory otherwise than kernels expect."""
    return array if array.flags.carray else np.array(array, order="C")


def tuple_kind(value: Any) -> Any:
    """The type of a named tuple of arrays and of such tuples."""
    members = [tuple_kind(member) if isinstance(member, tuple) else kind_of(member)[0] for member in value]
    return NamedTuple(members, type(value))


def words_of(kind: Any) -> int:
    """Number of int64 that a value of ``kind`` takes."""
    # Of an array: its owners, its size in elements, an element's in bytes, its place; along each axis length and step.
    return 5 + 2 * kind.ndim if isinstance(kind, types.Array) else sum(map(words_of, kind))


def _load(builder: Any, memory: Any, kind: Any) -> Any:
    """Word by word: LLVM takes longer over a load of everything at once."""
    if isinstance(kind, ir.LiteralStructType):
        parts = kind.elements
    elif isinstance(kind, ir.ArrayType):
        parts = [kind.element] * kind.count
    else:
        return builder.load(memory, align=8)
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(parts):
        place = builder.gep(memory, [_i32(0), _i32(i)])
        value = builder.insert_value(value, _load(builder, place, part), i)
    return value


def held_as(kind: Any) -> Any:
    """-> (an intrinsic ``keep(address, value)``, an intrinsic that reads the value back at an address)."""

    @intrinsic
    def keep(typing_context: Any, address: Any, value: Any) -> Any:
        if value != kind:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            memory = builder.inttoptr(args[0], context.get_value_type(kind).as_pointer())
            builder.store(args[1], memory, align=8)
            return context.get_dummy_value()

        return types.void(types.int64, kind), codegen

    @intrinsic
    def kept(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            memory = builder.inttoptr(args[0], context.get_value_type(kind).as_pointer())
            return _load(builder, memory, context.get_value_type(kind))

        return kind(types.int64), codegen

    return keep, kept

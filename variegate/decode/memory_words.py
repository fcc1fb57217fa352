"""Values of memory that is known by its address, for compiled code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def value_at(kind: Any) -> Any:
    """An intrinsic ``(address, i)``: value ``i`` of the integers of ``kind`` that begin at an address."""

    @intrinsic
    def value(typing_context: Any, address: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = builder.inttoptr(args[0], ir.IntType(kind.bitwidth).as_pointer())
            return builder.load(builder.gep(values, [args[1]]))

        return kind(types.int64, types.int64), codegen

    return value

"""Value operations become tables: per-channel ones a 3x256 LUT each, LUTs side by side one; saturation and grayscale a
MIX.

An operation declares what becomes of one level (``OpSpec.level``). Its table is filled by a kernel of its own, which is
called by address: those of this folder neither contain nor know it, and need not be compiled again for a new one.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from variegate.program.compiled import pixel_kernel
from variegate.program.lowering.merge import close_gaps
from variegate.program.ops import MAX_OPCODE, Op, OpSpec, declare

# Of a blend: any that is larger does the same, since levels differ by 1 or more. Products stay within 32 bits.
_LARGEST_FACTOR = 1e6

# Kernels that fill tables, by opcode, and their addresses: 0 for what is no table.
FILLS: dict[Op, Any] = {}
ADDRESSES = np.zeros(MAX_OPCODE, np.int64)
NOT_COMPILED = -1
_FILL = nb.types.CPointer(nb.float64), nb.types.CPointer(nb.uint8)


def declare_table(number: int, spec: OpSpec) -> Op:
    """Make ``number`` an instruction that becomes a table: see ``variegate.program.ops.declare``."""
    if spec.level is None:
        raise TypeError(f"{spec.name}: a table operation needs a function level(x, {', '.join(spec.args)})")
    op = declare(number, spec)
    level: Any = spec.level
    known = {
        **globals(),
        "_level": nb.njit(level, nogil=True, _nrt=False, error_model="numpy"),
        "_count": 1 if spec.per_channel else len(spec.args),
        "_channels": 3 if spec.per_channel else 1,
    }
    # By the name, place and file of the level's function, whose change has it compiled again.
    code = level.__code__
    place = {"co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno, "co_name": spec.name}
    fill = FunctionType(_fill.__code__.replace(**place), known, spec.name)
    fill.__module__, fill.__qualname__ = level.__module__, level.__qualname__
    FILLS[op] = pixel_kernel(fill, no_cpython_wrapper=True)
    ADDRESSES[op] = NOT_COMPILED
    return op


def compile_fill(op: int) -> None:
    """Compile the kernel that fills the table of ``op``, or load it."""
    fill = FILLS[Op(op)]
    fill.compile(_FILL)
    result = fill.overloads[_FILL]
    ADDRESSES[op] = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


_level: Any = None
_count = _channels = 1


def _fill(arguments: Any, table: Any) -> None:
    """The body of every kernel of FILLS, with ``_level`` etc. of its own."""
    for c in range(_channels):
        given = _arguments(arguments, c, _count)
        for x in range(256):
            table[256 * c + x] = np.uint8(min(max(_level(x, *given), 0), 255))
    for x in range(256 * _channels, 768):
        table[x] = table[x - 256]


@intrinsic
def _arguments(typing_context: Any, arguments: Any, first: Any, count: Any) -> Any:
    """A tuple of ``count``, a constant, from ``first`` on."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    kind = nb.types.Tuple((types.float64,) * count.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = [builder.add(args[1], args[1].type(i)) for i in range(len(kind))]
        return context.make_tuple(builder, kind, [builder.load(builder.gep(args[0], [place])) for place in places])

    return kind(arguments, first, count), codegen


@intrinsic
def _call_fill(typing_context: Any, address: Any, arguments: Any, table: Any) -> Any:
    """Call a kernel of FILLS, with arrays."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = [make_array(signature.args[i])(context, builder, args[i]).data for i in (1, 2)]
        function = ir.FunctionType(ir.VoidType(), [place.type for place in places])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), places)
        return context.get_dummy_value()

    return types.void(types.int64, arguments, table), codegen


@pixel_kernel
def build(program: Any, emitted: Any, luts: Any, fills: Any) -> None:
    """Give every per-channel operation a LUT of its own, so that later rewrites may compose in place.

    ``emitted``: the tables of LUTs; ``fills``: ADDRESSES.
    """
    at = 0
    for r in range(program.opcode.shape[0]):
        for k in range(program.length[r]):
            op, a = program.opcode[r, k], program.args[r, k]
            if op == Op.SATURATION or op == Op.CONTRAST or op == Op.SHARPNESS:
                a[0] = min(max(a[0], -_LARGEST_FACTOR), _LARGEST_FACTOR)
            if op == Op.SATURATION:
                program.opcode[r, k] = Op.MIX
            elif op == Op.GRAYSCALE:
                program.opcode[r, k] = Op.MIX
                a[0] = 0.0
            elif op == Op.LUT or fills[op] != 0:
                if op == Op.LUT:
                    for c in range(3):
                        for i in range(256):
                            luts[at, c, i] = emitted[int(a[0]), c, i]
                else:
                    _call_fill(fills[op], a, luts[at])
                program.opcode[r, k] = Op.LUT
                a[0] = at
                at += 1


@pixel_kernel
def compose(program: Any, luts: Any) -> None:
    """Compose LUTs that stand side by side; the first keeps the composed table."""
    for r in range(program.opcode.shape[0]):
        last = -1  # the slot whose table the next LUT is composed with
        for k in range(program.length[r]):
            if program.opcode[r, k] != Op.LUT:
                last = -1
            elif last < 0:
                last = k
            else:
                first, then = luts[int(program.args[r, last, 0])], luts[int(program.args[r, k, 0])]
                for c in range(3):
                    for i in range(256):
                        first[c, i] = then[c, first[c, i]]
                program.opcode[r, k] = Op.NOP
        close_gaps(program, r)

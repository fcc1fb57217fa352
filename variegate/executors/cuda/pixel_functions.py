"""Generate Triton functions from the records of users' pixel functions.

Reads the same records as the CPU's ``native/kernels/pixel_functions.cpp``; definition:
``tests/oracle/pixel_functions.py``.
"""

from __future__ import annotations

import hashlib
import linecache
import math
from functools import lru_cache
from typing import Any

import triton
import triton.language as tl

from variegate.executors.cuda.kernels import elementary
from variegate.program.draws.instructions import DrawOp
from variegate.program.pixel_functions import MAGNITUDE, PixelFunction, PixelFunctionRecord

# Triton expressions of operands a, b and c.
_CONDITION = "tl.where({}, 1.0, 0.0)"
_TEXTS = {
    DrawOp.ADD: "{a} + {b}",
    DrawOp.SUBTRACT: "{a} - {b}",
    DrawOp.MULTIPLY: "{a} * {b}",
    DrawOp.DIVIDE: "tl.div_rn({a}, {b})",
    DrawOp.FLOOR_DIVIDE: "floor_divide({a}, {b})",
    DrawOp.MODULO: "modulo({a}, {b})",
    DrawOp.POWER: "power({a}, {b})",
    DrawOp.MINIMUM: "minimum({a}, {b})",
    DrawOp.MAXIMUM: "maximum({a}, {b})",
    DrawOp.LESS: _CONDITION.format("{a} < {b}"),
    DrawOp.LESS_EQUAL: _CONDITION.format("{a} <= {b}"),
    DrawOp.EQUAL: _CONDITION.format("{a} == {b}"),
    DrawOp.NOT_EQUAL: _CONDITION.format("{a} != {b}"),
    # Nested, because Triton's interpreter does not support `&` and `|` of two scalars.
    DrawOp.AND: "tl.where({a} != 0.0, tl.where({b} != 0.0, 1.0, 0.0), 0.0)",
    DrawOp.OR: "tl.where({a} != 0.0, 1.0, tl.where({b} != 0.0, 1.0, 0.0))",
    DrawOp.NOT: _CONDITION.format("{a} == 0.0"),
    DrawOp.NEGATE: "{a} * -1.0",
    DrawOp.ABSOLUTE: "tl.abs({a})",
    DrawOp.RINT: "rint({a})",
    DrawOp.FLOOR: "tl.floor({a})",
    DrawOp.CEIL: "tl.ceil({a})",
    DrawOp.TRUNC: "trunc({a})",
    DrawOp.SQRT: "tl.sqrt_rn({a})",
    DrawOp.EXP: "exp({a})",
    DrawOp.LOG: "log({a})",
    DrawOp.SIN: "sin({a})",
    DrawOp.COS: "cos({a})",
    DrawOp.TAN: "tan({a})",
    DrawOp.SELECT: "tl.where({a} != 0.0, {b}, {c})",
}


def source_of(record: PixelFunctionRecord) -> str:
    """Return the body of a Triton function ``(r, g, b, m) -> (r, g, b)`` of float32 blocks; ``m`` is a scalar."""
    names = dict(enumerate("rgbm"))
    lines = []
    for i, constant in enumerate(record.constants):
        names[-1 - i] = f"c{i}"
        lines.append(f"c{i} = tl.full([], {_literal(constant)}, tl.float32)")
    for value, (op, operands) in enumerate(record.steps, MAGNITUDE + 1):
        names[value] = f"v{value}"
        named = {letter: names[operand] for letter, operand in zip("abc", operands, strict=False)}
        lines.append(f"v{value} = {_TEXTS[op].format(**named)}")
    # Adding zeros makes a block of a result that is a scalar.
    results = ", ".join(f"{names[result]} + tl.zeros_like(r)" for result in record.results)
    return "".join(f"    {line}\n" for line in [*lines, f"return {results}"])


def _literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f'float("{number}")'


@lru_cache(maxsize=256)
def compiled(record: PixelFunctionRecord) -> Any:
    """Compile the record to a ``@triton.jit`` function, with a unique name, because Triton identifies it by name."""
    body = source_of(record)
    name = f"point_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    text = f"def {name}(r, g, b, m):\n{body}"
    file = f"<{name}>"
    # Triton reads a function's source from linecache, as tracebacks do.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    namespace = {**vars(elementary), "tl": tl, "__name__": __name__}
    exec(compile(text, file, "exec"), namespace)
    return triton.jit(namespace[name])


class PixelFunctions(tuple[Any, ...]):
    """Triton functions ``(r, g, b, m) -> (r, g, b)`` of float32 blocks, as one compile-time argument.

    Functions are in the order of a program's table. Triton's cache key of an argument is its text, and a function's
    text is only its name. Therefore the text of this class has the functions' cache keys, which hash their source and
    the source of all functions that they call.
    """

    @property
    def cache_key(self) -> str:
        return "-".join(str(getattr(function, "cache_key", function)) for function in self)

    def __repr__(self) -> str:
        return f"PixelFunctions({self.cache_key})"

    __str__ = __repr__


def triton_functions(functions: list[PixelFunction]) -> PixelFunctions:
    """Compile pixel functions for the GPU. Raises ValueError naming an operation whose function is CPU machine code."""
    for function in functions:
        if function.is_compiled:
            raise ValueError(
                f"{function.name}: its pixel function is compiled for CPUs and cannot run on a CUDA device; accepted "
                "there: a Python function (r, g, b, m) -> (r, g, b)"
            )
    return PixelFunctions(compiled(function.record) for function in functions)

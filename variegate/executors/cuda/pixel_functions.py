"""Triton source of users' functions of a pixel, from their records."""

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

# Of operands a, b and c.
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
    # Of two single numbers, the interpreter does not take `&` and `|`.
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
    """The body of a Triton function ``(r, g, b, m) -> (r, g, b)`` on float32 blocks; ``m`` is one number."""
    names = dict(enumerate("rgbm"))
    lines = []
    for i, constant in enumerate(record.constants):
        names[-1 - i] = f"c{i}"
        lines.append(f"c{i} = tl.full([], {_literal(constant)}, tl.float32)")
    for value, (op, operands) in enumerate(record.steps, MAGNITUDE + 1):
        names[value] = f"v{value}"
        named = {letter: names[operand] for letter, operand in zip("abc", operands, strict=False)}
        lines.append(f"v{value} = {_TEXTS[op].format(**named)}")
    # What all pixels share becomes a block, too.
    results = ", ".join(f"{names[result]} + tl.zeros_like(r)" for result in record.results)
    return "".join(f"    {line}\n" for line in [*lines, f"return {results}"])


def _literal(number: float) -> str:
    return repr(number) if math.isfinite(number) else f'float("{number}")'


@lru_cache(maxsize=256)
def compiled(record: PixelFunctionRecord) -> Any:
    """The record as a ``@triton.jit`` function. Its name is unique: kernels tell functions apart by their names."""
    body = source_of(record)
    name = f"point_{hashlib.sha256(body.encode()).hexdigest()[:16]}"
    text = f"def {name}(r, g, b, m):\n{body}"
    file = f"<{name}>"
    # Triton reads the source of functions as tracebacks do.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    namespace = {**vars(elementary), "tl": tl, "__name__": __name__}
    exec(compile(text, file, "exec"), namespace)
    return triton.jit(namespace[name])


class PixelFunctions(tuple[Any, ...]):
    """Triton functions ``(r, g, b, m) -> (r, g, b)``, float32 blocks, in the order of a program's table, as one
    compile-time argument.

    Triton takes an argument's text for its key, and that of a function is its name alone: the text here has the
    functions' own keys, which are made of their source and that of what they call.
    """

    @property
    def cache_key(self) -> str:
        return "-".join(str(getattr(function, "cache_key", function)) for function in self)

    def __repr__(self) -> str:
        return f"PixelFunctions({self.cache_key})"

    __str__ = __repr__


def triton_functions(functions: list[PixelFunction]) -> PixelFunctions:
    """Raises ValueError naming an operation whose function is compiled for CPUs."""
    for function in functions:
        if function.is_compiled:
            raise ValueError(
                f"{function.name}: its pixel function is compiled for CPUs and cannot run on a CUDA device; accepted "
                "there: a Python function (r, g, b, m) -> (r, g, b)"
            )
    return PixelFunctions(compiled(function.record) for function in functions)

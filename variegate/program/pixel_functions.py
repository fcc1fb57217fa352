"""User-defined pixel functions: Python functions, recorded once as instructions, or functions compiled for CPUs."""

from __future__ import annotations

import ctypes
import sys
from _ctypes import CFuncPtr
from collections.abc import Callable
from ctypes import c_float
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float32Array, Int64Array, UInt8Array
from variegate.errors import short_repr
from variegate.native.library import data_ptr
from variegate.native.structs import PIXEL_FUNCTION, pack_struct
from variegate.program.draws.instructions import INSTRUCTION, DrawOp
from variegate.program.draws.values import NotRecordable, Number, PixelValue
from variegate.threads import computed_once

ACCEPTED = "f(r, g, b, m) -> (r, g, b) of + - * / // % **, comparisons, & | ~, abs() and functions of vg.math"
_KNOWN = "a pixel's value where Python needs a known number: if, and, or, min, max, int(), the module math or NumPy"

RED, GREEN, BLUE, MAGNITUDE = range(4)
_NUM_INPUTS = 4

PIXEL_FUNCTION_FLOATS = 4096
"""Capacity of the register file for a block of pixels, in float32 numbers."""
_MAX_REGISTERS = PIXEL_FUNCTION_FLOATS // 64
MAX_PIXEL_FUNCTION_NUMBERS = 512

# (red, green, blue, count, magnitude): three arrays of uint8, modified in place, and their length.
_ROW_FUNCTION = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_float)


def row_address(function: Any) -> int | None:
    """Return the address of a compiled ``void row(uint8_t *r, uint8_t *g, uint8_t *b, int64_t n, float magnitude)``.

    ``function``: an object with an integer ``address`` (``numba.cfunc``), or a function pointer of ctypes or cffi.
    Returns None for other objects.
    """
    address = getattr(function, "address", None)
    if isinstance(address, int):
        return address
    if isinstance(function, CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    # If the function is a cffi pointer, cffi is imported already.
    cffi = sys.modules.get("_cffi_backend")
    if cffi is not None and isinstance(function, cffi._CDataBase):
        return int(cffi.FFI().cast("uintptr_t", function))
    return None


# -- recording -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PixelFunctionRecord:
    """Instructions of a pixel function, in float32.

    Values are numbered: ``RED`` to ``MAGNITUDE`` are the inputs, then follow the results of ``steps`` in order;
    ``constants[i]`` is value -1 - i. ``steps``: (instruction, operands). ``results``: values of red, green and blue.
    """

    constants: tuple[float, ...]
    steps: tuple[tuple[DrawOp, tuple[int, ...]], ...]
    results: tuple[int, ...]


class PixelFunctionRecorder:
    """Records a pixel function by calling it with symbols. ``PixelValue.register`` is the number of a value."""

    def __init__(self) -> None:
        self._constants: dict[str, int] = {}
        self._steps: dict[tuple[DrawOp, tuple[int, ...]], int] = {}

    def compute(self, op: DrawOp, *operands: Number) -> PixelValue:
        """Append an instruction, or reuse the result of an equal one."""
        step = op, tuple(map(self._number_of, operands))
        return PixelValue(self, self._steps.setdefault(step, _NUM_INPUTS + len(self._steps)))

    def _number_of(self, value: Number) -> int:
        if isinstance(value, PixelValue):
            return value.register
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            raise TypeError(f"{short_repr(value)} is no number")
        return self._constants.setdefault(c_float(float(value)).value.hex(), -1 - len(self._constants))

    def record(self, function: Callable[..., Any]) -> PixelFunctionRecord:
        results = function(*(PixelValue(self, number) for number in range(_NUM_INPUTS)))
        if not isinstance(results, (tuple, list)) or len(results) != 3:
            raise TypeError(f"{short_repr(results)} is no tuple of three numbers")
        numbers = tuple(map(self._number_of, results))
        return PixelFunctionRecord(tuple(map(float.fromhex, self._constants)), tuple(self._steps), numbers)


# -- machine code for the CPU ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _MachineCode:
    """Fields of the C++ struct ``PixelFunction``."""

    code: AnyArray
    constants: Float32Array
    num_numeric: int
    num_numbers: int
    num_registers: int
    results: tuple[int, ...]


def _to_machine_code(record: PixelFunctionRecord) -> _MachineCode:
    place = {-1 - i: i for i in range(len(record.constants))}
    place[MAGNITUDE] = len(place)
    numeric = []
    differing = []
    for value, (op, operands) in enumerate(record.steps, _NUM_INPUTS):
        if all(operand in place for operand in operands):
            place[value] = len(place)
            numeric.append(_instruction(op, place[value], operands, place))
        else:
            differing.append((value, op, operands))
    num_numbers = len(place)
    last_use = {operand: value for value, _, operands in differing for operand in operands}
    last_use |= dict.fromkeys(record.results, sys.maxsize)
    place |= {channel: num_numbers + channel for channel in (RED, GREEN, BLUE)}
    end = num_numbers + 3
    free: list[int] = []
    code = []
    for value, op, operands in differing:
        free += {place[operand] for operand in operands if last_use[operand] == value and place[operand] >= num_numbers}
        if not free:
            free.append(end)
            end += 1
        place[value] = free.pop()
        code.append(_instruction(op, place[value], operands, place))
        if value not in last_use:
            free.append(place[value])
    return _MachineCode(
        np.array(numeric + code, INSTRUCTION),
        np.array(record.constants, np.float32),
        len(numeric),
        num_numbers,
        end - num_numbers,
        tuple(place[result] for result in record.results),
    )


def _instruction(op: DrawOp, to: int, operands: tuple[int, ...], place: dict[int, int]) -> tuple[float, ...]:
    a, b, c = (*(place[operand] for operand in operands), 0, 0)[:3]
    return op, to, a, b, c, 0.0


# -- what operations hold --------------------------------------------------------------------------------------------


class PixelFunction:
    """A user's function of a pixel.

    ``function``: compiled for CPUs (see ``row_address``), or a Python function ``(r, g, b, m) -> (r, g, b)``, whose
    results are rounded to nearest and clipped to 0..255. In another process, such a function is its record.
    """

    def __init__(self, function: Any, name: str) -> None:
        self.function, self.name = function, name

    def __getstate__(self) -> dict[str, Any]:
        if self.is_compiled:
            return {"function": self.function, "name": self.name}
        return {"function": None, "name": self.name, "record": self.record}

    @property
    def is_compiled(self) -> bool:
        return row_address(self.function) is not None

    def check(self) -> None:
        """Record the function. Raises ValueError with the user's line and the cause if recording fails."""
        if not self.is_compiled:
            _ = self.record

    @computed_once
    def record(self) -> PixelFunctionRecord:
        try:
            record = PixelFunctionRecorder().record(self.function)
        except NotRecordable as error:
            accepted = "vg.math.select(condition, x, y), vg.math.minimum, maximum and the other functions of vg.math"
            raise ValueError(f"{self.name}.point{self._line_of(error)}: {_KNOWN}; accepted: {accepted}") from None
        except Exception as error:  # the user's function may raise anything
            outcome = f"{type(error).__name__}: {short_repr(str(error))}"
            raise ValueError(f"{self.name}.point{self._line_of(error)}: {outcome}; accepted: {ACCEPTED}") from None
        code = _to_machine_code(record)
        for got, most in ((code.num_registers, _MAX_REGISTERS), (code.num_numbers, MAX_PIXEL_FUNCTION_NUMBERS)):
            if got > most:
                raise ValueError(f"{self.name}.point: needs {got:,} values at once; accepted: {most} at most")
        return record

    def _line_of(self, error: Exception) -> str:
        """Return " (file:line)" of the user's code that raised ``error``; "" if the error was raised elsewhere."""
        here = [frame for frame in extract_tb(error.__traceback__) if frame.filename != __file__]
        users = [frame for frame in here if not frame.filename.startswith(_PACKAGE)]
        return f" ({Path(users[-1].filename).name}:{users[-1].lineno})" if users else ""

    @computed_once
    def _machine_code(self) -> _MachineCode:
        return _to_machine_code(self.record)

    @computed_once
    def packed(self) -> Int64Array:
        """The C++ struct ``PixelFunction`` as int64 words."""
        nothing: dict[str, npt.NDArray[Any] | int] = dict.fromkeys((name for name, _ in PIXEL_FUNCTION), 0)
        address = row_address(self.function)
        if address is not None:
            return pack_struct(PIXEL_FUNCTION, **{**nothing, "compiled": address})
        made = self._machine_code
        red, green, blue = made.results
        return pack_struct(
            PIXEL_FUNCTION,
            compiled=0,
            code=made.code,
            length=len(made.code),
            num_numeric=made.num_numeric,
            constants=made.constants,
            num_constants=len(made.constants),
            num_numbers=made.num_numbers,
            num_registers=made.num_registers,
            red=red,
            green=green,
            blue=blue,
        )

    def apply_compiled(self, channels: UInt8Array, magnitude: float) -> None:
        """Run a compiled function in place on uint8[3, N] in C order."""
        _ROW_FUNCTION(row_address(self.function) or 0)(*map(data_ptr, channels), channels.shape[1], magnitude)


_PACKAGE = str(Path(__file__).parent.parent)

"""Calls of the native lowering (``native/lowering``) for batches and single images."""

from __future__ import annotations

from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, Int16Array, Int64Array, UInt8Array
from variegate.native.library import as_c_contiguous, check_status, data_ptr, entry
from variegate.native.structs import LOWERING, pack_struct
from variegate.program.depth import Depth
from variegate.program.ops import KIND_OF, NEUTRAL_OF, SPECS, Op
from variegate.program.passes import PASS_FIELDS
from variegate.program.program import INSTRUCTION_ARRAYS, Program, ProgramArrays, Tables, empty_instructions

# Initial capacity for lookup tables and for convolution weights.
_LUTS = 64
_KERNEL_VALUES = 1024
_RESULTS = {"longest": 0, "num_luts": 0, "num_kernel_values": 0, "unknown": -1}

_lower = entry("vg_lower", c_void_p)
_FIELD = {name: i for i, (name, _) in enumerate(LOWERING)}


@dataclass
class LoweringWork:
    """Programs to lower in place, and output memory of the lowering."""

    program: ProgramArrays
    luts: UInt8Array  # [T, C, 256]: tables of instructions that become LUTs, and of fused pairs
    kernels: Int16Array  # weights of convolutions
    memory: Int64Array  # the native struct
    arrays: tuple[Any, ...]  # arrays that the struct points to, kept alive

    def lower(self) -> None:
        """Lower ``program`` in place. Further results are fields of the native struct.

        Raises ValueError for an opcode that is not declared in Python or that the library does not have.
        """
        self.complete(_lower(data_ptr(self.memory)))

    def complete(self, status: int) -> None:
        """Repeat the call with more memory while it did not suffice. ``status``: the first call's status.

        Raises the errors of ``lower``.
        """
        while not status and self._grow():
            status = _lower(data_ptr(self.memory))
        if status:
            check_status(status)
            raise self.unknown_opcode()

    def _grow(self) -> bool:
        """Grow output memory that did not suffice. Returns whether it grew."""
        luts, kernel_values = self.field("num_luts"), self.field("num_kernel_values")
        if luts > len(self.luts):
            self.luts = np.empty((luts, *self.luts.shape[1:]), np.uint8)
            self.set("luts", data_ptr(self.luts))
            self.set("room_for_luts", luts)
        elif kernel_values > len(self.kernels):
            self.kernels = np.empty(kernel_values, np.int16)
            self.set("kernels", data_ptr(self.kernels))
            self.set("kernel_values", kernel_values)
        else:
            return False
        return True

    def tables(self, tables: Tables) -> Tables:
        """Return the sampled program's ``tables`` with the tables that lowering created."""
        luts, kernels = self.luts[: self.field("num_luts")], self.kernels[: self.field("num_kernel_values")]
        return tables.replace(luts=luts, kernels=kernels)

    def unknown_opcode(self) -> ValueError:
        row, slot = divmod(self.field("unknown"), self.field("slots"))
        opcode = int(self.program.opcode[row, slot])
        if opcode in SPECS:
            got = f"{SPECS[Op(opcode)].name} (opcode {opcode}), which native/lowering does not have"
        else:
            got = f"opcode {opcode}, which no imported module declares"
        known = ", ".join(f"{int(op)} {op.name}" for op in sorted(SPECS) if op < Op.MAP_FIXED and op != opcode)
        return ValueError(f"row {row} instruction {slot}: got {got}; accepted: {known}")

    def field(self, name: str) -> int:
        return int(self.memory[_FIELD[name]])

    def set(self, name: str, value: int) -> None:
        self.memory[_FIELD[name]] = value


def new_work(
    program: ProgramArrays,
    tables: Tables,
    composed: bool = True,
    measured_once: bool = False,
    nearest: bool = False,
    depth: Depth = Depth.UINT8,
) -> LoweringWork:
    """Allocate the memory for lowering ``program``.

    ``program``: arrays of R rows and K slots, C-contiguous and writable. ``tables``: the sampled program's side tables.
    """
    rows, slots = program.opcode.shape
    made: dict[str, Any] = {
        "breaks": np.empty((rows, slots, 2), np.int32),
        "curves": as_c_contiguous(tables.curves),
        "luts": np.empty((_LUTS, *tables.curves.shape[1:]), np.uint8),
        "filters": as_c_contiguous(tables.filters),
        "kernels": np.empty(_KERNEL_VALUES, np.int16),
        "neutral": NEUTRAL_OF,
        "kinds": KIND_OF,
    }
    room = {"rows": rows, "slots": slots, "room_for_luts": _LUTS, "kernel_values": _KERNEL_VALUES}
    room |= {"lut_channels": tables.curves.shape[1]}
    flags = {"composed": int(composed), "measured_once": int(measured_once), "nearest": int(nearest)}
    flags |= {"is_deep": int(depth.is_deep)}
    memory = pack_struct(LOWERING, **program._asdict(), **made, **room, **flags, **_RESULTS, records=0)
    return LoweringWork(program, made["luts"], made["kernels"], memory, tuple(made.values()))


def empty_program(rows: int, slots: int) -> ProgramArrays:
    """Allocate arrays for ``rows`` rows of ``slots`` instructions, without instructions."""
    return ProgramArrays(
        **empty_instructions(rows, slots),
        length=np.zeros(rows, np.int32),
        in_shape=np.zeros((rows, 3), np.int32),
        ids=np.zeros(rows, np.uint64),
        key=np.zeros((rows, 2), np.uint32),
        **_lowered_arrays(rows, slots),
    )


def _lowered_arrays(rows: int, slots: int) -> dict[str, AnyArray]:
    return {
        "window": np.empty((rows, slots, 4), np.int32),
        "pass_of": np.empty((rows, slots), np.int16),
        "num_passes": np.empty(rows, np.int32),
        "passes": np.empty((rows, slots, PASS_FIELDS), np.int32),
    }


def rewrite_program(program: Program, composed: bool, measured_once: bool, nearest: bool) -> Program:
    """Lower a copy of a sampled program."""
    changed = {name: np.array(getattr(program, name), order="C") for name in (*INSTRUCTION_ARRAYS, "length")}
    read = {name: as_c_contiguous(getattr(program, name)) for name in ("in_shape", "ids", "key")}
    rows, slots = program.opcode.shape
    arrays = program.arrays()._replace(**changed, **read, **_lowered_arrays(rows, slots))
    work = new_work(arrays, program.tables, composed, measured_once, nearest, program.depth)
    work.lower()
    longest = work.field("longest")
    passes = int(arrays.num_passes.max(initial=1))
    cut = {name: _first_slots(getattr(arrays, name), longest) for name in (*INSTRUCTION_ARRAYS, "window", "pass_of")}
    return program.replace(
        **cut,
        length=arrays.length,
        num_passes=arrays.num_passes,
        passes=_first_slots(arrays.passes, passes),
        tables=work.tables(program.tables),
        stage="fused",
    )


def _first_slots(array: AnyArray, slots: int) -> AnyArray:
    """Return the first ``slots`` slots of an array, [R, slots, ...]."""
    return array if array.shape[1] == slots else np.ascontiguousarray(array[:, :slots])

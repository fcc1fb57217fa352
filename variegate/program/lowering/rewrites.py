"""All rewrites of lowering in one native call (``native/lowering``), for batches and single images."""

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

# Room for tables and for weights of convolutions, to begin with.
_LUTS = 64
_KERNEL_VALUES = 1024
_RESULTS = {"longest": 0, "num_luts": 0, "num_kernel_values": 0, "unknown": -1}

_lower = entry("vg_lower", c_void_p)
_FIELD = {name: i for i, (name, _) in enumerate(LOWERING)}


@dataclass
class LoweringWork:
    """Programs that are rewritten, and the memory of the rewrites."""

    program: ProgramArrays
    luts: UInt8Array  # [T, C, 256]: room for a table for each instruction that becomes a LUT, and each pair
    kernels: Int16Array  # room for weights of convolutions
    memory: Int64Array  # the native struct
    arrays: tuple[Any, ...]  # that it points to

    def lower(self) -> None:
        """Run all rewrites. Results are in ``program`` and in the fields of the struct.

        Raises ValueError for an opcode that is not declared in Python or that the library does not have.
        """
        self.complete(_lower(data_ptr(self.memory)))

    def complete(self, status: int) -> None:
        """Lower again with more room, as long as there was not enough. ``status``: that of the first call."""
        while not status and self._grow():
            status = _lower(data_ptr(self.memory))
        if status:
            check_status(status)
            raise self.unknown_opcode()

    def _grow(self) -> bool:
        """True if there was not enough room, and now is."""
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
        """``tables`` of the sampled program, with those that were made."""
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
    """``program``: arrays of R programs of K slots, in C order and writable.

    ``tables``: of the sampled program.
    """
    rows, slots = program.opcode.shape
    made: dict[str, Any] = {
        "breaks": np.empty((rows, slots, 2), np.int32),
        "emitted": as_c_contiguous(tables.luts),
        "luts": np.empty((_LUTS, *tables.luts.shape[1:]), np.uint8),
        "filters": as_c_contiguous(tables.filters),
        "kernels": np.empty(_KERNEL_VALUES, np.int16),
        "neutral": NEUTRAL_OF,
        "kinds": KIND_OF,
    }
    room = {"rows": rows, "slots": slots, "room_for_luts": _LUTS, "kernel_values": _KERNEL_VALUES}
    room |= {"lut_channels": tables.luts.shape[1]}
    flags = {"composed": int(composed), "measured_once": int(measured_once), "nearest": int(nearest)}
    flags |= {"is_deep": int(depth.is_deep)}
    memory = pack_struct(LOWERING, **program._asdict(), **made, **room, **flags, **_RESULTS, records=0)
    return LoweringWork(program, made["luts"], made["kernels"], memory, tuple(made.values()))


def empty_program(rows: int, slots: int) -> ProgramArrays:
    """Arrays of ``rows`` programs without instructions."""
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
    """Run all rewrites on a sampled program, which stays as it is."""
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
    """[R, slots, ...]"""
    return array if array.shape[1] == slots else np.ascontiguousarray(array[:, :slots])

"""Vector blocks without Numba: all of them in one module, to be called from here, or compiled for another processor.

LLVM ends a process that asks for what it cannot do, so both uses are for a process of their own: see at_level.py.
"""

from __future__ import annotations

import ctypes
import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types

import variegate.executors.cpu as package
from variegate.executors.cpu.simd import Block

_KINDS = {
    types.int32: (ir.IntType(32), ctypes.c_int32),
    types.int64: (ir.IntType(64), ctypes.c_int64),
    types.float32: (ir.FloatType(), ctypes.c_float),
    types.float64: (ir.DoubleType(), ctypes.c_double),
    types.void: (ir.VoidType(), None),
}


def all_blocks() -> dict[str, Block]:
    """Name -> block, of those that the level has the instructions for."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(module).items():
            block = getattr(value, "block", None)
            if isinstance(block, Block) and block.needs:
                found[f"{block.emit.__module__.rpartition('.')[2]}.{name}"] = block
    return found


def module_of(blocks: dict[str, Block]) -> Any:
    """An LLVM module with a function per block."""
    module = ir.Module()
    for name, block in blocks.items():
        kinds = [_KINDS[kind][0] for kind in block.kinds]
        function = ir.Function(module, ir.FunctionType(_KINDS[block.result][0], kinds), name)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        value = block.emit(builder, *function.args)
        if value is None:
            builder.ret_void()
        else:
            builder.ret(value)
    return module


def parsed(module: Any, triple: str) -> Any:
    module.triple = triple
    found = llvm.parse_assembly(str(module))
    found.verify()
    return found


class Callables:
    """Every block as a function, compiled for this processor: ``run["simd_pixels.copy_block"](source, target)``. Arrays
    stand for their addresses."""

    def __init__(self, cpu: str, features: str) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.blocks = all_blocks()
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=cpu, features=features, opt=2)
        module = parsed(module_of(self.blocks), llvm.get_default_triple())
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()

    def __getitem__(self, name: str) -> Any:
        block = self.blocks[name]
        kind = ctypes.CFUNCTYPE(_KINDS[block.result][1], *(_KINDS[k][1] for k in block.kinds))
        function = kind(self._engine.get_function_address(name))

        def call(*args: Any) -> Any:
            return function(*(arg.ctypes.data if hasattr(arg, "ctypes") else arg for arg in args))

        return call


def assemble(triple: str, cpu: str, features: str, more: Sequence[str] = ()) -> None:
    """Compile them for a target. ``more``: blocks by their names in ``simd_values``, whatever they need."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=2)
    lookups = importlib.import_module(f"{package.__name__}.simd_values")
    blocks = all_blocks() | {name: getattr(lookups, name).block for name in more}
    assert machine.emit_assembly(parsed(module_of(blocks), triple))

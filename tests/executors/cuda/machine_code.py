"""A launch compiled ahead for a GPU, and the resources that its machine code declares."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from variegate.executors.cuda.launch import Launch

# NVIDIA's, which comes with Triton's wheel.
_CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True)
class Resources:
    """Registers of a thread, and bytes."""

    registers: int
    stack: int
    shared: int
    local: int


def compile_launch(launch: Launch, capability: int) -> Any:
    """Triton's ``CompiledKernel``, as it would be made on such a device: specialized on multiples of 16."""
    signature: dict[str, str] = {}
    attributes: dict[Any, Any] = {}
    for i, (name, value) in enumerate(zip(launch.kernel.arg_names, launch.arguments, strict=False)):
        is_pointer = isinstance(value, torch.Tensor)
        signature[name] = f"*{'u8' if value.dtype == torch.uint8 else 'i32'}" if is_pointer else "i32"
        if is_pointer or (name != "rows" and value % 16 == 0):
            attributes[(i,)] = [["tt.divisibility", 16]]
    signature |= dict.fromkeys(launch.constants, "constexpr")
    source = ASTSource(launch.kernel, signature, launch.constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=launch.options)


def resources_of(cubin: bytes) -> Resources:
    """What machine code declares to use."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(_CUOBJDUMP), "-res-usage", file.name]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = _RESOURCES.search(printed)
    assert found is not None, printed
    return Resources(*map(int, found.groups()))

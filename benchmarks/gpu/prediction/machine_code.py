"""A launch compiled ahead for a GPU, and its machine code as instructions, each with the source line that it is for.

The disassembler is NVIDIA's nvdisasm, which comes with Triton's wheel.
"""

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

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
_RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
_LINE = re.compile(r'//## File "([^"]+)", line (\d+)')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
_LABEL = re.compile(r"^(\.L_\w+):")
_FUNCTION = re.compile(r"^\$__internal_\w+\$")
_KERNELS = "executors/cuda/kernels/"


@dataclass(frozen=True)
class Instruction:
    """``chain``: file:line of a kernel's source, then of its callers, as ``executions`` writes it; ``loops``: how many
    loops of the machine code it is in."""

    opcode: str
    chain: str
    loops: int


@dataclass(frozen=True)
class Resources:
    """Registers of a thread, and bytes."""

    registers: int
    stack: int
    shared: int
    local: int


@dataclass(frozen=True)
class Code:
    registers: int
    shared: int
    local: int
    warps: int
    instructions: list[Instruction]


def compile_for(launch: Launch, capability: int) -> Code:
    """For a device of this capability."""
    compiled = compile_launch(launch, capability)
    cubin = compiled.asm["cubin"]
    used = resources_of(cubin)
    # What is asked for at the launch comes on top of what is declared.
    shared = max(used.shared, int(getattr(compiled.metadata, "shared", 0)))
    instructions = list(_parse(_said(cubin, "nvdisasm", "-c", "-gi")))
    return Code(used.registers, shared, used.local, launch.options["num_warps"], instructions)


def compile_launch(launch: Launch, capability: int) -> Any:
    """Triton's ``CompiledKernel``, as it would be made on such a device: specialised on multiples of 16."""
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
    said = _said(cubin, "cuobjdump", "-res-usage")
    found = _RESOURCES.search(said)
    assert found is not None, said
    return Resources(*map(int, found.groups()))


def _said(cubin: bytes, tool: str, *arguments: str) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(TOOLS / tool), *arguments, file.name]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _parse(text: str) -> list[Instruction]:
    found: list[tuple[int, str, str, str]] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    chain: list[str] = []
    is_new = True
    for line in text.splitlines():
        if _FUNCTION.match(line):
            # Behind the kernel lie its functions: the slow path of a division, which ordinary numbers never take.
            break
        if named := _LABEL.match(line):
            waiting.append(named.group(1))
        elif placed := _LINE.search(line):
            # The lines of a chain stand one below the other, the innermost first.
            chain = [] if is_new else chain
            is_new = False
            if _KERNELS in placed.group(1):
                chain.append(f"{Path(placed.group(1)).name}:{placed.group(2)}")
        elif instruction := _INSTRUCTION.search(line):
            is_new = True
            address = int(instruction.group(1), 16)
            labels |= dict.fromkeys(waiting, address)
            waiting = []
            found.append((address, instruction.group(2), " < ".join(chain), instruction.group(3)))
    backwards = _loops(found, labels)
    return [
        Instruction(opcode, where, sum(begin <= address <= end for begin, end in backwards))
        for address, opcode, where, _ in found
        if opcode != "NOP"
    ]


def _loops(found: list[tuple[int, str, str, str]], labels: dict[str, int]) -> list[tuple[int, int]]:
    """From the target to the last branch back to it, for each target but that of the trap behind the code's end."""
    ends: dict[int, int] = {}
    for address, opcode, _, operands in found:
        target = re.search(r"\.L_\w+", operands)
        if opcode.startswith("BRA") and target and labels.get(target.group(0), address) < address:
            begin = labels[target.group(0)]
            ends[begin] = max(address, ends.get(begin, 0))
    return list(ends.items())

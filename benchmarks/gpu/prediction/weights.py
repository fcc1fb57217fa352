"""How often an instruction runs in a program of a launch, from how often its source line does."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.gpu.prediction.machine_code import Code, Instruction
from variegate.executors.cuda import kernels

SOURCES = Path(kernels.__file__).parent
# What only the last program of a row does; its share depends on how many programs a row has.
ONCE_A_ROW = "write_tables"


@dataclass(frozen=True)
class Executed:
    """By a warp of an average program. ``exact``: the share of it that is of lines which were themselves watched; of
    the others a line before them in the same call tells."""

    by_class: dict[str, float]
    by_function: dict[str, float]
    exact: float


def executed(code: Code, watched: dict[str, Any], tiles: int) -> Executed:
    """``watched``: of the launch, by ``executions``; ``tiles``: programs of a row in the batch that is asked about."""
    counts: dict[str, int] = watched["lines"]
    tails = _by_tail(counts)
    total: dict[str, float] = {}
    functions: dict[str, float] = {}
    exact = 0.0
    for instruction in code.instructions:
        runs, is_exact = _runs(instruction.chain, counts, tails)
        per_program = runs / watched["programs"] / _unrolled(instruction, counts)
        if _is_once_a_row(instruction.chain):
            per_program *= watched["tiles"] / tiles
        kind, function = class_of(instruction.opcode), _innermost(instruction.chain)
        total[kind] = total.get(kind, 0.0) + per_program
        functions[function] = functions.get(function, 0.0) + per_program
        exact += per_program if is_exact else 0.0
    return Executed(total, functions, exact / sum(total.values()))


def class_of(opcode: str) -> str:
    """The unit that an instruction waits for."""
    name = opcode.split(".")[0]
    if name.startswith("U"):
        # Of a warp as a whole; these have a unit of their own.
        return "uniform"
    if name in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX") or "F64" in opcode:
        return "fp64"
    if name in ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "I2FP", "F2FP", "BREV"):
        return "conversions"
    if name in ("LDG", "LD"):
        return "loads"
    if name in ("STG", "ST"):
        return "stores"
    if name in ("ATOM", "ATOMG", "ATOMS", "RED", "REDUX"):
        return "atomics"
    if name in ("LDS", "STS", "LDL", "STL", "SHFL", "LDSM"):
        return "shared"
    if name in ("FADD", "FMUL", "FFMA", "FSETP", "FSEL", "FMNMX", "FCHK", "FSET", "HADD2", "HMUL2", "HFMA2"):
        return "fp32"
    if name in ("BRA", "EXIT", "BSSY", "BSYNC", "BREAK", "CALL", "RET", "BAR", "WARPSYNC", "YIELD", "DEPBAR", "MEMBAR"):
        return "control"
    return "imad" if name == "IMAD" else "integer"


def _runs(
    chain: str, counts: dict[str, int], tails: dict[tuple[str, str], list[tuple[int, int]]]
) -> tuple[float, bool]:
    """Of a line, or of the nearest watched line before it in the same function and call; else of the calling line."""
    if not chain:
        return max(counts.values()), False  # set-up, which every program does
    if chain in counts:
        return counts[chain], True
    head, _, tail = chain.partition(" < ")
    name, line = head.split(":")
    around = [(at, runs) for at, runs in tails.get((name, tail), []) if _same_function(name, at, int(line))]
    before = [runs for at, runs in around if at <= int(line)]
    if before:
        return before[-1], False
    # Nothing of the call was run, or it has no lines of its own: its caller tells.
    if around or not tail:
        return (around[0][1] if around else 0), False
    return (0, False) if _has_lines(name, int(line)) else _runs(tail, counts, tails)


def _by_tail(counts: dict[str, int]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Of every file and chain of callers, the watched lines in order."""
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for chain, runs in counts.items():
        head, _, tail = chain.partition(" < ")
        name, line = head.split(":")
        found.setdefault((name, tail), []).append((int(line), runs))
    return {key: sorted(lines) for key, lines in found.items()}


def _unrolled(instruction: Instruction, counts: dict[str, int]) -> float:
    """By how much a line's runs exceed those of each copy, where the compiler unrolled loops that the source has."""
    trips = []
    parts = instruction.chain.split(" < ") if instruction.chain else []
    for i, part in enumerate(parts):
        name, line = part.split(":")
        tail = " < ".join(parts[i + 1 :])
        for first, body in _loops_around(name, int(line)):
            end = f" < {tail}" if tail else ""
            inner, header = counts.get(f"{name}:{body}{end}", 0), counts.get(f"{name}:{first}{end}", 0)
            trips.append(inner / (header - inner) if header > inner else 1.0)
    factor = 1.0
    for trip in trips[: max(0, len(trips) - instruction.loops)]:
        factor *= max(1.0, trip)
    return factor


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse((SOURCES / name).read_text())


@cache
def _loops_around(name: str, line: int) -> list[tuple[int, int]]:
    """(line of the ``for``, first line of its body) of the loops whose body has the line, the innermost first."""
    loops = [node for node in ast.walk(_tree(name)) if isinstance(node, ast.For)]
    around = [node for node in loops if node.body[0].lineno <= line <= (node.end_lineno or node.lineno)]
    return [(node.lineno, node.body[0].lineno) for node in sorted(around, key=lambda node: -node.lineno)]


@cache
def _function_at(name: str, line: int) -> str:
    for node in _tree(name).body:
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return node.name
    return ""


def _same_function(name: str, one: int, other: int) -> bool:
    return _function_at(name, one) == _function_at(name, other) != ""


def _has_lines(name: str, line: int) -> bool:
    return _function_at(name, line) != ""


def _is_once_a_row(chain: str) -> bool:
    return any(_function_at(*_place(part)) == ONCE_A_ROW for part in chain.split(" < ") if part)


def _innermost(chain: str) -> str:
    return _function_at(*_place(chain.split(" < ")[0])) if chain else "set-up"


def _place(part: str) -> tuple[str, int]:
    name, line = part.split(":")
    return name, int(line)

"""Text form of a record."""

from __future__ import annotations

from typing import Any

from variegate.program.draws.instructions import DrawOp
from variegate.program.draws.record import COUNTED, Record, record_of
from variegate.program.draws.recorder import NONE, SIDE_TABLES, Emission, PythonDraw
from variegate.program.ops import SPECS, Op
from variegate.program.program import Output


def trace(transform: Any) -> str:
    """Describe how a transform draws its random numbers: its record, one instruction of the draw machine per line.

    Args:
        transform: any transform.

    Returns:
        The text. Registers are ``r0``, ``r1``, ...; an emitted instruction is its name with its arguments; ``python``
        marks a part that runs in Python for every batch.

    Raises:
        TypeError: ``transform`` is not a transform.

    >>> from variegate import transforms as T
    >>> print(trace(T.RandomHorizontalFlip(0.25)))
    r0 = words(slot=0)
    r4 = unit(r0)
    r5 = less(r4, 0.25)
    if r5: HorizontalFlip()
    """
    if not hasattr(transform, "_is_recorded"):
        raise TypeError(f"transform: got {type(transform).__name__}; accepted: a transform, such as T.RandAugment()")
    record = record_of(transform, Output(), 3, 0)
    lines = []
    callbacks = list(record.callbacks)
    for at, instruction in enumerate(record.code):
        while callbacks and callbacks[0].at == at:
            lines.append(_callback(callbacks.pop(0), record))
        lines.append(_line(instruction, record))
    lines += [_callback(callback, record) for callback in callbacks]
    return "\n".join(lines)


def _register(record: Record, index: int) -> str:
    if index < len(record.constants):
        return f"{float(record.constants[index]):g}"
    return f"r{index - len(record.constants)}"


def _line(instruction: Any, record: Record) -> str:
    op = DrawOp(int(instruction["op"]))
    k = float(instruction["k"])
    if op == DrawOp.EMIT:
        return _emission(record.notes[int(k)], record.emissions[int(k)], record)
    if op == DrawOp.SKIP:
        return f"if none {_register(record, instruction['a'])}: skip to {int(k)}"
    if op in (DrawOp.RECTANGLE, DrawOp.CHECK):
        note = record.emissions[int(k)]
        operands = [_register(record, index) for index in note["args"][: note["count"]]]
        if op == DrawOp.CHECK:
            return f"check({', '.join([_register(record, instruction['a']), *operands])})"
    else:
        names = ("a",) if op in COUNTED else ("a", "b", "c")
        operands = [_register(record, instruction[name]) for name in names if instruction[name] != NONE]
        operands += [f"{name}={value}" for name, value in _constants(op, instruction, k)]
    return f"{_register(record, instruction['to'])} = {op.name.lower()}({', '.join(operands)})"


def _constants(op: DrawOp, instruction: Any, k: float) -> list[tuple[str, Any]]:
    if op in (DrawOp.WORDS, DrawOp.SLOT):
        return [("slot", int(k))]
    if op == DrawOp.BASE:
        return [("table", SIDE_TABLES[int(k)])]
    if op in COUNTED:
        return [("count", int(instruction["b"])), *([] if op == DrawOp.SORT else [("first", int(k))])]
    return [("column", int(k))] if op == DrawOp.COLUMN else []


def _emission(note: Emission, packed: Any, record: Record) -> str:
    arguments = [_register(record, index) for index in packed["args"][: packed["count"]]]
    opcode = packed["opcode"]
    is_known = opcode < len(record.constants)
    title = SPECS[Op(int(record.constants[opcode]))].name if is_known else f"[{_register(record, opcode)}]"
    condition = "" if packed["where"] == NONE else f"if {_register(record, packed['where'])}: "
    return f"{condition}{title}({', '.join(arguments)})"


def _callback(callback: Any, record: Record) -> str:
    condition = "" if callback.where == NONE else f"if {_register(record, callback.where)}: "
    function = callback.function
    owner = function.transform if isinstance(function, PythonDraw) else getattr(function, "__self__", function)
    return f"{condition}python {getattr(owner, '__name__', type(owner).__name__)}"

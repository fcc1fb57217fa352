"""Any function of the functional interface, row by row: it is called with a stand-in for the image, once for all rows
that have the same arguments and shape, and what it would have done is emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from variegate.errors import shown
from variegate.ops.arguments import ArgumentError
from variegate.ops.stand_in import StandIn
from variegate.ops.traced.values import is_name
from variegate.program.one_image import OneImage
from variegate.program.ops import Op
from variegate.program.sampling import Rows, Sampling

_HEADER = 8  # of a record: opcode, flags, height, width, label, red, green, blue


def names_in(value: Any) -> set[str]:
    """The values that an argument asks for, lists within it included."""
    if isinstance(value, (list, tuple)):
        return set().union(*map(names_in, value))
    return {value} if is_name(value) else set()


def with_values(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(with_values(entry, known) for entry in value)
    return known[value] if is_name(value) else value


def emit_by_row(
    owner: object,
    function: Callable[..., Any],
    sampling: Sampling,
    rows: Rows,
    arguments: Mapping[str, Any],
    values: Mapping[str, Any],
) -> None:
    """``values``: an array with an entry for each of ``rows``, by name."""
    columns = [np.asarray(values[name], np.float64) for name in values]
    keys = np.column_stack([*columns, sampling.size[rows], sampling.channels[rows]])
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    for number, row in enumerate(first.tolist()):
        known = {name: array[row].item() for name, array in values.items()}
        height, width = sampling.size[rows[row]].tolist()
        stand_in = StandIn((height, width, int(sampling.channels[rows[row]])))
        told = ask(owner, function, stand_in, with_values(dict_to_pairs(arguments), known))
        _emit(sampling, rows[group == number], told)


def dict_to_pairs(arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(arguments.items())


def ask(owner: object, function: Callable[..., Any], stand_in: StandIn, arguments: Any) -> OneImage:
    """The instructions of ``function``. Raises ArgumentError for what it does not take, or cannot do here."""
    named = dict(arguments)
    try:
        function(stand_in, **named)
        if stand_in.told is None:
            raise TypeError("it is more than instructions on one uint8 image")
    except ArgumentError as error:
        raise ArgumentError(owner, error.argument, error.got, error.accepted) from error
    except (TypeError, AttributeError, ValueError) as error:
        accepted = f"a function that can be part of a pipeline, at such arguments ({shown(str(error))})"
        raise ArgumentError(owner, "arguments", named, accepted) from error
    return stand_in.told


def _emit(sampling: Sampling, rows: Rows, told: OneImage) -> None:
    rectangles = sampling.add_rectangles(told.rectangles()) if told.num_rectangles else 0
    for opcode, flags, height, width, label, *rest in told.records:
        op, fill, args = Op(opcode), tuple(rest[:3]), list(rest[3:])
        if op is Op.ERASE:
            args[0] += rectangles
        size = np.array([height, width], np.int32)
        changed = size if (sampling.size[rows] != size).any() else None
        name = told._names[label] if label >= 0 else None
        sampling.emit(rows, op, *args, flags=flags, fill=fill, size=changed, name=name)

"""What a function does to each sample, by Python itself: images are tuples of the amounts that they were moved by."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import variegate as vg


class Recorder:
    """``F`` of plain Python."""

    @staticmethod
    def translate_x(image: Any, amount: Any) -> Any:
        return (*image, float(amount))


def plain(function: types.FunctionType, **names: Any) -> types.FunctionType:
    """``function`` with ``Recorder`` for F, which runs on a tuple and one sample's value."""
    space = {**function.__globals__, "F": Recorder, **names}
    made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def amounts_of(pipeline: Any, values: Sequence[Any]) -> list[tuple[float, ...]]:
    """The amounts of every sample, whose parameter ``x`` is one of ``values``."""
    program = vg.Augmenter(pipeline).program([(40, 30)] * len(values), ids=range(len(values)), conditions={"x": values})
    return [tuple(args[0] for _, args in program.operations(row)) for row in range(len(values))]


def assert_fails_here(function: Callable[..., Any], message: str, file: str, **conditions: Any) -> None:
    """For sample 7, at the line that ends with ``# here``, in one line that says ``message``, a regular expression."""
    augmenter = vg.Augmenter(vg.pipeline(function))
    with pytest.raises(vg.PipelineError, match=message) as failure:
        augmenter.program([(20, 30)], ids=[7], conditions={name: [value] for name, value in conditions.items()})
    said = str(failure.value)
    found = re.match(re.escape(file) + rf":(\d+): `(.*)`: {function.__name__}, sample 7: ", said)
    assert found is not None, said
    assert "\n" not in said
    line = Path(file).read_text().splitlines()[int(found[1]) - 1]
    assert line.strip() == found[2]
    assert line.endswith("# here"), said

"""Operations whose arguments are drawn, written as the values and functions of a ``TracedPipeline``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.integrations.converters.report import Place
from variegate.ops.base import Transform
from variegate.ops.traced import Function, Measure, TracedPipeline

Value = str | float  # of a sample: its name, or a number


class Drawing:
    """Gathers what ``TracedPipeline`` is made of, in order. ``place`` answers for arguments that are not taken."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._values: list[tuple[Any, ...]] = []
        self._steps: list[Transform] = []

    def value(self, operator: str, *operands: Value) -> str:
        """A value by an operator of ``transforms.pipeline``."""
        name = f"${len(self._values) + 1}"
        self._values.append((name, operator, *operands))
        return name

    def uniform(self, limits: tuple[float, float]) -> Value:
        return limits[0] if limits[0] == limits[1] else self.value("uniform", *limits)

    def between(self, low: Value, high: Value) -> str:
        """A whole number, both ends included."""
        return self.value("randint", low, self.value("+", high, 1))

    def size(self) -> tuple[str, str]:
        """Height and width of the image at this stage."""
        name = f"$size{len(self._steps)}"
        self._steps.append(Measure(name))
        return f"{name}.height", f"{name}.width"

    def do(self, function: str, **arguments: Any) -> None:
        """A function of ``variegate.transforms.functional``."""
        self._steps.append(self._place.build(Function, {"function": function, "arguments": arguments}))

    def map(self, coefficients: list[Value], arguments: Mapping[str, Any]) -> None:
        """Each place of the output shows another of the image, by Pillow's six coefficients of an affine map."""
        self.do("perspective", startpoints=None, endpoints=None, coefficients=(*coefficients, 0, 0), **arguments)

    def made(self) -> Transform:
        name = self._place.path.split()[-1]
        return self._place.build(TracedPipeline, {"transforms": self._steps, "values": self._values, "name": name})

"""Builder of pipelines whose arguments are computed per sample from drawn numbers and the image's size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from variegate.integrations.converters.report import Place
from variegate.ops.base import Transform
from variegate.ops.traced import Function, Measure, TracedPipeline


def _operator(sign: str) -> Callable[[Drawn, Number], Drawn]:
    return lambda drawn, other: drawn.drawing.value(sign, drawn, other)


def _swapped(sign: str) -> Callable[[Drawn, Number], Drawn]:
    return lambda drawn, other: drawn.drawing.value(sign, other, drawn)


class Drawn:
    """A number of each sample. Arithmetic on it records another value of its ``Drawing``."""

    def __init__(self, drawing: Drawing, name: str) -> None:
        self.drawing = drawing
        self.name = name

    __add__ = _operator("+")
    __sub__ = _operator("-")
    __rsub__ = _swapped("-")
    __mul__ = _operator("*")
    __truediv__ = _operator("/")
    __rtruediv__ = _swapped("/")
    __floordiv__ = _operator("//")
    __mod__ = _operator("%")
    __lt__ = _operator("<")

    def __neg__(self) -> Drawn:
        return self.to("neg")

    def to(self, function: str) -> Drawn:
        """A function of this number: "int", "round", "abs", "sqrt", "exp", "cos", "sin" or "tan"."""
        return self.drawing.value(function, self)

    def at_least(self, other: Number) -> Drawn:
        return self.drawing.value("max", self, other)

    def at_most(self, other: Number) -> Drawn:
        return self.drawing.value("min", self, other)

    def where(self, true: Number, false: Number) -> Drawn:
        """``true`` for samples for which this condition holds, else ``false``."""
        return self.drawing.value("where", self, true, false)


Number = Drawn | float


class Drawing:
    """Builder of a ``TracedPipeline``; ``place`` is named in errors."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._values: list[tuple[Any, ...]] = []
        self._steps: list[Transform] = []

    def value(self, operator: str, *operands: Number) -> Drawn:
        """A value by an operator of ``vg.pipeline``."""
        name = f"${len(self._values) + 1}"
        self._values.append((name, operator, *_with_names(operands)))
        return Drawn(self, name)

    def uniform(self, limits: Sequence[float]) -> Drawn:
        return self.value("uniform", *limits)

    def radians(self, limits: Sequence[float]) -> Drawn:
        """An angle, whose limits are in degrees."""
        return self.uniform(limits) * (math.pi / 180)

    def randint(self, low: Number, high: Number) -> Drawn:
        """An integer from ``low`` to ``high``, both included."""
        return self.value("randint", low, high + 1)

    def size(self) -> tuple[Drawn, Drawn]:
        """Height and width of the image at this stage."""
        name = f"$size{len(self._steps)}"
        self._steps.append(Measure(name))
        return Drawn(self, f"{name}.height"), Drawn(self, f"{name}.width")

    def do(self, function: str, **arguments: Any) -> Drawing:
        """Apply a function of ``variegate.transforms.functional``."""
        named = {name: _with_names(value) for name, value in arguments.items()}
        self._steps.append(self._place.build(Function, function=function, arguments=named))
        return self

    def map(self, x: Sequence[Number], y: Sequence[Number], **arguments: Any) -> Drawing:
        """Apply an affine map: the output at (x, y) shows the input at (a x + b y + c, d x + e y + f)."""
        coefficients = [*x, *y, 0, 0]
        return self.do("perspective", startpoints=None, endpoints=None, coefficients=coefficients, **arguments)

    def build(self) -> Transform:
        name = self._place.path.split()[-1]
        return self._place.build(TracedPipeline, transforms=self._steps, values=self._values, name=name)


def _with_names(value: Any) -> Any:
    """``value`` with names instead of drawn numbers, as descriptions hold them."""
    if isinstance(value, Drawn):
        return value.name
    if isinstance(value, (list, tuple)):
        return tuple(_with_names(each) for each in value)
    return value

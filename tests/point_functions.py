"""Point functions for tests: of every instruction, and random ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from variegate import math as vm
from variegate.program.pixel_functions import PixelFunction

ELEMENTARY: dict[str, Callable[[Any], Any]] = {
    "exp": vm.exp,
    "log": vm.log,
    "sin": vm.sin,
    "cos": vm.cos,
    "tan": vm.tan,
    "power": lambda x: (x / 8) ** 1.7,
    "power of a constant": lambda x: 1.02**x,
}
EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: x // y,
    "modulo": lambda x, y: x % y,
    "minimum": vm.minimum,
    "maximum": vm.maximum,
    "less": lambda x, y: (x < y) * 200,
    "less_equal": lambda x, y: (x <= y) * 200,
    "greater": lambda x, y: (x > y) * 200,
    "greater_equal": lambda x, y: (x >= y) * 200,
    "equal": lambda x, y: (x == y) * 200,
    "not_equal": lambda x, y: (x != y) * 200,
    "and": lambda x, y: ((x < 90) & (y > 60)) * 200,
    "or": lambda x, y: ((x < 90) | (y > 60)) * 200,
    "not": lambda x, y: ~(x < y) * 200,
    "negate": lambda x, y: 255 + -x,
    "absolute": lambda x, y: abs(x - y),
    "rint": lambda x, y: vm.rint(x / 8 - 8) + y,
    "floor": lambda x, y: vm.floor(x / 8 - 8) + y,
    "ceil": lambda x, y: vm.ceil(x / 8 - 8) + y,
    "trunc": lambda x, y: vm.trunc(x / 8 - 8) + y,
    "sqrt": lambda x, y: vm.sqrt(x * 16 - y),
    "select": lambda x, y: vm.select(x > y, x, 255 - y),
    "clip": lambda x, y: vm.clip(x, 30, y),
    "square": lambda x, y: x**2 / 255 + y**-1,
    "cube": lambda x, y: (x / 64) ** 3.0 + y,
}


def random_function(seed: int, *, is_exact: bool = False) -> PixelFunction:
    """A chain of random operations on the channels, the magnitude and constants."""
    operations: list[Callable[..., Any]] = list(EXACT.values())
    if not is_exact:
        operations += [lambda x, y, function=function: function(x / 16) + y for function in ELEMENTARY.values()]

    def function(r: Any, g: Any, b: Any, m: Any) -> Any:
        draw = random.Random(seed)
        symbols = [r, g, b, m]
        for _ in range(draw.randrange(1, 16)):
            operation = draw.choice(operations)
            symbols.append(operation(draw.choice(symbols), draw.choice([*symbols, 0.5, 3, -1.25, 255.0])))
        return tuple(draw.choice([*symbols[-4:], 99]) for _ in range(3))

    return PixelFunction(function, f"random {seed}")

"""Users' point functions written for Triton, as one compile-time argument of the fused pass."""

from __future__ import annotations

from typing import Any

from variegate.program.custom import PointFunction


class PointFunctions(tuple[Any, ...]):
    """Triton functions ``(r, g, b, m) -> (r, g, b)``, float32 tensors, in the order of a program's table.

    Triton takes an argument's text for its key, and that of a function is its name alone: after an edit, the old
    machine code would run. So the text here has the functions' own keys, which are made of their source.
    """

    @property
    def cache_key(self) -> str:
        return "-".join(str(getattr(function, "cache_key", function)) for function in self)

    def __repr__(self) -> str:
        return f"PointFunctions({self.cache_key})"

    __str__ = __repr__


def triton_functions(points: list[PointFunction]) -> PointFunctions:
    """Raises ValueError naming the operation that has no Triton form."""
    for point in points:
        if point.triton_function is None:
            raise ValueError(
                f"{point.name}: its point function is written for Numba only and cannot run on a CUDA device; accepted "
                "there: a class that also has point_triton, a @triton.jit function (r, g, b, m) -> (r, g, b)"
            )
    return PointFunctions(point.triton_function for point in points)

"""A given optical flow: dense displacements, as an argument of a transform."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, refused
from variegate.ops.fields import rounded, units_for
from variegate.program.places import NODE_BITS
from variegate.program.program import MAX_SIDE

# Displacements, in pixels: beyond the largest image.
_LARGEST = 32_767.0
_ACCEPTED = "float [height, width, 2] of finite pixels (dx, dy), up to 32,767"


@dataclass(frozen=True)
class Flow:
    """Displacements float32 [height, width, 2] in pixels, along x and along y; immutable."""

    height: int
    width: int
    numbers: bytes

    def array(self) -> npt.NDArray[np.float32]:
        return np.frombuffer(self.numbers, "<f4").reshape(self.height, self.width, 2)

    def grid(self) -> tuple[npt.NDArray[np.int16], float, float]:
        """A node for every pixel, and those behind the last ones; their unit (``program/places.py``); and the greatest
        displacement."""
        return _grid(self)

    def described(self) -> dict[str, Any]:
        """Fit for JSON."""
        return {"shape": [self.height, self.width, 2], "float32": base64.b64encode(self.numbers).decode("ascii")}

    def __repr__(self) -> str:
        return f"<flow for {self.height}x{self.width} pixels>"


@lru_cache(maxsize=32)
def _grid(flow: Flow) -> tuple[npt.NDArray[np.int16], float, float]:
    dense = np.pad(flow.array().astype(np.float64), ((0, 1), (0, 1), (0, 0)), mode="edge")
    farthest = float(np.abs(dense).max())
    unit = float(units_for(farthest))
    return rounded(dense * 2.0 ** (NODE_BITS - unit)), unit, farthest


def flow_of(array: Any) -> Flow | None:
    """Numbers [height, width, 2] of any library, or None for anything else."""
    try:
        pixels = np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)
        with np.errstate(over="ignore"):  # to infinity, which is refused below
            numbers = pixels.astype("<f4") if pixels.dtype.kind in "fiu" else None
    except (TypeError, ValueError, AttributeError):
        return None
    if numbers is None or numbers.ndim != 3 or numbers.shape[2] != 2 or not numbers.size:
        return None
    if max(numbers.shape[:2]) > MAX_SIDE or not bool((np.abs(numbers) <= _LARGEST).all()):
        return None
    return Flow(numbers.shape[0], numbers.shape[1], numbers.tobytes())


def check_flow(name: str, value: Any, *, error: Refusal = refused) -> Flow | None:
    """None, a flow, or what ``Flow.described`` says of one."""
    if value is None or isinstance(value, Flow):
        return value
    flow = _from_description(value) if isinstance(value, Mapping) else flow_of(value)
    if flow is None:
        shown: Any = tuple(value.shape) if hasattr(value, "shape") else value
        raise error(name, shown, f"None, or {_ACCEPTED}")
    return flow


def _from_description(value: Mapping[str, Any]) -> Flow | None:
    try:
        shape = tuple(value["shape"])
        numbers = np.frombuffer(base64.b64decode(value["float32"], validate=True), "<f4")
        return flow_of(numbers.reshape(shape)) if len(shape) == 3 else None
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None

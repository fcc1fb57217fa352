"""Drawing for one image with known numbers, for a ``draw`` that cannot be recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import Float64Array
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.sampling import Rows, Sampling


class KnownDraw(DrawContext):
    """Draw context of an image with known numbers. Its methods act immediately instead of being recorded."""

    def uniform(self, slot: int, word: int = 0) -> float:
        return self.word(slot, word) * 2.0**-32

    def slot(self, number: int) -> int:
        return number

    def argsort(self, keys: Sequence[Number]) -> list[Number]:
        return sorted(range(len(keys)), key=keys.__getitem__)

    @contextmanager
    def alternatives(self) -> Iterator[Callable[[], Any]]:
        yield nullcontext

    def first_of(
        self,
        count: int,
        attempt: Callable[[int], tuple[Number, tuple[Number, ...]]],
        otherwise: tuple[Number, ...],
    ) -> tuple[Number, tuple[Number, ...]]:
        for i in range(count):
            succeeds, numbers = attempt(i)
            if succeeds:
                return True, numbers
        return False, otherwise

    def copy(self, count: int) -> None:
        return None

    def check(self, condition: Number, error: Callable[..., Exception], *numbers: Number) -> None:
        if not condition:
            raise error(*numbers)


class RowDraw(KnownDraw):
    """Draw context of one row of a batch."""

    def __init__(self, sampling: Sampling, row: int) -> None:
        self._sampling, self._rows = sampling, np.array([row], np.intp)

    # -- numbers of an image -------------------------------------------------------------------------------------

    @property
    def height(self) -> int:
        return int(self._sampling.size[self._rows[0], 0])

    @property
    def width(self) -> int:
        return int(self._sampling.size[self._rows[0], 1])

    @property
    def num_channels(self) -> int:
        return self._sampling.num_channels

    @property
    def channels(self) -> int:
        return int(self._sampling.channels[self._rows[0]])

    @property
    def epoch(self) -> int:
        return self._sampling.epoch

    def word(self, slot: int, word: int = 0) -> int:
        return int(self._sampling.words(self._rows, slot + word // 4)[0, 0, word % 4])

    def column(self, values: Callable[[Sampling], npt.ArrayLike]) -> float:
        return float(np.asarray(values(self._sampling))[self._rows[0]])

    # -- structure -----------------------------------------------------------------------------------------------

    def run(self, transform: Any, slot: int) -> None:
        transform.sample(self._sampling, self._rows, slot)

    def run_at(self, transform: Any, value: Number, slot: int) -> None:
        if transform._is_magnitude_recorded:
            transform.emit_at(self, value, slot)
        else:
            transform.emit_magnitude(self._sampling, self._rows, np.array([value], np.float64), slot)

    def call_back(self, function: Callable[..., None], slot: int, *values: Number) -> None:
        function(self._sampling, self._rows, slot, *(np.array([value], np.float64) for value in values))

    # -- emitting ------------------------------------------------------------------------------------------------

    def rectangle(self, top: Number, left: Number, height: Number, width: Number) -> int:
        return self._sampling.add_rectangles(np.array([[top, left, height, width]], np.int32))

    def table(self, name: str, values: npt.ArrayLike) -> int:
        return self._sampling.add(name, values)

    def add(
        self,
        op: Number,
        *args: Number,
        flags: Number = 0,
        fill: Sequence[Number] | None = None,
        size: tuple[Number, Number] | None = None,
        name: str | None = None,
        title: str | None = None,
        among: Sequence[int] = (),
    ) -> None:
        if op == Op.NOP:
            return
        sides = None if size is None else np.array([size], np.int32)
        self._sampling.emit(self._rows, Op(int(op)), *args, flags=int(flags), fill=fill, size=sides, name=name)

    @property
    def output(self) -> Output:
        return self._sampling.output

    def set_output(self, output: Output, owner: Any, advice: str) -> None:
        rows: Rows = self._rows
        if not self._sampling.covers_group(rows):
            raise self.not_for_all(owner, advice)
        self._sampling.output = output


def draw_in_python(transform: Any, sampling: Sampling, rows: Rows, slot: int) -> None:
    """Draw a transform that is not recorded: by ``sample`` for all rows together, or by ``draw`` row by row."""
    if not transform._is_recorded:
        transform.sample(sampling, rows, slot)
        return
    for row in rows.tolist():
        transform.draw(RowDraw(sampling, row), slot)


def emit_in_python(transform: Any, sampling: Sampling, rows: Rows, slot: int, values: Float64Array) -> None:
    """Emit a transform with one parameter that is not recorded, at ``values``, float64[rows]."""
    if not transform._is_magnitude_recorded:
        transform.emit_magnitude(sampling, rows, values, slot)
        return
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        transform.emit_at(RowDraw(sampling, row), value, slot)

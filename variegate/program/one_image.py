"""The instructions of one image, written one after another in plain numbers: the way of functions on one image.

A native call reads its records (``lowering/rewrites.py``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program import rng
from variegate.program.draws.row_draw import KnownDraw
from variegate.program.ops import NUM_ARGS, SPECS, Op
from variegate.program.planes import Planes, wrong_number
from variegate.program.program import MAX_SIDE, Output, Program
from variegate.program.sampling import Record, Sampling, after_normalize, after_steps
from variegate.program.table_builder import TableBuilder

_UNUSED = [(0.0,) * (NUM_ARGS - used) for used in range(NUM_ARGS + 1)]
_BLACK = (0, 0, 0)
_RECTANGLES = {"rectangles"}


class NeedsBatch(Exception):
    """A transform draws for rows of a batch, in Python."""


class OneImage(KnownDraw, TableBuilder):
    """``key``: of the numbers of its pixels, such as noise."""

    max_side = MAX_SIDE  # of what operations make

    def __init__(self, shape: tuple[int, int, int], sample_id: int, key: tuple[int, int]) -> None:
        self.in_shape = shape
        self._height, self._width = shape[0], shape[1]
        self.sample_id, self.stream = sample_id, key
        self._output = Output()
        self.records: list[Record] = []
        self._names: list[str] = []
        self._start_tables()

    @property
    def height(self) -> int:
        return self._height

    @property
    def width(self) -> int:
        return self._width

    @property
    def channels(self) -> int:
        return self.in_shape[2]

    @property
    def planes(self) -> Planes | None:
        return None

    @property
    def epoch(self) -> int:
        return 0

    @property
    def output(self) -> Output:
        return self._output

    def set_output(self, output: Output, owner: Any, advice: str) -> None:
        self._output = output

    def word(self, slot: int, word: int = 0) -> int:
        words = rng.words_of_one(self.sample_id, self.stream, slot + 1 + word // 4)
        return int(words[0, slot + word // 4, word % 4])

    def run(self, transform: Any, slot: int) -> None:
        if not transform._is_recorded:
            raise NeedsBatch
        transform.draw(self, slot)

    def run_at(self, transform: Any, value: float, slot: int) -> None:
        if not transform._is_magnitude_recorded:
            raise NeedsBatch
        transform.emit_at(self, value, slot)

    def call_back(self, function: Callable[..., None], slot: int, *values: float) -> None:
        raise NeedsBatch

    def table(self, name: str, values: npt.ArrayLike) -> int:
        return self._add(name, values)

    def rectangle(self, top: float, left: float, height: float, width: float) -> int:
        return self.add_rectangles(np.array([[top, left, height, width]], np.int32))

    def add(
        self,
        op: int,
        *args: float,
        flags: int = 0,
        fill: Sequence[float] | None = None,
        size: tuple[float, float] | None = None,
        name: str | None = None,
        title: str | None = None,
        among: Sequence[int] = (),
    ) -> None:
        if op == Op.NOP:
            return
        if self._output.steps:
            raise after_steps(title or SPECS[Op(op)].name, self._output.steps)
        # Only an erasing whose argument "normalized" is set can write into the float output.
        if self._output.is_float and not (op == Op.ERASE and len(args) >= NUM_ARGS and args[7] == 1):
            raise after_normalize(title or SPECS[Op(op)].name)
        if size is not None:
            if max(size) > self.max_side:
                raise ValueError(
                    f"{title or SPECS[Op(op)].name} to {int(size[0])}x{int(size[1])}; accepted: sides of at most "
                    f"{self.max_side:,} pixels"
                )
            self._height, self._width = int(size[0]), int(size[1])
        label = -1 if name is None else self._name_index(name)
        red, green, blue = _BLACK if fill is None else self._levels(name or title or SPECS[Op(op)].name, fill)
        head = (int(op), int(flags), self._height, self._width, label, red, green, blue)
        self.records.append((*head, *args, *_UNUSED[len(args)]))

    def _levels(self, title: str, fill: Sequence[float]) -> Iterable[int]:
        """Red, green and blue of a fill color."""
        if len(fill) != 3:
            raise wrong_number(f"{title}: fill", fill, 3)
        return map(int, fill)

    def _name_index(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return self._names.index(name)

    # -- as a batch of one ---------------------------------------------------------------------------------------

    def finish(self, output: Output) -> Program:
        sampling = single_sampling(self.in_shape, self.sample_id, self.stream)
        sampling.append_records(np.zeros(1, np.intp), [self.records], [(self.height, self.width)])
        sampling.adopt_tables(self)
        sampling._names = self._names
        return sampling.finish(output)

    @property
    def num_rectangles(self) -> int:
        return self._counts.get("rectangles", 0)

    def rectangles(self) -> npt.NDArray[np.int32]:
        """int32[Q, 4]"""
        parts = self._parts["rectangles"]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def has_tables(self) -> bool:
        """True if instructions refer to side tables other than rectangles."""
        return bool(self._points or self._parts.keys() - _RECTANGLES)


def single_sampling(shape: tuple[int, int, int], sample_id: int, key: tuple[int, int]) -> Sampling:
    """A batch of one image."""
    ids, keys = np.array([sample_id], np.uint64), np.array([key], np.uint32)
    return Sampling(np.array([shape], np.int32), ids, keys, 0)

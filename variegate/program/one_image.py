"""Sampling one image: draws and instructions of a batch of one, as plain numbers, without arrays.

Transforms draw from ``Images``: rows of a batch (``Selection``), or one image (``OneImage``), whose records a compiled
call reads (``lowering/rewrites.py``). Transforms that know arrays alone see it as a ``Sampling`` of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program import rng
from variegate.program.ops import NUM_ARGS, SPECS, Op
from variegate.program.planes import wrong_number
from variegate.program.program import Output, Program, empty_instructions
from variegate.program.sampling import CHOICE, Floats, Rows, Sampling, after_steps, check_equal

# The only row. Nobody writes to it.
ROW: Rows = np.zeros(1, np.intp)
ROW.flags.writeable = False

_UNUSED = [(0.0,) * (NUM_ARGS - used) for used in range(NUM_ARGS + 1)]
_BLACK = (0, 0, 0)
_UNIT = 2.0**-32

_RECTANGLES = {"rectangles"}

# opcode, flags, height, width, label, fill colour, arguments: see ``lowering.rewrites.RECORD``.
Record = tuple[Any, ...]


class Selection:
    """Rows of a batch, of which a transform asks numbers, as arrays, and into which it emits."""

    __slots__ = ("rows", "sampling")

    def __init__(self, sampling: Sampling, rows: Rows) -> None:
        self.sampling, self.rows = sampling, rows

    def __bool__(self) -> bool:
        return len(self.rows) > 0

    @property
    def sizes(self) -> npt.NDArray[np.int32]:
        """Heights and widths, int[R, 2]."""
        return self.sampling.size[self.rows]

    @property
    def height(self) -> Any:
        return self.sampling.size[self.rows, 0]

    @property
    def width(self) -> Any:
        return self.sampling.size[self.rows, 1]

    def unit(self, slot: int, word: int = 0) -> Any:
        """A number in [0, 1) for each."""
        return self.sampling.uniform(self.rows, slot, word)

    def word(self, slot: int, word: int = 0) -> Any:
        """A whole number of 32 bits for each."""
        return self.sampling.words(self.rows, slot)[:, 0, word]

    def add(
        self,
        op: Any,
        *args: Any,
        flags: Any = 0,
        fill: Any = None,
        size: Any = None,
        name: str | None = None,
        title: str | None = None,
    ) -> None:
        """Append an instruction. ``size``: height and width, where it changes them. ``title``: what errors call it."""
        if size is not None:
            size = np.stack(np.broadcast_arrays(*size), axis=-1)
        self.sampling.emit(self.rows, op, *args, flags=flags, fill=fill, size=size, name=name)

    def where(self, condition: Any) -> Selection | None:
        """Those for which it holds; nothing for none."""
        return Selection(self.sampling, self.rows[condition])

    def filtered(self, condition: Any, *values: Any) -> tuple[Any, ...]:
        """``where``, and of each of ``values`` those that belong to them."""
        return self.where(condition), *(v[condition] if isinstance(v, np.ndarray) else v for v in values)

    def by_number(self, number: Any, count: int) -> Iterator[tuple[int, Selection]]:
        """Those of each number from 0 to ``count`` - 1 that some have."""
        for i in range(count):
            if chosen := Selection(self.sampling, self.rows[number == i]):
                yield i, chosen

    def order(self, slot: int, count: int) -> Any:
        """A permutation of 0 to ``count`` - 1 for each, place by place; ``count`` is at most 4."""
        return np.argsort(self.sampling.words(self.rows, slot)[:, 0, :count], axis=1, kind="stable").T

    def choose(self, number: Any, options: Sequence[Any]) -> Any:
        return np.choose(number, options)

    def whole(self, value: Any) -> Any:
        """Numbers of 0 or more, cut off to whole ones that may be indices."""
        return value.astype(np.intp)

    def numbers(self, columns: npt.NDArray[Any]) -> Sequence[Any]:
        """Of an array [R, K] the K numbers of each."""
        return tuple(columns.T)

    def column(self, value: Any) -> Floats:
        """float64[R] of a number, or one for each."""
        return value if isinstance(value, np.ndarray) else np.full(len(self.rows), value, np.float64)

    def forked(self) -> Selection:
        """With all rows that were forked from their samples."""
        return Selection(self.sampling, self.sampling.with_forks(self.rows))


class OneImage(Sampling):
    """One image, until a transform makes several rows of it; see ``Selection`` for what its methods do."""

    rows = ROW

    def __init__(
        self,
        shape: tuple[int, int, int],
        sample_id: int,
        key: tuple[int, int],
        num_slots: int,
        epoch: int = 0,
        given: Mapping[str, npt.NDArray[np.generic]] | None = None,
        first_key: tuple[int, int] | None = None,
    ) -> None:
        self.in_shape = shape
        self.height, self.width = shape[0], shape[1]
        self.sample_id, self.stream = sample_id, key
        self.epoch = epoch
        self.given = given or {}  # type: ignore[assignment]
        self.output = Output()
        self.records: list[Record] = []
        self._num_slots = num_slots
        self._start_tables()
        self._names = []
        self._blend_weight = None
        self._first_stream = key if first_key is None and not epoch else first_key
        self._grouping, self._alike = None, 1
        self._batch: Sampling | None = None

    # -- what a Sampling has as arrays -------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Asked for where there is no such attribute yet: arrays that most images are made without.
        if name not in _MADE_WHEN_ASKED:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        value = self.__dict__[name] = _MADE_WHEN_ASKED[name](self)
        return value

    @property
    def size(self) -> npt.NDArray[np.int32]:  # type: ignore[override]
        return np.array([[self.height, self.width]], np.int32)

    @property
    def sizes(self) -> npt.NDArray[np.int32]:
        return self.sampling.size

    @property
    def length(self) -> npt.NDArray[np.int32]:  # type: ignore[override]
        return np.array([len(self.records)], np.int32)

    # -- drawing -----------------------------------------------------------------------------------------------

    def unit(self, slot: int, word: int = 0) -> float:
        """The same number as ``uniform(rows, slot)[0, word]``."""
        return self._words.item(4 * slot + word) * _UNIT

    def word(self, slot: int, word: int = 0) -> int:
        """The same number as ``words(rows, slot)[0, 0, word]``."""
        return self._words.item(4 * slot + word)

    def order(self, slot: int, count: int) -> list[int]:
        return sorted(range(count), key=[self.word(slot, i) for i in range(count)].__getitem__)

    def choose(self, number: int, options: Sequence[Any]) -> Any:
        return options[number]

    def whole(self, value: float) -> int:
        return int(value)

    def numbers(self, columns: npt.NDArray[Any]) -> Sequence[Any]:
        return columns[0].tolist()

    def column(self, value: float) -> Floats:
        return np.array([value], np.float64)

    def where(self, condition: Any) -> OneImage | None:
        return self if condition else None

    def filtered(self, condition: Any, *values: Any) -> tuple[Any, ...]:
        return self if condition else None, *values

    def by_number(self, number: Any, count: int) -> tuple[tuple[int, OneImage], ...]:
        return ((int(number), self),)

    def words(self, rows: Rows, slot: int, count: int = 1) -> npt.NDArray[np.uint32]:
        return self._words[:, slot : slot + count] if len(rows) == 1 else super().words(rows, slot, count)

    def uniform(self, rows: Rows, slot: int, word: Any = slice(None)) -> Floats:
        return rng.to_unit(self._words[:, slot, word]) if len(rows) == 1 else super().uniform(rows, slot, word)

    # -- emitting ----------------------------------------------------------------------------------------------

    def emit(
        self,
        rows: Rows,
        op: Op | npt.NDArray[np.int16],
        *args: npt.ArrayLike,
        flags: npt.ArrayLike = 0,
        fill: Sequence[int] | npt.NDArray[np.uint8] | None = None,
        size: npt.NDArray[np.int32] | None = None,
        name: str | None = None,
    ) -> None:
        if len(rows) == 0:
            return
        if size is not None:
            size = tuple(np.reshape(size, -1).tolist())  # type: ignore[assignment]
        if fill is not None and not (type(fill) is tuple and len(fill) == 3 and {*map(type, fill)} == {int}):
            fill = tuple(np.asarray(fill, np.uint8).reshape(-1).tolist())
        self.add(
            op if isinstance(op, Op) else _plain(op),
            *map(_plain, args),
            flags=_plain(flags),
            fill=fill,
            size=size,  # type: ignore[arg-type]
            name=name,
            title=None if isinstance(op, Op) else CHOICE,
        )

    def add(
        self,
        op: int,
        *args: float,
        flags: int = 0,
        fill: Sequence[int] | None = None,
        size: tuple[int, int] | None = None,
        name: str | None = None,
        title: str | None = None,
    ) -> None:
        if self.output.steps:
            raise after_steps(title or SPECS[Op(op)].name, self.output.steps)
        if self.output.is_float and not (op == Op.ERASE and title is None and len(args) > 7 and args[7]):
            raise ValueError(
                f"{title or SPECS[Op(op)].name} after Normalize: only RandomErasing may follow it. Put Normalize last."
            )
        if size is not None:
            if max(size) > self.max_side:
                raise ValueError(
                    f"{title or SPECS[Op(op)].name} to {size[0]}x{size[1]}; accepted: sides of at most "
                    f"{self.max_side:,} pixels"
                )
            self.height, self.width = size
        label = -1 if name is None else self._name_index(name)
        if fill is not None and self.planes is not None:
            fill = self.of_planes(f"{name or title or SPECS[Op(op)].name}: fill", fill).tolist()
        elif fill is not None and len(fill) != 3:
            raise wrong_number(f"{name or title or SPECS[Op(op)].name}: fill", fill, 3)
        red, green, blue = _BLACK if fill is None else fill
        self.records.append((op, flags, self.height, self.width, label, red, green, blue, *args, *_UNUSED[len(args)]))

    def widen(self, rows: Rows, title: str) -> None:
        if self.in_shape[2] == 3 or len(rows) == 0:
            return
        for op, *_, random in (record[:11] for record in self.records):
            check_equal(op, bool(random), title)
        self.records = [(*record[:5], *[record[5]] * 3, *record[8:]) for record in self.records]
        height, width, _ = self.in_shape
        self.in_shape = (height, width, 3)
        self.__dict__.pop("shape", None)

    # -- views -------------------------------------------------------------------------------------------------

    def views(self, places: tuple[tuple[int, int], ...], num_slots: int) -> list[OneImage]:
        """One for each view, (group, place in it), as ``split`` makes rows of them."""
        keys = _streams(self.stream, places)
        first = None if self._first_stream is None else _streams(self._first_stream, places)
        made = []
        for i, key in enumerate(keys):
            first_key = None if first is None else first[i]
            view = OneImage(self.in_shape, self.sample_id, key, num_slots, self.epoch, self.given, first_key)
            view.output = self.output
            made.append(view)
        return made

    # -- becoming a batch --------------------------------------------------------------------------------------

    @property
    def sampling(self) -> Sampling:
        """The sampling that goes on: this, or the batch that it has become."""
        return self if self._batch is None else self._batch

    def forked(self) -> OneImage | Selection:
        return self if self._batch is None else Selection(self._batch, self._batch.with_forks(ROW))

    @property
    def instructions(self) -> dict[str, npt.NDArray[Any]]:
        grids: dict[str, Any] = empty_instructions(1, max(8, len(self.records)))
        for k, (op, flags, height, width, label, *rest) in enumerate(self.records):
            grids["opcode"][0, k], grids["flags"][0, k], grids["label"][0, k] = op, flags, label
            grids["out_size"][0, k], grids["fill"][0, k], grids["args"][0, k] = (height, width), rest[:3], rest[3:]
        return grids

    def finish(self, output: Output) -> Program:
        return self.as_batch().finish(output)

    def as_batch(self) -> Sampling:
        if self._batch is None:
            batch = object.__new__(Sampling)
            own = {name: getattr(self, name) for name in (*_MADE_WHEN_ASKED, "size", "length")}
            batch.__dict__.update(self.__dict__, **own, _grids=self.instructions)
            self._batch = batch
        return self._batch

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


def _read_only(*numbers: Any) -> npt.NDArray[np.uint32]:
    """As a batch's keys are, so that kernels have one type for both."""
    array = np.array(numbers, np.uint32)
    array.flags.writeable = False
    return array


_MADE_WHEN_ASKED: dict[str, Callable[[OneImage], Any]] = {
    "_ids": lambda one: np.array([one.sample_id], np.uint64),
    "key": lambda one: _read_only(one.stream),
    "_first_key": lambda one: None if one._first_stream is None else np.array([one._first_stream], np.uint32),
    "_words": lambda one: rng.words_of_one(one.sample_id, one.stream, one._num_slots),
    "shape": lambda one: np.array([one.in_shape], np.int32),
    "source": lambda one: np.zeros(1, np.int32),
    "_is_mixed": lambda one: np.zeros(1, np.bool_),
}


@lru_cache(maxsize=256)
def _streams(stream: tuple[int, int], places: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
    """``rng.view_keys`` as plain integers."""
    keys = rng.view_keys(np.array([stream], np.uint32), places)[0]
    return [(low, high) for low, high in keys.tolist()]


Images = OneImage | Selection


def _plain(value: Any) -> Any:
    """The number that one row has."""
    return value if type(value) is float or type(value) is int else np.asarray(value).item()

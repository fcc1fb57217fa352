"""Recording: a transform's ``draw`` runs once with symbols and yields instructions for the draw machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Float64Array
from variegate.program.channels import color_of, refuse_color
from variegate.program.draws.instructions import DrawOp
from variegate.program.draws.values import NotRecordable, Number, Value, cos, exp, log, select, sqrt
from variegate.program.ops import NEEDS_LEVELS, SPECS, Op
from variegate.program.program import Output
from variegate.program.rng import GAMMA_SLOTS
from variegate.program.sampling import CHOICE, Sampling, check_place

NONE = -1
# While recording, registers of constants are numbered downward from here, because their count is not known yet.
_FIRST_CONSTANT = -2

# (op, to, a, b, c, k), see ``DrawOp``.
Instruction = tuple[DrawOp, int, int, int, int, float]


@dataclass
class Emission:
    """Registers of a program's instruction, a rectangle, or an error's numbers; NONE for no register."""

    opcode: int = NONE
    flags: int = NONE
    where: int = NONE
    height: int = NONE
    width: int = NONE
    label: int = NONE
    args: tuple[int, ...] = ()
    fill: tuple[int, ...] = (NONE, NONE, NONE)
    title: str = ""
    error: Callable[..., Exception] | None = None


class NeedsPythonCopies(Exception):
    """Images cannot be copied before drawing, because only some are copied, or twice. Python forks them instead."""


@dataclass(frozen=True)
class PythonDraw:
    """A transform that draws in Python for every batch; if ``is_at_number``, at a number that is passed to it."""

    transform: Any
    is_at_number: bool = False


@dataclass
class Callback:
    """A Python call before instruction ``at``, for the rows for which ``where`` holds.

    ``values``: registers that are passed to it. ``output``: the output format before the call. ``next_output``: the
    format after the call, for which later instructions were recorded.
    """

    at: int
    where: int
    function: Callable[..., None] | PythonDraw
    slot: int
    values: tuple[int, ...]
    output: Output
    next_output: Output


@dataclass
class Recorder:
    """Collects recorded instructions. ``next_outputs``: see ``record_of``."""

    num_channels: int = 3  # length of a color: 3 for gray and color images, else the number of channels
    epoch: int = 0
    uses_epoch: bool = False
    output: Output = field(default_factory=Output)
    next_outputs: Sequence[Output] = ()
    # Whether images may be copied before drawing, the number of rows per image, and whether these are blended.
    may_copy: bool = False
    copies: int = 1
    is_blended: bool = False
    # Register of an offset that is added to slots.
    slots_after: int = NONE
    # Name of a transform that may have mixed the current images with other samples.
    mixer: str | None = None
    code: list[Instruction] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)
    emissions: list[Emission] = field(default_factory=list)
    callbacks: list[Callback] = field(default_factory=list)
    columns: list[Callable[[Sampling], npt.ArrayLike]] = field(default_factory=list)
    arrays: list[Float64Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    # Names in errors of instructions that are defined on 256 levels only.
    needs_levels: list[str] = field(default_factory=list)
    tables: dict[str, list[AnyArray]] = field(default_factory=dict)
    num_registers: int = 0
    num_rectangles: int = 0
    max_emissions: int = 0
    _next_register: int = 0
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    # -- numbers -------------------------------------------------------------------------------------------------

    def compute(self, op: DrawOp, *operands: Number) -> Value:
        """Append an instruction on up to three numbers. Returns its result."""
        return self.append(op, *map(self.register, operands))

    def append(self, op: DrawOp, a: int = NONE, b: int = NONE, c: int = NONE, k: float = 0.0, count: int = 1) -> Value:
        """Append an instruction whose result has ``count`` registers. Returns the first."""
        to = self._next_register
        self._next_register += count
        self.num_registers = max(self.num_registers, self._next_register)
        self.code.append((op, to, a, b, c, k))
        return Value(self, to)

    def register(self, number: Number) -> int:
        if isinstance(number, Value):
            return number.register
        if isinstance(number, (int, float, np.integer, np.floating, np.bool_)):
            key = float(number).hex()
            return self.constants.setdefault(key, _FIRST_CONSTANT - len(self.constants))
        raise NotRecordable(f"got {type(number).__name__}; accepted: numbers")

    def array(self, values: npt.ArrayLike) -> int:
        """Add a constant array. Returns the index of its first element."""
        flat = np.ascontiguousarray(values, np.float64).reshape(-1)
        begin = 0
        for known in self.arrays:
            if known.tobytes() == flat.tobytes():
                return begin
            begin += len(known)
        self.arrays.append(flat)
        return begin

    def once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return ``make()``, called once per ``key`` in a region and its nested regions."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    # -- structure -----------------------------------------------------------------------------------------------

    @contextmanager
    def region(self, where: int) -> Iterator[None]:
        """Record instructions that are skipped if ``where`` holds for no image of a block.

        Later instructions must not use their results.
        """
        skip = len(self.code)
        known, register = self._known, self._next_register
        self._known = dict(known)
        if where != NONE:
            self.code.append((DrawOp.SKIP, NONE, where, NONE, NONE, 0.0))
        yield
        self._known, self._next_register = known, register
        if where != NONE:
            self.code[skip] = (DrawOp.SKIP, NONE, where, NONE, NONE, float(len(self.code)))

    def run(self, transform: Any, where: int, slot: int) -> None:
        """Record ``transform.draw``, or a callback if it draws in Python."""
        is_recorded = transform._is_recorded and self._try(where, lambda image: transform.draw(image, slot))
        if not is_recorded:
            self.call_back(where, PythonDraw(transform), slot)
        if transform._mixers and transform._mixers[0] is transform:
            self.mixer = type(transform).__name__

    def run_at(self, transform: Any, where: int, value: Number, slot: int) -> None:
        """Record ``transform.emit_at``, or a callback if it emits in Python."""
        is_recorded = transform._is_magnitude_recorded and self._try(
            where, lambda image: transform.emit_at(image, value, slot)
        )
        if not is_recorded:
            self.call_back(where, PythonDraw(transform, is_at_number=True), slot, value)

    def call_back(self, where: int, function: Callable[..., None] | PythonDraw, slot: int, *values: Number) -> None:
        """Record a call of ``function(sampling, rows, slot, *values)`` for every batch, each value float64[rows]."""
        registers = tuple(map(self.register, values))
        output = self.output
        if len(self.callbacks) < len(self.next_outputs):
            self.output = self.next_outputs[len(self.callbacks)]
        self.callbacks.append(Callback(len(self.code), where, function, slot, registers, output, self.output))

    def _try(self, where: int, draw: Callable[[DrawContext], None]) -> bool:
        before = self._state()
        try:
            with self.region(where):
                draw(DrawContext(self, where))
        except (NotRecordable, TypeError):
            self._restore(before)
            return False
        return True

    def _state(self) -> tuple[Any, ...]:
        lengths = [len(each) for each in self._lists]
        return lengths, self._known, self._next_register, self.output, self.max_emissions

    def _restore(self, state: tuple[Any, ...]) -> None:
        lengths, self._known, self._next_register, self.output, self.max_emissions = state
        for each, length in zip(self._lists, lengths, strict=True):
            del each[length:]

    @property
    def _lists(self) -> tuple[list[Any], ...]:
        return self.code, self.emissions, self.callbacks, self.columns, self.names, self.needs_levels


class DrawContext:
    """Interface of a transform's ``draw``: sizes and random numbers of images, and methods to append instructions.

    Numbers are symbols (``Value``). ``where``: register of a condition that selects images; NONE for all.
    """

    def __init__(self, recorder: Recorder, where: int = NONE) -> None:
        self.recorder, self._where = recorder, where

    # -- numbers of an image -------------------------------------------------------------------------------------

    @property
    def height(self) -> Number:
        """Height of the image after the operations so far, in pixels."""
        return self.recorder.append(DrawOp.HEIGHT)

    @property
    def width(self) -> Number:
        return self.recorder.append(DrawOp.WIDTH)

    @property
    def num_channels(self) -> int:
        """Length of a color: 3 for gray and color images, which may share a batch, else the number of channels."""
        return self.recorder.num_channels

    @property
    def channels(self) -> Number:
        return self.recorder.append(DrawOp.CHANNELS) if self.num_channels == 3 else self.num_channels

    @property
    def epoch(self) -> int:
        self.recorder.uses_epoch = True
        return self.recorder.epoch

    def word(self, slot: int, word: int = 0) -> Number:
        """Draw a 32-bit unsigned integer."""
        recorder = self.recorder
        slot, word, after = slot + word // 4, word % 4, recorder.slots_after
        first = recorder.once(("words", slot, after), lambda: recorder.append(DrawOp.WORDS, after, k=slot, count=4))
        return Value(recorder, first.register + word)

    def uniform(self, slot: int, word: int = 0) -> Number:
        """Draw a uniform number in [0, 1)."""
        drawn = self.word(slot, word)
        key = ("unit", slot, word, self.recorder.slots_after)
        return self.recorder.once(key, lambda: self.recorder.compute(DrawOp.UNIT, drawn))

    def normal(self, slot: int, number: int = 0) -> Number:
        """Draw a standard normal number by Box-Muller. ``number``: 0 or 1, as a slot has two."""
        radius = sqrt(-2.0 * log(self.uniform(slot, 2 * number) + 2.0**-32))
        return radius * cos(2.0 * math.pi * self.uniform(slot, 2 * number + 1))

    def gamma(self, slot: int, alpha: float) -> Number:
        """Draw a Gamma(alpha, 1) number from ``rng.GAMMA_SLOTS`` slots, as ``rng.to_gamma`` does."""
        d = (alpha if alpha >= 1.0 else alpha + 1.0) - 1.0 / 3.0

        def attempt(i: int) -> tuple[Number, tuple[Number, ...]]:
            normal = self.normal(slot + i)
            root = 1.0 + normal / math.sqrt(9.0 * d)
            v = root * root * root
            uniform = self.uniform(slot + i, 2) + 2.0**-33
            bound = 0.5 * normal * normal + d - d * v + d * log(select(v > 0.0, v, 1.0))
            # The last attempt is always accepted.
            is_accepted = ((v > 0.0) & (log(uniform) < bound)) | (i == GAMMA_SLOTS - 1)
            return is_accepted, (d * abs(v),)

        _, (drawn,) = self.first_of(GAMMA_SLOTS, attempt, (0.0,))
        if alpha < 1.0:
            drawn = drawn * exp(log(self.uniform(slot, 3) + 2.0**-33) / alpha)
        return drawn

    def order(self, slot: int, count: int) -> list[Number]:
        """Draw a permutation of 0 to ``count`` - 1. Uses a slot per four elements, starting at ``slot``."""
        return self.argsort([self.word(slot, i) for i in range(count)])

    def argsort(self, keys: Sequence[Number]) -> list[Number]:
        """Return the indices that sort ``keys`` in ascending order."""
        if not keys:
            return []
        recorder = self.recorder
        copies = [recorder.compute(DrawOp.ADD, key, 0.0) for key in keys]
        place = recorder.append(DrawOp.SORT, copies[0].register, b=len(keys), count=len(keys)).register
        return [Value(recorder, place + i) for i in range(len(keys))]

    def slot(self, number: int) -> Number:
        """Return the absolute number of a slot, for an instruction that draws random numbers per pixel."""
        return self.recorder.append(DrawOp.SLOT, self.recorder.slots_after, k=number)

    def column(self, values: Callable[[Sampling], npt.ArrayLike]) -> Number:
        """Return a number per image that Python computes for each batch: ``values(sampling)`` returns float64[rows]."""
        recorder = self.recorder
        recorder.columns.append(values)
        return recorder.append(DrawOp.COLUMN, k=len(recorder.columns) - 1)

    def lookup(self, values: npt.ArrayLike, index: Number) -> Number:
        """Return ``values[index]``, for a constant array that is flattened."""
        flat = np.asarray(values, np.float64).reshape(-1)
        if not isinstance(index, Value):
            return float(flat[int(index)])
        if len(flat) and (flat == flat[0]).all():
            return float(flat[0])
        return self.recorder.append(DrawOp.LOOKUP, index.register, b=len(flat), k=float(self.recorder.array(flat)))

    def search(self, edges: npt.ArrayLike, x: Number) -> Number:
        """Return the number of ``edges``, in ascending order, that are at most ``x``."""
        flat = np.asarray(edges, np.float64).reshape(-1)
        if not isinstance(x, Value):
            return int(np.searchsorted(flat, x, side="right"))
        return self.recorder.append(DrawOp.SEARCH, x.register, b=len(flat), k=float(self.recorder.array(flat)))

    def choose(self, number: Number, options: Sequence[Number]) -> Number:
        """Return ``options[number]``."""
        if not isinstance(number, Value):
            option = options[int(number)]
            return option if isinstance(option, Value) else float(option)
        if not any(isinstance(option, Value) for option in options):
            return self.lookup(options, number)
        result = options[-1]
        for i in range(len(options) - 2, -1, -1):
            result = self.recorder.compute(DrawOp.SELECT, number == i, options[i], result)
        return result

    # -- structure -----------------------------------------------------------------------------------------------

    def where(self, condition: Number) -> DrawContext | None:
        """Select the images for which ``condition`` holds. Returns None if it is known to be false."""
        if not isinstance(condition, Value):
            return self if condition else None
        recorder = self.recorder
        where = condition.register
        if self._where != NONE:
            where = recorder.append(DrawOp.AND, self._where, where).register
        return DrawContext(recorder, where)

    def by_chance(self, p: float, slot: int, word: int = 0) -> DrawContext | None:
        """Select each image with probability ``p``: if a uniform number is below ``p``."""
        return self.where(self.uniform(slot, word) < p if 0.0 < p < 1.0 else p >= 1.0)

    def run(self, transform: Any, slot: int) -> None:
        """Draw another transform for the selected images."""
        self.recorder.run(transform, self._where, slot)

    def call_back(self, function: Callable[..., None], slot: int, *values: Number) -> None:
        """Run ``function(sampling, rows, slot, *values)`` per batch for the selected rows, each value float64[rows]."""
        self.recorder.call_back(self._where, function, slot, *values)

    def run_at(self, transform: Any, value: Number, slot: int) -> None:
        """Emit a transform with one parameter at ``value``."""
        self.recorder.run_at(transform, self._where, value, slot)

    def run_one_of(self, number: Number, transforms: Sequence[tuple[Any, int]]) -> None:
        """Draw ``transforms[number]``, a pair (transform, slot)."""
        with self.alternatives() as alternative:
            for i, (transform, slot) in enumerate(transforms):
                if chosen := self.where(number == i):
                    with alternative():
                        chosen.run(transform, slot)

    @contextmanager
    def alternatives(self) -> Iterator[Callable[[], Any]]:
        """Yield a context manager for each of several mutually exclusive branches.

        An image runs at most one branch, so the longest determines the number of instructions.
        """
        recorder = self.recorder
        before = longest = recorder.max_emissions
        known = recorder.mixer
        mixers = [known]

        @contextmanager
        def alternative() -> Iterator[None]:
            nonlocal longest
            recorder.max_emissions = before
            recorder.mixer = known
            yield
            longest = max(longest, recorder.max_emissions)
            mixers.append(recorder.mixer)

        yield alternative
        recorder.max_emissions = longest
        recorder.mixer = next((mixer for mixer in mixers if mixer is not None), None)

    def first_of(
        self,
        count: int,
        attempt: Callable[[int], tuple[Number, tuple[Number, ...]]],
        otherwise: tuple[Number, ...],
    ) -> tuple[Number, tuple[Number, ...]]:
        """Return (whether an attempt succeeded, numbers of the first that did, else ``otherwise``).

        ``attempt(i)``, for i below ``count``, returns whether it succeeds, and its numbers.
        """
        recorder = self.recorder
        found = recorder.compute(DrawOp.MULTIPLY, 0.0, 0.0)
        results = [recorder.compute(DrawOp.ADD, value, 0.0) for value in otherwise]
        for i in range(count):
            is_open = recorder.compute(DrawOp.NOT, found)
            if self._where != NONE:
                is_open = recorder.append(DrawOp.AND, self._where, is_open.register)
            with recorder.region(is_open.register):
                succeeds, numbers = attempt(i)
                succeeds = succeeds & is_open
                for result, value in zip(results, numbers, strict=True):
                    self._assign(result, succeeds, value)
                self._assign(found, succeeds, 1.0)
        return found, tuple(results)

    def _assign(self, to: Value, condition: Value, value: Number) -> None:
        recorder = self.recorder
        instruction = (DrawOp.ASSIGN, to.register, condition.register, recorder.register(value), NONE, 0.0)
        recorder.code.append(instruction)

    def copy(self, count: int) -> Number | None:
        """Add ``count`` copies of each image, which draw the same random numbers.

        Returns the index of a row among the rows of its image, 0 for the original; None if Python must make the copies
        by ``Sampling.fork``.
        """
        recorder = self.recorder
        if not recorder.may_copy:
            return None
        if self._where != NONE or recorder.copies > 1:
            raise NeedsPythonCopies
        recorder.copies = 1 + count
        return recorder.append(DrawOp.CHAIN)

    @contextmanager
    def slots_after(self, number: Number) -> Iterator[None]:
        """Add ``number`` to the slots of random numbers within the context."""
        recorder = self.recorder
        before, recorder.slots_after = recorder.slots_after, recorder.register(number)
        yield
        recorder.slots_after = before

    def blend(self, weight: Number) -> None:
        """Set the weight of each row in the blend of its image's copies."""
        self.recorder.append(DrawOp.BLEND, self.recorder.register(weight))
        self.recorder.is_blended = True

    def check(self, condition: Number, error: Callable[..., Exception], *numbers: Number) -> None:
        """Raise ``error(*numbers)`` at run time for the first image for which ``condition`` is false."""
        if not isinstance(condition, Value):
            if condition:
                return
            condition = self.recorder.compute(DrawOp.MULTIPLY, 0.0, 0.0)
        recorder = self.recorder
        recorder.emissions.append(Emission(args=tuple(map(recorder.register, numbers)), error=error))
        number = float(len(recorder.emissions) - 1)
        recorder.code.append((DrawOp.CHECK, NONE, condition.register, self._where, NONE, number))

    # -- side tables -----------------------------------------------------------------------------------------------

    def rectangle(self, top: Number, left: Number, height: Number, width: Number) -> Number:
        """Add a rectangle, in pixels, for Op.ERASE. Returns its index."""
        recorder = self.recorder
        args = tuple(map(recorder.register, (top, left, height, width)))
        recorder.emissions.append(Emission(where=self._where, args=args))
        recorder.num_rectangles += 1
        return recorder.append(DrawOp.RECTANGLE, k=len(recorder.emissions) - 1)

    def table(self, name: str, values: npt.ArrayLike) -> Number:
        """Add ``values``, shared by all images, to side table ``name`` of ``Tables``. Returns the first index."""
        recorder = self.recorder
        parts = recorder.tables.setdefault(name, [])
        array = np.asarray(values)
        if not any(np.array_equal(part, array) for part in parts):
            parts.append(array)
        number = next(i for i, part in enumerate(parts) if np.array_equal(part, array))
        base = recorder.append(DrawOp.BASE, k=SIDE_TABLES.index(name))
        return base + sum(map(len, parts[:number]))

    # -- emitting ------------------------------------------------------------------------------------------------

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
        """Append an instruction.

        ``size``: height and width after the instruction; None: unchanged. ``name``: the operation's name if it differs
        from the instruction's. ``title``: its name in errors. ``among``: possible opcodes if ``op`` is drawn.
        """
        recorder = self.recorder
        shown_as = title or (SPECS[Op(op)].name if not isinstance(op, Value) else CHOICE)
        if recorder.is_blended and not (isinstance(op, Op) and SPECS[op].commutes_with_blend):
            raise NeedsPythonCopies
        check_place(shown_as, op, args, recorder.output, recorder.mixer)
        opcodes = list(among) if isinstance(op, Value) else [int(op)]
        if self.num_channels != 3:
            refuse_color(opcodes, name, self.num_channels)
        if on_levels := [code for code in opcodes if NEEDS_LEVELS[code]]:
            recorder.needs_levels.append(name or (SPECS[Op(on_levels[0])].name if among else shown_as))
        if fill is not None:
            fill = color_of(f"{name or shown_as}: fill", fill, self.num_channels, self.table)
        height, width = (NONE, NONE) if size is None else map(recorder.register, size)
        recorder.emissions.append(
            Emission(
                recorder.register(op),
                recorder.register(flags),
                self._where,
                height,
                width,
                NONE if name is None else self._label(name),
                tuple(map(recorder.register, args)),
                (NONE,) * 3 if fill is None else tuple(map(recorder.register, fill)),
                shown_as,
            )
        )
        recorder.max_emissions += 1
        recorder.code.append((DrawOp.EMIT, NONE, NONE, NONE, NONE, float(len(recorder.emissions) - 1)))

    def _label(self, name: str) -> int:
        names = self.recorder.names
        if name not in names:
            names.append(name)
        return names.index(name)

    # -- the format of results -----------------------------------------------------------------------------------

    @property
    def output(self) -> Output:
        return self.recorder.output

    def set_output(self, output: Output, owner: Any, advice: str) -> None:
        """Set the output format. Raises ValueError if only some images are selected."""
        if self._where != NONE:
            raise self.not_for_all(owner, advice)
        self.recorder.output = output

    @staticmethod
    def not_for_all(owner: Any, advice: str) -> ValueError:
        return ValueError(
            f"{type(owner).__name__} inside a choice (OneOf, RandomApply, Cond, ...): all images of a batch leave in "
            f"one format; {advice}"
        )


SIDE_TABLES = ("curves", "matrices", "filters", "grids", "colors")

"""Tables of the operations that policies draw: a step is emitted for a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Annotated, Any, Literal

import numpy as np

from variegate.arrays import IndexArray
from variegate.ops import arguments, color, filters, geometry, output, tone
from variegate.ops.arguments import BLACK, Fill, InterpolationName, RgbColor
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, PlainOp
from variegate.policies.spaces import Rule, element
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number, ceil, floor, maximum, minimum, select, trunc
from variegate.program.ops import KIND_OF, SPECS, Interpolation, Kind, Op
from variegate.program.sampling import CHOICE, Floats

Emitter = Callable[[DrawContext, Number, int, RgbColor], None]


@dataclass(frozen=True)
class Emission:
    """Instruction ``opcode`` with the parameter and then ``tail`` as arguments; or ``emitter``, with ``num_slots``."""

    opcode: Op
    tail: tuple[float, ...] = ()
    emitter: Emitter | None = None
    num_slots: int = 0


def emit_cutout(image: DrawContext, side: Number, slot: int, fill: RgbColor) -> None:
    """A square about a uniform center, clipped at the borders; PBA and TF round its side down to an even number."""
    half = trunc(side) // 2
    if not (chosen := image.where(half > 0)):
        return
    starts, sides = [], []
    for word, length in enumerate((chosen.height, chosen.width)):
        center = floor(chosen.uniform(slot, word) * length)
        start = maximum(center - half, 0)
        starts.append(start)
        sides.append(minimum(center + half, length) - start)
    chosen.add(Op.ERASE, chosen.rectangle(*starts, *sides), 1, fill=fill, name="Cutout")


def emit_blur(image: DrawContext, sigma: Number, slot: int = 0, fill: RgbColor = BLACK) -> None:
    """A Gaussian blur of ``sigma`` pixels with a kernel that reaches three of them to each side."""
    kernel = kernel_for(sigma)
    image.add(Op.GAUSSIAN_BLUR, kernel, kernel, sigma, sigma)


def kernel_for(sigma: Number) -> Number:
    """Pixels of a kernel that reaches three deviations to each side."""
    return 2 * ceil(3 * sigma) + 1


def _random_blur(image: DrawContext, widest: Number, slot: int, fill: RgbColor) -> None:
    """A Gaussian blur of 0.1 to ``widest`` pixels, uniform."""
    emit_blur(image, 0.1 + (widest - 0.1) * image.uniform(slot))


# The modules of all operations that published magnitude spaces name. Policies use the classes' defaults: SolarizeAdd's
# threshold is 128 and Gamma's gain 1 in every publication, and T.Rotate turns about the image's center.
_PUBLISHED_MODULES = {module.__name__ for module in (color, filters, geometry, output, tone)}
_SINGLE_INSTRUCTION: list[Any] = [
    cls
    for cls in Transform.registry.values()
    if cls.__module__ in _PUBLISHED_MODULES and issubclass(cls, MagnitudeOp | PlainOp) and hasattr(cls, "_op")
]
EMISSIONS: dict[str, Emission] = {
    "Identity": Emission(Op.NOP),
    "Cutout": Emission(Op.NOP, emitter=emit_cutout, num_slots=1),
    "GaussianBlur": Emission(Op.NOP, emitter=emit_blur),
    **{cls.__name__: Emission(cls._op, cls.constants()) for cls in _SINGLE_INSTRUCTION},
    **{SPECS[op].name: Emission(op) for op in (Op.HFLIP, Op.VFLIP)},
}
# Names of magnitude spaces alone.
_WITHIN_SPACES = {"GaussianBlurRand": Emission(Op.NOP, emitter=_random_blur, num_slots=1)}


def _emit_at(transform: Any, image: DrawContext, value: Number, slot: int, fill: RgbColor) -> None:
    image.run_at(transform, value, slot)


def _apply(transform: Transform, image: DrawContext, value: Number, slot: int, fill: RgbColor) -> None:
    image.run(transform, slot)


def emission_of(op: str | Transform) -> Emission:
    """Emission of a name, or of a transform: at a magnitude if it takes one, else unchanged."""
    if isinstance(op, str):
        return EMISSIONS[op] if op in EMISSIONS else _WITHIN_SPACES[op]
    emit = _emit_at if takes_magnitude(op) else _apply
    return Emission(Op.NOP, emitter=partial(emit, op), num_slots=op.num_slots)


def takes_magnitude(op: object) -> bool:
    """True for a transform, or a class of them, that emits at a number which somebody else draws."""
    return hasattr(op, "emit_at") or hasattr(op, "emit_magnitude")


Index = IndexArray


@dataclass(frozen=True)
class Entry:
    """An operation of a policy; ``rule.argument`` maps levels to arguments (a Rule's, or an Augmentation's)."""

    name: str
    emission: Emission
    rule: Any


class OperationTable:
    """M operations. ``num_slots`` counts the operations' own draws, such as positions of cutouts, besides the
    policy's."""

    def __init__(self, entries: Sequence[Entry], interpolation: str, fill: RgbColor) -> None:
        emissions = [entry.emission for entry in entries]
        self.entries = tuple(entries)
        self.fill = fill
        self.num_slots = max(emission.num_slots for emission in emissions)
        self._opcode = np.array([int(emission.opcode) for emission in emissions], np.int16)
        self._tails = [np.array(tail) for tail in zip_longest(*(e.tail for e in emissions), fillvalue=0.0)]
        self._geometric = np.array([KIND_OF[emission.opcode] == Kind.GEOMETRY for emission in emissions])
        # Where all rows would get the same zeros, the scalar saves a lookup per step.
        flag = int(Interpolation[interpolation.upper()])
        self._flag = np.where(self._geometric, flag, 0).astype(np.int16) if flag else None
        self._fill = np.where(self._geometric[:, None], fill, 0).astype(np.uint8) if any(fill) else None
        self._emitters = [(i, e.emitter) for i, e in enumerate(emissions) if e.emitter is not None]
        self._declared = [(i, entry.rule) for i, entry in enumerate(entries) if not isinstance(entry.rule, Rule)]
        self._rules = Rule.stack([entry.rule if isinstance(entry.rule, Rule) else Rule() for entry in entries])
        self._is_sized = np.array([getattr(entry.rule, "size", -1) >= 0 for entry in entries])

    def grid(self, levels: Sequence[int]) -> Floats:
        """float64[2M, levels]: the arguments of the operations at ``levels``; odd rows hold the negative sign."""
        rules = [(entry.rule, negative) for entry in self.entries for negative in (False, True)]
        return np.array([[rule.argument(float(level), negative) for level in levels] for rule, negative in rules])

    def argument(self, image: DrawContext, index: Number, level: Number, negative: Number) -> Number:
        """The argument of operation ``index`` at ``level``, which are drawn."""
        argument = self._rule(image, index).argument(level, negative)
        for i, rule in self._declared:
            argument = select(index == i, rule.argument(level, negative), argument)
        return argument

    def _rule(self, image: DrawContext, index: Number) -> Rule:
        columns = vars(self._rules).items()
        return Rule(**{name: False if column is False else image.lookup(column, index) for name, column in columns})

    def draw(self, image: DrawContext, grid: Floats, variant: Number, column: Number | None, slot: int) -> None:
        """Append operation ``variant`` // 2 with the argument ``grid[variant, column]``, see ``grid``."""
        place = variant if column is None else variant * grid.shape[1] + column
        self.add(image, variant // 2, image.lookup(grid, place), slot)

    def add(
        self, image: DrawContext, index: Number, parameter: Number, slot: int, interpolation: Number | None = None
    ) -> None:
        """Append operation ``index`` with the argument ``parameter``; its own chances come from ``slot`` on."""
        if self._is_sized.any():
            parameter = select(image.lookup(self._is_sized, index), self._pixels(image, index, parameter), parameter)
        with image.alternatives() as alternative:
            for i, emitter in self._emitters:
                if chosen := image.where(index == i):
                    with alternative():
                        emitter(chosen, parameter, slot, self.fill)
            if not self._opcode.any():
                return
            flags: Number = 0 if self._flag is None else image.lookup(self._flag, index)
            if interpolation is not None:
                flags = select(image.lookup(self._geometric, index), interpolation, 0)
            fill = None if self._fill is None else [image.lookup(channel, index) for channel in self._fill.T]
            with alternative():
                image.add(
                    image.lookup(self._opcode, index),
                    parameter,
                    *(image.lookup(tail, index) for tail in self._tails),
                    flags=flags,
                    fill=fill,
                    title=CHOICE,
                    among=self._opcode[self._opcode > 0].tolist(),
                )

    def _pixels(self, image: DrawContext, index: Number, fraction: Number) -> Number:
        """A fraction of the image's size as pixels, for operation ``index``."""
        rule = self._rules
        height, width = image.height, image.width
        side = image.choose(image.lookup(rule.size, index), (height, width, minimum(height, width)))
        pixels = fraction * side
        if rule.are_pixels_linspace is not False:
            end, full = image.lookup(rule.high, index), image.lookup(rule.full, index)
            is_linspace = image.lookup(rule.are_pixels_linspace, index)
            pixels = select(is_linspace, element(end, full, fraction, side), pixels)
        if rule.are_pixels_truncated is not False:
            pixels = select(image.lookup(rule.are_pixels_truncated, index), trunc(pixels), pixels)
        return pixels


# "random": bilinear or bicubic, drawn for every operation.
AnyInterpolation = Annotated[
    InterpolationName | Literal["random"], arguments.interpolations("random", *arguments.INTERPOLATIONS)
]


class Policy(Transform, abstract=True):
    """Draws operations of a table. ``fill`` None is the magnitude space's own."""

    interpolation: AnyInterpolation
    fill: Fill | None

    def _table_of(self, entries: Sequence[Entry], fill: RgbColor) -> OperationTable:
        fixed = "bilinear" if self.interpolation == "random" else self.interpolation
        return OperationTable(entries, fixed, fill if self.fill is None else self.fill)  # type: ignore[arg-type]

    def _drawn(self, unit: Number) -> Number | None:
        """An interpolation by ``unit``, bicubic below a half and else bilinear, where it is "random"."""
        if self.interpolation != "random":
            return None
        return select(unit < 0.5, int(Interpolation.BICUBIC), int(Interpolation.BILINEAR))

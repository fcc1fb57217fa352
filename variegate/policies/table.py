"""Tables of the operations that policies draw: a step is emitted for a whole batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, one_of, refused
from variegate.ops import arguments, colour, filters, geometry, output, tone
from variegate.ops.arguments import BLACK, Colour, Fill, InterpolationName
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, PlainOp
from variegate.policies.spaces import Rule, elements, one_element
from variegate.program.one_image import ROW, Images, Selection
from variegate.program.ops import KIND_OF, SPECS, Interpolation, Kind, Op
from variegate.program.sampling import CHOICE, Floats, Rows, Sampling
from variegate.threads import computed_once

Emitter = Callable[[Sampling, Rows, Floats, int, Colour], None]


@dataclass(frozen=True)
class Emission:
    """Instruction ``opcode`` with the parameter and then ``tail`` as arguments; or ``emitter``, with ``num_slots``."""

    opcode: Op
    tail: tuple[float, ...] = ()
    emitter: Emitter | None = None
    num_slots: int = 0


def emit_cutout(sampling: Sampling, rows: Rows, sides: Floats, slot: int, fill: Colour) -> None:
    """A square about a uniform centre, clipped at the borders; PBA and TF round its side down to an even number."""
    half = sides.astype(np.int32) // 2
    rows, half = rows[half > 0], half[half > 0]
    if len(rows) == 0:
        return
    size = sampling.size[rows]
    centre = (sampling.uniform(rows, slot)[:, :2] * size).astype(np.int32)
    start = np.maximum(centre - half[:, None], 0)
    end = np.minimum(centre + half[:, None], size)
    first = sampling.add_rectangles(np.concatenate([start, end - start], axis=1))
    sampling.emit(rows, Op.ERASE, first + np.arange(len(rows)), 1, fill=fill, name="Cutout")


def emit_blur(sampling: Sampling, rows: Rows, sigmas: npt.ArrayLike, slot: int = 0, fill: Colour = BLACK) -> None:
    """A Gaussian blur of ``sigmas`` pixels with a kernel that reaches three of them to each side."""
    sigma = np.asarray(sigmas, dtype=np.float64)
    kernel = kernel_for(sigma)
    sampling.emit(rows, Op.GAUSSIAN_BLUR, kernel, kernel, sigma, sigma)


def kernel_for(sigma: Any) -> Any:
    """Pixels of a kernel that reaches three deviations to each side."""
    kernel = 2 * np.ceil(3 * sigma) + 1
    return kernel if np.ndim(kernel) else int(kernel)


def _random_blur(sampling: Sampling, rows: Rows, widest: Floats, slot: int, fill: Colour) -> None:
    """A Gaussian blur of 0.1 to ``widest`` pixels, uniform."""
    emit_blur(sampling, rows, 0.1 + (widest - 0.1) * sampling.uniform(rows, slot)[:, 0])


# Policies mean what the classes declare: SolarizeAdd's threshold is 128 and Gamma's gain 1 wherever they are published,
# and T.Rotate turns about the image's centre.
_FAMILIES = {family.__name__ for family in (colour, filters, geometry, output, tone)}
_PLAIN: list[Any] = [
    cls
    for cls in Transform.registry.values()
    if cls.__module__ in _FAMILIES and issubclass(cls, MagnitudeOp | PlainOp) and hasattr(cls, "_op")
]
EMISSIONS: dict[str, Emission] = {
    "Identity": Emission(Op.NOP),
    "Cutout": Emission(Op.NOP, emitter=emit_cutout, num_slots=1),
    "GaussianBlur": Emission(Op.NOP, emitter=emit_blur),
    **{cls.__name__: Emission(cls._op, cls.constants()) for cls in _PLAIN},
    **{SPECS[op].name: Emission(op) for op in (Op.HFLIP, Op.VFLIP)},
}
# Names of magnitude spaces alone.
_WITHIN_SPACES = {"GaussianBlurRand": Emission(Op.NOP, emitter=_random_blur, num_slots=1)}


def _drive(transform: Any, sampling: Sampling, rows: Rows, values: Floats, slot: int, fill: Colour) -> None:
    transform.emit_magnitude(sampling, rows, values, slot)


def _apply(transform: Transform, sampling: Sampling, rows: Rows, values: Floats, slot: int, fill: Colour) -> None:
    transform.sample(sampling, rows, slot)


def emission_of(op: str | Transform) -> Emission:
    """Emission of a name, or of a transform: at a magnitude if it has ``emit_magnitude``, else as it is."""
    if isinstance(op, str):
        return EMISSIONS[op] if op in EMISSIONS else _WITHIN_SPACES[op]
    emit = _drive if hasattr(op, "emit_magnitude") else _apply
    return Emission(Op.NOP, emitter=partial(emit, op), num_slots=op.num_slots)


Index = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Entry:
    """One operation of a policy; ``rule.parameters`` makes arguments of levels (a Rule, or an Augmentation's)."""

    name: str
    emission: Emission
    rule: Any


class OperationTable:
    """M operations. ``num_slots`` is what their own chances need besides those of the policy (places of cutouts)."""

    def __init__(self, entries: Sequence[Entry], interpolation: str, fill: Colour) -> None:
        emissions = [entry.emission for entry in entries]
        self.entries = tuple(entries)
        self.fill = fill
        self.num_slots = max(emission.num_slots for emission in emissions)
        self._opcode = np.array([int(emission.opcode) for emission in emissions], np.int16)
        self._has_nop = bool((self._opcode == Op.NOP).any())
        self._tails = [np.array(tail) for tail in zip_longest(*(e.tail for e in emissions), fillvalue=0.0)]
        self._geometric = np.array([KIND_OF[emission.opcode] == Kind.GEOMETRY for emission in emissions])
        # Where all rows would get the same zeros, the scalar saves a lookup per step.
        flag = int(Interpolation[interpolation.upper()])
        self._flag = np.where(self._geometric, flag, 0).astype(np.int16) if flag else None
        self._fill = np.where(self._geometric[:, None], fill, 0).astype(np.uint8) if any(fill) else None
        self._emitters = [(i, e.emitter) for i, e in enumerate(emissions) if e.emitter is not None]
        self._declared = [(i, entry.rule) for i, entry in enumerate(entries) if not isinstance(entry.rule, Rule)]
        self._rules = Rule.stack([entry.rule if isinstance(entry.rule, Rule) else Rule() for entry in entries])
        self._is_sized = self._rules.size >= 0
        self._truncated = self._rules.rounding == 1
        # Of these, a fraction of the size only says which element of a linspace in pixels is meant.
        self._is_spaced = self._rules.linspace & self._is_sized

    def grid(self, levels: Sequence[int] | npt.NDArray[np.int64]) -> Floats:
        """float64[2M, levels]: the arguments of the operations at ``levels``; odd rows hold the negative sign."""
        rows = [entry.rule.parameters(levels, negative) for entry in self.entries for negative in (False, True)]
        return np.array([np.broadcast_to(row, len(levels)) for row in rows], np.float64)

    def arguments(self, index: Index, level: Floats, negative: npt.NDArray[Any]) -> Floats:
        """float64[R]: those of operations ``index[R]`` at ``level[R]``."""
        found = self._rules.take(index).parameters(level, negative)
        for i, rule in self._declared:
            own = index == i
            found[own] = rule.parameters(level[own], negative[own])
        return found

    def emit(
        self,
        sampling: Sampling,
        rows: Rows,
        index: Index,
        parameter: Floats,
        slot: int,
        interpolation: npt.NDArray[np.int16] | None = None,
    ) -> None:
        """Append operations ``index[R]`` with arguments ``parameter[R]``; their own chances come from ``slot`` on."""
        sized = np.flatnonzero(self._is_sized[index])
        if len(sized):
            parameter = parameter.copy()
            parameter[sized] = self._pixels(sampling.size[rows[sized]], index[sized], parameter[sized])
        for i, emitter in self._emitters:
            chosen = np.flatnonzero(index == i)
            if len(chosen):
                emitter(sampling, rows[chosen], parameter[chosen], slot, self.fill)
        if self._has_nop:
            kept = np.flatnonzero(self._opcode[index])
            rows, index, parameter = rows[kept], index[kept], parameter[kept]
            interpolation = None if interpolation is None else interpolation[kept]
        if interpolation is not None:
            flags: npt.ArrayLike = np.where(self._geometric[index], interpolation, 0)
        else:
            flags = 0 if self._flag is None else self._flag[index]
        sampling.emit(
            rows,
            self._opcode[index],
            parameter,
            *(tail[index] for tail in self._tails),
            flags=flags,
            fill=None if self._fill is None else self._fill[index],
        )

    def draw(self, images: Images, grid: Floats, variant: Any, column: Any, slot: int) -> None:
        """Append operations ``variant[R] // 2`` with the arguments ``grid[variant, column]``, see ``grid``."""
        place = variant if column is None else (variant, column)
        self.add(images, variant >> 1, grid[place], slot)

    def add(self, images: Images, index: Any, parameter: Any, slot: int) -> None:
        """``emit`` for one image or rows of a batch."""
        if isinstance(images, Selection):
            return self.emit(images.sampling, images.rows, index, parameter, slot)
        image, parameter = images, float(parameter)
        opcode, tail, flag, fill, emitter, size, is_truncated = self._plain[index]
        if size >= 0:
            side = (image.height, image.width, min(image.height, image.width))[size]
            if self._is_spaced[index]:
                parameter = one_element(self._rules.high.item(index), self._rules.full.item(index), parameter, side)
            else:
                parameter *= side
            if is_truncated:
                parameter = float(np.trunc(parameter))
        if emitter is not None:
            emitter(image, ROW, np.array([parameter], np.float64), slot, self.fill)
        if opcode:
            image.add(opcode, parameter, *tail, flags=flag, fill=fill, title=CHOICE)
        return None

    @computed_once
    def _plain(self) -> list[tuple[Any, ...]]:
        """Arrays of ``emit``, by operation."""
        count = len(self.entries)
        return list(
            zip(
                self._opcode.tolist(),
                zip(*(tail.tolist() for tail in self._tails), strict=True) if self._tails else [()] * count,
                [0] * count if self._flag is None else self._flag.tolist(),
                [None] * count if self._fill is None else map(tuple, self._fill.tolist()),
                (entry.emission.emitter for entry in self.entries),
                self._rules.size.tolist(),
                self._truncated.tolist(),
                strict=True,
            )
        )

    def _pixels(self, sizes: npt.NDArray[Any], index: Index, fraction: Floats) -> Floats:
        """Fractions of the ``sizes`` [R, 2] of images as pixels, for operations ``index[R]``."""
        height, width = sizes.T
        side = np.choose(self._rules.size[index], (height, width, np.minimum(height, width)))
        pixels = fraction * side
        if (spaced := self._is_spaced[index]).any():
            end, full = self._rules.high[index[spaced]], self._rules.full[index[spaced]]
            pixels[spaced] = elements(end, full, fraction[spaced], side[spaced])
        return np.asarray(np.where(self._truncated[index], np.trunc(pixels), pixels))


AnyInterpolation = InterpolationName | Literal["random"]


def check_any_interpolation(name: str, value: Any, *, error: Refusal = refused) -> str:
    """An interpolation's name, or "random": bilinear or bicubic, drawn for every operation."""
    return one_of(name, getattr(value, "value", value), ("random", *arguments.INTERPOLATIONS), error=error)


class Policy(Transform, abstract=True):
    """Draws operations of a table. ``fill`` None is the magnitude space's own."""

    interpolation: AnyInterpolation
    fill: Fill
    _checks = arguments.checks(
        interpolation=arguments.check_interpolation, fill=arguments.optional(arguments.check_colour)
    )

    def _table_of(self, entries: Sequence[Entry], fill: Colour) -> OperationTable:
        fixed = "bilinear" if self.interpolation == "random" else self.interpolation
        return OperationTable(entries, fixed, fill if self.fill is None else self.fill)  # type: ignore[arg-type]

    def _drawn(self, unit: Floats) -> npt.NDArray[np.int16] | None:
        """Interpolations by ``unit[R]``, bicubic below a half and else bilinear, where they are "random"."""
        if self.interpolation != "random":
            return None
        return np.where(unit < 0.5, Interpolation.BICUBIC, Interpolation.BILINEAR).astype(np.int16)

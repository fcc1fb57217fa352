"""Images of 2 or 4 to 32 channels, drawn and lowered as one program, and run as one program for each three channels.

Until it is split, such a program holds what differs between channels once. A color is the number of a row of
``tables.colors``, in three bytes, the lowest first; tables of levels have a line for each channel; means and deviations
are those of all channels. Instructions that need red, green and blue (``NEEDS_RGB``) are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.arrays import AnyArray, Int32Array
from variegate.errors import short_repr
from variegate.program.draws.values import NotRecordable, Number, Value
from variegate.program.ops import MAX_OPCODE, NEEDS_RGB, NOISE_ARG, SPECS, Op
from variegate.program.program import MAX_CHANNELS, Output, Program

# Noise is independent between channels: its slots lie this far apart, more than a program has. Salt and pepper falls on
# all channels.
_SLOTS_OF_A_CHANNEL = 1 << 16
# Noise that is independent in each channel; the argument with its slot.
_NOISE_SLOT = {
    op: int(NOISE_ARG[op]) for op, spec in SPECS.items() if NOISE_ARG[op] >= 0 and (spec.colors_gray or op is Op.ERASE)
}
_HAS_NOISE_SLOT = np.isin(np.arange(MAX_OPCODE), list(_NOISE_SLOT))
# Values of the three bytes that hold the number of a color; and the arguments of an ERASE that hold a color.
_BYTES = np.array([1, 1 << 8, 1 << 16])
_ERASED_WITH = slice(SPECS[Op.ERASE].args.index("v0"), SPECS[Op.ERASE].args.index("v2") + 1)


class ChannelGroup(NamedTuple):
    """Three of an image's ``channels``, from ``first`` on; of two channels the second is read twice.

    Results ``begin`` to ``end`` of the three are kept; another group makes the others.
    """

    first: int
    begin: int
    end: int
    channels: int

    @property
    def read(self) -> list[int]:
        return [min(self.first + i, self.channels - 1) for i in range(3)]


def split_channels(channels: int) -> list[ChannelGroup]:
    """Groups of an image's channels, in order of their results."""
    if channels <= 3:
        return [ChannelGroup(0, 0, channels, channels)]
    groups = [ChannelGroup(first, 0, 3, channels) for first in range(0, channels - 2, 3)]
    rest = channels % 3
    return [*groups, ChannelGroup(channels - 3, 3 - rest, 3, channels)] if rest else groups


def count_channels(shapes: Int32Array) -> int:
    """Values of a color of images of these shapes [N, 3]: 3 for gray and color images, else the number of channels.

    Raises ValueError for a batch of several numbers of channels.
    """
    channels = shapes[:, 2]
    most = int(channels.max(initial=1))
    if most in (1, 3) and (channels % 2 == 1).all():
        return 3
    if most > MAX_CHANNELS or (channels != most).any():
        got = ", ".join(map(str, np.unique(channels)))
        accepted = f"1 and 3 together, or one other number up to {MAX_CHANNELS}"
        raise ValueError(f"images: got images of {got} channels; accepted in one batch: {accepted}")
    return most


# -- what differs between channels -----------------------------------------------------------------------------------


def per_channel(name: str, values: Any, channels: int) -> AnyArray:
    """[..., channels] of one value per channel, or of equal values. Raises ValueError."""
    array = np.asarray(values)
    if array.shape[-1] == channels:
        return array
    if array.size and (array == array[..., :1]).all():
        return np.repeat(array[..., :1], channels, axis=-1)
    number = "one number or three" if channels in (1, 3) else f"one number, or {channels}"
    raise ValueError(f"{name}={short_repr(values)}; accepted: {number}, for an image of {channels} channels")


def color_of(
    name: str, values: Sequence[Number], channels: int, add_to_table: Callable[[str, AnyArray], Number]
) -> Sequence[Number]:
    """The three numbers by which an instruction holds a color, whose ``values`` are one per channel or equal."""
    if channels == 3 and len(values) in (1, 3):
        return values if len(values) == 3 else [*values] * 3
    if any(isinstance(value, Value) for value in values):
        raise NotRecordable("a drawn color of many channels")
    color = per_channel(name, values, channels)
    if channels == 3:
        return color.tolist()
    number = add_to_table("colors", color[None])
    return number % 256, number // 256 % 256, number // 65536


def refuse_color(opcodes: npt.ArrayLike, name: str | None, channels: int) -> None:
    """Raise ValueError if images of many channels get an instruction that needs red, green and blue.

    ``name``: what errors call it, if it has another name than the instruction.
    """
    if channels == 3:
        return
    for opcode in np.unique(opcodes).tolist():
        if NEEDS_RGB[opcode]:
            raise needs_color(name or SPECS[Op(opcode)].name, channels)


def needs_color(name: str, channels: int) -> ValueError:
    got = f"an image of {channels} channels"
    return ValueError(f"{name}: got {got}; accepted: images of one channel, or of red, green and blue")


# -- programs of groups ----------------------------------------------------------------------------------------------


def channel_programs(program: Program) -> list[tuple[ChannelGroup, Program]]:
    """The groups of a program's images, and their programs, sampled or fused as ``program`` is."""
    return [(group, channel_program(program, group)) for group in split_channels(program.channels)]


def channel_program(program: Program, group: ChannelGroup) -> Program:
    """The program of a group: of many channels with copies of ``args`` and ``in_shape``, else ``program``."""
    if not program.has_many_channels:
        return program
    opcode, tables = program.opcode, program.tables
    colors = tables.colors.take(group.read, axis=1)
    args = program.args.copy()
    if _HAS_NOISE_SLOT[opcode].any():
        is_erased = opcode == Op.ERASE
        args[is_erased, _ERASED_WITH] = colors[(args[is_erased, _ERASED_WITH] @ _BYTES).astype(np.intp)]
        for op, position in _NOISE_SLOT.items():
            args[opcode == op, position] += _SLOTS_OF_A_CHANNEL * group.first
    in_shape = program.in_shape.copy()
    in_shape[:, 2] = 3
    return program.replace(
        args=args,
        fill=colors[program.fill @ _BYTES].astype(np.uint8),
        in_shape=in_shape,
        tables=replace(tables, luts=tables.luts.take(group.read, axis=1), colors=colors[:0]),
        output=_output_of(program.output, group),
    )


def fill_of(program: Program, row: int, slot: int) -> list[int]:
    """The fill color of an instruction, a level for each channel."""
    fill = program.fill[row, slot]
    return (fill if program.channels in (1, 3) else program.tables.colors[fill @ _BYTES].astype(np.uint8)).tolist()


def _output_of(output: Output, group: ChannelGroup) -> Output:
    if output.mean is None or output.std is None:
        return output
    mean = per_channel("Normalize: mean", output.mean, group.channels)[group.read]
    std = per_channel("Normalize: std", output.std, group.channels)[group.read]
    return replace(output, mean=tuple(mean.tolist()), std=tuple(std.tolist()))

"""Images of 2 or 4 to 32 channels: drawn and lowered as one program, run as one program per group of three channels.

Before the split, a program stores per-channel data once. A fill color is an index into ``tables.colors``, stored in the
three bytes of the RGB color, lowest byte first. Lookup tables, means and deviations have an entry per channel.
Instructions that need red, green and blue (``NEEDS_RGB``) are refused.
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

# Offset between the random slots of two channels, larger than the number of slots of a program, so that their noise is
# independent. Salt and pepper noise is not: it sets all channels of a pixel.
_SLOTS_OF_A_CHANNEL = 1 << 16
# {operation whose noise is independent per channel: position of its "_slot" argument}
_NOISE_SLOT = {
    op: int(NOISE_ARG[op]) for op, spec in SPECS.items() if NOISE_ARG[op] >= 0 and (spec.colors_gray or op is Op.ERASE)
}
_HAS_NOISE_SLOT = np.isin(np.arange(MAX_OPCODE), list(_NOISE_SLOT))
# Place values of the three bytes of a color index, and the arguments of ERASE that hold its color.
_BYTES = np.array([1, 1 << 8, 1 << 16])
_ERASED_WITH = slice(SPECS[Op.ERASE].args.index("v0"), SPECS[Op.ERASE].args.index("v2") + 1)


class ChannelGroup(NamedTuple):
    """Three channels of an image of ``channels`` channels, starting at ``first``. With two, the second is read twice.

    Channels ``begin`` to ``end`` of the group's result are kept. Groups may overlap, so that each has three channels.
    """

    first: int
    begin: int
    end: int
    channels: int

    @property
    def read(self) -> list[int]:
        return [min(self.first + i, self.channels - 1) for i in range(3)]


def split_channels(channels: int) -> list[ChannelGroup]:
    """Split an image's channels into groups, in order of their results."""
    if channels <= 3:
        return [ChannelGroup(0, 0, channels, channels)]
    groups = [ChannelGroup(first, 0, 3, channels) for first in range(0, channels - 2, 3)]
    rest = channels % 3
    return [*groups, ChannelGroup(channels - 3, 3 - rest, 3, channels)] if rest else groups


def count_channels(shapes: Int32Array) -> int:
    """Return the length of a color for images of ``shapes`` [N, 3]: 3 for 1 or 3 channels, else the channel count.

    Raises ValueError for more than ``MAX_CHANNELS``, or if images differ in channels other than 1 and 3.
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


# -- per-channel values ----------------------------------------------------------------------------------------------


def per_channel(name: str, values: Any, channels: int) -> AnyArray:
    """Broadcast ``values`` to [..., channels]: one value per channel, or equal values. Raises ValueError otherwise."""
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
    """Return the three numbers that represent a color in an instruction: RGB, or a color index in bytes.

    ``values``: one per channel, or equal. Raises ValueError for another number of values.
    """
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

    ``name``: the operation's name in errors, if it differs from the instruction's.
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
    """Split a program, sampled or fused, into its channel groups and their programs."""
    return [(group, channel_program(program, group)) for group in split_channels(program.channels)]


def channel_program(program: Program, group: ChannelGroup) -> Program:
    """Return the program of a group; ``program`` itself for images of 1 or 3 channels."""
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
    curves = tables.curves.take(group.read, axis=1)
    luts = tables.luts.take(group.read, axis=1) if len(tables.luts) else tables.luts
    return program.replace(
        args=args,
        fill=colors[program.fill @ _BYTES].astype(np.uint8),
        in_shape=in_shape,
        tables=replace(tables, curves=curves, luts=luts, colors=colors[:0]),
        output=_output_of(program.output, group),
    )


def fill_of(program: Program, row: int, slot: int) -> list[int]:
    """Return the fill color of an instruction, one value from 0 to 255 per channel."""
    fill = program.fill[row, slot]
    return (fill if program.channels in (1, 3) else program.tables.colors[fill @ _BYTES].astype(np.uint8)).tolist()


def _output_of(output: Output, group: ChannelGroup) -> Output:
    if output.mean is None or output.std is None:
        return output
    mean = per_channel("Normalize: mean", output.mean, group.channels)[group.read]
    std = per_channel("Normalize: std", output.std, group.channels)[group.read]
    return replace(output, mean=tuple(mean.tolist()), std=tuple(std.tolist()))

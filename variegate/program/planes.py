"""Images of other than one or three channels: each program has rows over three of their channels.

What needs red, green and blue (``OpSpec.needs_colour``) is refused. Programs of one image draw the same numbers; only
noise has a slot of its own for each, so that it differs between all channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import AnyArray, Int16Array, Int32Array
from variegate.errors import shown
from variegate.program.ops import SPECS, Op
from variegate.program.program import MAX_CHANNELS, Output, Program

# Noise of each channel; salt and pepper falls on all of them.
_NOISE = {op: SPECS[op].args.index("_slot") for op in (Op.GAUSSIAN_NOISE, Op.SHOT_NOISE, Op.ERASE)}
# Slots of one program are fewer.
_SLOTS = 1 << 16


class Planes(NamedTuple):
    """Three of an image's ``channels``, from ``first`` on; of two the second is read twice. Of what becomes of them,
    the planes from ``begin`` to ``end`` belong to the result: others are those of another program."""

    first: int
    begin: int
    end: int
    channels: int

    @property
    def read(self) -> list[int]:
        return [min(self.first + i, self.channels - 1) for i in range(3)]

    def of(self, name: str, values: Any) -> AnyArray:
        """[..., 3] of [..., C], one value per channel; of equal values of another number, three. Raises ValueError."""
        array = np.asarray(values)
        if array.shape[-1] == self.channels:
            return np.asarray(array[..., self.read])
        if array.size and (array == array[..., :1]).all():
            return np.repeat(array[..., :1], 3, axis=-1)
        raise wrong_number(name, values, self.channels)


def wrong_number(name: str, values: Any, channels: int) -> ValueError:
    number = "one number or three" if channels in (1, 3) else f"one number, or {channels}"
    return ValueError(f"{name}={shown(values)}; accepted: {number}, for an image of {channels} channels")


def planes_of(shapes: Int32Array) -> list[Planes]:
    """Of shapes [N, 3]; none where each has one or three channels. Raises ValueError for several numbers of them."""
    channels = shapes[:, 2]
    if ((channels == 1) | (channels == 3)).all():
        return []
    most = int(channels.max())
    if most > MAX_CHANNELS or (channels != most).any():
        got = ", ".join(map(str, np.unique(channels)))
        accepted = f"1 and 3 together, or one other number up to {MAX_CHANNELS}"
        raise ValueError(f"images: got images of {got} channels; accepted in one batch: {accepted}")
    if most == 2:
        return [Planes(0, 0, 2, 2)]
    whole = [Planes(first, 0, 3, most) for first in range(0, most - 2, 3)]
    rest = most % 3
    return [*whole, Planes(most - 3, 3 - rest, 3, most)] if rest else whole


def output_of(output: Output, planes: Planes) -> Output:
    """With the means and deviations of these channels."""
    if output.mean is None or output.std is None:
        return output
    mean, std = (planes.of(f"Normalize: {name}", getattr(output, name)) for name in ("mean", "std"))
    return replace(output, mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def for_planes(program: Program, planes: Planes, output: Output) -> Program:
    """A program that was sampled for the first channels, or for all of them alike, with the mean and deviation and with
    the noise of these. ``output``: that of all channels."""
    args = program.args
    for op, place in _NOISE.items():
        if planes.first and (is_noise := program.opcode == op).any():
            args = args.copy() if args is program.args else args
            args[is_noise, place] += _SLOTS * planes.first
    return program.replace(args=args, planes=planes, output=output_of(output, planes))


def refuse_colour(op: Op | Int16Array, title: str | None, planes: Planes) -> None:
    """Raise ValueError if one of the instructions needs red, green and blue."""
    for code in np.unique(op).tolist():
        spec = SPECS.get(Op(code))
        if spec is not None and (spec.needs_colour or spec.colour_only or spec.per_channel):
            raise needs_colour(title or spec.name, planes)


def needs_colour(title: str, planes: Planes) -> ValueError:
    got = f"an image of {planes.channels} channels"
    return ValueError(f"{title}: got {got}; accepted: images of one channel, or of red, green and blue")


def parts_of(program: Program) -> Sequence[Program]:
    """The program and those of the other channels of its images."""
    return (program, *program.further)

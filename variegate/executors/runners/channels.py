"""Images of other than one or three channels: programs over three of them each (``program/planes.py``), one after
another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.runners.decode_plan import buffer_for, crop_reach, crop_supports, shift_crop
from variegate.program.planes import parts_of
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]


def run_parts(program: Program, batch: Any, run: Callable[[Program, Any], Any]) -> Any:
    """What ``run`` makes of each part, given as by a runner, as one."""
    results = []
    axis = -3 if program.output.layout == "NCHW" else -1
    for part in parts_of(program):
        assert part.planes is not None
        results.append(_narrowed(run(part, batch.of_channels(part.planes.read)), part.planes[1:3], axis))
    return _joined(results, axis)


def _narrowed(result: Any, ends: tuple[int, int], axis: int) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(_narrowed(one, ends, axis) for one in result)
    return result.narrow(axis, ends[0], ends[1] - ends[0])


def _joined(results: Sequence[Any], axis: int) -> Any:
    if isinstance(results[0], (tuple, list)):
        return type(results[0])(_joined(parts, axis) for parts in zip(*results, strict=True))
    return torch.cat(list(results), axis)


def planar(program: Program) -> tuple[Program, list[Program]]:
    """-> (a program whose results have all channels, one plane after another; the parts, each for three planes)."""
    parts = [part.replace(output=replace(part.output, layout="NCHW")) for part in parts_of(program)]
    assert program.planes is not None
    in_shape = program.in_shape.copy()
    in_shape[:, 2] = max(program.planes.channels, 3)
    return parts[0].replace(in_shape=in_shape), parts


def as_laid_out(room: Any, program: Program) -> Any:
    """Results of planes as they are wanted."""
    if isinstance(room, (tuple, list)):
        return type(room)(as_laid_out(part, program) for part in room)
    assert program.planes is not None
    kept = room.narrow(-3, 0, program.planes.channels)
    return (kept if program.output.layout == "NCHW" else kept.movedim(-3, -1)).contiguous()


def plane_loader(images: Sequence[Image] | Image, fused: Program) -> Callable[[int, int], Image]:
    """(row, place) -> three channels of its image, until the thread's next load there; no more than a resized crop that
    the row begins with reads, which is moved there."""
    # Imported on demand: Numba takes a while.
    from variegate.executors.cpu.memory import place_of
    from variegate.executors.cpu.planes import pick_planes

    assert fused.planes is not None
    read, channels = fused.planes.read, fused.planes.channels
    second, third = read[1] - read[0], read[2] - read[0]
    supports = crop_supports(fused).tolist()

    def load(row: int, place: int) -> Image:
        image = images[fused.source[row]]
        height, width = image.shape[:2]
        box = top, left, bottom, right = 0, 0, height, width
        if not math.isnan(supports[row]):
            box = top, left, bottom, right = crop_reach(fused.args[row, 0], supports[row], height, width)
        shape = bottom - top, right - left, 3
        room = buffer_for(place, math.prod(shape))
        planes = np.empty(math.prod(shape), np.uint8) if room is None else room
        source = place_of(image) + (top * width + left) * channels + read[0]
        pick_planes(source, width * channels, channels, second, third, shape[0], shape[1], place_of(planes))
        if box != (0, 0, height, width):
            shift_crop(fused, row, top, left, shape[0], shape[1])
        return planes

    return load

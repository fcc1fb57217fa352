"""Images of other than one or three channels: programs over three of them each (``program/planes.py``), one after
another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_void_p
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from variegate.arrays import Int64Array, UInt8Array
from variegate.executors.runners.decode_plan import buffer_for, crop_boxes, crop_supports
from variegate.native.library import data_ptr, entry
from variegate.native.structs import PICK_CALL, pack_struct
from variegate.program.planes import for_planes, parts_of
from variegate.program.program import Output, Program

_pick_planes = entry("vg_pick_planes", c_void_p)

Image = UInt8Array


def run_parts(program: Program, batch: Any, run: Callable[[Program, Any], Any]) -> Any:
    """Run each part by ``run``, a runner's, and join results."""
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


def planar(program: Program, lower: Callable[[Program], Program]) -> tuple[Program, Program]:
    """-> (a program whose results are all channels, one plane after another; the lowered one that makes them)."""
    assert program.planes is not None
    parts: list[Program] = []
    for part in parts_of(program):
        assert part.planes is not None
        output = replace(part.output, layout="NCHW")
        if parts and part.opcode is program.opcode:  # sampled alike
            fused = for_planes(parts[0], part.planes, Output()).replace(output=output)
        else:
            fused = lower(part.replace(output=output, further=()))
        # Loading moves crops, in arrays that may be those of the program.
        parts.append(fused.replace(args=fused.args.copy(), in_shape=fused.in_shape.copy()))
    in_shape = program.in_shape.copy()
    in_shape[:, 2] = max(program.planes.channels, 3)
    return parts[0].replace(in_shape=in_shape), parts[0].replace(further=tuple(parts[1:]))


def as_laid_out(room: Any, program: Program) -> Any:
    """Results of planes as they are wanted."""
    if isinstance(room, (tuple, list)):
        return type(room)(as_laid_out(part, program) for part in room)
    assert program.planes is not None
    kept = room.narrow(-3, 0, program.planes.channels)
    return (kept if program.output.layout == "NCHW" else kept.movedim(-3, -1)).contiguous()


def plane_loader(images: Sequence[Image] | Image, fused: Program) -> Callable[[int, int, Int64Array], object]:
    """(begin, end, sources) -> three channels of the images of these rows, whose addresses it writes into ``sources``,
    until the thread's next call. Resized crops that rows begin with are moved to what is left of their images: no more
    than they read."""
    assert fused.planes is not None
    channels = fused.planes.channels
    sizes = fused.in_shape[:, :2].astype(np.int64)
    supports = crop_supports(fused)
    boxes = np.hstack([np.zeros_like(sizes), sizes])
    lines = channels * sizes[:, 1]
    cropped = np.flatnonzero(~np.isnan(supports))
    if len(cropped):
        boxes[cropped] = crop_boxes(fused.args[cropped, 0, :6], supports[cropped], *sizes[cropped].T)
        fused.args[cropped, 0, :2] -= boxes[cropped, :2]
        fused.in_shape[:, :2] = boxes[:, 2:] - boxes[:, :2]
    if isinstance(images, np.ndarray):
        begins = data_ptr(images) + images.strides[0] * fused.source.astype(np.int64)
    else:
        begins = np.array([data_ptr(image) for image in images], np.int64)[fused.source]
    begins += boxes[:, 0] * lines + boxes[:, 1] * channels + fused.planes.first
    known = np.ascontiguousarray(np.column_stack([begins, lines, fused.in_shape[:, :2]]), np.int64)

    def load(begin: int, end: int, sources: Int64Array) -> Image:
        size = int(3 * known[begin:end, 2:].prod(axis=1).sum())
        room = buffer_for(0, size)
        planes = np.empty(size, np.uint8) if room is None else room
        call = pack_struct(
            PICK_CALL,
            images=known,
            begin=begin,
            end=end,
            channels=channels,
            target=planes,
            sources=sources,
        )
        _pick_planes(data_ptr(call))
        return planes

    return load

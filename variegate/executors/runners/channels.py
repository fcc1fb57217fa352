"""Images of many channels: run the batch's program once per group of three channels, and join the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_void_p
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from variegate.arrays import ImageArray, Int64Array
from variegate.executors import cpu
from variegate.executors.runners.decode_plan import buffer_for, crop_boxes, crop_supports
from variegate.executors.runners.grouping import addresses_of, allocate_outputs
from variegate.native.library import data_ptr, entry
from variegate.native.structs import PICK_CALL, pack_struct
from variegate.program.channels import ChannelGroup, channel_programs
from variegate.program.program import Program

_pick_planes = entry("vg_pick_planes", c_void_p)

Image = ImageArray


def allocate_result(program: Program) -> tuple[Any, Int64Array]:
    """Allocate the user's result, and return it with the addresses of all outputs."""
    if program.grouping is None:
        results = cpu.allocate(program)
        return results, cpu.addresses(results)
    room, blocks = allocate_outputs(program, program.grouping, partial(cpu.take_results, program))
    return room, addresses_of(blocks, data_ptr)


def run_groups(program: Program, run: Callable[[ChannelGroup, Program], Any]) -> Any:
    """Call ``run`` for the program of each channel group, and concatenate the channels of its results.

    ``run`` returns a tensor, or nested lists and tuples of tensors.
    """
    axis = -3 if program.output.layout == "NCHW" else -1
    results = [_narrow(run(group, part), group, axis) for group, part in channel_programs(program)]
    return _join(results, axis)


def _narrow(result: Any, group: ChannelGroup, axis: int) -> Any:
    if isinstance(result, (tuple, list)):
        return type(result)(_narrow(each, group, axis) for each in result)
    return result.narrow(axis, group.begin, group.end - group.begin)


def _join(results: Sequence[Any], axis: int) -> Any:
    if isinstance(results[0], (tuple, list)):
        return type(results[0])(_join(parts, axis) for parts in zip(*results, strict=True))
    return torch.cat(list(results), axis)


def run_groups_of_rows(fused: Program, images: Sequence[Image] | Image, num_threads: int | None) -> Any:
    """Run all channel groups on the CPU, a few rows at a time, so that their images remain in caches.

    Returns arrays [..., C, H, W] of at least three channels: see ``to_layout``.
    """
    in_shape = fused.in_shape.copy()
    in_shape[:, 2] = max(fused.channels, 3)
    planar = fused.replace(in_shape=in_shape, output=replace(fused.output, layout="NCHW"))
    room, results = allocate_result(planar)
    item = planar.result_dtype.itemsize
    areas = planar.result_shapes()[:, 1:].prod(axis=1, dtype=np.int64)
    runs = []
    # Groups may overlap in the result. The last group runs first, so that each overlapped channel is finally written by
    # the group that defines it.
    for group, part in reversed(channel_programs(fused)):
        planar_part = part.replace(output=replace(part.output, layout="NCHW"))
        targets = results + group.first * item * areas
        load = channel_loader(images, planar_part, group)
        runs.append(cpu.prepare_run(planar_part, None, targets, load))
    cpu.run_together(runs, num_threads)
    return room


def to_layout(room: Any, fused: Program) -> Any:
    """Convert tensors [..., C, H, W] of at least three channels to the program's channels and layout."""
    if isinstance(room, (tuple, list)):
        return type(room)(to_layout(part, fused) for part in room)
    kept = room.narrow(-3, 0, fused.channels)
    return (kept if fused.output.layout == "NCHW" else kept.movedim(-3, -1)).contiguous()


def channel_loader(
    images: Sequence[Image] | Image, part: Program, group: ChannelGroup
) -> Callable[[int, int, Int64Array], object]:
    """Make a function that copies a group's channels of some rows, see ``cpu.executor.LoadRows``.

    If a row begins with a resized crop, only the pixels that the crop reads are copied, and the crop is shifted.
    """
    channels, item = group.channels, part.depth.dtype.itemsize
    sizes = part.in_shape[:, :2].astype(np.int64)
    supports = crop_supports(part)
    boxes = np.hstack([np.zeros_like(sizes), sizes])
    lines = item * channels * sizes[:, 1]
    cropped = np.flatnonzero(~np.isnan(supports))
    if len(cropped):
        boxes[cropped] = crop_boxes(part.args[cropped, 0, :6], supports[cropped], *sizes[cropped].T)
        part.args[cropped, 0, :2] -= boxes[cropped, :2]
        part.in_shape[:, :2] = boxes[:, 2:] - boxes[:, :2]
    if isinstance(images, np.ndarray):
        begins = data_ptr(images) + images.strides[0] * part.source.astype(np.int64)
    else:
        begins = np.array([data_ptr(image) for image in images], np.int64)[part.source]
    begins += boxes[:, 0] * lines + item * (boxes[:, 1] * channels + group.first)
    known = np.ascontiguousarray(np.column_stack([begins, lines, part.in_shape[:, :2]]), np.int64)

    def load(begin: int, end: int, sources: Int64Array) -> Image:
        size = int(3 * item * known[begin:end, 2:].prod(axis=1).sum())
        room = buffer_for(0, size)
        picked = np.empty(size, np.uint8) if room is None else room
        call = pack_struct(
            PICK_CALL,
            images=known,
            begin=begin,
            end=end,
            channels=channels,
            depth=int(part.depth),
            target=picked,
            sources=sources,
        )
        _pick_planes(data_ptr(call))
        return picked

    return load

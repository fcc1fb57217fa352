"""Split clips into frames, and allocate the outputs of views and clips."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import Int32Array, Int64Array, IntArray
from variegate.executors.runners.images import as_tensor, channels_last
from variegate.program.program import Blend, Grouping, Program

_ACCEPTED = (
    "clips: one array [N, T, H, W, C] or tensor (or [N, T, C, H, W]), or a list of clips, each [T, H, W, C] or a list "
    "of T images of one size"
)


def frames_of(clips: Any) -> tuple[Any, list[int]]:
    """Return all frames of all clips as a batch, without a copy, and the number of frames per clip.

    Raises TypeError or ValueError naming the clip.
    """
    if not isinstance(clips, (list, tuple)):
        whole = clips if isinstance(clips, np.ndarray) else as_tensor(clips)
        if whole is None:
            raise TypeError(f"images: got {type(clips).__name__}; accepted with consistent=True: {_ACCEPTED}")
        if whole.ndim != 5 or 0 in whole.shape[1:]:
            raise ValueError(f"images: got shape {tuple(whole.shape)}; accepted with consistent=True: {_ACCEPTED}")
        return whole.reshape(-1, *whole.shape[2:]), [int(whole.shape[1])] * len(whole)
    frames: list[Any] = []
    counts = []
    for i, clip in enumerate(clips):
        of_clip = _frames(clip, f"images[{i}]")
        frames += of_clip
        counts.append(len(of_clip))
    return frames, counts


def _frames(clip: Any, where: str) -> list[Any]:
    if isinstance(clip, (list, tuple)):
        if len(clip) == 0:
            raise ValueError(f"{where}: got no frame; accepted with consistent=True: {_ACCEPTED}")
        return list(clip)
    stack = clip if isinstance(clip, np.ndarray) else as_tensor(clip)
    if stack is None:
        raise TypeError(f"{where}: got {type(clip).__name__}; accepted with consistent=True: {_ACCEPTED}")
    if stack.ndim != 4 or len(stack) == 0:
        raise ValueError(f"{where}: got shape {tuple(stack.shape)}; accepted with consistent=True: {_ACCEPTED}")
    if isinstance(stack, torch.Tensor) and channels_last(*stack.shape[1::2]) is False:
        stack = stack.permute(0, 2, 3, 1)
    return list(stack)


def shapes_of_clips(shapes: Any, counts: list[int]) -> Any:
    """Reduce shapes of frames, int32[frames, 3], to shapes of clips, int32[clips, 3].

    Raises ValueError if the frames of a clip have different shapes.
    """
    first = np.cumsum([0, *counts])[:-1]
    of_clips = shapes[first] if len(counts) else shapes[:0]
    different = np.flatnonzero((shapes != np.repeat(of_clips, counts, axis=0)).any(axis=1))
    if len(different):
        clip = int(np.searchsorted(first, different[0], "right")) - 1
        frame = int(different[0] - first[clip])
        raise ValueError(
            f"images[{clip}][{frame}]: got shape {shapes[different[0]].tolist()} in a clip of "
            f"{of_clips[clip].tolist()}; accepted: frames of one size"
        )
    return of_clips


def over_frames(program: Program, frames: Sequence[int]) -> Program:
    """Repeat the rows of a program sampled for one image per clip for all frames, clip by clip.

    The frames of a clip share all random draws, noise included.
    """
    number = np.asarray(frames, np.int64)
    first = np.cumsum(number) - number
    of_row = number[program.source]
    again = np.repeat(np.arange(program.num_rows), of_row)
    frame = np.arange(len(again)) - np.repeat(np.cumsum(of_row) - of_row, of_row)
    names = ("opcode", "args", "flags", "fill", "out_size", "label", "length", "in_shape", "ids", "key")
    repeated = {name: getattr(program, name)[again] for name in names}
    if program.dropped_boxes is not None and program.min_box is not None:
        repeated |= {
            "dropped_boxes": program.dropped_boxes[again],
            "min_box": np.repeat(program.min_box, number, axis=0),
        }
    blend = program.blend
    if blend is not None:
        # Row n < num_outputs defines output n: its frames are the output's.
        of_output = of_row[: program.num_outputs]
        begins = np.cumsum(of_output) - of_output
        blend = Blend((begins[blend.target][again] + frame).astype(np.int32), blend.weight[again])
    grouping = program.grouping or Grouping(is_split=False)
    return program.replace(
        **repeated,
        source=(first[program.source][again] + frame).astype(np.int32),
        blend=blend,
        grouping=grouping._replace(frames=tuple(number.tolist())),
    )


Shape = tuple[int, ...]
# A shape -> memory for it, an array or a tensor.
New = Callable[[Shape], Any]


class Block(NamedTuple):
    """Contiguous memory, and the indices of the outputs in it, in order."""

    memory: Any
    outputs: IntArray


def addresses_of(blocks: Sequence[Block], address_of: Callable[[Any], int]) -> Int64Array:
    """Return the addresses of all outputs, int64[outputs]. ``address_of``: the address of a block's memory."""
    targets = np.zeros(sum(len(block.outputs) for block in blocks), np.int64)
    for memory, outputs in blocks:
        if len(outputs):
            targets[outputs] = address_of(memory) + np.arange(len(outputs)) * (memory.nbytes // len(outputs))
    return targets


def allocate_outputs(program: Program, grouping: Grouping, new: New) -> tuple[Any, list[Block]]:
    """Allocate all outputs -> (the user's result, the blocks of memory).

    The user's result is a tuple of groups, or a single group if the grouping is not split. A group is one array
    [N, views, frames, ...], without a views or frames axis if the program has no views or clips. If shapes differ
    between images, it is a list with one array per image; if they differ between an image's views, that entry is a
    list with one array per view.
    """
    shapes = program.result_shapes()
    places = _places(grouping, len(shapes))
    blocks: list[Block] = []
    ends = np.cumsum(grouping.counts).tolist()
    groups = []
    for begin, end in zip([0, *ends], ends, strict=False):
        of_group = places[:, begin:end] if isinstance(places, np.ndarray) else [place[begin:end] for place in places]
        groups.append(_fill(of_group, grouping, shapes, blocks, new))
    return tuple(groups) if grouping.is_split else groups[0], blocks


def _places(grouping: Grouping, outputs: int) -> Any:
    """Return the indices of each image's outputs, int[images, views, frames]; a list if clips differ in length."""
    views, frames = grouping.views, grouping.frames
    if frames is None or len(set(frames)) == 1:
        return np.arange(outputs).reshape(-1, views, frames[0] if frames else 1)
    begins = np.cumsum([0, *frames]) * views
    return [np.arange(a, b).reshape(views, -1) for a, b in itertools.pairwise(begins.tolist())]


def _fill(places: Any, grouping: Grouping, shapes: Int32Array, blocks: list[Block], new: New) -> Any:
    """Allocate one group, whose outputs have the indices ``places``; append to ``blocks``."""
    if isinstance(places, np.ndarray) and _are_alike(shapes, places):
        return _block(places, grouping, shapes, blocks, new, 1)
    images = []
    for place in places:
        if _are_alike(shapes, place):
            images.append(_block(place, grouping, shapes, blocks, new, 0))
        else:
            views = [_block(view[None], grouping, shapes, blocks, new, 0) for view in place]
            images.append([view[0] for view in views] if grouping.has_axis else views[0])
    return images


def _are_alike(shapes: Int32Array, outputs: IntArray) -> bool:
    of_outputs = shapes[outputs.reshape(-1)]
    return len(of_outputs) > 0 and bool((of_outputs == of_outputs[0]).all())


def _block(outputs: IntArray, grouping: Grouping, shapes: Int32Array, blocks: list[Block], new: New, lead: int) -> Any:
    """Allocate one array, with ``lead`` image axes, then views, then frames; append it to ``blocks``."""
    axes = outputs.shape
    shape = shapes[outputs.flat[0]].tolist()
    kept = axes[:lead] + (axes[lead : lead + 1] if grouping.has_axis else ())
    kept += axes[lead + 1 :] if grouping.frames is not None else ()
    memory = new((*kept, *shape))
    blocks.append(Block(memory, outputs.reshape(-1)))
    return memory

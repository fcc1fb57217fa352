"""Memory for the outputs of views and clips: one piece for each group, or several where sizes differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.program.program import Grouping, Program

Shape = tuple[int, ...]
# A shape -> memory for it, an array or a tensor.
New = Callable[[Shape], Any]


def result_shapes(program: Program) -> list[Shape]:
    """Of every output, in the layout in which it leaves."""
    number = program.num_outputs
    sizes, channels = program.final_sizes()[:number].tolist(), program.in_shape[:number, 2].tolist()
    planar = program.output.layout == "NCHW"
    return [(c, h, w) if planar else (h, w, c) for (h, w), c in zip(sizes, channels, strict=True)]


def make_room(program: Program, grouping: Grouping, new: New) -> tuple[Any, list[Any]]:
    """-> (what a user gets, each output's part of it).

    What a user gets is a tuple of groups, or the only one where they are not split: [N, views, frames, ...] as one
    piece of memory, without the axes that there are none of. Where shapes differ between images it is a list of them;
    where they differ between the views of an image, that has a list of those.
    """
    shapes = result_shapes(program)
    places = list(_places(grouping, len(shapes)))
    results: list[Any] = [None] * len(shapes)
    ends = np.cumsum(grouping.counts).tolist()
    groups = []
    for begin, end in zip([0, *ends], ends, strict=False):
        of_group = [place[begin:end] for place in places]
        groups.append(_fill(of_group, grouping, shapes, results, new))
    return tuple(groups) if grouping.is_split else groups[0], results


def _places(grouping: Grouping, outputs: int) -> Iterator[npt.NDArray[np.int64]]:
    """For each image its outputs by number, int64[views, frames]."""
    views = grouping.views
    frames = grouping.frames if grouping.frames is not None else (1,) * (outputs // views)
    begin = 0
    for number in frames:
        yield begin + np.arange(views * number, dtype=np.int64).reshape(views, number)
        begin += views * number


def _fill(
    places: Sequence[npt.NDArray[np.int64]], grouping: Grouping, shapes: list[Shape], results: list[Any], new: New
) -> Any:
    """Room for the outputs ``places`` of one group."""
    every = [place.reshape(-1).tolist() for place in places]
    kinds = {shapes[n] for numbers in every for n in numbers}
    if len(kinds) == 1 and len({place.shape for place in places}) == 1:
        numbers = [n for numbers in every for n in numbers]
        return _block((len(places), *places[0].shape), grouping, numbers, shapes, results, new, 1)
    images = []
    for place, numbers in zip(places, every, strict=True):
        if len({shapes[n] for n in numbers}) == 1:
            images.append(_block(place.shape, grouping, numbers, shapes, results, new, 0))
        else:
            views = [_block((1, len(view)), grouping, view, shapes, results, new, 0) for view in place.tolist()]
            images.append([view[0] for view in views] if grouping.has_axis else views[0])
    return images


def _block(
    axes: Shape, grouping: Grouping, numbers: list[int], shapes: list[Shape], results: list[Any], new: New, lead: int
) -> Any:
    """One piece of memory: ``lead`` axes, then views, then frames."""
    shape = shapes[numbers[0]]
    kept = axes[:lead] + (axes[lead : lead + 1] if grouping.has_axis else ())
    kept += axes[lead + 1 :] if grouping.frames is not None else ()
    whole = new((*kept, *shape))
    for n, result in zip(numbers, whole.reshape(len(numbers), *shape), strict=True):
        results[n] = result
    return whole

"""Parts of rows that outputs show, and their masks, read and pasted as images are, in the host's memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import AnyArray, IndexArray, Int64Array
from variegate.executors.cpu.memory import RESULTS
from variegate.native.library import data_ptr
from variegate.program.program import Program
from variegate.targets.masks import read_masks
from variegate.targets.samples import Mask, OfImage
from variegate.targets.stages import Stages


class Part(NamedTuple):
    """``boxes``: int64[Q, 4], left, top, right, bottom within the output, which do not overlap."""

    row: int
    source: int  # which image of the batch
    weight: float
    boxes: Int64Array
    is_whole: bool  # it is all of the output
    is_pasted: bool = False  # its objects alone are seen, on top of others


class Joined(NamedTuple):
    """Contribution of one part to an output."""

    part: Part
    of: OfImage
    kept: IndexArray  # which of its boxes
    boxes: AnyArray
    points: AnyArray | None

    @property
    def kept_instances(self) -> IndexArray:
        """Indices of the instance masks of a sample that has some."""
        assert self.of.instances is not None
        return self.kept if self.of.corners is not None else np.arange(len(self.of.instances))


def parts_of(program: Program) -> list[list[Part]]:
    """The parts of every output, those of its own image first."""
    sizes = program.final_sizes()
    if program.blend is None:
        whole = np.concatenate([np.zeros_like(sizes), sizes[:, ::-1]], axis=1).astype(np.int64)
        return [[Part(n, of, 1.0, whole[n : n + 1], True)] for n, of in enumerate(program.source.tolist())]
    entries = program.blend.entries()
    outputs = []
    masked: set[int] = set()
    if program.blend.feather is not None and program.blend.row is not None:
        masked = set(program.blend.row[program.blend.feather >= 0].tolist())
    for begin, end in zip(entries.begins[:-1].tolist(), entries.begins[1:].tolist(), strict=True):
        height, width = sizes[entries.row[begin]].tolist()
        best: dict[tuple[int, ...], int] = {}
        for e in range(begin, end):
            top, left, bottom, right = entries.box[e].tolist()
            box = (left, top, min(right, width), min(bottom, height))
            place: tuple[int, ...] = (int(program.source[entries.row[e]]), *box)
            if entries.weight[e] > 0.0 and (place not in best or entries.weight[e] > entries.weight[best[place]]):
                best[place] = e
        rows: dict[int, list[tuple[int, ...]]] = {}
        weights: dict[int, float] = {}
        for place, e in best.items():
            row = int(entries.row[e])
            rows.setdefault(row, []).append(place[1:])
            weights[row] = max(weights.get(row, 0.0), float(entries.weight[e]))
        outputs.append(
            [
                Part(row, int(program.source[row]), weights[row], np.array(boxes), is_whole, row in masked)
                for row, boxes in rows.items()
                for is_whole in (boxes == [(0, 0, width, height)] and row not in masked,)
            ]
        )
    return outputs


# Bytes from which on memory is asked for page by page.
_LARGE = 1 << 16


class OutputMasks(NamedTuple):
    """Of one output: masks [h, w] by name, and those of its boxes [M, h, w], None where it has none."""

    named: dict[str, torch.Tensor]
    instances: torch.Tensor | None


def masks_on_host(
    stages: Stages,
    sizes: Int64Array,
    outputs: Sequence[Sequence[Joined]],
    mask_fill: int,
    num_threads: int | None,
) -> list[OutputMasks]:
    """Masks of outputs. ``sizes``: int[R, 2, 2] of rows' images and results. ``outputs``: parts, own image first."""
    work = _Work(mask_fill)
    sides = sizes.tolist()
    made = []
    for joined in outputs:
        size = tuple(sides[joined[0].part.row][1])
        own = joined[0].of
        order, is_covered = _seen(joined)
        layers: list[list[_Layer]] = [[] for _ in joined]
        named = {}
        for name in own.masks:
            masks = [on_host(each.of.masks[name]) for each in joined]
            named[name] = work.named(masks, size, order, is_covered, layers)
        instances = None if own.instances is None else work.instances(joined, size, layers)
        for n in order if len(order) == len(joined) else [*(n for n in range(len(joined)) if n not in order), *order]:
            work.add(joined[n].part, sides[joined[n].part.row][0][1], layers[n])
        work.end_result()
        made.append(OutputMasks(named, instances))
    work.run(stages, num_threads)
    return made


_Layer = tuple[int, int, int, int, int]


class _Work:
    """Masks to read for a batch, as the arrays of ``read_masks``."""

    def __init__(self, mask_fill: int) -> None:
        self._fill = mask_fill
        self._begin = [0]
        self._regions = list[tuple[int, ...]]()
        self._layers = list[_Layer]()
        self._alive: list[AnyArray] = []

    def named(
        self,
        masks: Sequence[AnyArray],
        size: tuple[int, ...],
        order: Sequence[int],
        is_covered: bool,
        layers: list[list[_Layer]],
    ) -> torch.Tensor:
        """One mask of a result, and a layer of it for each of ``order``."""
        dtype = masks[0].dtype if len(masks) == 1 else np.result_type(*masks)
        out = _empty(size, dtype)
        fill = checked_fill(self._fill, dtype)
        if not is_covered:
            out[:] = fill
        for n in order:
            mask = masks[n]
            own_fill = fill
            if mask.dtype != dtype:
                mask, own_fill = mask.astype(dtype), checked_fill(self._fill, mask.dtype)
            layers[n].append(self._layer(mask, data_ptr(out), size[1], own_fill))
        return torch.from_numpy(out)

    def instances(self, joined: Sequence[Joined], size: tuple[int, ...], layers: list[list[_Layer]]) -> torch.Tensor:
        """Those of all boxes of a result, and a layer for each."""
        every = [on_host(each.of.instances) for each in joined if each.of.instances is not None]
        dtype = np.result_type(*every)
        kept = [each.kept_instances.tolist() for each in joined]
        out = _empty((sum(map(len, kept)), *size), dtype)
        at = data_ptr(out)
        step = size[0] * size[1] * dtype.itemsize
        begin = 0
        for n, (each, masks) in enumerate(zip(joined, every, strict=True)):
            fill = checked_fill(self._fill, masks.dtype)
            if not each.part.is_whole:
                out[begin : begin + len(kept[n])] = fill
            masks = masks.astype(dtype, copy=False)
            for mask in kept[n]:
                layers[n].append(self._layer(masks[mask], at, size[1], fill))
                at += step
            begin += len(kept[n])
        return torch.from_numpy(out)

    def _layer(self, mask: AnyArray, out: int, width: int, fill: int) -> _Layer:
        mask = np.ascontiguousarray(mask)
        self._alive.append(mask)
        return data_ptr(mask), out, width, mask.itemsize.bit_length() - 1, fill

    def add(self, part: Part, image_width: int, layers: Sequence[_Layer]) -> None:
        """``layers`` in all that a part shows of its row."""
        if not layers:
            return
        first = len(self._layers)
        self._layers += layers
        for box in part.boxes.tolist():
            self._regions.append((part.row, *box, image_width, first, len(self._layers)))

    def end_result(self) -> None:
        self._begin.append(len(self._regions))

    def run(self, stages: Stages, num_threads: int | None) -> None:
        if self._regions:
            begin, regions, layers = (np.array(each, np.int64) for each in (self._begin, self._regions, self._layers))
            read_masks(stages, begin, regions, layers, num_threads)


def _empty(size: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
    """Of memory that is used again, where that costs less than fresh memory."""
    num_bytes = math.prod(size) * dtype.itemsize
    if num_bytes < _LARGE:
        return np.empty(size, dtype)
    return RESULTS.take(num_bytes).view(dtype).reshape(size)


def _seen(joined: Sequence[Joined]) -> tuple[list[int], bool]:
    """Samples whose masks are pasted, in order, less what a whole image lies on top of; whether one does."""
    if len(joined) == 1:
        return [0], joined[0].part.is_whole
    order = order_of(joined)
    whole = [at for at, n in enumerate(order) if joined[n].part.is_whole]
    return (order[whole[-1] :], True) if whole else (order, False)


@lru_cache(maxsize=64)
def checked_fill(mask_fill: int, dtype: np.dtype[Any]) -> int:
    """Raises ValueError for one that masks of this dtype cannot hold."""
    low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= mask_fill <= high:
        raise ValueError(f"mask_fill: got {mask_fill}; accepted for {dtype} masks: {low} to {high}")
    return mask_fill


def order_of(joined: Sequence[Joined]) -> list[int]:
    """The order of pasting: greater weights last, own ones last among equals, so that they lie on top."""
    return sorted(range(len(joined)), key=lambda n: (joined[n].part.weight, -n))


def on_host(mask: Mask) -> AnyArray:
    return mask.cpu().numpy() if isinstance(mask, torch.Tensor) else mask

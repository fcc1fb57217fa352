"""Parts of rows that outputs show, and their masks, read and pasted as images are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import AnyArray, BoolArray, IndexArray, Int64Array
from variegate.program.program import Program
from variegate.targets.masks import TORCH_TYPES, Box, DeviceMasks, HostMasks, Moved
from variegate.targets.samples import ImageTargets, Mask, dtype_of


class Part(NamedTuple):
    """``boxes``: int64[Q, 4], left, top, right, bottom within the output, which do not overlap."""

    row: int
    source: int  # which image of the batch
    weight: float
    boxes: Int64Array
    is_whole: bool  # it is all of the output
    is_pasted: bool = False  # its objects alone are seen, on top of others


class JoinedTargets(NamedTuple):
    """Contribution of one part to an output."""

    part: Part
    of: ImageTargets
    kept: IndexArray  # which of its boxes
    boxes: AnyArray
    points: AnyArray | None

    def only(self, is_kept: BoolArray) -> JoinedTargets:
        """Without the others of its boxes."""
        points = self.points
        if points is not None and points.ndim == 3:
            points = points[is_kept]
        return self._replace(kept=self.kept[is_kept], boxes=self.boxes[is_kept], points=points)

    @property
    def kept_instances(self) -> IndexArray:
        """Indices of the instance masks of a sample that has some."""
        assert self.of.instances is not None
        return self.kept if self.of.corners is not None else np.arange(len(self.of.instances))


def parts_of(program: Program) -> list[list[Part]]:
    """Parts of every output; parts of its own image come first."""
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


def rows_of(parts: Sequence[Part]) -> Int64Array:
    return np.array([part.row for part in parts], np.int64)


class OutputMasks(NamedTuple):
    """Masks of one output: [h, w] by name, and masks of its boxes [M, h, w], None without any."""

    named: dict[str, torch.Tensor]
    instances: torch.Tensor | None


class _Layer(NamedTuple):
    """A mask that a row shows in a box of its result. ``at``: which mask of the result it is."""

    row: int
    box: Box
    mask: Mask
    at: int = 0


def paste_masks(
    maker: HostMasks | DeviceMasks,
    geometry: Program,
    sizes: Int64Array,
    outputs: Sequence[Sequence[JoinedTargets]],
    mask_fill: int,
) -> list[OutputMasks]:
    """Masks of outputs, made by ``maker``. ``sizes``: int[R, 2, 2] of rows' images and results. ``outputs``: parts, own
    image first."""
    work = _Work(maker, geometry, mask_fill, [tuple(sizes[joined[0].part.row, 1].tolist()) for joined in outputs])
    first = outputs[0][0].of
    named = {name: work.named(name, outputs) for name in first.masks}
    instances = [None] * len(outputs) if first.instances is None else work.instances(outputs)
    return [OutputMasks({name: named[name][n] for name in named}, instances[n]) for n in range(len(outputs))]


class _Work:
    """Masks of outputs of these sizes."""

    def __init__(
        self, maker: HostMasks | DeviceMasks, geometry: Program, mask_fill: int, sizes: Sequence[tuple[int, int]]
    ) -> None:
        self._maker = maker
        self._geometry = geometry
        self._fill = mask_fill
        self._sizes = sizes

    def named(self, name: str, outputs: Sequence[Sequence[JoinedTargets]]) -> list[torch.Tensor]:
        """The named mask of each output."""
        layers = []
        dtypes = []
        for joined in outputs:
            dtype = self._dtype_of([each.of.masks[name] for each in joined])
            order = order_of(joined)
            # A full image hides everything below.
            full = [at for at, n in enumerate(order) if joined[n].part.is_whole]
            shown = [joined[n] for n in (order[full[-1] :] if full else order)]
            layers.append([layer for each in shown for layer in self._layers(each, each.of.masks[name], dtype)])
            dtypes.append(dtype)
        results = []
        for size, dtype, of_one, moved in zip(self._sizes, dtypes, layers, self._move(layers, dtypes), strict=True):
            is_covered = bool(of_one) and of_one[0].box is None
            result = moved[0] if is_covered else self._filled(size, dtype)
            for layer, part in zip(of_one[is_covered:], moved[is_covered:], strict=True):
                result[_slices(layer.box)] = part
            results.append(result)
        return results

    def instances(self, outputs: Sequence[Sequence[JoinedTargets]]) -> list[torch.Tensor]:
        """Masks of all boxes of each output."""
        layers: list[list[_Layer]] = []
        dtypes = []
        numbers = []
        for joined in outputs:
            dtype = self._dtype_of([each.of.instances for each in joined])
            kept = [(each, each.of.instances[n]) for each in joined for n in each.kept_instances.tolist()]  # type: ignore[index]
            layers.append(
                [layer for at, (each, mask) in enumerate(kept) for layer in self._layers(each, mask, dtype, at)]
            )
            dtypes.append(dtype)
            numbers.append(len(kept))
        results = []
        moved_of_each = self._move(layers, dtypes)
        for size, dtype, number, of_one, moved in zip(self._sizes, dtypes, numbers, layers, moved_of_each, strict=True):
            if number and all(layer.box is None for layer in of_one):
                results.append(moved if isinstance(moved, torch.Tensor) else torch.stack(moved))
                continue
            result = self._filled((number, *size), dtype)
            for layer, part in zip(of_one, moved, strict=True):
                result[(layer.at, *_slices(layer.box))] = part
            results.append(result)
        return results

    def _dtype_of(self, masks: Sequence[Any]) -> np.dtype[Any]:
        """A dtype that holds all of these masks and the fill."""
        dtypes = [dtype_of(mask) for mask in masks]
        dtype = np.result_type(*dtypes)
        for each in (*dtypes, dtype):
            check_fill(self._fill, each)
        return dtype

    def _layers(self, joined: JoinedTargets, mask: Mask, dtype: np.dtype[Any], at: int = 0) -> list[_Layer]:
        source = self._maker.cast(joined.of.name, mask, dtype)
        part = joined.part
        boxes: list[Any] = [None] if part.is_whole else part.boxes.tolist()
        return [_Layer(part.row, box, source, at) for box in boxes]

    def _filled(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        return torch.full(shape, self._fill, dtype=TORCH_TYPES[dtype], device=self._maker.device)

    def _move(self, layers: Sequence[Sequence[_Layer]], dtypes: Sequence[np.dtype[Any]]) -> list[Moved]:
        """Move the layers of each output, grouped by dtype."""
        moved: list[Moved] = [[] for _ in layers]
        for dtype in dict.fromkeys(dtypes):
            outputs = [n for n, of_one in enumerate(dtypes) if of_one == dtype]
            every = [layer for n in outputs for layer in layers[n]]
            if not every:
                continue
            rows = np.array([layer.row for layer in every])
            boxes = [layer.box for layer in every]
            made = self._maker.move(self._geometry, rows, boxes, [layer.mask for layer in every], self._fill)
            begin = 0
            for n in outputs:
                end = begin + len(layers[n])
                moved[n] = made[begin:end]
                begin = end
        return moved


def _slices(box: Box) -> tuple[slice, slice]:
    if box is None:
        return slice(None), slice(None)
    left, top, right, bottom = box
    return slice(top, bottom), slice(left, right)


@lru_cache(maxsize=64)
def check_fill(mask_fill: int, dtype: np.dtype[Any]) -> None:
    """Raises ValueError for one that masks of this dtype cannot hold."""
    low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= mask_fill <= high:
        raise ValueError(f"mask_fill: got {mask_fill}; accepted for {dtype} masks: {low} to {high}")


def order_of(joined: Sequence[JoinedTargets]) -> list[int]:
    """The order of pasting: greater weights last, own parts last among equals, so that they are on top."""
    return sorted(range(len(joined)), key=lambda n: (joined[n].part.weight, -n))

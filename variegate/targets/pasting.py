"""Parts of rows that outputs show, and their masks, read and pasted as images are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from variegate.arrays import AnyArray, IndexArray, Int64Array
from variegate.program.program import Program
from variegate.program.stages import Stages
from variegate.targets.masks import HostMasks
from variegate.targets.samples import NUMPY_TYPES, Mask, OfImage, dtype_of

if TYPE_CHECKING:
    from variegate.targets.device_masks import DeviceMasks


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


class OutputMasks(NamedTuple):
    """Of one output: masks [h, w] by name, and those of its boxes [M, h, w], None where it has none."""

    named: dict[str, torch.Tensor]
    instances: torch.Tensor | None


def paste_masks(
    maker: HostMasks | DeviceMasks,
    stages: Stages,
    sizes: Int64Array,
    outputs: Sequence[Sequence[Joined]],
    mask_fill: int,
) -> list[OutputMasks]:
    """Masks of outputs, made by ``maker``. ``sizes``: int[R, 2, 2] of rows' images and results. ``outputs``: parts, own
    image first."""
    results = [_Result(joined, sizes) for joined in outputs]
    work = _Work(maker, results, mask_fill)
    first = outputs[0][0].of
    for name in first.masks:
        work.add_named(name)
    if first.instances is not None:
        work.add_instances()
    work.run(stages)
    return [OutputMasks(result.named, result.instances) for result in results]


_Layer = tuple[int, int, int, int, int]


class _Result:
    """Masks of one output. ``layers``: of each part."""

    def __init__(self, joined: Sequence[Joined], sizes: Int64Array) -> None:
        self.joined = joined
        self.size: tuple[int, int] = tuple(sizes[joined[0].part.row, 1].tolist())
        self.image_widths = [int(sizes[each.part.row, 0, 1]) for each in joined]
        self.layers: list[list[_Layer]] = [[] for _ in joined]
        self.named: dict[str, torch.Tensor] = {}
        self.instances: torch.Tensor | None = None
        # Parts whose masks by name are pasted, less what a full image lies on top of; whether one does.
        self.order = order_of(joined)
        full = [at for at, n in enumerate(self.order) if joined[n].part.is_whole]
        self.is_covered = bool(full)
        if full:
            self.order = self.order[full[-1] :]

    def regions(self, layers: list[_Layer]) -> list[tuple[int, ...]]:
        """Parts as regions, from the lowest on, whose layers are appended to ``layers``."""
        hidden = [n for n in range(len(self.joined)) if n not in self.order]
        found: list[tuple[int, ...]] = []
        for n in (*hidden, *self.order):
            if self.layers[n]:
                part = self.joined[n].part
                first = len(layers)
                layers += self.layers[n]
                rest = (self.image_widths[n], first, len(layers))
                found += [(part.row, *box, *rest) for box in part.boxes.tolist()]
        return found


class _Work:
    """Memory for masks, and what is to be read into it."""

    def __init__(self, maker: HostMasks | DeviceMasks, results: Sequence[_Result], mask_fill: int) -> None:
        self._maker = maker
        self._results = results
        self._fill = mask_fill
        self._masks: list[Mask] = []

    def add_named(self, name: str) -> None:
        """One mask of each result, and a layer of it for each part that shows it."""
        every = [[each.of.masks[name] for each in result.joined] for result in self._results]
        targets = self._empty([result.size for result in self._results], every)
        for result, masks, target in zip(self._results, every, targets, strict=True):
            result.named[name] = target
            if not result.is_covered:
                target.fill_(self._fill)
            for n in result.order:
                self._add(result, n, masks[n], target, target.data_ptr())

    def add_instances(self) -> None:
        """Masks of all boxes of each result, and a layer for each."""
        every = [[each.of.instances for each in result.joined] for result in self._results]
        kept = [[each.kept_instances.tolist() for each in result.joined] for result in self._results]
        shapes = [(sum(map(len, chosen)), *result.size) for result, chosen in zip(self._results, kept, strict=True)]
        targets = self._empty(shapes, every)  # type: ignore[arg-type]
        for result, chosen, target in zip(self._results, kept, targets, strict=True):
            result.instances = target
            address = target.data_ptr()
            begin = 0
            for n, (each, numbers) in enumerate(zip(result.joined, chosen, strict=True)):
                end = begin + len(numbers)
                if not each.part.is_whole:
                    target[begin:end].fill_(self._fill)
                begin = end
                for number in numbers:
                    self._add(result, n, each.of.instances[number], target, address)  # type: ignore[index]
                    address += result.size[0] * result.size[1] * target.itemsize

    def _empty(self, shapes: Sequence[tuple[int, ...]], masks: Sequence[Sequence[Mask]]) -> list[torch.Tensor]:
        """Memory for results of these shapes, of a dtype that holds all of their masks and the fill."""
        wanted = []
        for shape, joined in zip(shapes, masks, strict=True):
            dtypes = [dtype_of(mask) for mask in joined]
            dtype = np.result_type(*dtypes)
            for each in (*dtypes, dtype):
                check_fill(self._fill, each)
            wanted.append((shape, dtype))
        return self._maker.empty(wanted)

    def _add(self, result: _Result, n: int, mask: Mask, target: torch.Tensor, address: int) -> None:
        """A layer of part ``n``: the mask to the result's at ``address``."""
        source = self._maker.cast(result.joined[n].of.name, mask, NUMPY_TYPES[target.dtype])
        bits = target.itemsize.bit_length() - 1
        result.layers[n].append((len(self._masks), address, result.size[1], bits, self._fill))
        self._masks.append(source)

    def run(self, stages: Stages) -> None:
        layers: list[_Layer] = []
        of_each = [result.regions(layers) for result in self._results]
        if layers:
            begin = np.cumsum([0, *map(len, of_each)])
            regions = np.concatenate([np.array(regions, np.int64).reshape(-1, 8) for regions in of_each])
            sizes = np.array([result.size for result in self._results])
            self._maker.read(stages, sizes, begin, regions, np.array(layers, np.int64), self._masks)


@lru_cache(maxsize=64)
def check_fill(mask_fill: int, dtype: np.dtype[Any]) -> None:
    """Raises ValueError for one that masks of this dtype cannot hold."""
    low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= mask_fill <= high:
        raise ValueError(f"mask_fill: got {mask_fill}; accepted for {dtype} masks: {low} to {high}")


def order_of(joined: Sequence[Joined]) -> list[int]:
    """The order of pasting: greater weights last, own ones last among equals, so that they lie on top."""
    return sorted(range(len(joined)), key=lambda n: (joined[n].part.weight, -n))

"""Masks of a batch made on a CUDA device, all of them by one launch, and left there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from variegate.arrays import AnyArray, IndexArray, Int64Array, IntArray
from variegate.executors.batches import share_out
from variegate.executors.cuda import mask_layout as M
from variegate.executors.cuda.executor import CudaExecutor
from variegate.executors.cuda.kernels.masks import read_masks
from variegate.executors.cuda.launch import Launch, heavy_height
from variegate.targets import stages as S
from variegate.targets.pasting import Joined, OutputMasks, checked_fill, order_of
from variegate.targets.samples import MASK_TYPES, Mask, OfImage
from variegate.targets.stages import Stages

_STEP_KINDS = {S.MAP: M.MAP, S.GRID: M.GRID, S.REPEAT: M.REPEAT, S.SCALE: M.SCALE}


def step_records(stages: Stages, nodes_at: int, places_at: int) -> tuple[Int64Array, Int64Array]:
    """Records of steps int64[S', STEP], and each row's first. ``nodes_at``, ``places_at``: offsets of the tables."""
    kept = stages.kind != S.ERASE
    begin = np.concatenate([[0], np.cumsum(kept)])[stages.begin]
    kind = stages.kind[kept]
    numbers = stages.numbers[kept]
    back = stages.back[kept]
    records = np.zeros((len(kind), M.STEP), np.int64)
    reals = records.view(np.float64)
    for own, theirs in _STEP_KINDS.items():
        records[kind == own, M.STEP_KIND] = theirs
    records[:, M.ROUNDS] = stages.rounds[kept]
    reals[:, [M.BEFORE_HEIGHT, M.BEFORE_WIDTH]] = stages.before[kept]
    maps, grids, pads, scales = (np.flatnonzero(kind == each) for each in (S.MAP, S.GRID, S.REPEAT, S.SCALE))
    reals[maps, M.NUMBERS : M.NUMBERS + 9] = back[maps]
    _put(records, grids, M.NODES, nodes_at + stages.grids.itemsize * numbers[grids, S.FIRST])
    _put(records, grids, M.NODE_LINES, numbers[grids, S.LINES])
    _put(records, grids, M.NODE_COLUMNS, numbers[grids, S.COLUMNS])
    _put(reals, grids, M.NODES_PER_LINE, numbers[grids, S.STEP_Y] * S.NODES_PER_STEP)
    _put(reals, grids, M.NODES_PER_COLUMN, numbers[grids, S.STEP_X] * S.NODES_PER_STEP)
    _put(reals, grids, M.UNIT, np.ldexp(1.0, numbers[grids, S.UNIT] - 6))
    _put(reals, pads, M.PAD_LEFT, numbers[pads, S.LEFT])
    _put(reals, pads, M.PAD_TOP, numbers[pads, S.TOP])
    _put(records, pads, M.PAD_MODE, numbers[pads, S.MODE])
    columns_at = places_at + stages.tables.itemsize * numbers[scales, S.FIRST]
    _put(records, scales, M.COLUMN_PLACES, columns_at)
    _put(records, scales, M.LINE_PLACES, columns_at + stages.tables.itemsize * stages.after[kept][scales, 1])
    return records, begin


def _put(records: AnyArray, at: IndexArray, number: int, values: AnyArray) -> None:
    records[at, M.NUMBERS + number] = values


_ALIGNMENT = 16
# Fewer bytes are copied in less time than threads take to wake.
_SHARED_BYTES = 1 << 20
# A mask without others.
_WHOLE = np.zeros(1, np.intp)
_KINDS = {1: M.BYTE, 2: M.SHORT, 4: M.INT, 8: M.LONG}
_NUMPY = {theirs: np.dtype(ours) for theirs, ours in MASK_TYPES.items()}
_TORCH = {ours: theirs for theirs, ours in _NUMPY.items()}
# As the images' launches; products and sums are rounded one by one.
_OPTIONS = {"num_warps": 4, "enable_fp_fusion": False}


def masks_on_device(
    executor: CudaExecutor,
    stages: Stages,
    sizes: IntArray,
    outputs: Sequence[Sequence[Joined]],
    mask_fill: int,
) -> list[OutputMasks]:
    """Masks of ``outputs``, queued on the current stream. ``sizes``: int[R, 2, 2] of the rows' images and results."""
    with executor.current():
        made, launch = prepare_masks(executor, stages, sizes, outputs, mask_fill)
        if launch is not None:
            executor.queue(launch)
    return made


def prepare_masks(
    executor: CudaExecutor,
    stages: Stages,
    sizes: IntArray,
    outputs: Sequence[Sequence[Joined]],
    mask_fill: int,
) -> tuple[list[OutputMasks], Launch | None]:
    """Memory for the masks, and the launch that writes them; masks that are read must stay until it is queued."""
    _check_places(executor.device, [each.of for joined in outputs for each in joined])
    plan = _Plan(sizes, mask_fill)
    made = _room(executor, sizes, outputs)
    for joined, masks in zip(outputs, made, strict=True):
        plan.add(joined, masks)
    return made, _launch(executor, stages, plan) if plan.planes else None


def dtype_of(mask: Mask) -> np.dtype[Any]:
    return _NUMPY[mask.dtype] if isinstance(mask, torch.Tensor) else mask.dtype


# -- what is to be made ----------------------------------------------------------------------------------------------


def _check_places(device: torch.device, images: Sequence[OfImage]) -> None:
    for of in images:
        for mask in (*of.masks.values(), of.instances):
            if isinstance(mask, torch.Tensor) and mask.device != device:
                raise ValueError(f"{of.name}: got a mask on {mask.device}; accepted: masks on {device} or on the host")


def _room(executor: CudaExecutor, sizes: IntArray, outputs: Sequence[Sequence[Joined]]) -> list[OutputMasks]:
    """Memory for the masks of every output."""
    made = [OutputMasks({}, None) for _ in outputs]
    wanted: dict[str | None, list[tuple[int, tuple[int, ...], np.dtype[Any]]]] = {}
    for n, joined in enumerate(outputs):
        size = tuple(sizes[joined[0].part.row, 1].tolist())
        for name in joined[0].of.masks:
            dtype = np.result_type(*(dtype_of(each.of.masks[name]) for each in joined))
            wanted.setdefault(name, []).append((n, size, dtype))
        if joined[0].of.instances is not None:
            number = sum(len(each.kept_instances) for each in joined)
            dtype = np.result_type(*(dtype_of(each.of.instances) for each in joined))  # type: ignore[arg-type]
            wanted.setdefault(None, []).append((n, (number, *size), dtype))
    for key, every in wanted.items():
        room = _tensors(executor, [(shape, dtype) for _, shape, dtype in every])
        for (n, *_), tensor in zip(every, room, strict=True):
            if key is None:
                made[n] = made[n]._replace(instances=tensor)
            else:
                made[n].named[key] = tensor
    return made


def _tensors(executor: CudaExecutor, wanted: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> list[torch.Tensor]:
    """Side by side in one tensor where they are alike, as images are."""
    if len(set(wanted)) == 1:
        shape, dtype = wanted[0]
        return list(executor.memory.empty((len(wanted), *shape), _TORCH[dtype]))
    nbytes = [int(np.prod(shape)) * dtype.itemsize for shape, dtype in wanted]
    starts = np.cumsum([0, *(_whole(size) for size in nbytes)]).tolist()
    memory = executor.memory.empty(starts[-1])
    return [
        memory[start : start + size].view(_TORCH[dtype]).view(shape)
        for start, size, (shape, dtype) in zip(starts, nbytes, wanted, strict=False)
    ]


class _Plan:
    """Records of outputs, entries and planes, and the host's masks that they read, in one run of bytes."""

    def __init__(self, sizes: IntArray, mask_fill: int) -> None:
        self._sizes = sizes
        self._mask_fill = mask_fill
        self.outputs: list[tuple[int, ...]] = []
        self.entries: list[tuple[int, ...]] = []
        self.planes: list[Int64Array] = []  # of each entry
        self._num_planes = 0
        self.uploads: list[AnyArray] = []
        self.offsets: list[int] = []
        self.end = 0
        self._offset_of: dict[int, int] = {}
        self._fill_fits: set[np.dtype[Any]] = set()

    def add(self, joined: Sequence[Joined], made: OutputMasks) -> None:
        height, width = self._sizes[joined[0].part.row, 1].tolist()
        first_entry = len(self.entries)
        first_kept = 0
        kept: list[tuple[int, IndexArray]] = []
        if made.instances is not None:
            for each in joined:
                kept.append((first_kept, each.kept_instances))
                first_kept += len(kept[-1][1])
        pasted = [(n, tuple(box)) for n in order_of(joined) for box in joined[n].part.boxes.tolist()]
        # What lies below a mask that covers everything is not to be seen.
        bottom = max((at for at, (_, box) in enumerate(pasted) if box == (0, 0, width, height)), default=0)
        seen: set[int] = set()
        for at, (n, box) in enumerate(pasted):
            of = joined[n].of
            row = joined[n].part.row
            planes = []
            if at >= bottom:
                for name, target in made.named.items():
                    planes.append(self._planes(of.masks[name], _WHOLE, target, 0, is_first=at == bottom))
            if made.instances is not None and of.instances is not None and len(kept[n][1]):
                planes.append(
                    self._planes(of.instances, kept[n][1], made.instances, kept[n][0], is_first=n not in seen)
                )
                seen.add(n)
            if planes:
                end = self._num_planes + sum(map(len, planes))
                has_first = any(block[0, M.IS_FIRST] for block in planes)
                # The row stands where its steps will, until their places are known.
                self.entries.append((*box, row, row + 1, self._sizes[row, 0, 1], self._num_planes, end, has_first))
                self.planes += planes
                self._num_planes = end
        if len(self.entries) > first_entry:
            self.outputs.append((height, width, first_entry, len(self.entries)))

    def _planes(
        self, source: Mask, numbers: IndexArray, target: torch.Tensor, first: int, is_first: bool
    ) -> Int64Array:
        """Masks ``numbers`` of a source, to those of the target from its ``first`` on -> int64[len(numbers), PLANE]."""
        dtype = dtype_of(source)
        result = _NUMPY[target.dtype]
        if not self._fill_fits.issuperset((dtype, result)):
            self._fill_fits |= {dtype, result}
            checked_fill(self._mask_fill, dtype)
            checked_fill(self._mask_fill, result)
        planes = np.empty((len(numbers), M.PLANE), np.int64)
        is_there = isinstance(source, torch.Tensor)
        begin = source.data_ptr() if isinstance(source, torch.Tensor) else self._upload(source)
        planes[:, M.SOURCE] = begin + numbers * (source.shape[-2] * source.shape[-1] * dtype.itemsize)
        step = target.shape[-2] * target.shape[-1] * result.itemsize
        planes[:, M.TARGET] = target.data_ptr() + (first + np.arange(len(numbers))) * step
        planes[:, M.IS_IN_BUFFER], planes[:, M.IS_FIRST], planes[:, M.FILL] = not is_there, is_first, self._mask_fill
        planes[:, M.SOURCE_KIND], planes[:, M.TARGET_KIND] = _KINDS[dtype.itemsize], _KINDS[result.itemsize]
        return planes

    def _upload(self, mask: AnyArray) -> int:
        """Place among the masks that are sent; one that several outputs show is sent once."""
        if id(mask) not in self._offset_of:
            self._offset_of[id(mask)] = self.end
            self.uploads.append(mask)
            self.offsets.append(self.end)
            self.end += _whole(mask.nbytes)
        return self._offset_of[id(mask)]


# -- the launch ------------------------------------------------------------------------------------------------------


def _launch(executor: CudaExecutor, stages: Stages, plan: _Plan) -> Launch:
    nodes = stages.grids.reshape(-1)
    places = stages.tables
    places_at = _whole(nodes.nbytes)
    records, begin = step_records(stages, 0, places_at)
    outputs = np.array(plan.outputs, np.int64)
    entries = np.array(plan.entries, np.int64)
    planes = np.concatenate(plan.planes)
    sections = {"nodes": nodes, "places": places, "steps": records}
    sections |= {"outputs": outputs, "entries": entries, "planes": planes}
    at = {}
    end = 0
    for name, values in sections.items():
        at[name] = end
        end += _whole(values.nbytes)
    entries[:, [M.STEPS, M.STEPS_END]] = begin[entries[:, [M.STEPS, M.STEPS_END]]]
    planes[:, M.SOURCE] += end * planes[:, M.IS_IN_BUFFER]
    staging = executor.memory.staging(end + plan.end)
    memory = staging.numpy()
    for name, values in sections.items():
        memory[at[name] : at[name] + values.nbytes].view(values.dtype)[...] = values.reshape(-1)

    def copy(numbers: Int64Array) -> None:
        for n in numbers.tolist():
            mask = plan.uploads[n]
            offset = end + plan.offsets[n]
            memory[offset : offset + mask.nbytes] = mask.reshape(-1).view(np.uint8)

    share_out(copy, len(plan.uploads), None if plan.end > _SHARED_BYTES else 1)
    buffer = executor.memory.upload(staging, len(staging))
    height = heavy_height(executor.block[0])
    width = executor.block[1]
    tiles = int((-(-outputs[:, M.HEIGHT] // height) * -(-outputs[:, M.WIDTH] // width)).max())
    arguments = (buffer, at["outputs"], at["entries"], at["planes"], at["steps"], len(outputs))
    constants = {"BLOCK_Y": height, "BLOCK_X": width, "VERSION": M.VERSION}
    return Launch(read_masks, len(outputs), tiles, arguments, constants, _OPTIONS)


def _whole(size: int) -> int:
    """In whole units of alignment."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT

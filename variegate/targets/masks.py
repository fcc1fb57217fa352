"""Masks as images: the geometry of a program alone, with the nearest pixel, run by the executors of images.

A mask with elements wider than bytes is moved element by element on the CPU. On a GPU it is moved as an image with a
channel per byte."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from variegate.arrays import AnyArray, IntArray
from variegate.executors import cpu
from variegate.native.library import data_ptr
from variegate.program.lowering import lower
from variegate.program.ops import Interpolation, Op
from variegate.program.program import Output, Program, Tables, empty_instructions
from variegate.program.stages import IS_FOLLOWED
from variegate.targets.samples import NUMPY_TYPES, Mask

if TYPE_CHECKING:
    from variegate.executors.runners.cuda import CudaRunner

TORCH_TYPES = {dtype: torch_dtype for torch_dtype, dtype in NUMPY_TYPES.items()}
_MOVES = IS_FOLLOWED.copy()
_MOVES[Op.ERASE] = False

# Masks of one size, or of several.
Moved = torch.Tensor | list[torch.Tensor]
# Left, top, right, bottom within a result; None for the full result.
Box = tuple[int, int, int, int] | None


def geometry_of(program: Program, by_corners: bool = False) -> Program:
    """The geometry of a sampled program, for ``lower(..., "nearest")``. ``by_corners``: resizes as torchvision's of its
    ``Mask``."""
    slots = program.opcode.shape[1]
    moves = _MOVES[program.opcode] & (np.arange(slots) < program.length[:, None])
    length = moves.sum(axis=1, dtype=np.int32)
    arrays: dict[str, Any] = empty_instructions(program.num_rows, int(length.max(initial=1)))
    row, slot = np.nonzero(moves)
    place = (np.cumsum(moves, axis=1) - 1)[row, slot]
    for name in ("opcode", "args", "flags", "out_size"):
        arrays[name][row, place] = getattr(program, name)[row, slot]
    if by_corners:
        is_resize = arrays["opcode"] == Op.RESIZED_CROP
        arrays["flags"][is_resize] = Interpolation.NEAREST
        arrays["args"][is_resize, 7] = 1.0
    return Program(
        **arrays,
        length=length,
        source=np.arange(program.num_rows, dtype=np.int32),
        in_shape=program.in_shape.copy(),
        ids=program.ids,
        key=program.key,
        output=Output(layout="NHWC"),
        tables=Tables(grids=program.tables.grids),
    )


def _rows_within(geometry: Program, rows: IntArray, boxes: Sequence[Box]) -> Program:
    """The program of ``rows``, cut to a box of each row's result."""
    boxed = [n for n, box in enumerate(boxes) if box is not None]
    slots = geometry.opcode.shape[1]
    arrays: dict[str, Any] = empty_instructions(len(rows), slots + bool(boxed))
    for name, array in arrays.items():
        array[:, :slots] = getattr(geometry, name)[rows]
    length = geometry.length[rows]
    if boxed:
        left, top, right, bottom = np.array([boxes[n] for n in boxed]).T
        last = boxed, length[boxed]
        arrays["opcode"][last] = Op.CROP
        arrays["args"][last] = np.stack([top, left, bottom - top, right - left, *np.zeros((4, len(boxed)))], axis=1)
        arrays["out_size"][last] = np.stack([bottom - top, right - left], axis=1)
        length[boxed] += 1
    return geometry.replace(
        **arrays,
        length=length,
        source=np.arange(len(rows), dtype=np.int32),
        in_shape=geometry.in_shape[rows],
        ids=geometry.ids[rows],
        key=geometry.key[rows],
    )


def on_host(mask: Mask) -> AnyArray:
    return mask.cpu().numpy() if isinstance(mask, torch.Tensor) else mask


class HostMasks:
    """Masks made by the CPU."""

    device = torch.device("cpu")

    def __init__(self, num_threads: int | None) -> None:
        self._num_threads = num_threads

    def cast(self, name: str, mask: Mask, dtype: np.dtype[Any]) -> Mask:
        """A mask of the sample ``name`` as contiguous numbers of ``dtype``."""
        return np.ascontiguousarray(on_host(mask), dtype)

    def move(self, geometry: Program, rows: IntArray, boxes: Sequence[Box], masks: Sequence[Any], fill: int) -> Moved:
        """Masks [H, W] of one dtype through rows of ``geometry_of`` -> what ``boxes`` show of the results: one
        tensor [masks, h, w] if all have one size."""
        dtype = masks[0].dtype
        program = lower(_with_channels(_rows_within(geometry, rows, boxes), dtype.itemsize), "nearest")
        results = cpu.allocate(program)
        sources = np.array([data_ptr(mask) for mask in masks], np.int64)
        cpu.move(program, sources, cpu.addresses(results), dtype.itemsize, fill, self._num_threads)
        if isinstance(results, np.ndarray):
            return torch.from_numpy(results.view(dtype)[..., 0])
        return [torch.from_numpy(result.view(dtype)[..., 0]) for result in results]


class DeviceMasks:
    """Masks made on the device of ``runner``, queued on the current stream. See ``HostMasks``."""

    def __init__(self, runner: CudaRunner) -> None:
        self._runner = runner
        self.device = runner.device

    def cast(self, name: str, mask: Mask, dtype: np.dtype[Any]) -> Mask:
        """A mask of the sample ``name`` as contiguous numbers of ``dtype``; a tensor's stay on the device."""
        if not isinstance(mask, torch.Tensor):
            return np.ascontiguousarray(mask, dtype)
        if mask.device != self.device:
            accepted = f"masks on {self.device} or on the host"
            raise ValueError(f"{name}: got a mask on {mask.device}; accepted: {accepted}")
        return mask.to(TORCH_TYPES[dtype])

    def move(self, geometry: Program, rows: IntArray, boxes: Sequence[Box], masks: Sequence[Any], fill: int) -> Moved:
        first = masks[0].dtype
        dtype = NUMPY_TYPES.get(first, first)
        # Images have 1 channel, or 3 and more.
        moved_as = np.dtype(np.int32) if dtype.itemsize == 2 else dtype
        unique: dict[int, Any] = {}
        for mask in masks:
            unique.setdefault(_address(mask), _as_bytes(mask, moved_as))
        place = {address: n for n, address in enumerate(unique)}
        source = np.array([place[_address(mask)] for mask in masks], np.int32)
        program = _with_channels(_rows_within(geometry, rows, boxes), moved_as.itemsize)
        color = np.array([fill], moved_as).view(np.uint8)
        if len(color) == 1:
            program.fill[...] = color
        else:
            no_curves = np.empty((0, len(color), 256))
            colors = color[None].astype(np.float64)
            program = program.replace(tables=replace(program.tables, curves=no_curves, colors=colors))
        made: Any = self._runner.move(program.replace(source=source), list(unique.values()))
        if isinstance(made, torch.Tensor):
            return made.view(TORCH_TYPES[moved_as])[..., 0].to(TORCH_TYPES[dtype])
        return [each.view(TORCH_TYPES[moved_as])[..., 0].to(TORCH_TYPES[dtype]) for each in made]


def _with_channels(program: Program, channels: int) -> Program:
    in_shape = program.in_shape.copy()
    in_shape[:, 2] = channels
    return program.replace(in_shape=in_shape)


def _address(mask: Mask) -> int:
    return mask.data_ptr() if isinstance(mask, torch.Tensor) else data_ptr(mask)


def _as_bytes(mask: Mask, dtype: np.dtype[Any]) -> Any:
    """uint8[H, W, bytes]."""
    if isinstance(mask, torch.Tensor):
        return mask.to(TORCH_TYPES[dtype]).contiguous()[..., None].view(torch.uint8)
    return np.ascontiguousarray(mask, dtype)[..., None].view(np.uint8)

"""Regions of one image on a GPU: the stages of ``executors/cpu/tiled``, whose rectangles lie on the device.

Plans, weights of resizes and tables of statistics are made on the host, as they are of the whole image; every pixel is
read, made and counted on the device. A pass is a launch of the ordinary kernels for one rectangle: maps in whole pixels
are moved to it, and whatever depends on the place in the whole image is told where the rectangle lies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.executors.cpu.layout import Instructions
from variegate.executors.cpu.resizing import PRECISION
from variegate.executors.cpu.tiled.areas import Area, Image, Stage
from variegate.executors.cpu.tiled.host import HostPixels
from variegate.executors.cpu.tiled.workspace import PassWorkspace
from variegate.executors.cuda.images import place_tensor
from variegate.executors.cuda.pack import refuse_jpeg
from variegate.program import passes as P
from variegate.program.ops import (
    INTERPOLATION_BITS,
    INTERPOLATION_MASK,
    IS_REAL_MAP,
    IS_WARP,
    KIND_OF,
    LUMA_BLUE,
    LUMA_GREEN,
    LUMA_HALF,
    LUMA_RED,
    LUMA_SHIFT,
    SPECS,
    Interpolation,
    Kind,
    Op,
)
from variegate.program.passes import PassSource
from variegate.program.program import Output, Program

if TYPE_CHECKING:
    from variegate.executors.cuda.executor import CudaExecutor

# Places have 15 fraction bits, in 32; those that a grid moves may leave the image by as much again.
_MOST_MAPPED, _MOST_BENT = 65_535, 32_767


def refuse_regions(program: Program) -> None:
    """Raises ValueError naming an operation of a fused program that GPUs do not do in regions."""
    refuse_jpeg(program)
    used = program.opcode[:, : int(program.length.max(initial=0))]
    borders = program.flags[:, : used.shape[1]] >> INTERPOLATION_BITS
    has_borders = bool((borders[KIND_OF[used] == Kind.GEOMETRY] != 0).any())
    lone = [SPECS[op].name for op in (Op.CLAHE, *np.flatnonzero(IS_WARP)) if (used == op).any()]
    lone += ["padding_mode"] * has_borders + ["many channels"] * (program.planes is not None)
    if lone:
        raise ValueError(f"{lone[0]} of an image in tiles runs on CPUs alone; accepted: devices cpu:0, cpu:1, ...")
    side = max(int(program.in_shape[:, :2].max()), int(program.out_size.max(initial=0)))
    most = _MOST_BENT if (used == Op.MAP_GRID).any() else _MOST_MAPPED
    is_mapped = IS_REAL_MAP[used] & (program.flags[:, : used.shape[1]] & INTERPOLATION_MASK != Interpolation.NEAREST)
    if side > most and (is_mapped.any() or most == _MOST_BENT):
        raise ValueError(f"interpolated, {side:,} pixels a side, in tiles on a GPU; accepted: {most:,} at most")
    for point in program.tables.points:
        if point.triton_function is None:
            raise ValueError(f"{point.name}: has no point_triton, by which it runs on a CUDA device")


class DevicePixels(HostPixels):
    """Tensors instead of arrays."""

    # So that the last byte of as many lines is counted in 32 bits.
    most_read = 21_000

    def __init__(self, executor: CudaExecutor) -> None:
        self.executor = executor

    def source(self, stage: Stage) -> Stage:
        return _Upload(self.executor, stage)

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Any:
        return self.executor.memory.empty(shape, getattr(torch, np.dtype(dtype).name))

    def packed(self, pixels: Any) -> Any:
        return pixels.contiguous()

    def fetched(self, pixels: Any) -> Image:
        return pixels.cpu().numpy()

    def workspace(self, *of: Any) -> PassWorkspace:
        return _RegionPass(self.executor, *of)

    def resize(self, levels: Any, axis: int, bounds: Any, weights: Any, first: int) -> Any:
        device, last = self.executor.device, levels.shape[axis] - 1
        lows = torch.from_numpy(bounds[:, 0] - first).to(device)
        shape = (-1, 1, 1) if axis == 0 else (1, -1, 1)
        total = torch.full((), 1 << (PRECISION - 1), dtype=torch.int32, device=device)
        # Weights beyond an output's own are 0.
        for tap, weight in enumerate(torch.from_numpy(weights).to(device).unbind(1)):
            total = total + levels.index_select(axis, (lows + tap).clamp(max=last)).int() * weight.view(shape)
        return (total >> PRECISION).clamp(0, 255).to(torch.uint8)

    def blend(self, total: Any, weights: Any, rows: Iterable[Any]) -> Any:
        # A product and a sum are two operations, each rounded.
        for row, weight in zip(rows, weights, strict=True):
            total += float(weight) * row.float()
        return total.clamp(0.0, 255.0).to(torch.uint8)

    def count(self, levels: Any) -> npt.NDArray[np.int64]:
        channels = levels.reshape(-1, levels.shape[2]).unbind(1)
        return torch.stack([torch.bincount(channel, minlength=256) for channel in channels]).cpu().numpy()

    def add_lumas(self, levels: Any, tables: npt.NDArray[np.uint8]) -> int:
        table = torch.from_numpy(tables).to(self.executor.device, torch.int32)
        channels = [table[c][level.int()] for c, level in enumerate(levels.unbind(2))]
        if len(channels) == 1:
            return int(channels[0].sum())
        red, green, blue = channels
        luma = LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF
        return int((luma >> LUMA_SHIFT).sum())


class _Upload:
    """Rectangles of a stage of the host, copied over."""

    def __init__(self, executor: CudaExecutor, stage: Stage) -> None:
        self.height, self.width, self.channels = stage.height, stage.width, stage.channels
        self._executor, self._stage = executor, stage

    def make(self, area: Area) -> Any:
        levels = self._stage.make(area)
        memory = self._executor.memory
        staging = memory.staging(levels.size)
        staging.numpy()[:] = levels.reshape(-1)
        return memory.upload(staging, levels.size).view(levels.shape)


class _RegionPass(PassWorkspace):
    """A pass as a launch for one rectangle."""

    def __init__(
        self,
        executor: CudaExecutor,
        program: Program,
        row: int,
        plan: npt.NDArray[np.int32],
        size: tuple[int, int],
        is_last: bool,
        records: npt.NDArray[np.int64],
    ) -> None:
        super().__init__(program, row, plan, is_last)
        self._executor, self._width = executor, size[1]
        output = program.output if is_last else Output(layout="NHWC")
        self.dtype = np.dtype(output.dtype if output.is_float else np.uint8)
        # As the whole image has them: interpolating maps are not moved, but told where the rectangle lies.
        self._whole = {"window": self.program.window.copy(), "out_size": self.program.out_size.copy()}
        one = {name: getattr(program, name)[row : row + 1] for name in ("label", "pass_of")}
        self._program = program.replace(
            **one, source=np.zeros(1, np.int32), output=output, blend=None, grouping=None, mixture=None
        )

    def run(self, area: Area, levels: Any, source: Area | None) -> Any:
        """Tensors, on the executor's device."""
        self.program.in_shape[0] = levels.shape
        self.plan[P.HEIGHT], self.plan[P.WIDTH] = area.height, area.width
        fields: dict[str, Any] = {name: getattr(self.program, name) for name in Instructions._fields}
        images = place_tensor(levels[None], is_channels_last=True)
        if self.plan[P.SOURCE] == PassSource.INTERPOLATED:
            fields |= self._whole
            if source is not None:
                # As if the whole image lay there, of which nothing else is read.
                images.addresses -= source.top * images.strides[:, 0] + source.left * images.strides[:, 1]
        program = self._program.replace(**fields, tables=replace(self._program.tables, luts=self.luts))
        shape = area.height, area.width, levels.shape[2]
        planar = (shape[2], *shape[:2]) if self.is_planar else shape
        made = self._executor.memory.empty(planar, getattr(torch, np.dtype(self.dtype).name))
        self._executor.run(program, images, [made], (area.left, area.top, self._width))
        return made.permute(1, 2, 0) if self.is_planar else made

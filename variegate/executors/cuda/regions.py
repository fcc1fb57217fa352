"""Bands of lines of one large image on a GPU: runs one pass at a time with the ordinary kernels.

Statistics are measured on the host. Integer maps are shifted to the band. Kernels that depend on the position in the
full image (noise, ERASE, interpolated maps) receive the band's position. CPU counterpart: ``cpu/bands.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from variegate.arrays import AnyArray, Float64Array, Int16Array, Int32Array, UInt8Array
from variegate.executors.cuda.images import DeviceImages, place_tensor
from variegate.executors.cuda.layout import TABLE
from variegate.executors.cuda.pack import NO_TABLES, refuse_jpeg
from variegate.executors.cuda.pixel_functions import triton_functions
from variegate.executors.steps import Step
from variegate.native.structs import FUSED_ARRAYS, BandStep
from variegate.program import passes as P
from variegate.program.ops import (
    INTERPOLATION_BITS,
    INTERPOLATION_MASK,
    IS_SUBPIXEL_MAP,
    IS_WARP,
    KIND_OF,
    SPECS,
    Interpolation,
    Kind,
    Op,
)
from variegate.program.passes import PassSource
from variegate.program.program import Output, Program

if TYPE_CHECKING:
    from variegate.executors.cuda.executor import CudaExecutor

# Coordinates are int32 with 15 fraction bits. Coordinates displaced by a grid may leave the image by its size.
_MAX_MAPPED = 65_535
_MAX_BENT = 32_767


def refuse_regions(program: Program) -> None:
    """Raise ValueError naming an operation of a fused program that GPUs cannot run on bands."""
    refuse_jpeg(program)
    used = program.opcode[:, : int(program.length.max(initial=0))]
    borders = program.flags[:, : used.shape[1]] >> INTERPOLATION_BITS
    has_borders = bool((borders[KIND_OF[used] == Kind.GEOMETRY] != 0).any())
    lone = [SPECS[op].name for op in (Op.CLAHE, *np.flatnonzero(IS_WARP)) if (used == op).any()]
    lone += ["padding_mode"] * has_borders + ["many channels"] * program.has_many_channels
    if lone:
        raise ValueError(f"{lone[0]} of an image in tiles runs on CPUs alone; accepted: devices cpu:0, cpu:1, ...")
    side = max(int(program.in_shape[:, :2].max()), int(program.out_size.max(initial=0)))
    most = _MAX_BENT if (used == Op.MAP_GRID).any() else _MAX_MAPPED
    is_mapped = IS_SUBPIXEL_MAP[used] & (
        program.flags[:, : used.shape[1]] & INTERPOLATION_MASK != Interpolation.NEAREST
    )
    if side > most and (is_mapped.any() or most == _MAX_BENT):
        raise ValueError(f"interpolated, {side:,} pixels a side, in tiles on a GPU; accepted: {most:,} at most")
    triton_functions(program.tables.pixel_functions)


class DeviceBands:
    """Runs passes on bands of lines. Uploads the full image that a pass reads if its maps may read any line of it."""

    def __init__(self, executor: CudaExecutor) -> None:
        self._executor = executor
        self._uploaded: tuple[Step, torch.Tensor] | None = None

    def run(
        self,
        program: Program,
        step: Step,
        levels: AnyArray,
        tables: UInt8Array | None,
        lines: tuple[int, int],
    ) -> AnyArray:
        """Run ``lines`` of a step of a fused program on the image ``levels`` -> [H, W, C].

        ``tables``: the tables of its statistics, uint8, ``layout.TABLE`` bytes per slot. Programs of deep images are
        lowered with ``measured_once``.
        """
        single, plan = _of_pass(program, step)
        slots = np.flatnonzero(KIND_OF[single.opcode[0]] == Kind.STATISTIC)
        measured = NO_TABLES if tables is None else tables.reshape(-1, TABLE)[slots]
        top, bottom = lines
        source = plan[P.SOURCE]
        first = int(plan[P.FIRST])
        fields: dict[str, AnyArray] = {}
        if source == PassSource.FILTER:
            radius = _filter_radius(int(single.opcode[0, first]), single.args[0, first])
            top = max(0, top - radius)
            bottom = min(int(plan[P.HEIGHT]), bottom + radius)
        if source in (PassSource.DIRECT, PassSource.FILTER):
            image = torch.from_numpy(np.array(levels[top:bottom])).to(self._executor.device)
        else:
            image = self._upload(step, levels)
        if source in (PassSource.ROW_COPY, PassSource.FIXED, PassSource.CHAIN):
            fields["args"] = _moved(single, first, int(plan[P.MAPS_END]), top)
        region = (0, top, int(plan[P.HEIGHT]), int(plan[P.WIDTH]))
        plan[P.HEIGHT] = bottom - top
        if source != PassSource.INTERPOLATED:
            fields["out_size"] = single.out_size.copy()
            fields["out_size"][0, max(int(plan[P.MAPS_END]) - 1, int(plan[P.BEGIN])) :] = plan[P.HEIGHT], plan[P.WIDTH]
        images = place_tensor(image[None], is_channels_last=True)
        single = single.replace(**fields, in_shape=np.array([image.shape], np.int32))
        made = self._run(single, images, plan, region, measured)
        return made[lines[0] - top : lines[1] - top].cpu().numpy()

    def _run(
        self, single: Program, images: DeviceImages, plan: Int32Array, region: Any, tables: UInt8Array
    ) -> torch.Tensor:
        """Run a program of one pass -> [H, W, C]. ``region``, ``tables``: see ``CudaExecutor.run``."""
        output = single.output
        height = int(plan[P.HEIGHT])
        width = int(plan[P.WIDTH])
        channels = int(single.in_shape[0, 2])
        shape = (channels, height, width) if output.layout == "NCHW" else (height, width, channels)
        made = self._executor.take_results(single, shape)
        self._executor.run(single, images, np.array([made.data_ptr()], np.int64), region, tables)
        return made.permute(1, 2, 0) if output.layout == "NCHW" else made

    def _upload(self, step: Step, levels: AnyArray) -> torch.Tensor:
        """Upload the image of a step, unless the last upload was for the same step."""
        if self._uploaded is None or self._uploaded[0] != step:
            self._uploaded = step, torch.from_numpy(np.array(levels)).to(self._executor.device)
        return self._uploaded[1]


def _of_pass(program: Program, step: Step) -> tuple[Program, Int32Array]:
    """Return a program of one row and one pass, which measures no statistics; and the pass."""
    row = slice(step.row, step.row + 1)
    arrays = {name: getattr(program, name)[row].copy() for name in (*FUSED_ARRAYS, "label", "pass_of")}
    plan: Int32Array = arrays["passes"][0, step.number].copy()
    if step.work == BandStep.INPUT:
        plan = _plan_of_input(arrays["opcode"][0], plan)
    elif plan[P.SOURCE] == PassSource.FILTER:
        # An earlier step applied the operations before the filter: see ``_plan_of_input``.
        plan[P.BEGIN] = plan[P.FIRST]
    plan[[P.NEEDS, P.QUALITY]] = 0
    opcode = arrays["opcode"][0]
    opcode[: plan[P.BEGIN]] = opcode[plan[P.END] :] = Op.NOP
    arrays |= {"passes": plan[None, None], "num_passes": np.ones(1, np.int32), "length": plan[P.END : P.END + 1].copy()}
    arrays |= {"source": np.zeros(1, np.int32)}
    output = program.output if step.is_last else Output(layout="NHWC")
    single = program.replace(**arrays, output=output, blend=None, grouping=None, mixture=None)
    return single, plan


def _plan_of_input(opcode: Int16Array, plan: Int32Array) -> Int32Array:
    """Return a pass of the operations before a filter: tables, and at most one integer map."""
    begin = int(plan[P.BEGIN])
    end = int(plan[P.FIRST])
    made = np.zeros_like(plan)
    made[[P.BEGIN, P.FIRST, P.MAPS_END, P.VALUES]] = begin
    made[[P.END, P.POSITION, P.STATISTICS, P.STATISTICS_END]] = end
    made[[P.HEIGHT, P.WIDTH]] = plan[[P.HEIGHT, P.WIDTH]]
    for slot in begin + np.flatnonzero(KIND_OF[opcode[begin:end]] == Kind.GEOMETRY):
        made[P.FIRST], made[P.MAPS_END] = slot, slot + 1
        made[P.SOURCE] = PassSource.FIXED if opcode[slot] == Op.MAP_FIXED else PassSource.TABLE
    return made


def _moved(program: Program, first: int, end: int, top: int) -> Float64Array:
    """Return the arguments of fixed-point maps, with the last map shifted to line ``top``; exact, all are integers."""
    args = program.args.copy()
    last = max(k for k in range(first, end) if KIND_OF[program.opcode[0, k]] == Kind.GEOMETRY)
    args[0, last, 2] += args[0, last, 1] * top
    args[0, last, 5] += args[0, last, 4] * top
    return args


def _filter_radius(op: int, args: Float64Array) -> int:
    """Return the number of lines above and below a pixel that a filter reads."""
    if op == Op.SHARPNESS:
        return 1
    return int(args[{Op.MEDIAN: 0, Op.CONVOLVE_FIXED: 2, Op.MORPHOLOGY: 1}[Op(op)]]) // 2

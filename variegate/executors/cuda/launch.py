"""A packed program as a short list of kernel launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda import plan
from variegate.executors.cuda.kernels.blend import blend_rows
from variegate.executors.cuda.kernels.fused import run_pass
from variegate.executors.cuda.kernels.prepare import prepare
from variegate.executors.cuda.pack import Packed
from variegate.executors.cuda.points import PointFunctions
from variegate.program.program import Output

RESULTS = {"float32": tl.float32, "float16": tl.float16, "bfloat16": tl.bfloat16, "uint8": tl.uint8}
# Height and width of a tile.
BLOCK = (8, 64)
_MOST_PROGRAMS = (1 << 31) - 1
# A product and a sum rounded once instead of twice would not be the bits of the other executors.
_FUSION = {"enable_fp_fusion": False}
# Four pixels a thread where a pass holds little, else two; without a limit the assembler would rather spill registers
# than run fewer programs at a time.
_LIGHT = {"num_warps": 4, "maxnreg": 96, **_FUSION}
_HEAVY = {"num_warps": 8, "maxnreg": 128, **_FUSION}
_HEAVY_FEATURES = plan.REAL | plan.RESAMPLE | plan.HUE | plan.NOISE


@dataclass(frozen=True)
class Launch:
    """One kernel, how many programs of it, and what it is given."""

    kernel: Any
    programs: int
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    options: dict[str, Any]

    def run(self) -> None:
        if self.programs > _MOST_PROGRAMS:
            raise ValueError(
                f"a batch of {self.programs:,} tiles, counting as many for every image as the largest has; accepted: "
                f"{_MOST_PROGRAMS:,}. Split the batch."
            )
        self.kernel[(self.programs,)](*self.arguments, **self.constants, **self.options)


@dataclass(frozen=True)
class Setting:
    """What all launches of a program share."""

    output: Output
    points: PointFunctions
    source_format: int
    block: tuple[int, int] = BLOCK

    @property
    def result(self) -> str:
        return self.output.dtype if self.output.is_float else "uint8"


def launches(
    packed: Packed, setting: Setting, buffer: torch.Tensor, workspace: torch.Tensor, features: Sequence[int]
) -> list[Launch]:
    """At most one launch per pass, one before and one after.

    ``features``: what the kernels of every pass must be able to do, at least what the pass itself needs.
    """
    found = []
    if packed.launches[0, plan.NUM_ROWS]:
        found.append(_preparation(packed, setting, buffer, workspace))
    for p, needed in enumerate(features):
        found.append(_pass(p, needed, packed, setting, buffer, workspace))
    if packed.blend_heads:
        found.append(_blend(packed, setting, buffer))
    return found


def _preparation(packed: Packed, setting: Setting, buffer: torch.Tensor, workspace: torch.Tensor) -> Launch:
    rows, tiles, _ = packed.launches[0].tolist()
    arguments = (buffer, workspace, packed.code, packed.args, packed.heads[0], packed.lists[0], tiles)
    constants = {"FORMAT": setting.source_format, "WEIGHTS_BLOCK": plan.WEIGHTS_BLOCK, **_common(setting)}
    return Launch(prepare, rows * tiles, arguments, constants, _LIGHT)


def _pass(
    p: int, needed: int, packed: Packed, setting: Setting, buffer: torch.Tensor, workspace: torch.Tensor
) -> Launch:
    rows, tiles, _ = packed.launches[1 + p].tolist()
    is_last = p + 1 == len(packed.heads)
    following = packed.heads[p if is_last else p + 1]
    arguments = (
        *(buffer, workspace, packed.code, packed.args, packed.heads[p], following),
        *(packed.lists[1 + p], packed.constants, tiles),
    )
    constants = {
        "FORMAT": setting.source_format if p == 0 else L.CANVAS,
        "HAS_REAL": bool(needed & plan.REAL),
        "HAS_FILTER": bool(needed & plan.FILTER),
        "HAS_RESAMPLE": bool(needed & plan.RESAMPLE),
        "HAS_HUE": bool(needed & plan.HUE),
        "HAS_NOISE": bool(needed & plan.NOISE),
        "MEASURES": bool(needed & plan.MEASURES) and not is_last,
        "POINTS": setting.points,
        **_result(setting),
        **_common(setting),
    }
    is_heavy = needed & _HEAVY_FEATURES or setting.points
    return Launch(run_pass, rows * tiles, arguments, constants, _HEAVY if is_heavy else _LIGHT)


def _blend(packed: Packed, setting: Setting, buffer: torch.Tensor) -> Launch:
    rows, tiles, needed = packed.launches[-1].tolist()
    arguments = (
        *(buffer, packed.code, packed.args, packed.blend_heads, packed.begins, packed.canvases),
        *(packed.weights, packed.constants, tiles),
    )
    has_noise = bool(needed & plan.NOISE)
    constants = {"NOISE": has_noise, **_result(setting), **_common(setting)}
    return Launch(blend_rows, rows * tiles, arguments, constants, _HEAVY if has_noise else _LIGHT)


def _result(setting: Setting) -> dict[str, Any]:
    return {"RESULT": RESULTS[setting.result], "IS_PLANAR": setting.output.layout == "NCHW"}


def _common(setting: Setting) -> dict[str, Any]:
    return {"BLOCK_Y": setting.block[0], "BLOCK_X": setting.block[1], "VERSION": L.VERSION}

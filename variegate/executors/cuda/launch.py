"""A packed program as a short list of kernel launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.executors.cuda import plan
from variegate.executors.cuda.blend import blend_rows
from variegate.executors.cuda.fused import run_pass
from variegate.executors.cuda.pack import Packed
from variegate.executors.cuda.points import PointFunctions
from variegate.executors.cuda.prepare import prepare
from variegate.program.program import Output

RESULTS = {"float32": tl.float32, "float16": tl.float16, "bfloat16": tl.bfloat16, "uint8": tl.uint8}
# A product and a sum rounded once instead of twice would not be the bits of the other executors.
OPTIONS = {"enable_fp_fusion": False}
NUM_WARPS = 4
# Height and width of a tile: 8 pixels a thread.
BLOCK = (16, 64)


@dataclass(frozen=True)
class Launch:
    """One kernel, how many programs of it, and what it is given."""

    kernel: Any
    programs: int
    arguments: tuple[Any, ...]
    constants: dict[str, Any]

    def run(self) -> None:
        self.kernel[(self.programs,)](*self.arguments, **self.constants, **OPTIONS)


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
    tile = {"BLOCK_Y": setting.block[0], "BLOCK_X": setting.block[1], "num_warps": NUM_WARPS}
    last = len(packed.heads) - 1
    found = []
    rows, tiles = packed.launches[0, : plan.FEATURES].tolist()
    if rows:
        found.append(
            Launch(
                prepare,
                rows * tiles,
                (buffer, workspace, packed.code, packed.args, packed.heads[0], packed.lists[0], tiles),
                {"FORMAT": setting.source_format, "WEIGHTS_BLOCK": plan.WEIGHTS_BLOCK, **tile},
            )
        )
    for p, heads in enumerate(packed.heads):
        rows, tiles, _ = packed.launches[1 + p].tolist()
        arguments = (
            buffer,
            workspace,
            packed.code,
            packed.args,
            heads,
            packed.heads[min(p + 1, last)],
            packed.lists[1 + p],
            packed.constants,
            tiles,
        )
        constants = {
            "FORMAT": setting.source_format if p == 0 else L.CANVAS,
            "HAS_REAL": bool(features[p] & plan.REAL),
            "HAS_FILTER": bool(features[p] & plan.FILTER),
            "HAS_RESAMPLE": bool(features[p] & plan.RESAMPLE),
            "HAS_HUE": bool(features[p] & plan.HUE),
            "HAS_NOISE": bool(features[p] & plan.NOISE),
            "MEASURES": bool(features[p] & plan.MEASURES),
            "POINTS": setting.points,
            **_result(setting),
            **tile,
        }
        found.append(Launch(run_pass, rows * tiles, arguments, constants))
    if packed.blend_heads:
        rows, tiles, needed = packed.launches[-1].tolist()
        arguments = (
            buffer,
            packed.code,
            packed.args,
            packed.blend_heads,
            packed.begins,
            packed.canvases,
            packed.weights,
            packed.constants,
            tiles,
        )
        constants = {"NOISE": bool(needed & plan.NOISE), **_result(setting), **tile}
        found.append(Launch(blend_rows, rows * tiles, arguments, constants))
    return found


def _result(setting: Setting) -> dict[str, Any]:
    return {
        "RESULT": RESULTS[setting.result],
        "IS_PLANAR": setting.output.layout == "NCHW",
    }

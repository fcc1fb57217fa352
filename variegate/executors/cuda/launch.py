"""Turn a packed program into a short list of kernel launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import triton.language as tl

from variegate.arrays import AnyArray
from variegate.executors.cuda import layout as L
from variegate.executors.cuda.kernels import statistics
from variegate.executors.cuda.kernels.fused import run_pass
from variegate.executors.cuda.kernels.store import blend_rows
from variegate.executors.cuda.layout import KernelFeature
from variegate.executors.cuda.pack import Packer
from variegate.executors.cuda.pixel_functions import PixelFunctions
from variegate.program.depth import Depth
from variegate.program.program import Output

RESULTS = {
    "float32": tl.float32,
    "float16": tl.float16,
    "bfloat16": tl.bfloat16,
    "uint8": tl.uint8,
    "uint16": tl.uint16,
}
# Height and width of a tile of light launches.
BLOCK = (32, 32)
_MAX_PROGRAMS = (1 << 31) - 1
# A fused multiply-add rounds once instead of twice, and would differ from the other executors.
_FUSION = {"enable_fp_fusion": False}
# Pixels per thread: eight in light launches, two in heavy ones, which need many registers. Threads of light launches
# mostly wait for instructions and tables, and eight pixels share each wait although a few registers spill. W3 at batch
# 256 took 203 us on an H200; 270 us with four pixels, without spills; 213 us with four pixels and 64 registers.
_LIGHT = {"num_warps": 4, "maxnreg": 96, **_FUSION}
_HEAVY = {"num_warps": 8, "maxnreg": 128, **_FUSION}
_FLAGS = [(feature.name, int(feature)) for feature in KernelFeature]
_HEAVY_FEATURES = int(
    KernelFeature.HAS_SUBPIXEL
    | KernelFeature.HAS_FOLD
    | KernelFeature.HAS_RESAMPLE
    | KernelFeature.HAS_HUE
    | KernelFeature.HAS_NOISE
    | KernelFeature.HAS_OVERLAY
)


@dataclass(frozen=True)
class Launch:
    """One kernel launch: ``tiles`` programs for each of ``rows``, with all arguments and options."""

    kernel: Any
    rows: int
    tiles: int
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    options: dict[str, Any]

    @property
    def programs(self) -> int:
        return self.rows * self.tiles

    def run(self) -> None:
        if self.programs > _MAX_PROGRAMS:
            raise ValueError(
                f"a batch of {self.programs:,} tiles, counting as many for every image as the largest has; accepted: "
                f"{_MAX_PROGRAMS:,}. Split the batch."
            )
        layers = -(-self.rows // L.ROWS_SIDE_BY_SIDE)
        grid = (self.tiles, min(self.rows, L.ROWS_SIDE_BY_SIDE), layers)
        self.kernel[grid](*self.arguments, **self.constants, **self.options)


@dataclass(frozen=True)
class KernelSettings:
    """Settings that all launches of a program share."""

    output: Output
    pixel_functions: PixelFunctions
    source_format: int
    block: tuple[int, int] = BLOCK
    depth: Depth = Depth.UINT8

    @cached_property
    def tiles(self) -> dict[str, Any]:
        """Compile-time arguments of every kernel."""
        return {"BLOCK_Y": self.block[0], "BLOCK_X": self.block[1], "VERSION": L.VERSION}

    @cached_property
    def results(self) -> dict[str, Any]:
        """Compile-time arguments of kernels that write results."""
        dtype = self.output.dtype if self.output.is_float else str(self.depth)
        return {"RESULT": RESULTS[dtype], "IS_PLANAR": self.output.layout == "NCHW", **self.tiles}

    @property
    def canvas_format(self) -> int:
        """Format of the images between passes."""
        return self.source_format if self.depth.is_deep else L.CANVAS

    @cached_property
    def preparation(self) -> KernelForm:
        constants = {"FORMAT": self.source_format, "WEIGHTS_BLOCK": L.WEIGHTS_BLOCK, **self.tiles}
        return KernelForm(statistics.prepare, constants, _LIGHT)

    @cached_property
    def search(self) -> KernelForm:
        """A further round of the search for percentiles."""
        return KernelForm(statistics.search, {"FORMAT": self.source_format, **self.tiles}, _LIGHT)

    @cached_property
    def _forms(self) -> dict[Any, KernelForm]:
        return {}

    def of_pass(self, features: int, is_first: bool, is_last: bool) -> KernelForm:
        key = features, is_first, is_last
        form = self._forms.get(key)
        if form is None:
            constants = {
                "FORMAT": self.source_format if is_first else self.canvas_format,
                **{name: features & feature != 0 for name, feature in _FLAGS},
                "PIXEL_FUNCTIONS": self.pixel_functions,
                **self.results,
            }
            constants["MEASURES"] &= not is_last
            is_heavy = bool(features & _HEAVY_FEATURES or self.pixel_functions or self.depth.is_deep)
            form = self._forms[key] = _kernel_form(run_pass, constants, is_heavy)
        return form

    def of_blend(self, features: int, has_alpha: bool) -> KernelForm:
        has_noise = bool(features & KernelFeature.HAS_NOISE)
        constants = {"HAS_NOISE": has_noise, "HAS_ALPHA": has_alpha, "FORMAT": self.canvas_format, **self.results}
        return _kernel_form(blend_rows, constants, has_noise or self.depth.is_deep)


@dataclass(frozen=True)
class KernelForm:
    """A kernel with compile-time arguments and launch options. ``tiles``: programs per tile of the layout."""

    kernel: Any
    constants: dict[str, Any]
    options: dict[str, Any]
    tiles: int = 1

    def launch(self, rows: int, tiles: int, arguments: tuple[Any, ...]) -> Launch:
        return Launch(self.kernel, rows, tiles * self.tiles, arguments, self.constants, self.options)


def launches(
    packer: Packer,
    counts: AnyArray,
    settings: KernelSettings,
    buffer: torch.Tensor,
    workspace: torch.Tensor,
    features: Sequence[int],
) -> list[Launch]:
    """Return the launches: at most one for the preparation, one per pass, and one for the blend.

    Percentiles of deep images add one launch (uint16) or three (float32) after the launch that begins to search them.

    ``counts``: the result of ``packer.fill``. ``features``: the features to compile into the kernel of every pass, at
    least the features that the pass needs.
    """
    at = packer.at
    queue = []
    arguments: tuple[Any, ...]

    def search_percentiles(launch: int, fields: list[int], headers_at: int) -> None:
        """``headers_at``: offset of the headers of the passes whose source the launch has measured."""
        rows, tiles, _, begins = fields
        for number in range(1, L.ROUNDS[settings.source_format] if begins else 1):
            read = (buffer, workspace, at.code, headers_at, packer.list_at(launch), rows, number)
            queue.append(settings.search.launch(rows, tiles, read))

    preparation, *passes, blend = counts.tolist()
    if preparation[L.NUM_ROWS]:
        rows, tiles, *_ = preparation
        arguments = (buffer, workspace, at.code, at.args, packer.header_at(0), packer.list_at(0), rows)
        queue.append(settings.preparation.launch(rows, tiles, arguments))
        search_percentiles(0, preparation, packer.header_at(0))
    for p, (fields, needed) in enumerate(zip(passes, features, strict=True)):
        rows, tiles, *_ = fields
        is_last = p + 1 == packer.num_passes
        arguments = (
            buffer,
            workspace,
            at.code,
            at.args,
            packer.header_at(p),
            packer.header_at(p if is_last else p + 1),
            packer.list_at(1 + p),
            at.constants,
            rows,
        )
        queue.append(settings.of_pass(needed, p == 0, is_last).launch(rows, tiles, arguments))
        search_percentiles(1 + p, fields, packer.header_at(p + 1))
    if packer.is_blended:
        rows, tiles, needed, _ = blend
        arguments = (
            buffer,
            at.code,
            at.args,
            at.blend_headers,
            at.begins,
            at.starts,
            at.last_canvases,
            at.blend_weights,
            at.boxes,
            at.alpha_at,
            at.alpha,
            at.constants,
            rows,
        )
        queue.append(settings.of_blend(needed, packer.has_alpha).launch(rows, tiles, arguments))
    return queue


def heavy_height(height: int) -> int:
    """Return the tile height of heavy launches, whose pixels need many registers. ``height``: of light launches."""
    return max(height // 2, 1)


def _kernel_form(kernel: Any, constants: dict[str, Any], is_heavy: bool) -> KernelForm:
    if not is_heavy:
        return KernelForm(kernel, constants, _LIGHT)
    return KernelForm(kernel, {**constants, "BLOCK_Y": heavy_height(constants["BLOCK_Y"])}, _HEAVY, tiles=2)

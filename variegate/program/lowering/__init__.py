"""Lowering: compilation of a sampled Program into fused passes."""

from __future__ import annotations

from variegate.program.lowering.rewrites import rewrite_program
from variegate.program.program import Program

GEOMETRY_MODES = ("composed", "exact", "nearest")


def lower(program: Program, geometry: str = "composed", measured_once: bool = False) -> Program:
    """Lower a sampled program into a new fused program.

    Args:
        program: a sampled program. It is not modified.
        geometry: "composed" composes consecutive interpolating maps, so that pixels are interpolated once; "exact"
            interpolates after each map; "nearest" is for masks, see ``native/lowering/masks.cpp``.
        measured_once: for GPUs, which measure statistics once per pass: start a new pass for statistics of a different
            image, see ``native/lowering/passes.cpp``.
    """
    if geometry not in GEOMETRY_MODES:
        raise ValueError(f'geometry: got {geometry!r}; accepted: "composed", "exact" or "nearest"')
    return rewrite_program(program, geometry != "exact", measured_once, geometry == "nearest")

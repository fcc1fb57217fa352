"""Lowering: a sampled Program becomes fused passes."""

from __future__ import annotations

from variegate.program.lowering.rewrites import rewrite_program
from variegate.program.program import Program

GEOMETRY_MODES = ("composed", "exact", "nearest")


def lower(program: Program, geometry: str = "composed", measured_once: bool = False) -> Program:
    """Lower a sampled program, which stays as it is.

    ``geometry="composed"`` joins interpolating maps into one gather, ``"exact"`` does not. ``"nearest"`` is for masks,
    whose maps take the nearest pixel: see ``native/lowering/masks.cpp``. ``measured_once``: see
    ``native/lowering/passes.cpp``.
    """
    if geometry not in GEOMETRY_MODES:
        raise ValueError(f'geometry: got {geometry!r}; accepted: "composed", "exact" or "nearest"')
    return rewrite_program(program, geometry != "exact", measured_once, geometry == "nearest")

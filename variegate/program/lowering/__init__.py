"""Lowering: a sampled Program becomes fused passes, by a short list of named rewrites."""

from __future__ import annotations

from collections.abc import Callable

from variegate.program.lowering.fuse import assign_passes
from variegate.program.lowering.identities import drop_identities
from variegate.program.lowering.maps import geometry_to_maps
from variegate.program.lowering.merge import merge_luts, merge_maps
from variegate.program.lowering.tables import values_to_tables
from variegate.program.program import Program

GEOMETRY_MODES = ("composed", "exact")


def lowering_passes(geometry: str = "composed", measured_once: bool = False) -> list[Callable[[Program], Program]]:
    """The rewrites in order. Each takes and returns a Program and leaves it valid (see ``program.validate``)."""
    if geometry not in GEOMETRY_MODES:
        raise ValueError(f'geometry: got {geometry!r}; accepted: "composed" or "exact"')
    return [
        drop_identities,
        geometry_to_maps,
        values_to_tables,
        merge_maps,
        merge_luts,
        lambda program: assign_passes(program, geometry == "composed", measured_once),
    ]


def lower(program: Program, geometry: str = "composed", measured_once: bool = False) -> Program:
    """Run every rewrite. ``geometry="composed"`` joins interpolating maps into one gather, ``"exact"`` does not.

    ``measured_once``: see ``assign_passes``.
    """
    for rewrite in lowering_passes(geometry, measured_once):
        program = rewrite(program)
    return program

"""Lowering: a sampled Program becomes fused passes by ``rewrites``; ``VARIEGATE_DEBUG=1`` validates after each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from variegate.program.detours import Detour, cut, has_detours
from variegate.program.lowering.blurs import blurs_to_kernels
from variegate.program.lowering.fuse import assign_passes
from variegate.program.lowering.identities import drop_identities
from variegate.program.lowering.joint import rewrite_program
from variegate.program.lowering.maps import geometry_to_maps, to_map
from variegate.program.lowering.merge import merge_maps
from variegate.program.lowering.tables import build, merge_luts, values_to_tables
from variegate.program.ops import SPECS, Kind, Op, require_branches
from variegate.program.program import Program
from variegate.program.validate import InvalidProgram, validate

require_branches(
    "lowering",
    {
        Kind.GEOMETRY: (to_map, Op.AFFINE),
        Kind.VALUE: (build,),
        Kind.NEIGHBOURHOOD: (blurs_to_kernels, Op.GAUSSIAN_BLUR),
    },
    lambda op: SPECS[op].becomes is not None and SPECS[op].level is None,
)
GEOMETRY_MODES = ("composed", "exact")
DEBUG = os.environ.get("VARIEGATE_DEBUG") == "1"


@dataclass(frozen=True)
class Rewrite:
    """A step of lowering; afterwards the program is at ``stage``, and valid there."""

    stage: str
    function: Callable[[Program], Program]

    def __call__(self, program: Program) -> Program:
        rewritten = self.function(program)
        rewritten.stage = self.stage
        return verified(rewritten)


@cache
def rewrites(geometry: str = "composed", measured_once: bool = False) -> tuple[Rewrite, ...]:
    """The rewrites of lowering, in order. The arguments are those of ``lower``."""
    if geometry not in GEOMETRY_MODES:
        raise ValueError(f'geometry: got {geometry!r}; accepted: "composed" or "exact"')
    return (
        Rewrite("compact", drop_identities),
        Rewrite("mapped", geometry_to_maps),
        Rewrite("tabled", values_to_tables),
        Rewrite("merged", merge_maps),
        Rewrite("composed", merge_luts),
        Rewrite("fused", partial(assign_passes, composed=geometry == "composed", measured_once=measured_once)),
    )


def lower(program: Program, geometry: str = "composed", measured_once: bool = False) -> Program:
    """Run every rewrite, one by one where ``DEBUG`` is set, else in one compiled call. ``measured_once``: see
    ``fuse.assign``. ``geometry="composed"`` joins interpolating maps into one gather, ``"exact"`` does not."""
    steps = rewrites(geometry, measured_once)
    if has_detours(program):
        before, after, place, quality = cut(verified(program))
        return lower(after, geometry, measured_once).replace(
            detour=Detour(lower(before, geometry, measured_once), place, quality)
        )
    if not DEBUG:
        return rewrite_program(program, geometry == "composed", measured_once)
    verified(program)
    for rewrite in steps:
        program = rewrite(program)
    return program


def verified(program: Program) -> Program:
    """The program itself; where ``DEBUG`` is set, InvalidProgram is raised unless it is valid."""
    if DEBUG:
        try:
            validate(program)
        except InvalidProgram as broken:
            raise InvalidProgram(f"{program.stage}: {broken}") from None
    return program

"""Detours: whole images made of whole images (JPEG), outside of passes; programs are cut there before lowering."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from variegate.program.ops import KIND_OF, Kind, Op
from variegate.program.program import INSTRUCTION_ARRAYS, Output, Program

_OF_ROWS = (*INSTRUCTION_ARRAYS, "length", "source", "in_shape", "ids", "key")


@dataclass(frozen=True)
class Detour:
    """Work that rows of a fused program depend on. ``program``: fused, of those rows alone; it may have a detour
    itself. ``place``: int[R], the row there whose JPEG of ``quality[place]`` a row here reads; -1: an image of the
    batch."""

    program: Program
    place: npt.NDArray[np.int64]
    quality: npt.NDArray[np.int64]


def has_detours(program: Program) -> bool:
    """Of a sampled program."""
    return bool((KIND_OF[program.opcode] == Kind.DETOUR).any())


def cut(program: Program) -> tuple[Program, Program, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut at the last detour of every row -> (program before, of rows that have one; after, of all rows; place;
    quality)."""
    slots = np.arange(program.opcode.shape[1])
    is_cut = (KIND_OF[program.opcode] == Kind.DETOUR) & (slots < program.length[:, None])
    rows = np.flatnonzero(is_cut.any(axis=1))
    last = len(slots) - 1 - np.argmax(is_cut[rows, ::-1], axis=1)
    before = rows_of(program, rows)
    # Grouping stays, which says that rows are views of one image.
    before = before.replace(length=last.astype(np.int32), output=Output(layout="NHWC"), blend=None, mixture=None)
    before.opcode[slots >= last[:, None]] = Op.NOP
    in_shape = program.in_shape.copy()
    in_shape[rows, :2] = program.out_size[rows, last]
    done = np.zeros(program.num_rows, np.int64)
    done[rows] = last + 1
    after = {"length": (program.length - done).astype(np.int32), "in_shape": in_shape}
    moved = np.minimum(slots + done[:, None], slots[-1])
    every = np.arange(program.num_rows)[:, None]
    after |= {name: getattr(program, name)[every, moved] for name in INSTRUCTION_ARRAYS}
    after["opcode"][slots >= after["length"][:, None]] = Op.NOP
    place = np.full(program.num_rows, -1, np.int64)
    place[rows] = np.arange(len(rows))
    return before, program.replace(**after), place, program.args[rows, last, 0].astype(np.int64)


def rows_of(program: Program, rows: npt.NDArray[np.intp]) -> Program:
    """Some rows of a program, sampled or fused, which are copied; of a fused one, as loaders of images look at it."""
    return program.replace(**{name: getattr(program, name)[rows] for name in _OF_ROWS}, detour=None)

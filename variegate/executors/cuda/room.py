"""Room for the programs of a captured run: fixed sizes, so that every section and every launch stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cuda import layout as L
from variegate.executors.cuda.plan import FEATURES, NUM_ROWS
from variegate.program.program import Program

if TYPE_CHECKING:
    from variegate.executors.cuda.pack import Packer

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Room:
    """What every program of one captured run must keep to."""

    passes: int
    slots: int
    sections: dict[str, int]  # bytes
    statistics: int
    weights: int
    canvases: int
    launches: Array  # as Packed.launches

    @classmethod
    def of(cls, packers: Sequence[Packer], launches: Sequence[Array]) -> Room:
        """Room for these programs of one batch, and half as much again of what varies from draw to draw."""
        passes = max(packer.num_passes for packer in packers)
        most = np.zeros((2 + passes, 3), np.int64)
        for found in launches:
            for at, launch in [*enumerate(found[:-1]), (-1, found[-1])]:
                most[at, :FEATURES] = np.maximum(most[at, :FEATURES], launch[:FEATURES])
                most[at, FEATURES] |= launch[FEATURES]
        rows = packers[0].program.num_rows
        most[:-1, NUM_ROWS] = np.where(most[:-1, NUM_ROWS] > 0, rows, 0)
        sections = {}
        for name in packers[0].sizes:
            size = max(packer.sizes[name] for packer in packers)
            sections[name] = size if name in ("constants", "begins", "canvases", "weights") else size * 3 // 2
        slots = max(packer.program.opcode.shape[1] for packer in packers)
        fixed = {"heads": 8 * L.HEAD * passes * rows, "code": 4 * L.CODE * rows * slots, "args": 64 * rows * slots}
        return cls(
            passes=passes,
            slots=slots,
            sections=sections | fixed | {"lists": lists_size(rows, passes)},
            statistics=max(packer.statistics for packer in packers) * 3 // 2,
            weights=max(packer.weights for packer in packers) * 3 // 2,
            canvases=max(packer.needs.canvases for packer in packers) * 3 // 2,
            launches=most,
        )


class DoesNotFit(Exception):
    """A program needs more than its room."""


def lists_size(rows: int, passes: int) -> int:
    return 4 * (1 + passes) * _list_length(rows, passes)


def _list_length(rows: int, passes: int) -> int:
    """Entries that a list has place for, in whole groups of four."""
    return -(-rows * passes // 4) * 4


def widened(program: Program, room: Room) -> Program:
    """The program in as many slots as the room has. Raises DoesNotFit for one of more slots or passes."""
    missing = room.slots - program.opcode.shape[1]
    if missing < 0 or int(program.num_passes.max(initial=1)) > room.passes:  # type: ignore[union-attr]
        raise DoesNotFit
    names = ("opcode", "args", "flags", "fill", "out_size", "label", "window", "pass_of")
    widened = {}
    for name in names if missing else ():
        grid = getattr(program, name)
        widened[name] = np.concatenate([grid, np.zeros((len(grid), missing, *grid.shape[2:]), grid.dtype)], axis=1)
    return program.replace(**widened)

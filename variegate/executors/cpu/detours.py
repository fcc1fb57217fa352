"""Rows that leave the fused passes and come back (``variegate/program/detours.py``), as loaders of images.

A thread that needs such a row's image runs what comes before, by itself, on the image that the row begins with, and
codes what comes of it. So no more images are held than are being made.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.arguments import form_of, instructions_of, side_tables
from variegate.executors.cpu.batch import held_batch, measure, new_batch
from variegate.executors.cpu.jpeg import through_jpeg
from variegate.executors.cpu.memory import place_of, scratch_for
from variegate.executors.cpu.passes import run_rows
from variegate.program.detours import Detour, rows_of
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]
# (row, place) -> the image that the row reads, which lasts until the thread's next load into the same place.
Load = Callable[[int, int], Image]
# Of a fused program, whose first resizes it may rewrite as it loads.
Loader = Callable[[Program], Load]


def load_with_detours(program: Program, loader: Loader) -> Load:
    """A load for all rows of ``program``, by ``loader`` for those that read images of the batch."""
    detour = program.detour
    if detour is None:
        return loader(program)
    others = np.flatnonzero(detour.place < 0)
    read = rows_of(program, others)
    load_read, made = loader(read), _Made(detour, load_with_detours(detour.program, loader))
    number = np.zeros(program.num_rows, np.int64)
    number[others] = np.arange(len(others))

    def load(row: int, place: int) -> Image:
        before = int(detour.place[row])
        if before >= 0:
            return made.load(before, place)
        i = int(number[row])
        image = load_read(i, place)
        program.args[row, :1], program.in_shape[row] = read.args[i, :1], read.in_shape[i]
        return image

    return load


class _Made:
    """Images that rows of a detour's program make, row by row, each on the thread that asks for it."""

    def __init__(self, detour: Detour, load: Load) -> None:
        program = self._program = detour.program
        self._quality, self._load = detour.quality, load
        self._sources, self._targets = np.zeros((2, program.num_rows), np.int64)
        arguments = instructions_of(program), side_tables(program.tables)
        self._batch = new_batch(*arguments, self._sources, self._targets)
        self._memory = held_batch(self._batch)
        # Asked now, as ``load`` may put smaller images in place of those that the program was made for.
        measure(place_of(self._memory))
        self._needs = tuple(self._batch.needs.tolist())
        self._kind = form_of(program.output).kind

    def load(self, row: int, place: int) -> Image:
        program, image = self._program, self._load(row, place)
        if program.length[row]:
            made = np.empty((*program.final_size(row), int(program.in_shape[row, 2])), np.uint8)
            self._sources[row], self._targets[row] = place_of(image), place_of(made)
            run_rows(row, row + 1, place_of(self._memory), scratch_for(self._needs), self._kind, False)
            image = made
        return through_jpeg(image.reshape(*image.shape[:2], -1), int(self._quality[row]))

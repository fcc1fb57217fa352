"""Rows of a batch that read one file: views and copies of it, which one decode is enough for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from variegate.decode import decode_plain
from variegate.decode.entropy.index import EntropyIndex
from variegate.executors.runners.decode_plan import DecodePlan, shift_crop
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]


class Files(Protocol):
    """Of an ``EncodedBatch``."""

    files: Sequence[Any]
    decode_seconds: list[float]
    index: EntropyIndex | None

    def whole(self, i: int) -> Image: ...


def length_of_runs(files: npt.NDArray[np.intp]) -> int:
    """Of equal numbers one after another, if all runs are as long; else 1."""
    ends = np.flatnonzero(np.diff(files, append=-1)) + 1
    lengths = np.diff(ends, prepend=0)
    return int(lengths[0]) if (lengths == lengths[0]).all() else 1


def one_decode_for_all(
    batch: Files, fused: Program, plans: list[DecodePlan | None], shared: list[int], alone: Callable[[int, int], Image]
) -> Callable[[int, int], Image]:
    """A loader that decodes once for rows of one file after another. ``shared``: each row's file; ``alone``: reduced
    rows."""
    latest, are_views = threading.local(), fused.grouping is not None

    def load(row: int, place: int) -> Image:
        plan, number = plans[row], shared[row]
        if not are_views and (plan is None or plan.divisor > 1):
            return alone(row, place)
        if getattr(latest, "number", None) != number:
            begin = time.perf_counter()
            latest.part = None  # its memory may serve for the next
            latest.part, latest.number = _decode(batch, plan, number), number
            batch.decode_seconds.append(time.perf_counter() - begin)
        image, top, left = latest.part
        if top or left:
            shift_crop(fused, row, top, left, *image.shape[:2])
        else:
            fused.in_shape[row, :2] = image.shape[:2]
        return image

    return load


def _decode(batch: Files, plan: DecodePlan | None, number: int) -> tuple[Image, int, int]:
    """-> (part of the picture, its top, its left), in memory of its own: how long rows read it is not known."""
    # Imported on demand: Numba takes a while.
    from variegate.executors.cpu.memory import RESULTS

    if plan is not None:
        data: bytes = batch.files[number]
        file = RESULTS.take(len(data)) if plan.height_offset else None
        room = RESULTS.take(plan.room)
        if plan.box is not None and batch.index is not None:
            part = batch.index.decode_part(data, plan.box, buffer=room)
            if part is not None:
                return part
        image = decode_plain(data, plan.height, plan.width, 1, plan.height_offset, room, file)
        if image is not None:
            return image, 0, 0
    return batch.whole(number), 0, 0

"""Batches of images: distribute rows over threads, check images against programs, pack images into one buffer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextvars import ContextVar
from functools import lru_cache

import numpy as np

from variegate.arrays import ImageArray, Int32Array, Int64Array, UInt8Array
from variegate.program.depth import ACCEPTED, Depth, depth_of
from variegate.program.program import Program
from variegate.threads import Threads, default_threads

# If set, ``share_out`` appends the seconds that its threads worked, less the seconds that its caller waited.
extra_seconds: ContextVar[list[float] | None] = ContextVar("extra_seconds", default=None)
# Rows that a thread takes at a time: enough to hide the cost of taking, few enough to balance unequal rows.
ROWS_AT_A_TIME = 8


@lru_cache(maxsize=8)
def _thread_pool(threads: int) -> Threads:
    return Threads(threads, "variegate")


def share_out(
    work: Callable[[Int64Array], None], number: int, num_threads: int | None, chunk: int = ROWS_AT_A_TIME
) -> None:
    """Call ``work`` with all indices 0..number-1, in chunks that threads take one after another."""
    threads = default_threads() if num_threads is None else num_threads
    every = np.arange(number, dtype=np.int64)
    if threads == 1 or number <= 1:
        work(every)
        return
    chunk = max(1, min(chunk, -(-number // threads)))
    pool = _thread_pool(threads)
    extra = extra_seconds.get()
    # Each thread takes the next chunk from a shared queue: a pool task per chunk would cost a context switch each.
    starts = deque(range(0, number, chunk))
    errors: dict[int, BaseException] = {}

    def take() -> None:
        begin = time.perf_counter()
        while starts:
            try:
                start = starts.popleft()
            except IndexError:  # another thread was faster
                break
            try:
                work(every[start : start + chunk])
            except BaseException as error:
                errors[start] = error
                starts.clear()
        if extra is not None:
            extra.append(time.perf_counter() - begin)

    if extra is not None:
        extra.append(time.perf_counter())
    parts: list[Future[None]] = []
    try:
        for _ in range(min(threads, len(starts))):
            parts.append(pool.submit(take))
        wait(parts)
    finally:
        # Threads write to raw addresses, so all must stop before the caller frees that memory, also after an error or
        # Ctrl-C.
        starts.clear()
        for part in parts:
            part.cancel()
        wait(parts)
        if extra is not None:
            extra.append(-time.perf_counter())
    if errors:
        # Chunks are taken in order, so the first one that fails, and hence this error, is the same in every run.
        first = errors[min(errors)]
        errors.clear()
        try:
            raise first
        finally:
            del first  # its traceback refers to this frame, which would keep the caller's memory alive


# Images begin at multiples of this many bytes.
_ALIGNMENT = 16


def depth_of_batch(images: Sequence[ImageArray] | ImageArray, names: str = "images[{}]") -> Depth:
    """Return the depth of a list or one array of images; UINT8 without images. ``names``: an image in errors.

    Raises TypeError for other dtypes, and ValueError for several dtypes: kernels do not check.
    """
    if isinstance(images, np.ndarray) and (depth := depth_of(images.dtype)) is not None:
        return depth
    of_batch = [images.dtype] if isinstance(images, np.ndarray) else [image.dtype for image in images]
    depths = [depth_of(dtype) for dtype in of_batch]
    for i, depth in enumerate(depths):
        if depth is None:
            raise TypeError(f"{names.format(i)}: got {of_batch[i]}; accepted: {ACCEPTED} [H, W, C] or [H, W]")
        if depth is not depths[0]:
            got = f"an image of {depth} in a batch of {of_batch[0]}"
            raise ValueError(f"{names.format(i)}: got {got}; accepted: images of one dtype")
    return depths[0] if depths and depths[0] is not None else Depth.UINT8


def shapes_of(images: Sequence[ImageArray] | ImageArray) -> Int32Array:
    """int32[N, 3]: height, width and channels of images [H, W, C] or [H, W], or of one array [N, H, W, C]."""
    if isinstance(images, np.ndarray) and images.ndim == 4:
        return np.tile(np.array(images.shape[1:], np.int32), (len(images), 1))
    return np.array([(*image.shape, 1)[:3] for image in images], np.int32).reshape(-1, 3)


def check_fits(program: Program, shapes: Int32Array, depth: Depth) -> None:
    """Raise ValueError if the program was sampled for other shapes or another depth: kernels do not check sizes."""
    if program.blend is not None and program.blend.lacks_alpha:
        raise ValueError("program: got one without CopyPaste's masks; accepted: a call with dicts that have 'masks'")
    for row, source in enumerate(program.source.tolist()):
        sampled_for = program.in_shape[row]
        accepted = f"sampled for {program.depth}{sampled_for.tolist()}"
        if source >= len(shapes):
            raise ValueError(f"row {row}: image {source} of {len(shapes)} is missing; {accepted}")
        if depth is not program.depth or (shapes[source] != sampled_for).any():
            raise ValueError(f"row {row}: image {source} is {depth}{shapes[source].tolist()}; {accepted}")


def packed_offsets(shapes: Int32Array, depth: Depth = Depth.UINT8) -> tuple[Int64Array, int]:
    """Aligned positions of images in one buffer -> (offsets int64[N], size of the buffer in bytes)."""
    sizes = shapes.astype(np.int64).prod(axis=1) * depth.dtype.itemsize
    ends = np.cumsum(-(-sizes // _ALIGNMENT) * _ALIGNMENT)
    return np.concatenate([np.zeros(1, np.int64), ends])[:-1], int(ends[-1]) if len(ends) else 0


def write_images(
    memory: UInt8Array,
    images: Sequence[ImageArray] | ImageArray,
    offsets: Int64Array,
) -> None:
    """Copy contiguous images to ``offsets`` of ``memory``, on one thread per core."""

    def copy(rows: Int64Array) -> None:
        for i in rows.tolist():
            image = images[i]
            memory[offsets[i] : offsets[i] + image.nbytes] = image.reshape(-1).view(np.uint8)

    share_out(copy, len(images), None)

"""The images of a batch: whether they are those of a program, and several sizes side by side in one buffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from variegate.executors.threads import share_out
from variegate.program.program import Program

# Images begin at multiples of this many bytes.
_ALIGNMENT = 16


def shapes_of(images: Sequence[npt.NDArray[np.uint8]] | npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """int32[N, 3]: height, width and channels of uint8 images [H, W, C] or [H, W], or of one array [N, H, W, C].

    Raises TypeError for other dtypes: kernels trust it.
    """
    if isinstance(images, np.ndarray) and images.ndim == 4 and images.dtype == np.uint8:
        return np.tile(np.array(images.shape[1:], np.int32), (len(images), 1))
    for i, image in enumerate(images):
        if image.dtype != np.uint8:
            raise TypeError(f"images[{i}]: got {image.dtype}{list(image.shape)}; accepted: uint8 [H, W, C] or [H, W]")
    return np.array([(*image.shape, 1)[:3] for image in images], np.int32).reshape(-1, 3)


def check_fits(program: Program, shapes: npt.NDArray[np.int32]) -> None:
    """ValueError unless images of these shapes are those that the program was sampled for: kernels trust its sizes."""
    if program.detour is not None:
        check_fits(program.detour.program, shapes)
    for row, source in enumerate(program.source.tolist()):
        if program.detour is not None and program.detour.place[row] >= 0:
            continue  # reads what is made before
        accepted = f"sampled for uint8{program.in_shape[row].tolist()}"
        if source >= len(shapes):
            raise ValueError(f"row {row}: image {source} of {len(shapes)} is missing; {accepted}")
        if (shapes[source] != program.in_shape[row]).any():
            raise ValueError(f"row {row}: image {source} is uint8{shapes[source].tolist()}; {accepted}")


def layout(shapes: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], int]:
    """Aligned places for images -> (offsets int64[N], bytes in all)."""
    sizes = shapes.astype(np.int64).prod(axis=1)
    ends = np.cumsum(-(-sizes // _ALIGNMENT) * _ALIGNMENT)
    return np.concatenate([np.zeros(1, np.int64), ends])[:-1], int(ends[-1]) if len(ends) else 0


def write_images(
    memory: npt.NDArray[np.uint8],
    images: Sequence[npt.NDArray[np.uint8]] | npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
) -> None:
    """Copy contiguous images to their places, by as many threads as there are cores."""

    def copy(rows: npt.NDArray[np.int64]) -> None:
        for i in rows.tolist():
            image = images[i]
            memory[offsets[i] : offsets[i] + image.size] = image.reshape(-1)

    share_out(copy, len(images), None)

"""Images of several sizes side by side in one buffer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu.executor import share_out

# Images begin at multiples of this many bytes.
_ALIGNMENT = 16


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

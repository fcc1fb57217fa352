"""Three channels of an image of several, as an image of their own."""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu.kernel import bytes_at
from variegate.program.compiled import pixel_kernel


@pixel_kernel
def pick_planes(
    source: Any, line: Any, channels: Any, second: Any, third: Any, height: Any, width: Any, target: Any
) -> None:
    """``source``, ``target``: addresses of the first channel wanted and of the image made. Lines begin ``line`` bytes
    after one another; the other two channels lie ``second`` and ``third`` bytes after the first."""
    for y in range(height):
        levels, to = bytes_at(source + y * line, width * channels), bytes_at(target + 3 * y * width, 3 * width)
        for x in range(width):
            to[3 * x] = levels[channels * x]
            to[3 * x + 1] = levels[channels * x + second]
            to[3 * x + 2] = levels[channels * x + third]

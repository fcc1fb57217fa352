"""Three channels of images of several, as images of their own."""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu.kernel import bytes_at
from variegate.executors.cpu.simd import I64, Value, steps, vector_block
from variegate.program.compiled import pixel_kernel

# Pixels at a time, by the number of channels, as measured; of others they go one by one.
_AT_A_TIME = {2: 16, 4: 32, 5: 32, 6: 16, 7: 5, 8: 32}
# Pixels that vectors may reach beyond a line, which its last ones therefore do not use where nothing follows.
_MARGIN = 34


@vector_block(I64, I64, I64, I64)
def _pick(source: Value, target: Value, count: Value, channels: Value) -> None:
    """Three channels of ``count`` pixels, rounded up to a number at a time."""

    def pick(numbers: list[int]) -> None:
        if not numbers:
            with steps(count, 1) as x:
                (source + x * channels).load("i32").store(target + x * 3)
            return
        number, pixels = numbers[0], _AT_A_TIME[numbers[0]]
        chosen = [pixel * number + min(i, number - 1) for pixel in range(pixels) for i in range(3)]
        with source.builder.if_else(channels.equals(number).value) as (then, otherwise):
            with then, steps(count, pixels) as x:
                levels = (source + x * number).load("i8", max(16, pixels * number))
                levels.picked([*chosen, *[0] * (-len(chosen) % 16)]).store(target + x * 3)
            with otherwise:
                pick(numbers[1:])

    pick(list(_AT_A_TIME))


@pixel_kernel
def pick_planes(images: Any, begin: Any, end: Any, channels: Any, target: Any, sources: Any) -> None:
    """Three channels of ``images[begin:end]``, int64[N, 4], one after another from the address ``target`` on; of two
    channels the second twice. An image begins, with the first of them, at an address, and has so many bytes from line
    to line, lines, and pixels in each. ``sources``: where those made begin."""
    last = min(2, channels - 1)
    for n in range(begin, end):
        source, line, height, width = images[n]
        sources[n] = target
        if line == width * channels:
            height, width = 1, height * width
        for y in range(height):
            count = width if y < height - 1 and width >= _MARGIN else max(0, width - _MARGIN)
            _pick(source, target, count, channels)
            levels, planes = bytes_at(source, width * channels), bytes_at(target, 3 * width)
            for x in range(count, width):
                planes[3 * x] = levels[channels * x]
                planes[3 * x + 1] = levels[channels * x + 1]
                planes[3 * x + 2] = levels[channels * x + last]
            source, target = source + line, target + 3 * width

"""Three channels of an image of several, as an image of their own."""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu.kernel import bytes_at
from variegate.executors.cpu.simd import I64, Value, steps, vector_block
from variegate.program.compiled import pixel_kernel

# Pixels at a time, by the number of channels, as measured; of more channels they go one by one.
_AT_A_TIME = (1, 1, 16, 1, 16, 16, 3, 2, 2)
# At the end of a line, vectors may reach too far.
_MARGIN = 18


def _picking(channels: int, pixels: int) -> Any:
    """An intrinsic (source, target, count): three channels of ``count`` pixels, rounded up to multiples of ``pixels``.
    Past them it reads and writes up to 16 bytes."""
    chosen = [pixel * channels + min(i, channels - 1) for pixel in range(pixels) for i in range(3)]
    size = max(16, pixels * channels)

    @vector_block(I64, I64, I64)
    def pick(source: Value, target: Value, count: Value) -> None:
        with steps(count, pixels) as x:
            levels = (source + x * channels).load("i8", size)
            levels.picked([*chosen, *[0] * (16 - len(chosen))]).store(target + x * 3)

    return pick


@vector_block(I64, I64, I64, I64)
def _pick_any(source: Value, target: Value, count: Value, channels: Value) -> None:
    with steps(count, 1) as x:
        (source + x * channels).load("i32").store(target + x * 3)


_pick_2, _pick_4, _pick_5, _pick_6, _pick_7, _pick_8 = (_picking(n, _AT_A_TIME[n]) for n in (2, 4, 5, 6, 7, 8))


@pixel_kernel
def pick_planes(source: Any, line: Any, channels: Any, height: Any, width: Any, target: Any) -> None:
    """Three channels of an image that begins, with the first of them, at the address ``source``, with ``line`` bytes to
    a line, to the address ``target``; of two channels the second twice."""
    count, last = max(0, width - _MARGIN), min(2, channels - 1)
    at_a_time = _AT_A_TIME[channels] if channels < len(_AT_A_TIME) else 1
    for y in range(height):
        begin, to = source + y * line, target + 3 * y * width
        if channels == 2:
            _pick_2(begin, to, count)
        elif channels == 4:
            _pick_4(begin, to, count)
        elif channels == 5:
            _pick_5(begin, to, count)
        elif channels == 6:
            _pick_6(begin, to, count)
        elif channels == 7:
            _pick_7(begin, to, count)
        elif channels == 8:
            _pick_8(begin, to, count)
        else:
            _pick_any(begin, to, count, channels)
        levels, planes = bytes_at(begin, width * channels), bytes_at(to, 3 * width)
        for x in range((count + at_a_time - 1) // at_a_time * at_a_time, width):
            planes[3 * x] = levels[channels * x]
            planes[3 * x + 1] = levels[channels * x + 1]
            planes[3 * x + 2] = levels[channels * x + last]

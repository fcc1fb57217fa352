"""Three channels of images of several, as images of their own."""

from __future__ import annotations

from typing import Any

from variegate.executors.cpu.kernel import bytes_at
from variegate.executors.cpu.simd import I64, Value, steps, vector_block
from variegate.program.compiled import pixel_kernel

# Pixels at a time, by the number of channels, as measured; of more channels they go one by one.
_AT_A_TIME = (1, 1, 16, 1, 32, 32, 16, 5, 32)
# Pixels that vectors may reach beyond a line, which its last ones therefore do not use where nothing follows.
_MARGIN = 34


def _picking(channels: int) -> Any:
    """An intrinsic (source, target, count): three channels of ``count`` pixels, rounded up to a number at a time."""
    pixels = _AT_A_TIME[channels]
    chosen = [pixel * channels + min(i, channels - 1) for pixel in range(pixels) for i in range(3)]
    size = max(16, pixels * channels)

    @vector_block(I64, I64, I64)
    def pick(source: Value, target: Value, count: Value) -> None:
        with steps(count, pixels) as x:
            levels = (source + x * channels).load("i8", size)
            levels.picked([*chosen, *[0] * (-len(chosen) % 16)]).store(target + x * 3)

    return pick


@vector_block(I64, I64, I64, I64)
def _pick_any(source: Value, target: Value, count: Value, channels: Value) -> None:
    with steps(count, 1) as x:
        (source + x * channels).load("i32").store(target + x * 3)


_pick_2, _pick_4, _pick_5, _pick_6, _pick_7, _pick_8 = (_picking(channels) for channels in (2, 4, 5, 6, 7, 8))


@pixel_kernel
def pick_planes(images: Any, begin: Any, end: Any, channels: Any, target: Any, sources: Any) -> None:
    """Three channels of ``images[begin:end]``, int64[N, 4], one after another from the address ``target`` on; of two
    channels the second twice. An image begins, with the first of them, at an address, and has so many bytes from line
    to line, lines, and pixels in each. ``sources``: where those made begin."""
    at_a_time, last = _AT_A_TIME[channels] if channels < len(_AT_A_TIME) else 1, min(2, channels - 1)
    for n in range(begin, end):
        source, line, height, width = images[n]
        sources[n] = target
        if line == width * channels:
            height, width = 1, height * width
        for y in range(height):
            count = width if y < height - 1 and width >= _MARGIN else max(0, width - _MARGIN)
            if channels == 2:
                _pick_2(source, target, count)
            elif channels == 4:
                _pick_4(source, target, count)
            elif channels == 5:
                _pick_5(source, target, count)
            elif channels == 6:
                _pick_6(source, target, count)
            elif channels == 7:
                _pick_7(source, target, count)
            elif channels == 8:
                _pick_8(source, target, count)
            else:
                _pick_any(source, target, count, channels)
            levels, planes = bytes_at(source, width * channels), bytes_at(target, 3 * width)
            for x in range((count + at_a_time - 1) // at_a_time * at_a_time, width):
                planes[3 * x] = levels[channels * x]
                planes[3 * x + 1] = levels[channels * x + 1]
                planes[3 * x + 2] = levels[channels * x + last]
            source, target = source + line, target + 3 * width

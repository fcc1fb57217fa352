"""Every block of pixels against plain NumPy, at the level of this process: see at_level.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.executors.cpu.blocks import Callables
from variegate.executors.cpu.simd_pixels import LUMAS, PICK_MARGIN

RNG = np.random.default_rng(5)
SIZES = (1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 224)
POISON = 0xA5


def levels(*shape: int) -> npt.NDArray[np.uint8]:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def same(name: str, got: Any, want: Any) -> None:
    got = np.asarray(got)
    assert np.array_equal(got, np.broadcast_to(want, got.shape)), (name, got, want)


def check_channels(run: Callables) -> None:
    stride = 77
    for name, size, step in (
        ("simd_pixels.split_rgb", 3, 1),
        ("simd_pixels.split_rgb_reversed", 3, -1),
        ("simd_pixels.split_rgbx", 4, 1),
        ("simd_pixels.split_rgbx_reversed", 4, -1),
    ):
        pixels, planes = levels(64, size), np.full((3, stride), POISON, np.uint8)
        run[name](pixels, planes, stride)
        same(name, planes[:, :64], pixels[::step, :3].T)
        same(name, planes[:, 64:], POISON)
    planes, pixels = levels(3, stride), np.full((65, 3), POISON, np.uint8)
    run["simd_pixels.join_rgb"](planes, stride, pixels)
    same("join_rgb", pixels[:64], planes[:, :64].T)
    same("join_rgb", pixels[64], POISON)
    source, target = levels(64), np.full(65, POISON, np.uint8)
    run["simd_pixels.copy_block"](source, target)
    same("copy_block", target, [*source, POISON])
    run["simd_pixels.prefetch"](source, 64)
    for channels in (2, 4, 5, 6, 7, 8, 9):
        pixels, picked = levels(100, channels), np.full((100, 3), POISON, np.uint8)
        run["simd_pixels.pick_channels"](pixels, picked, 65, channels)
        same("pick_channels", picked[:65], pixels[:65, [0, 1, min(2, channels - 1)]])
        same("pick_channels", picked[65 + PICK_MARGIN - 1 :], POISON)


def check_floats(run: Callables) -> None:
    scale, bias = np.float32(0.017), np.float32(-2.1)
    memory = np.zeros(64 * 4 + 64, np.uint8)
    aligned = memory[-memory.ctypes.data % 64 :][:256].view(np.float32)
    for name, size in (("simd_pixels.scale_block", 64), ("simd_pixels.stream_levels", 16)):
        source = levels(64)
        aligned[:] = np.nan
        run[name](source, aligned, scale, bias)
        same(name, aligned[:size], source[:size].astype(np.float32) * scale + bias)
        same(name, np.isnan(aligned[size:]), True)


def check_lookups(run: Callables) -> None:
    for name in (name for name in run.blocks if name.startswith("simd_values.lookup")):
        for table in (levels(256), np.arange(256, dtype=np.uint8), 255 - np.arange(256, dtype=np.uint8)):
            every = np.concatenate([np.arange(256, dtype=np.uint8), levels(64)])
            for count in (*SIZES, 256):
                row = every.copy()
                run[name](row[:count], count, table)
                same(name, row[:count], table[every[:count]])
                same(name, row[count + 63 :], every[count + 63 :])


def check_walks(run: Callables) -> None:
    for count in SIZES:
        width, height, room = 53, 41, count + 32
        last = 3 * width * height - 4
        for x, y, dx, dy in ((5 << 16, 3 << 16, 7000, 3000), (52 << 16, 40 << 16, -9000, -8000), (0, 0, 65536, 0)):
            out = np.full(room, -7, np.int32)
            moved = run["simd_walk.affine_offsets"](x, y, dx, dy, width, last, count, out)
            i = np.arange(count)
            pixel = ((y + i * dy) >> 16) * width + ((x + i * dx) >> 16)
            same("affine_offsets", out[:count], np.clip(3 * pixel, 0, last))
            assert moved or (3 * pixel <= last).all()
            same("affine_offsets", out[count + 15 :], -7)
        columns, lines = RNG.integers(0, width, room, dtype=np.int32), RNG.integers(0, height, room, dtype=np.int32)
        columns[0], lines[0] = width - 1, height - 1
        moved = run["simd_walk.walked_offsets"](columns, lines, width, last, count, out)
        assert moved
        same("walked_offsets", out[:count], np.minimum(3 * (lines * width + columns), last)[:count])
        columns[:], lines[:] = 0, 0
        assert not run["simd_walk.walked_offsets"](columns, lines, width, last, count, out)

        image, offsets = levels(width * height * 3), RNG.integers(0, last + 1, room, dtype=np.int32)
        words = np.full(room, -7, np.int32)
        run["simd_walk.load_pixels"](image, offsets, count, 3 * width, words)
        want = np.stack([image[offsets[:count] + k] for k in range(4)], 1)
        same("load_pixels", words[:count].view(np.uint8).reshape(count, 4), want)
        same("load_pixels", words[count + 7 :], -7)

        first = np.array([60000, -9000, 1 << 18, 9000, 60000, -(2 << 16), 1, 2, 39, 50, 4, 0], np.int32)
        second = np.array([-70000, 5000, 50 << 16, 100, 70000, 0, 0, 0, height, width, 1, 0], np.int32)
        stages = np.full(room, -7, np.int32)
        run["simd_walk.begin_walk"](9, second, count, columns, lines, stages)
        run["simd_walk.step_back"](first, count, columns, lines, stages)
        u, v, stage = np.arange(count), np.full(count, 9), np.full(count, -1)
        for a, b, c, d, e, f, top, left, bottom, right, slot, _ in (second.tolist(), first.tolist()):
            u, v = (a * u + b * v + c) >> 16, (d * u + e * v + f) >> 16
            inside = (u >= left) & (u < right) & (v >= top) & (v < bottom)
            stage = np.where(inside | (stage >= 0), stage, slot)
            u, v = np.where(inside, u, 0), np.where(inside, v, 0)
        for array, found in ((columns, u), (lines, v), (stages, stage)):
            same("walk", array[:count], found)
        same("walk", stages[count + 15 :], -7)

        planes = levels(3, room)
        before, stages[:] = planes.copy(), RNG.integers(-1, 3, room)
        run["simd_walk.fill_row"](stages, count, 2, 0x332211, planes, room)
        colour = np.array([[0x11], [0x22], [0x33]])
        same("fill_row", planes[:, :count], np.where(stages == 2, colour, before)[:, :count])
        same("fill_row", planes[:, count + 15 :], before[:, count + 15 :])


def check_statistics(run: Callables) -> None:
    for groups in (0, 1, 2, 7, 100):
        pixels, counts = levels(groups * 8 + 2, 3), np.zeros((3, 2, 256), np.int32)
        run["simd_pixels.count_levels"](pixels, groups, counts)
        for c in range(3):
            want = np.bincount(pixels[: groups * 8, c], minlength=256)
            same("count_levels", counts[c].sum(0), want)
        pixels = levels(groups * LUMAS + 2, 3)
        value = (pixels[: groups * LUMAS].astype(np.int64) @ np.array([19595, 38470, 7471]) + 32768) >> 16
        same("sum_luma", run["simd_pixels.sum_luma"](pixels, groups), value.sum())
    for size in (96, 99, 120, 192, 195, 672):
        pixels = RNG.integers(60, 200, (size // 3, 3), dtype=np.uint8)
        extremes = np.concatenate([np.full((1, 96), 255, np.uint8), np.zeros((1, 96), np.uint8)])
        run["simd_pixels.widen_extremes"](pixels, size, extremes)
        places = extremes.reshape(2, 32, 3)
        same("widen_extremes", places[0].min(0), pixels.min(0))
        same("widen_extremes", places[1].max(0), pixels.max(0))


def scaled(value: npt.NDArray[np.int32], share: Any) -> Any:
    return (value * share + (1 << 14)) >> 15


def check_layers(run: Callables) -> None:
    """The extremes of all numbers among them."""
    stride, size = 150, 71
    for down, strength, of_level in ((0, 32767, -1), (32767, -32767, 1), (12345, 20000, 0), (1, -5, -1)):
        lines = RNG.choice(np.array([0, 1, 127, 16000, 32640], np.int16), (2, stride))
        above, below = (line[:size].astype(np.int32) for line in lines)
        between, made = above + scaled(below - above, down), np.zeros((2, stride), np.int16)
        weights, colours = scaled(between, strength), between + 64 >> 7
        weights += weights >> 8
        run["simd_layers.weigh_row"](lines[0], lines[1], down, strength, made[0], size)
        run["simd_layers.mix_row"](lines[0], lines[1], down, made[1], size)
        same("weigh_row, mix_row", made[:, :size], [weights, colours])
        row, plain = levels(stride), RNG.integers(0, 256, stride).astype(np.int16)
        made[0, size:] = 0
        level = row.astype(np.int32)
        run["simd_layers.lay_row"](row, made[0], plain, of_level, size)
        want = np.clip(level[:size] + scaled(plain[:size] + of_level * level[:size], weights), 0, 255)
        same("lay_row", row, [*want, *level[size:]])
    for begin, step in ((0, 1 << 26), (5, 1), ((1 << 26) - 1, 19_173_961), (33_000_000, (1 << 26) - 7)):
        nodes, line = levels(stride).astype(np.int32) << 7, np.zeros(stride, np.int16)
        at = begin + step * np.arange(size)
        first, second = nodes[at >> 26], nodes[(at >> 26) + 1]
        if "simd_layers.stretch_row" in run.blocks:
            run["simd_layers.stretch_row"]((nodes >> 7).astype(np.uint8), begin, step, line, size)
            same("stretch_row", line[:size], first + scaled(second - first, at >> 11 & 32767))
    planes, lightness = levels(3, stride), np.zeros(16, np.int32)
    run["simd_layers.lightness_block"](planes, stride, lightness)
    same("lightness_block", lightness, planes[:, :16].max(0).astype(np.int32) + planes[:, :16].min(0))
    pairs, row = RNG.integers(0, 32768, (16, 2)).astype(np.int16), planes[0].copy()
    run["simd_layers.bend_block"](row, lightness, pairs.view(np.int32))
    new, factor = pairs.T.astype(np.int32)
    want = np.clip((64 * new + factor * (2 * planes[0, :16].astype(np.int32) - lightness) + 2048) >> 12, 0, 255)
    same("bend_block", row, [*want, *planes[0, 16:]])


def check_all(cpu: str, features: str) -> list[str]:
    """The names of the blocks, all of which equal their twins."""
    run = Callables(cpu, features)
    for check in (check_channels, check_floats, check_lookups, check_walks, check_statistics, check_layers):
        check(run)
    return list(run.blocks)

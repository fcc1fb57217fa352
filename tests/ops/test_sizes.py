"""Sizes drawn at random: torchvision's formulas, restated plainly, against what is sampled."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate import transforms as T
from variegate.program.ops import Op
from variegate.program.program import Program

PHOTOS = [(480, 640), (333, 500), (500, 333), (7, 9), (1, 40)]


def final_sizes(program: Program) -> list[tuple[int, int]]:
    return [program.final_size(row) for row in range(program.num_rows)]


def test_random_shortest_size_is_torchvisions(draw: Any) -> None:
    program = draw(T.RandomShortestSize([30, 50], 60), PHOTOS * 40)
    seen = set()
    for (height, width), got in zip(PHOTOS * 40, final_sizes(program), strict=True):
        possible = []
        for short in (30, 50):
            r = min(short / min(height, width), 60 / max(height, width))
            possible.append((max(int(height * r), 1), max(int(width * r), 1)))
        assert got in possible
        seen.add((height, possible.index(got)))
    assert {(480, 0), (480, 1)} <= seen


def test_scale_jitter_fits_the_target_times_a_factor(draw: Any) -> None:
    height, width, target = 200, 300, (90, 50)  # torchvision divides the second by the height
    program = draw(T.ScaleJitter(target, (0.5, 2.0)), [(height, width)] * 2000)
    heights = np.array(final_sizes(program))[:, 0]
    r = min(target[1] / height, target[0] / width)
    assert int(0.5 * r * height) <= heights.min() <= int(0.5 * r * height) + 1
    assert int(2.0 * r * height) - 1 <= heights.max() <= int(2.0 * r * height)
    assert abs(heights.mean() - 1.25 * r * height) < 2
    for h, w in final_sizes(program)[:100]:
        assert abs(w - h * width / height) <= 2


def test_random_zoom_out_pads_to_a_canvas(draw: Any) -> None:
    program = draw(T.RandomZoomOut(fill=7, side_range=(1.0, 3.0), p=0.5), [(100, 200)] * 4000)
    grown = program.length == 1
    assert abs(grown.mean() - 0.5) < 0.04
    assert (program.opcode[grown, 0] == Op.PAD).all()
    assert (program.fill[grown, 0] == 7).all()
    left, top, right, bottom = program.args[grown, 0, :4].T
    sizes = np.array(final_sizes(program))[grown]
    np.testing.assert_array_equal(sizes, np.stack([100 + top + bottom, 200 + left + right], axis=1))
    factor = sizes[:, 0] / 100
    np.testing.assert_allclose(sizes[:, 1] / 200, factor, atol=0.011)
    assert abs(factor.mean() - 2.0) < 0.06
    assert (program.args[grown, 0, :4] >= 0).all()
    share = left / np.maximum(left + right, 1)
    assert abs(share.mean() - 0.5) < 0.04
    assert abs(np.corrcoef(share, top / np.maximum(top + bottom, 1))[0, 1]) < 0.1

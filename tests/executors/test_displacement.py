"""Grids of displacements beside other maps: how many passes, exact where pixels are whole, and close where composed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.executors.contract import Device, check, every_device
from tests.images import gray, photo
from tests.oracle.geometry import rotation
from tests.programs import Step, crop, grid, program_of, rotate, step
from tests.validating import InvalidProgram, validate
from variegate.executors.cpu import executor as cpu
from variegate.program.lowering import lower
from variegate.program.ops import Op

SIZE = (61, 90)


def smooth(seed: int, size: tuple[int, int] = SIZE, flags: int = 1, fill: tuple[int, int, int] = (9, 99, 199)) -> Step:
    """Nodes 16 pixels apart, by 2 pixels or so."""
    lines, columns = ((side - 1) // 16 + 2 for side in size)
    nodes = np.random.default_rng(seed).normal(0, 128, (lines, columns, 2)).astype(np.int16)
    return grid(nodes, (16.0, 16.0), flags=flags, fill=fill)


CROPPED = (40, 33)
TURNED = (SIZE[1], SIZE[0])
FLIP, UPSIDE_DOWN, TURN = step(Op.HFLIP), step(Op.VFLIP), step(Op.ROT90, 1, size=TURNED)
TABLES = [step(Op.INVERT), step(Op.SOLARIZE, 100)]


@every_device
@pytest.mark.parametrize("geometry", ["composed", "exact"])
@pytest.mark.parametrize("flags", [0, 1, 2])
def test_whole_pixels_before_and_after_are_the_same_bits(device: Device, flags: int, geometry: str) -> None:
    moved = step(Op.TRANSLATE_X, 5, fill=(1, 2, 3))
    chains: list[list[Step]] = [
        [FLIP, smooth(0, flags=flags)],
        [UPSIDE_DOWN, TABLES[0], FLIP, smooth(1, flags=flags), TABLES[1]],
        [crop(3, 20, *CROPPED), smooth(2, CROPPED, flags)],
        [TURN, smooth(3, TURNED, flags), FLIP],
        [smooth(4, flags=flags), FLIP],
        [smooth(5, flags=flags), TABLES[1], crop(3, 20, *CROPPED), UPSIDE_DOWN],
        [FLIP, smooth(6, flags=flags), TABLES[0], moved],
        [smooth(7, flags=flags), step(Op.EQUALIZE), FLIP],
    ]
    images = [(photo, gray)[n % 2](*SIZE) for n in range(len(chains))]
    check(device, program_of(chains, images), images, chains, geometry=geometry)


@pytest.mark.parametrize(
    ("chain", "passes"),
    [
        ([FLIP, smooth(0)], 1),
        ([FLIP, TABLES[0], smooth(0), TABLES[1], UPSIDE_DOWN], 1),
        ([crop(3, 20, *CROPPED), smooth(2, CROPPED, 0)], 1),
        ([rotate(9, 1), smooth(0), rotate(5, 1)], 1),
        ([smooth(0), step(Op.PERSPECTIVE, 1, 0, 0, 0, 1, 0, 1e-3, 0, flags=1), smooth(1)], 1),
        ([rotate(9, 0), smooth(0)], 2),  # another interpolation
        ([step(Op.EQUALIZE), smooth(0), step(Op.EQUALIZE)], 2),
        ([smooth(0), step(Op.GAUSSIAN_BLUR, 3, 3, 1, 1), smooth(1)], 3),
    ],
    ids=lambda v: "-".join(s.op.name for s in v) if isinstance(v, list) else str(v),
)
def test_a_chain_is_one_gather(chain: list[Step], passes: int) -> None:
    fused = lower(program_of([chain], [photo(*SIZE)]))
    assert fused.num_passes is not None
    assert fused.num_passes[0] == passes


def taken(img: Any, x: Any, y: Any) -> np.ndarray[Any, Any]:
    """Bilinear in float64, edges repeated; ``x, y`` count from the centre of the first pixel."""
    height, width = img.shape[:2]
    j, i = np.floor(x).astype(int), np.floor(y).astype(int)
    dx, dy = (x - j)[..., None], (y - i)[..., None]

    def tap(a: Any, b: Any) -> Any:
        return img[np.clip(a, 0, height - 1), np.clip(b, 0, width - 1)].astype(np.float64)

    upper, lower_ = tap(i, j) * (1 - dx) + tap(i, j + 1) * dx, tap(i + 1, j) * (1 - dx) + tap(i + 1, j + 1) * dx
    return upper * (1 - dy) + lower_ * dy


def walked(chain: Sequence[Step], height: int, width: int) -> tuple[Any, Any, Any]:
    """Places of a chain in float64, from the last map to the first, and whether all of them are inside."""
    x, y = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    inside = np.ones((height, width), np.bool_)
    for taken_step in reversed(chain):
        if taken_step.op is Op.DISPLACE:
            nodes = taken_step.table.astype(np.float64) / 64
            moved = taken(nodes, np.clip(x, 0, width - 1) / 16, np.clip(y, 0, height - 1) / 16)
            x, y = x + moved[..., 0], y + moved[..., 1]
        else:
            args = list(taken_step.args)
            if taken_step.op is Op.ROTATE:
                args = rotation(args[0] % 360, height, width, None, False)[0] + [0.0, 0.0]
            a, b, c, d, e, f, g, h = args
            u, v = x + 0.5, y + 0.5
            depth = g * u + h * v + 1
            x, y = (a * u + b * v + c) / depth - 0.5, (d * u + e * v + f) / depth - 0.5
        # Beyond the outermost centers, a grid that reads the source blends it with the fill.
        edge = 0.01 if taken_step is chain[0] and taken_step.op is Op.DISPLACE else -0.49
        inside &= (x > edge) & (x < width - 1 - edge) & (y > edge) & (y < height - 1 - edge)
    return x, y, inside


LENS = step(Op.PERSPECTIVE, 1.05, 0.02, -3, -0.03, 0.97, 2, 4e-4, -3e-4, flags=1)
COMPOSED = {
    "rotated before": [rotate(14, 1), smooth(0)],
    "rotated after": [smooth(0), rotate(14, 1)],
    "in perspective before": [LENS, smooth(0)],
    "in perspective after": [smooth(0), LENS],
    "all": [rotate(8, 1), LENS, smooth(0), rotate(-11, 1), smooth(1), rotate(5, 1), LENS],
}


@every_device
@pytest.mark.parametrize("name", COMPOSED)
def test_chains_read_where_their_maps_lead(device: Device, name: str) -> None:
    """Within 1.5 levels, of which one is cut off; and within the 2**-14 pixels by which each map rounds."""
    chain, img = COMPOSED[name], photo(*SIZE)
    out = device.run(program_of([chain], [img]), [img], geometry="composed")[0].astype(int)
    x, y, inside = walked(chain, *SIZE)
    assert inside.mean() > 0.5
    assert np.abs(out - taken(img, x, y))[inside].max() < 1.5
    check(device, program_of([chain], [img]), [img], [chain], geometry="exact")


def test_what_leaves_shows_the_fill_of_the_map_at_which_it_left() -> None:
    img = np.full((*SIZE, 3), 50, np.uint8)
    away = grid(np.full((5, 7, 2), 30 * 64, np.int16), (16.0, 16.0), flags=1, fill=(10, 20, 30))
    back = step(Op.TRANSLATE_X, -40.5, flags=1, fill=(200, 210, 220))
    out = cpu.run(program_of([[away, step(Op.INVERT), back]], [img]), [img], 1)[0]
    assert (out[:, -40:] == (200, 210, 220)).all()
    assert (out[:31, :19] == 205).all()
    assert (out[35:, :45] == (245, 235, 225)).all()


def test_grids_that_executors_could_not_read_are_refused() -> None:
    img = photo(*SIZE)
    for change, message in (((0, 10_000), "grid 10000 does not exist"), ((2, 3), "ends inside"), ((6, 7), "units")):
        program = program_of([[smooth(0)]], [img])
        program.args[0, 0, change[0]] = change[1]
        with pytest.raises(InvalidProgram, match=message):
            validate(program)

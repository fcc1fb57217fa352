"""Point functions: every instruction against NumPy's float32, at every level of the processor, in other processes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests import oracle
from tests.images import gray, photo
from tests.point_functions import ELEMENTARY, EXACT, random_function
from tests.programs import program_of, step
from variegate import math as vm
from variegate.executors import cpu
from variegate.native.library import compiled_levels
from variegate.program.ops import Op
from variegate.program.pixel_functions import MAX_PIXEL_FUNCTION_NUMBERS, PixelFunction
from variegate.program.program import Program

# Below, at and above a block of pixels, however many registers there are.
IMAGES = [photo(3, 1), photo(5, 33, "coffee"), photo(2, 1500), gray(4, 70)]


def program(function: PixelFunction, magnitude: float = 0.75) -> Program:
    return program_of([[step(Op.PIXEL_FUNCTION, magnitude, table=function)]] * len(IMAGES), IMAGES)


def check(function: PixelFunction, off: int = 0) -> None:
    drawn = program(function)
    for out, expected in zip(cpu.run(drawn, IMAGES, 1), oracle.run(drawn, IMAGES), strict=True):
        different = np.abs(np.asarray(out).astype(int) - np.asarray(expected).astype(int))
        assert different.max() <= off, function.name


@pytest.mark.parametrize("name", EXACT)
def test_operations_are_those_of_float32(name: str) -> None:
    operation = EXACT[name]
    check(PixelFunction(lambda r, g, b, m: (operation(r, g), operation(g, 77), operation(200, b + m)), name))
    check(PixelFunction(lambda r, g, b, m: (operation(m, r), operation(m * 90, 3) + g, operation(b, m)), name))


@pytest.mark.parametrize("name", ELEMENTARY)
def test_elementary_functions_are_at_most_one_level_off(name: str) -> None:
    function = ELEMENTARY[name]
    check(PixelFunction(lambda r, g, b, m: (function(r / 64), function(g) * 20, 90 + 9 * function(m)), name), off=1)


@pytest.mark.parametrize(
    ("name", "low", "high", "scale"),
    [
        ("exp", -5.0, 5.5, 2.0**-8),
        ("log", 1.0, 250.0, 2.0**-3),
        ("log", 0.01, 1.0, -(2.0**-3)),
        ("sin", -60.0, 60.0, 0.5),
        ("cos", -60.0, 60.0, 0.5),
        ("sin", -8000.0, 8000.0, 0.5),
    ],
)
def test_elementary_functions_are_accurate(name: str, low: float, high: float, scale: float) -> None:
    """To 3 units of the last of the 24 bits that three channels show."""

    def show(r: Any, g: Any, b: Any, m: Any) -> Any:
        x = low + (high - low) * ((256 * r + g) / 65536)
        first = abs(getattr(vm, name)(x) * scale) * 256
        second = (first - vm.floor(first)) * 256
        return vm.floor(first), vm.floor(second), vm.floor((second - vm.floor(second)) * 256)

    pixels = np.arange(65536)
    image = np.stack([pixels // 256, pixels % 256, pixels], axis=-1).astype(np.uint8)[None]
    (out,) = cpu.run(program_of([[step(Op.PIXEL_FUNCTION, 0.0, table=PixelFunction(show, name))]], [image]), [image], 1)
    shown = np.asarray(out)[0] @ np.array([2.0**-8, 2.0**-16, 2.0**-24])
    x = np.float32(low) + np.float32(high - low) * np.float32(pixels / 65536)
    expected = np.abs(getattr(np, name)(x.astype(np.float64)) * scale)
    assert np.abs(shown - expected).max() < 3 * 2.0**-24


@pytest.mark.random
def test_random_functions() -> None:
    for seed in range(40):
        check(random_function(seed, is_exact=True))


def test_numbers_that_no_pixel_can_have() -> None:
    """NaN is 0; infinities are clipped."""
    nothing = PixelFunction(lambda r, g, b, m: (vm.log(-1 - r), 1 / (g - g), -1 / (b - b)), "nothing")
    check(nothing)
    for out in cpu.run(program(nothing), IMAGES[:3] + IMAGES[3:], 1)[:3]:
        assert (np.asarray(out) == (0, 255, 0)).all()
    check(PixelFunction(lambda r, g, b, m: (float("nan"), float("inf"), -1e30), "constants"))
    check(PixelFunction(lambda r, g, b, m: (vm.sin(r + 1e5), vm.exp(90 + g), vm.exp(-90 - b)), "beyond"))


def test_half_a_level_is_rounded_up() -> None:
    check(PixelFunction(lambda r, g, b, m: (r * 0.5, g + 0.5, b + 0.49), "half"))


def test_all_registers() -> None:
    """As many values at once as there may be, and blocks of few pixels."""

    def many(r: Any, g: Any, b: Any, m: Any) -> Any:
        values = [r * i for i in range(1, 60)]
        total = g
        for value in reversed(values):
            total = total + value
        return total / 1800, b, values[3]

    check(PixelFunction(many, "many"))


@pytest.mark.parametrize("count", [70, MAX_PIXEL_FUNCTION_NUMBERS])
def test_too_many_values_are_refused(count: int) -> None:
    def values(r: Any, g: Any, b: Any, m: Any) -> Any:
        made = [r * i if count < 100 else m * i for i in range(1, count + 1)]
        total = g
        for value in reversed(made):
            total = total + value * r
        return total, g, b

    with pytest.raises(ValueError, match=r"wide.point: needs [\d,]+ values at once; accepted: \d+ at most"):
        PixelFunction(values, "wide").check()


def test_a_function_is_called_once() -> None:
    calls = []

    def counted(r: Any, g: Any, b: Any, m: Any) -> Any:
        calls.append(m)
        return r * m, g, b

    function = PixelFunction(counted, "counted")
    for magnitude in (0.5, 0.7):
        cpu.run(program(function, magnitude), IMAGES, 1)
    assert len(calls) == 1


def test_records_travel_to_other_processes() -> None:
    """Of any function, also of a lambda, which itself cannot be pickled."""
    drawn = program(random_function(3))
    again: Program = pickle.loads(pickle.dumps(drawn))
    for out, expected in zip(cpu.run(again, IMAGES, 1), cpu.run(drawn, IMAGES, 1), strict=True):
        np.testing.assert_array_equal(out, expected)


# torch takes longest to import, and does so once: a fork reads the level.
_PROBE = """
import os, sys, zlib
import torch
for level in sys.argv[1:]:
    if os.fork() == 0:
        os.environ["VARIEGATE_LEVEL"] = level
        break
    if os.wait()[1]:
        sys.exit(f"{level}: failed")
else:
    sys.exit()
import numpy as np
from tests.ops.test_points import IMAGES, program
from tests.point_functions import random_function
from variegate.executors import cpu
outputs = [cpu.run(program(random_function(seed)), IMAGES, 1) for seed in range(60)]
print(*(zlib.crc32(np.ascontiguousarray(out).tobytes()) for made in outputs for out in made))
"""


@pytest.mark.process
def test_levels_give_equal_bits() -> None:
    levels = compiled_levels()
    run = subprocess.run([sys.executable, "-c", _PROBE, *levels], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) == len(levels)
    assert len(set(lines)) == 1
    assert len(lines[0].split()) == 240

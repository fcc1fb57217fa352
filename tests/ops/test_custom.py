"""Operations declared by users: drawn, run, described and refused like built-in ones."""

from __future__ import annotations

import ctypes
import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import oracle
from variegate import transforms as T
from variegate.executors import cpu
from variegate.program.ops import Op

IMAGE = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Classes declared in a test leave no name behind."""
    before = dict(T.Transform.registry)
    yield
    T.Transform.registry.clear()
    T.Transform.registry.update(before)


def declare_warm() -> type[T.CustomOp]:
    class Warm(T.CustomOp):
        """Move red up and blue down."""

        magnitude = T.Magnitude(0, 1)

        def lut(self, m: float) -> np.ndarray:
            x = np.arange(256)
            return np.clip([x + 40 * m, x, x - 40 * m], 0, 255).astype(np.uint8)

    return Warm


def run(draw: Any, transform: T.Transform, image: np.ndarray = IMAGE) -> np.ndarray:
    (out,) = oracle.run(draw(transform, [image.shape]), [image])
    array = np.asarray(out)
    return array if array.shape[-1] == image.shape[-1] else array.transpose(1, 2, 0)


def test_lut(draw: Any) -> None:
    warm = declare_warm()
    out = run(draw, warm(0.5)).astype(int)
    np.testing.assert_array_equal(out[..., 0], np.minimum(IMAGE[..., 0].astype(int) + 20, 255))
    np.testing.assert_array_equal(out[..., 1], IMAGE[..., 1])
    program = draw(warm((0.1, 0.5)), 40)
    assert program.opcode[:, 0].tolist() == [Op.LUT] * 40
    assert program.names == ("Warm",)
    assert (program.label[:, 0] == 0).all()
    drawn = program.args[:, 0, 1]
    assert 0.1 <= drawn.min() < drawn.max() <= 0.5
    assert len(program.tables.curves) == 40
    assert len(draw(warm(0.3), 40).tables.curves) == 1


def test_without_an_argument_the_whole_domain_is_drawn(draw: Any) -> None:
    warm = declare_warm()
    drawn = draw(warm(), 500).args[:, 0, 1]
    assert drawn.min() < 0.02
    assert drawn.max() > 0.98


def test_color_matrix(draw: Any) -> None:
    class Swap(T.CustomOp):
        def color_matrix(self, m: float) -> list[list[float]]:
            return [[0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]

    np.testing.assert_array_equal(run(draw, Swap()), IMAGE[..., ::-1])
    assert draw(Swap(), 3).opcode[:, 0].tolist() == [Op.COLOR_MATRIX] * 3


def test_affine_knows_the_image(draw: Any) -> None:
    class Half(T.CustomOp):
        magnitude = T.Magnitude(0, 1, signed=True, unit="widths")
        fill = (1, 2, 3)

        def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
            return (1, 0, -m * width, 0, 1, 0)

    program = draw(Half((1, 1)), [(4, 8), (4, 6)] * 200)
    shift = program.args[:, 0, 2].reshape(200, 2)
    assert set(np.abs(shift[:, 0])) == {8}
    assert set(np.abs(shift[:, 1])) == {6}
    assert abs((shift < 0).mean() - 0.5) < 0.1
    np.testing.assert_array_equal(program.args[:, 0, 6], np.sign(-program.args[:, 0, 2]))
    assert (program.fill[:, 0] == (1, 2, 3)).all()
    assert draw(Half(-0.5), [(4, 8)]).args[0, 0, 2] == 4


def test_point_function(draw: Any) -> None:
    def darken(r: float, g: float, b: float, m: float) -> tuple[float, float, float]:
        return r * m, g * m, b

    class Darken(T.CustomOp):
        magnitude = T.Magnitude(0, 1)
        point = staticmethod(darken)

    program = draw(Darken((0.2, 0.8)), 5)
    assert program.opcode[:, 0].tolist() == [Op.PIXEL_FUNCTION] * 5
    assert len(program.tables.pixel_functions) == 1
    assert program.tables.pixel_functions[0].name == "Darken"
    out = run(draw, Darken(0.5))
    np.testing.assert_array_equal(out[..., 2], IMAGE[..., 2])
    np.testing.assert_array_equal(out[..., 0], (IMAGE[..., 0] * np.float32(0.5) + np.float32(0.5)).astype(np.uint8))


def test_policies_may_give_the_magnitude(draw: Any) -> None:
    program = draw(T.Augmentation("it", declare_warm()(), magnitude=(0.25, 0.25)), 3)
    assert program.args[:, 0, 1].tolist() == [0.25] * 3


@pytest.mark.parametrize("magnitude", [0.3, (0.1, 0.5), None])
def test_round_trip(magnitude: Any) -> None:
    warm = declare_warm()
    transform = T.Compose([warm(magnitude)])
    described = transform.to_dict()
    assert described["transforms"][0]["type"] == "Warm"
    assert T.from_dict(json.loads(json.dumps(described))) == transform


def test_bad_magnitudes_are_named() -> None:
    warm = declare_warm()
    with pytest.raises(T.ArgumentError, match=r"Warm: magnitude=1.5; accepted: a number, .* from 0 to 1"):
        warm(1.5)


def test_bad_declarations_are_named() -> None:
    with pytest.raises(TypeError, match=r"class Nothing: got none; accepted: exactly one of lut, affine, color_matrix"):

        class Nothing(T.CustomOp):
            pass

    with pytest.raises(TypeError, match=r"class Both: got lut, color_matrix; accepted: exactly one of"):

        class Both(T.CustomOp):
            def lut(self, m: float) -> None: ...
            def color_matrix(self, m: float) -> None: ...

    with pytest.raises(TypeError, match=r"class Rotate: this name is a built-in transform; accepted: any other name"):

        class Rotate(T.CustomOp):
            def lut(self, m: float) -> None: ...

    with pytest.raises(TypeError, match=r"class Odd: magnitude=3; accepted: Magnitude\(low, high\), or none at all"):

        class Odd(T.CustomOp):
            magnitude = 3

            def lut(self, m: float) -> None: ...

    assert {"Nothing", "Both", "Odd"} & set(T.Transform.registry) == set()
    assert T.from_dict({"type": "Rotate", "degrees": 3}) == T.Rotate(3)


def test_a_table_of_the_wrong_shape_is_named(draw: Any) -> None:
    class Short(T.CustomOp):
        magnitude = T.Magnitude(0, 1)

        def lut(self, m: float) -> np.ndarray:
            return np.zeros(255, np.uint8)

    with pytest.raises(T.ArgumentError, match=r"Short: lut\(0.5\)='uint8\[255\]'; accepted: uint8\[256\] or uint8\[3,"):
        draw(Short(0.5), 2)


def _by_condition(r: Any, g: Any, b: Any, m: Any) -> Any:
    return (r if r > 128 else 0), g, b


def _by_largest(r: Any, g: Any, b: Any, m: Any) -> Any:
    return max(r, g, b), g, b


def _by_range(r: Any, g: Any, b: Any, m: Any) -> Any:
    return (0 < r < 9) * r, g, b


def _by_math(r: Any, g: Any, b: Any, m: Any) -> Any:
    return math.sqrt(r), g, b


def _by_where(r: Any, g: Any, b: Any, m: Any) -> Any:
    return np.where(r > 128, r, 0), g, b


@pytest.mark.parametrize("function", [_by_condition, _by_largest, _by_range, _by_math, _by_where])
def test_a_pixel_has_no_known_value(draw: Any, function: Any) -> None:
    class Wrong(T.CustomOp):
        point = staticmethod(function)

    expected = r"Wrong.point \(test_custom.py:\d+\): a pixel's value where Python needs a known number"
    with pytest.raises(ValueError, match=expected) as refused:
        draw(Wrong(), [IMAGE.shape])
    assert "; accepted: vg.math.select(condition, x, y), vg.math.minimum, maximum and" in str(refused.value)
    line = function.__code__.co_firstlineno + 1
    assert f"test_custom.py:{line}" in str(refused.value)


def _two(r: Any, g: Any, b: Any, m: Any) -> Any:
    return r, g


def _unknown(r: Any, g: Any, b: Any, m: Any) -> Any:
    return r * strength, g, b  # type: ignore[name-defined]  # noqa: F821


def _text(r: Any, g: Any, b: Any, m: Any) -> Any:
    return r, g, "blue"


def _three(r: Any, g: Any, b: Any) -> Any:
    return r, g, b


def _by_numpy(r: Any, g: Any, b: Any, m: Any) -> Any:
    return np.sqrt(r), g, b


@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        (_two, r"TypeError: .* is no tuple of three numbers"),
        (_text, r"TypeError: .*blue.* is no number"),
        (_unknown, "NameError: .*name 'strength' is not defined"),
        (_three, "TypeError: .*takes 3 positional arguments but 4 were given"),
        (_by_numpy, "TypeError: .*does not support ufuncs"),
    ],
)
def test_a_wrong_point_function_is_named_with_its_result(draw: Any, function: Any, outcome: str) -> None:
    class Wrong(T.CustomOp):
        point = staticmethod(function)

    with pytest.raises(ValueError, match=rf"Wrong.point.*: {outcome}") as refused:
        draw(Wrong(), [IMAGE.shape])
    message = str(refused.value)
    assert "; accepted: f(r, g, b, m) -> (r, g, b) of + - * /" in message
    assert "\n" not in message


def _half(red: Any, green: Any, blue: Any, count: int, magnitude: float) -> None:
    for channel in (red, blue):
        for i in range(count):
            channel[i] = int(channel[i] * magnitude)


_BYTES = ctypes.POINTER(ctypes.c_uint8)
_ROW = ctypes.CFUNCTYPE(None, _BYTES, _BYTES, _BYTES, ctypes.c_int64, ctypes.c_float)


def _compiled(folder: Path) -> Any:
    """``_half`` in C."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = folder / "half.c", folder / "half.so"
    source.write_text("""
#include <stdint.h>
void half(uint8_t *r, uint8_t *g, uint8_t *b, int64_t n, float m) {
  for (int64_t i = 0; i < n; i++) { r[i] = (uint8_t)(r[i] * m); b[i] = (uint8_t)(b[i] * m); }
}
""")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library)).half


@pytest.mark.process
def test_point_function_in_c(draw: Any, tmp_path: Path) -> None:
    half = _compiled(tmp_path)
    address = ctypes.cast(half, ctypes.c_void_p).value
    expected = IMAGE.copy()
    expected[..., ::2] = IMAGE[..., ::2] // 2
    for pointer in (half, SimpleNamespace(address=address), _ROW(_half)):

        class Half(T.CustomOp):
            magnitude = T.Magnitude(0, 1)
            point = pointer

        np.testing.assert_array_equal(run(draw, Half(0.5)), expected)
        (fused,) = cpu.run(draw(Half(0.5), [IMAGE.shape]), [IMAGE], 1)
        np.testing.assert_array_equal(np.asarray(fused).reshape(3, *IMAGE.shape[:2]), expected.transpose(2, 0, 1))


def test_a_null_pointer_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"class Null: point=.*; accepted: a function \(r, g, b, m\) -> \(r, g, b\), or a"
    ):

        class Null(T.CustomOp):
            point = _ROW(0)

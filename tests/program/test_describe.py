"""Operations as data and as captions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from variegate.program.describe import captions, explain_row, operations_of
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Output, Program
from variegate.program.sampling import Sampling
from variegate.transforms import CustomOp, Magnitude, Transform


def sampling(count: int = 2) -> Sampling:
    shapes = np.tile(np.array([40, 50, 3], np.int32), (count, 1))
    return Sampling(shapes, np.arange(count, dtype=np.uint64), np.array([1, 2], np.uint32), 4)


def one_row(*emitted: tuple[Op, tuple[float, ...], dict[str, object]]) -> Program:
    batch = sampling(1)
    for op, args, options in emitted:
        batch.emit(np.array([0]), op, *args, **options)  # type: ignore[arg-type]
    return batch.finish(Output())


def test_arguments_carry_their_names() -> None:
    program = one_row(
        (Op.ROTATE, (-9.0, np.nan, np.nan, 0.0), {"flags": 1, "fill": (1, 2, 3)}),
        (Op.BRIGHTNESS, (0.73,), {}),
        (Op.INVERT, (), {}),
        (Op.GAUSSIAN_NOISE, (0.0, 0.1, 3.0), {}),
    )
    described = operations_of(program, 0)
    assert described == [
        {"op": "Rotate", "angle": -9, "interpolation": "bilinear", "fill": [1, 2, 3]},
        {"op": "Brightness", "factor": 0.73},
        {"op": "Invert"},
        {"op": "GaussianNoise", "mean": 0, "sigma": 0.1},
    ]
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert captions(described) == ["Rotate -9", "Brightness 0.73", "Invert", "GaussianNoise mean=0 sigma=0.10"]


def test_crops_and_rectangles_are_told_as_boxes() -> None:
    batch = sampling(1)
    row = np.array([0])
    batch.emit(row, Op.RESIZED_CROP, 3, 4, 20, 30, 16, 16, 1, flags=1, size=np.array([16, 16], np.int32))
    first = batch.add_rectangles(np.array([[1, 2, 5, 6]], np.int32))
    batch.emit(row, Op.ERASE, first, 1, name="Cutout")
    described = operations_of(batch.finish(Output()), 0)
    assert described[0]["flipped"] is True
    assert described[1] == {"op": "Cutout", "rectangles": [[1, 2, 5, 6]]}
    assert captions(described) == ["ResizedCrop 30x20 at 4,3 flipped", "Cutout 6x5 at 2,1"]


def test_nothing_done_is_said() -> None:
    assert captions(operations_of(one_row(), 0)) == ["unchanged"]


def test_blends_list_their_chains() -> None:
    batch = sampling(2)
    forks = batch.fork(np.array([0]), 1)[0]
    batch.emit(forks, Op.INVERT)
    batch.blend(np.array([0]), [0.25])
    batch.blend(forks, [0.75])
    program = batch.finish(Output())
    assert operations_of(program, 0) == [
        {
            "op": "Blend",
            "chains": [{"weight": 0.25, "operations": []}, {"weight": 0.75, "operations": [{"op": "Invert"}]}],
        }
    ]
    assert captions(operations_of(program, 0)) == ["Blend of", "0.25 x unchanged", "0.75 x Invert"]
    assert operations_of(program, 1) == []


def test_normalised_erasing_shows_its_values() -> None:
    batch = sampling(1)
    first = batch.add_rectangles(np.array([[1, 2, 5, 6]], np.int32))
    batch.emit(np.array([0]), Op.ERASE, first, 1, 0.0, 0, 0.5, 0.25, 0.0, 1.0)
    described = operations_of(batch.finish(Output(mean=(0.5,), std=(0.5,))), 0)
    rectangles = {"rectangles": [[1, 2, 5, 6]]}
    assert described == [{"op": "Erase", "v0": 0.5, "v1": 0.25, "v2": 0, "normalized": 1} | rectangles]


@pytest.fixture
def custom(monkeypatch: pytest.MonkeyPatch) -> list[Transform]:
    """One operation of each form at magnitude 0.3, and one without a magnitude."""
    monkeypatch.setattr(Transform, "registry", dict(Transform.registry))

    class Table(CustomOp):
        magnitude = Magnitude(0, 1)

        def lut(self, m: float) -> np.ndarray:
            return np.full(256, 255 * m).astype(np.uint8)

    class Map(CustomOp):
        magnitude = Magnitude(0, 1)

        def affine(self, m: float, height: int, width: int) -> tuple[float, ...]:
            return (1, m, 0, 0, 1, 0)

    class Matrix(CustomOp):
        magnitude = Magnitude(0, 1)

        def color_matrix(self, m: float) -> np.ndarray:
            return np.eye(3, 4) * m

    class Points(CustomOp):
        magnitude = Magnitude(0, 1)
        point = staticmethod(lambda r, g, b, m: (r * m, g, b))

    class Plain(CustomOp):
        def lut(self, m: float) -> np.ndarray:
            return np.zeros(256, np.uint8)

    return [Table(0.3), Map(0.3), Matrix(0.3), Points(0.3), Plain()]


def test_custom_operations_show_their_name_and_magnitude(custom: list[Transform]) -> None:
    batch = sampling(1)
    for transform in custom:
        transform.sample(batch, np.array([0]), 0)
    program = batch.finish(Output())
    described = operations_of(program, 0)
    names = ["Table", "Map", "Matrix", "Points"]
    assert described == [*({"op": name, "magnitude": 0.3} for name in names), {"op": "Plain"}]
    assert captions(described) == [*(f"{name} magnitude=0.30" for name in names), "Plain"]
    explained = explain_row(program, lower(program))
    assert "  Map magnitude=0.30\n" in explained
    assert "LUT -> map_fixed -> Matrix -> Points -> LUT -> uint8 CHW" in explained

"""A table operation is one declaration: its ``level`` is the meaning of the native table, and of ``F``."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.images import photo
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, TableOp
from variegate.program.lowering import lower
from variegate.program.ops import SPECS, Kind, Op, OpSpec, declare
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.transforms import functional as F

TABLES = {op: spec for op, spec in SPECS.items() if spec.level is not None}
ARGUMENTS: dict[str, list[tuple[float, ...]]] = {
    "Brightness": [(f,) for f in (-1e9, -0.3, 0.0, 1 / 3, 0.999999, 1.0, 1.7, 2.0000001, 19.5, 1e9)],
    "Gamma": list(product((0.0, 0.3, 1 / 2.2, 1.0, 2.2, 7.5, 1e9), (-2.0, 0.0, 0.5, 1.0, 1.1, 1e9))),
    "Posterize": [(bits,) for bits in range(9)],
    "Solarize": [(t,) for t in (-1e9, -0.5, 0.0, 0.5, 77.3, 128.0, 254.999, 255.0, 255.5, 1e9)],
    "SolarizeAdd": list(product((-255, -33.5, 0, 0.25, 110, 255), (-1.0, 0.5, 128, 256.0))),
    "Invert": [()],
    "Window": list(product((-1e9, -20, 100.5, 1e9), (1e-9, 0.5, 60, 255, 1e9))),
    "RGBShift": [(-255, 0, 255), (1, 2, -3), (20, -20, 7)],
}


@pytest.mark.parametrize(("number", "name"), [(Op.POSTERIZE, "LiftShadows"), (34, "Solarize")], ids=["number", "name"])
def test_an_instruction_that_there_is_cannot_be_declared(number: int, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: got opcode {int(number)}; accepted: .*24 POSTERIZE, 25 SOLARIZE"):
        declare(number, OpSpec(name, Kind.VALUE, ("lift",), Op.LUT))


@pytest.mark.parametrize("op", TABLES, ids=lambda op: op.name)
def test_native_tables_equal_the_declared_level_to_the_bit(op: Op) -> None:
    given = ARGUMENTS[SPECS[op].name]
    shapes, ids = np.array([[1, 256, 3]] * len(given), np.int32), np.arange(len(given), dtype=np.uint64)
    sampling = Sampling(shapes, ids, stream_key(0, 0), 0)
    for row, args in enumerate(given):
        sampling.emit(np.array([row]), op, *args)
    fused = lower(sampling.finish(Output(layout="NHWC")))
    dropped = 0
    for row, args in enumerate(given):
        table = np.repeat(np.arange(256, dtype=np.uint8)[None], 3, axis=0)
        if fused.length[row]:
            assert fused.opcode[row, 0] == Op.LUT
            table = fused.tables.luts[int(fused.args[row, 0, 0])]
        else:
            dropped += 1
        assert (table == declared_table(op, args)).all(), args
    assert dropped <= 0.4 * len(given), "an operation that changes pixels was dropped"


def declared_table(op: Op, args: tuple[float, ...]) -> npt.NDArray[np.uint8]:
    """uint8[3, 256]: ``level`` of every value, cut off to 0..255 and truncated; 0 of what is not a number."""
    spec = SPECS[op]
    assert spec.level is not None
    channels = [(arg,) for arg in args] if spec.per_channel else [args] * 3
    levels = np.array([[float(spec.level(x, *each)) for x in range(256)] for each in channels])
    return np.clip(np.nan_to_num(levels, nan=0.0), 0.0, 255.0).astype(np.uint8)


@pytest.mark.parametrize("name", [name for name, cls in Transform.functions.items() if issubclass(cls, TableOp)])
@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_functions_are_the_declared_table(name: str, device: str) -> None:
    cls: Any = Transform.functions[name]
    args = ARGUMENTS[cls.__name__][1 if issubclass(cls, MagnitudeOp) else 0]
    img = photo(24, 31)
    assert (getattr(F, name)(img, *args, device=device) == declared_table(cls._op, args)[0][img]).all()

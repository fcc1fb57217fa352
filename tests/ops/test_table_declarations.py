"""A table operation is one declaration: from it come the instruction, both executors, ``F``, policies and pipelines."""

from __future__ import annotations

import inspect
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.children import run_python
from tests.images import photo
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, TableOp
from variegate.program.lowering import tables
from variegate.program.ops import SPECS, Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.transforms import functional as F
from variegate.transforms.functional.single import function_of

DECLARATION = '''
from dataclasses import dataclass
from variegate.ops.magnitude import MagnitudeOp, TableOp, WithProbability


@dataclass(frozen=True)
class LiftShadows(TableOp, MagnitudeOp, opcode=34, neutral=0, function="lift_shadows", called={"lift": "levels"}):
    """Add ``lift`` levels to the values below ``below``."""

    lift: float
    below: float = 128.0
    _bounds = (0.0, 255.0)

    @staticmethod
    def level(x, lift, below):
        return x + lift if x < below else x


@dataclass(frozen=True)
class RandomLiftShadows(WithProbability, of=LiftShadows):
    """``LiftShadows`` with probability ``p``."""

    lift: float
    p: float = 0.5
'''
USES = """
import sys, warnings
import numpy as np
import variegate as vg
from variegate import transforms as T
from variegate.program.describe import captions, operations_of
from variegate.program.lowering import tables
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.program.lowering import lower, validate
from variegate.transforms import functional as F

image = np.arange(4 * 64 * 3, dtype=np.uint8).reshape(4, 64, 3)
before = F.invert(image)  # kernels are compiled, and a desk for single images is made
sys.path.insert(0, sys.argv[1])
import declared

def wanted(lift, below=128):
    return np.where(image < below, np.minimum(image + np.floor(image * 0 + lift), 255), image).astype(np.uint8)

sampling = Sampling(np.array([[4, 64, 3]] * 2, np.int32), np.arange(2, dtype=np.uint64), stream_key(0, 0), 0)
sampling.emit(np.array([0]), Op.LIFT_SHADOWS, 40.0, 100.0)
sampling.emit(np.array([1]), Op.LIFT_SHADOWS, 0.0, 100.0)
sampled = validate(sampling.finish(Output(layout="NHWC")))
assert captions(operations_of(sampled, 0)) == ["LiftShadows lift=40 below=100"], captions(operations_of(sampled, 0))
fused = validate(lower(sampled))
assert fused.length.tolist() == [1, 0], "an argument that does nothing is dropped"
assert fused.opcode[0, 0] == Op.LUT
for device in ("oracle", "cpu"):
    augmenter = vg.Augmenter(declared.LiftShadows(40, below=100), device=device, layout="NHWC")
    for batch in ([image], [image, image, image]):
        for out in augmenter(batch):
            assert (np.asarray(out) == wanted(40, 100)).all(), device
    assert (F.lift_shadows(image, levels=40, below=100, device=device) == wanted(40, 100)).all()
    assert (F.lift_shadows(image, 40, device=device) == wanted(40)).all()
try:
    F.lift_shadows(image, 256)
except ValueError as error:
    assert str(error) == "levels=256; accepted: a number from 0 to 255", error
out = vg.Augmenter(declared.RandomLiftShadows(40, p=1.0), layout="NHWC")([image])[0]
assert (np.asarray(out) == wanted(40)).all()
described = declared.LiftShadows((3, 40)).to_dict()
assert T.from_dict(described) == declared.LiftShadows((3, 40))

policy = T.RandAugment(1, 30, operations=[T.Augmentation("lift", "LiftShadows", (0, 60))])
assert (np.asarray(vg.Augmenter(policy, layout="NHWC")([image])[0]) == wanted(60)).all()

@vg.pipeline
def lifted(image):
    return F.lift_shadows(image, vg.uniform(40, 40))

assert (np.asarray(vg.Augmenter(lifted, layout="NHWC")([image])[0]) == wanted(40)).all()
print("as declared")
"""


@pytest.mark.process
def test_one_declaration_runs_everywhere(tmp_path: Path) -> None:
    (tmp_path / "declared.py").write_text(DECLARATION)
    done = run_python(USES, str(tmp_path))
    assert done.stdout == "as declared\n", done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("def level(", "def levels(", r"LiftShadows: a table operation needs a function level\(x, lift, below\)"),
        ("=34", "=24", "LiftShadows: got opcode 24; accepted: a number and a name other than .*24 POSTERIZE"),
        ("s LiftShadows(", "s Solarize(", "Solarize: got opcode 34; accepted: a number and a name other than"),
    ],
)
def test_a_declaration_that_lacks_something_is_refused_when_it_is_read(old: str, new: str, complaint: str) -> None:
    assert DECLARATION.count(old) == 1
    done = run_python(DECLARATION.replace(old, new))
    assert re.search(complaint, done.stderr), done.stderr


TABLES = {op: spec for op, spec in SPECS.items() if spec.level is not None}
ARGUMENTS: dict[str, list[tuple[float, ...]]] = {
    "Brightness": [(f,) for f in (-1e9, -0.3, 0.0, 1 / 3, 0.999999, 1.0, 1.7, 2.0000001, 19.5, 1e9)],
    "Gamma": list(product((0.0, 0.3, 1 / 2.2, 1.0, 2.2, 7.5, 1e9), (-2.0, 0.0, 0.5, 1.0, 1.1, 1e9))),
    "Posterize": [(bits,) for bits in range(9)],
    "Solarize": [(t,) for t in (-1e9, -0.5, 0.0, 0.5, 77.3, 128.0, 254.999, 255.0, 255.5, 1e9)],
    "SolarizeAdd": list(product((-255, -33.5, 0, 0.25, 110, 255), (-1.0, 0.5, 128, 256.0))),
    "Invert": [()],
    "RGBShift": [(-255, 0, 255), (1, 2, -3), (20, -20, 7)],
}


@pytest.mark.parametrize("op", TABLES, ids=lambda op: op.name)
def test_compiled_and_plain_tables_are_equal_to_the_bit(op: Op) -> None:
    given = ARGUMENTS[SPECS[op].name]
    levels = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    shapes, ids = np.array([[1, 256, 3]] * len(given), np.int32), np.arange(len(given), dtype=np.uint64)
    sampling = Sampling(shapes, ids, stream_key(0, 0), 0)
    for row, args in enumerate(given):
        sampling.emit(np.array([row]), op, *args)
    program, luts = sampling.finish(Output(layout="NHWC")), np.empty((len(given), 3, 256), np.uint8)
    tables.compile_fill(op)
    tables.build(program.arrays(), program.tables.luts, luts, tables.ADDRESSES)
    for args, lut in zip(given, luts, strict=True):
        assert (lut == oracle.apply(op, levels, args)[0].T).all(), args


@pytest.mark.parametrize("name", [name for name, cls in Transform.functions.items() if issubclass(cls, TableOp)])
def test_functions_for_editors_are_those_that_are_declared(name: str) -> None:
    written, declared = (inspect.signature(function).parameters for function in (getattr(F, name), function_of(name)))
    assert list(written) == list(declared)
    assert [p.default for p in written.values()] == [p.default for p in declared.values()]
    cls, img = Transform.functions[name], photo(24, 31)
    args = ARGUMENTS[cls.__name__][1 if issubclass(cls, MagnitudeOp) else 0]
    for device in ("cpu", "oracle"):
        assert (getattr(F, name)(img, *args, device=device) == function_of(name)(img, *args, device=device)).all()

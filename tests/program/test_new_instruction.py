"""A new instruction takes the edits that docs/architecture.md lists for one that becomes a table: here on a copy of the
package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import variegate

pytestmark = pytest.mark.process

# The file, where in it, and what stands there then.
EDITS = (
    ("program/ops.py", "    POINT = 33\n", "    POINT = 33\n    ADD = 34\n"),
    (
        "program/ops.py",
        '    Op.INVERT: OpSpec("Invert", Kind.VALUE, becomes=Op.LUT),\n',
        '    Op.INVERT: OpSpec("Invert", Kind.VALUE, becomes=Op.LUT),\n'
        '    Op.ADD: OpSpec("Add", Kind.VALUE, ("addition", "_unsaid"), becomes=Op.LUT, neutral=0.0),\n',
    ),
    (
        "executors/reference/values.py",
        "def solarize(",
        "def add(img_HWC: Image, ins: Instruction) -> Image:\n"
        "    return to_uint8(img_HWC + ins.args[0])\n\n\ndef solarize(",
    ),
    (
        "executors/reference/executor.py",
        "    Op.INVERT: values.invert,\n",
        "    Op.INVERT: values.invert,\n    Op.ADD: values.add,\n",
    ),
    (
        "program/lowering/tables.py",
        "    elif op == Op.SOLARIZE:\n",
        "    elif op == Op.ADD:\n        for i in range(256):\n"
        "            table[i] = np.uint8(min(max(i + a[0], 0.0), 255.0))\n    elif op == Op.SOLARIZE:\n",
    ),
)

PROGRAM = """
import numpy as np
from variegate.executors import reference
from variegate.program.describe import captions, operations_of
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.rng import stream_key
from variegate.program.sampling import Sampling
from variegate.program.validate import validate

image = np.arange(4 * 64 * 3, dtype=np.uint8).reshape(4, 64, 3)
sampling = Sampling(np.array([[4, 64, 3]] * 2, np.int32), np.arange(2, dtype=np.uint64), stream_key(0, 0), 0)
sampling.emit(np.array([0]), Op.ADD, 40.0, 7.0)
sampling.emit(np.array([1]), Op.ADD, 0.0)
sampled = validate(sampling.finish(Output(layout="NHWC")))
assert captions(operations_of(sampled, 0)) == ["Add 40"], operations_of(sampled, 0)
wanted = np.minimum(image.astype(int) + 40, 255)
assert (reference.run(sampled, [image, image])[0] == wanted).all()
fused = validate(lower(sampled))
assert fused.length.tolist() == [1, 0], "an argument that does nothing is dropped"
assert fused.opcode[0, 0] == Op.LUT
assert (fused.tables.luts[0][np.arange(3), image] == wanted).all()
print("as documented")
"""


def _run_with(edits: Sequence[tuple[str, str, str]], folder: Path) -> subprocess.CompletedProcess[str]:
    """PROGRAM, on a copy of the package with these edits."""
    package = Path(variegate.__file__).parent
    for name in ("program", "compiling", "io", "executors/reference"):
        shutil.copytree(package / name, folder / "variegate" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (package, package / "executors"):
        for file in path.glob("*.py"):
            shutil.copy(file, folder / "variegate" / file.relative_to(package))
    for name, old, new in edits:
        path = folder / "variegate" / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {old!r}"
        path.write_text(text.replace(old, new))
    # Uncompiled, which takes no time to begin; so the rewrites run one by one, as the compiled call cannot.
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "VARIEGATE_DEBUG": "1", "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, cwd=folder, capture_output=True, text=True)


def test_an_operation_that_becomes_a_table_takes_three_edits(tmp_path: Path) -> None:
    done = _run_with(EDITS, tmp_path)
    assert done.stdout == "as documented\n", done.stderr


def test_a_table_that_was_forgotten_is_named(tmp_path: Path) -> None:
    done = _run_with(EDITS[:-1], tmp_path)
    assert "ADD becomes a table, but lowering/tables.py has no branch for it" in done.stderr

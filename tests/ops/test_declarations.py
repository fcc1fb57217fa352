"""Operations of each kind in the places that docs/architecture.md names, and no instruction's name anywhere else."""

from __future__ import annotations

import ast
import inspect
import json
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import variegate
from tests.children import run_python
from variegate.program.ops import SPECS, Kind, Op, require_branches

# One class each, of what exists: levels mixed by a matrix, a map, weights of a filter.
DECLARATION = '''
from dataclasses import dataclass
import numpy as np
from variegate.ops.base import UsefulRange
from variegate.ops.filters import emit_filters
from variegate.ops.magnitude import INTERPOLATION_FLAGS, MagnitudeOp, Resampled
from variegate.program.ops import Op


@dataclass(frozen=True)
class Warmth(MagnitudeOp):
    """More red and less blue."""

    share: float
    _number, _bounds, _useful = "share", (0.0, 1.0), UsefulRange(0.0, 0.5, 0.0)

    def emit_magnitude(self, sampling, rows, values, slot):
        for row, share in zip(rows, values):
            matrix = np.array([[1 + share, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1 - share, 0]], np.float32)
            sampling.emit(np.array([row]), Op.COLOR_MATRIX, sampling.add_matrix(matrix), share, name="Warmth")


@dataclass(frozen=True)
class Slide(MagnitudeOp, Resampled):
    """Move right by whole pixels, and down by as many."""

    pixels: float
    interpolation: str = "nearest"
    fill: object = (0, 0, 0)
    _number, _useful = "pixels", UsefulRange(0.0, 3.0, 0.0)

    def emit_at(self, images, value, slot):
        self._add_map(images, Op.AFFINE, 1.0, 0.0, -value, 0.0, 1.0, -value)


@dataclass(frozen=True)
class Left(MagnitudeOp):
    """So much of the pixel to the left of each."""

    share: float
    _number, _bounds, _useful = "share", (0.0, 1.0), UsefulRange(0.0, 1.0, 0.0)

    def emit_magnitude(self, sampling, rows, values, slot):
        for row, share in zip(rows, values):
            weights = np.array([[[share, 1 - share, 0.0]]])
            emit_filters(sampling, np.array([row]), weights, np.array([share]), "Left")
'''
USES = """
import sys
import numpy as np
import variegate as vg
from variegate import transforms as T
from variegate.apps.preview.rows import sweep_of
sys.path.insert(0, sys.argv[1])
import declared

image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
slid = np.zeros_like(image)
slid[3:, 3:] = image[:-3, :-3]
warm = np.clip(image * [1.5, 1.0, 0.5] + 0.5, 0, 255).astype(np.uint8)
left = np.concatenate([image[:, :1], image[:, :-1]], axis=1)
for name, number, wanted in (("Warmth", 0.5, warm), ("Slide", 3, slid), ("Left", 1.0, left)):
    transform = getattr(declared, name)(number)
    assert T.from_dict(transform.to_dict()) == transform
    policy = T.RandAugment(1, 30, operations=[T.Augmentation("it", name, (0, number))])


    @vg.pipeline
    def traced(image):
        return transform(image)

    for device in ("reference", "cpu"):
        for each in (transform, policy, traced):
            for out in vg.Augmenter(each, device=device, layout="NHWC")([image, image]):
                assert (np.asarray(out) == wanted).all(), (name, device, each)
    sweep = sweep_of(name, 3)
    assert (sweep.magnitudes[-1], sweep.identity) == (getattr(declared, name)._useful.high, 0.0), sweep
sample = {"image": image, "mask": image[..., 0]}
moved = vg.Augmenter(declared.Slide(3), layout="NHWC")([sample])
assert (np.asarray(moved[0]["mask"]) == slid[..., 0]).all()
print("as declared")
"""


@pytest.mark.process
def test_classes_that_say_it_in_existing_instructions_run_everywhere(tmp_path: Path) -> None:
    (tmp_path / "declared.py").write_text(DECLARATION)
    done = run_python(USES, str(tmp_path))
    assert done.stdout == "as declared\n", done.stderr


# Loaded anew, each says what it lacks.
BACK_ENDS = {
    "variegate.executors.reference.executor": "the reference",
    "variegate.program.lowering": "lowering",
    "variegate.targets.stages": "targets",
    "variegate.executors.cpu.executor": "the CPU's executor",
    "variegate.executors.cpu.tiled.chain": "tiles",
    "variegate.executors.cuda.launch": "the GPU's executor",
}
LOADS = """
import json, sys
from importlib import import_module, reload
from variegate.program.ops import SPECS, Kind, Op, OpSpec, declare
refused = []
for number, kind in enumerate(Kind, 73):
    for becomes in (None, Op.MAP_FIXED if kind == Kind.GEOMETRY else Op.CONVOLVE):
        name = f"Toy{kind.name.title()}{'Becoming' if becomes else ''}"
        spec = OpSpec(name, kind, becomes=becomes)
        op = declare(number + (10 if becomes else 0), spec)
        for module in json.loads(sys.argv[1]):
            try:
                reload(import_module(module))
            except NotImplementedError as error:
                refused.append((kind.name, bool(becomes), module, str(error).replace(op.name, "TOY")))
        del SPECS[op]
from variegate.executors.reference import position
toy = declare(90, OpSpec("Darker", Kind.POSITION))
position.darker = lambda image, ins: image // 2
import numpy as np
executor = reload(import_module("variegate.executors.reference.executor"))
assert (executor.apply(toy, np.full((2, 2, 3), 9, np.uint8), []) == 4).all()
print(json.dumps(refused))
"""
CPU, GPU, REFERENCE = "variegate/executors/cpu/", "variegate/executors/cuda/", "variegate/executors/reference/"


@pytest.mark.process
def test_a_back_end_names_what_it_lacks_when_it_is_loaded() -> None:
    pytest.importorskip("triton")
    done = run_python(LOADS, json.dumps(list(BACK_ENDS)))
    assert done.returncode == 0, done.stderr
    refused = {(kind, becomes, module): error for kind, becomes, module, error in json.loads(done.stdout)}
    executors = ["variegate.executors.cpu.executor", "variegate.executors.cuda.launch"]
    for kind in Kind:
        moves, by_tiles = kind in (Kind.GEOMETRY, Kind.RESAMPLE), kind in (Kind.STATISTIC, Kind.NEIGHBOURHOOD)
        always = ["variegate.executors.reference.executor", *(["variegate.targets.stages"] if moves else [])]
        run = [*always, *executors, *(["variegate.executors.cpu.tiled.chain"] if by_tiles else [])]
        for becomes, modules in ((False, run), (True, [*always, "variegate.program.lowering"])):
            assert {module for k, b, module in refused if (k, b) == (kind.name, becomes)} == set(modules)
        for module in modules[1:]:
            assert refused[kind.name, True, module].startswith(f"{BACK_ENDS[module]}: no branch for TOY, a {kind.name}")
    assert {
        refused["NEIGHBOURHOOD", False, "variegate.executors.reference.executor"],
        refused["VALUE", False, "variegate.executors.cpu.executor"],
        refused["POSITION", False, "variegate.executors.cuda.launch"],
        refused["NEIGHBOURHOOD", True, "variegate.program.lowering"],
    } == {
        f"the reference: no function toy_neighbourhood, of a NEIGHBOURHOOD, in {REFERENCE}neighbourhood.py",
        f"the CPU's executor: no branch for TOY, a VALUE ({CPU}values.py)",
        f"the GPU's executor: no branch for TOY, a POSITION ({GPU}kernels/values.py)",
        "lowering: no branch for TOY, a NEIGHBOURHOOD (variegate/program/lowering/blurs.py)",
    }


def compared(function: Any) -> set[str]:
    """Instructions that a function compares something with, or looks up."""
    nodes = list(ast.walk(ast.parse(dedent(inspect.getsource(function)))))
    sides = [side for node in nodes if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)]
    sides += [key for node in nodes if isinstance(node, ast.Dict) for key in node.keys if key is not None]
    return {side.attr for side in sides if isinstance(side, ast.Attribute)}


@pytest.mark.parametrize("module", list(BACK_ENDS)[1:])
def test_what_a_back_end_names_is_what_it_compares_with(module: str) -> None:
    pytest.importorskip("triton")
    found = import_module(module)
    nodes = ast.walk(ast.parse(Path(str(found.__file__)).read_text()))
    call = next(n for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func) == "require_branches")
    branches: dict[Kind, Any] = eval(ast.unparse(call.args[1]), vars(found))
    for kind, places in branches.items():
        for function in (place for place in places if not isinstance(place, Op)):
            plain = getattr(function, "py_func", getattr(function, "fn", function))
            named = {Op[name] for name in plain.__code__.co_names if name in Op.__members__} - {Op.NOP}
            if module == "variegate.program.lowering":  # primitives are what it makes
                named = {op for op in named if op < Op.MAP_FIXED}
            assert {op.name for op in named if SPECS[op].kind is kind} <= compared(plain), plain.__name__


def test_an_instruction_that_is_named_is_run() -> None:
    def block(op: int) -> bool:
        return op == Op.CONTRAST or op == Op.EQUALIZE or op == Op.MATCH

    def needed(op: Op) -> bool:
        return SPECS[op].kind is Kind.STATISTIC

    require_branches("it", {Kind.STATISTIC: (block, Op.AUTOCONTRAST)}, needed)
    with pytest.raises(NotImplementedError, match=r"it: no branch for AUTOCONTRAST, a STATISTIC \(tests/ops/test_decl"):
        require_branches("it", {Kind.STATISTIC: (block,)}, needed)


# Whatever its kind: its row, its arguments' limits, classes and functions that emit it, what it means.
OF_ALL: tuple[str, ...] = ("program/ops.py", "ops/", "transforms/functional/", "executors/reference/")
# What runs one without naming it says so in its statement.
OF_ALL += ("program/lowering/__init__.py", "executors/cpu/executor.py", "executors/cpu/tiled/chain.py")
OF_ALL += ("executors/cuda/launch.py",)
MAPS = ("program/lowering/maps.py", "program/lowering/merge.py", "targets/stages.py")
FILES = {
    Kind.GEOMETRY: MAPS,
    Kind.RESAMPLE: MAPS,
    Kind.VALUE: ("program/lowering/tables.py", "executors/cpu/values.py", "executors/cuda/kernels/values.py"),
    Kind.STATISTIC: (
        *("executors/cpu/statistics.py", "executors/cpu/tiled/statistics.py"),
        "executors/cuda/kernels/statistics.py",
    ),
    Kind.NEIGHBOURHOOD: (
        *("program/lowering/blurs.py", "executors/cpu/neighbourhood.py", "executors/cpu/tiled/stages.py"),
        *("executors/cuda/kernels/neighbourhood.py", "executors/cuda/kernels/around.py", "executors/cpu/warp.py"),
    ),
    Kind.POSITION: ("executors/cpu/values.py", "executors/cuda/kernels/values.py"),
    Kind.DETOUR: (),
}
# Primitives are few, and what passes are made of.
OF_PRIMITIVES = ("program/", "executors/", "targets/stages.py", "policies/pba.py")
EXCEPTIONS = {
    # Asked of every batch, as one integer: a look into a table and a member of an enumeration cost 4 microseconds more.
    "executors/runners/decode_plan.py": {"RESIZED_CROP"},
    "executors/cpu/single.py": {"JPEG"},
    # Words of their own for people, and names of users' operations.
    "program/describe.py": {"AFFINE", "PERSPECTIVE", "PAD", "RESIZED_CROP", "COLOR_MATRIX", "POINT", "ERASE"},
    # Parts of images are mixed: resized, padded, erased.
    "program/mixing.py": {"RESIZED_CROP", "PAD", "ERASE"},
    # Operations that are policies' alone, or are no class with a number.
    "policies/table.py": {"HFLIP", "VFLIP", "GAUSSIAN_BLUR", "ERASE"},
    "policies/uniform.py": {"GRAYSCALE"},
    "policies/pba.py": {"HFLIP"},
    # What a draw did, by the arguments of its maps and rectangles, which no class with a number declares.
    "apps/attribution/draws.py": {"AFFINE", "PERSPECTIVE", "CROP", "RESIZED_CROP", "ERASE"},
    # Tables are what all operations of levels become.
    **{f"executors/cpu/tiled/{name}.py": {"LUT"} for name in ("workspace", "statistics")},
    "program/lowering/joint.py": {"LUT"},
    # The mean of lumas is taken through tables, so that it comes first.
    "program/lowering/fuse.py": {"LUT", "CONTRAST"},
    # Factors of blends are cut off where they change nothing.
    "program/lowering/tables.py": {"CONTRAST", "SHARPNESS"},
    # The room that a window needs.
    "executors/cpu/batch.py": {"MEDIAN", "MORPHOLOGY"},
    # What points into tables, sees its source plainly, or takes registers that others should not pay for.
    "executors/cuda/records.py": {"LUT", "COLOR_MATRIX", "SHARPNESS", "ERASE", "HUE", "CLAHE", "MATCH", "OVERLAY"},
    "executors/cuda/pack.py": {"ERASE", "GAUSSIAN_NOISE", "SHOT_NOISE"},
    # What depends on the whole image, or is to differ between channels.
    "executors/cuda/regions.py": {"CLAHE"},
    "program/planes.py": {"ERASE", "GAUSSIAN_NOISE", "SHOT_NOISE"},
    # The one instruction that may be run after Normalize, that moves with masks, or is of a colour or of noise.
    **{f"program/{name}.py": {"ERASE"} for name in ("one_image", "sampling")},
    **{f"{name}.py": {"ERASE"} for name in ("executors/cpu/passes", "targets/stages", "apps/preview/rows")},
}
EXCEPTIONS["executors/cpu/tiled/workspace.py"] |= {"ERASE", "OVERLAY"}
EXCEPTIONS["executors/cpu/tiled/statistics.py"] |= {"CLAHE"}


def instructions_in(tree: ast.AST) -> set[str]:
    """Those that code names, as ``Op.X``."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in Op.__members__]
    return {node.attr for node in nodes if ast.unparse(node.value).split(".")[-1] == "Op"} - {"NOP"}


def test_instructions_are_named_in_the_files_of_their_kind_alone() -> None:
    package = Path(variegate.__file__).parent
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        name = path.relative_to(package).as_posix()
        for each in instructions_in(ast.parse(path.read_text())):
            op = Op[each]
            files = (*FILES[SPECS[op].kind], *(OF_PRIMITIVES if op >= Op.MAP_FIXED else ()), *OF_ALL)
            if not name.startswith(files):
                found.setdefault(name, set()).add(each)
    assert found == EXCEPTIONS

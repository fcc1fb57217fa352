"""Write ``constants.h``: numbers that Python and C++ share, from the modules that define them.

``python -m native.constants`` after a change of one; a test says when the file is older than they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from variegate.apps.check import fingerprint, near_search, pixels
from variegate.executors.cuda import layout
from variegate.native import structs
from variegate.ops import fields, tone, windows  # noqa: F401  # which declare instructions
from variegate.program import coords, depth, elementary, ops, passes, pixel_functions, rng, stages
from variegate.program.draws.instructions import EMISSION, INSTRUCTION, LANES, DrawFailure, DrawOp
from variegate.program.lowering import blurs
from variegate.program.program import RECORD

HEADER = Path(__file__).with_name("constants.h")


def _enum(name: str, members: Iterable[tuple[str, int]]) -> str:
    lines = "".join(f"  {member} = {value},\n" for member, value in members)
    return f"namespace {name} {{\nenum : int {{\n{lines}}};\n}}  // namespace {name}\n"


def _int_enum(kind: type[IntEnum]) -> str:
    return _enum(kind.__name__, ((member.name, member.value) for member in kind))


def _run_by_executors(kind: ops.Kind) -> str:
    """An ``enum class`` of the instructions of a kind that lowering leaves, such as PositionOp."""
    left = (
        op for op, spec in ops.SPECS.items() if spec.kind is kind and spec.lowered_to is None and spec.level is None
    )
    members = "".join(f"  {op.name} = {op.value},\n" for op in left)
    return f"enum class {kind.name.title()}Op : int {{\n{members}}};\n"


def _fields(module: ModuleType, first: str, last: str) -> Iterator[tuple[str, Any]]:
    """Constants of a module from ``first`` to ``last``, in the order of their definition."""
    names = list(vars(module))
    for name in names[names.index(first) : names.index(last) + 1]:
        yield name, getattr(module, name)


def _number(name: str, value: float) -> str:
    if isinstance(value, int):
        kind = "int" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
        return f"constexpr {kind} {name} = {value};\n"
    assert math.isfinite(value)
    return f"constexpr f64 {name} = {float(value).hex()};\n"


def _floats(name: str, values: Iterable[float]) -> str:
    return _array(name, "f32", (f"{value.hex()}f" for value in values))


def _array(name: str, kind: str, values: Iterable[object]) -> str:
    return f"constexpr {kind} {name}[] = {{{', '.join(map(str, values))}}};\n"


def _struct(name: str, fields: Iterable[tuple[str, str]], comment: str) -> str:
    """A struct of words of 64 bits."""
    lines = "".join(f"  {kind} {field};\n" for field, kind in fields)
    return f"// {comment}\nstruct {name} {{\n{lines}}};\n"


_TYPES = {np.dtype(np.int32): "i32", np.dtype(np.float64): "f64"}


def _record(name: str, layout: np.dtype[np.void], comment: str) -> str:
    """A struct as an aligned dtype of NumPy lays it out."""
    assert layout.fields is not None
    assert layout.isalignedstruct
    lines = ""
    for field, (kind, *_) in layout.fields.items():
        length = f"[{kind.shape[0]}]" if kind.shape else ""
        lines += f"  {_TYPES[kind.base]} {field}{length};\n"
    return f"// {comment}\nstruct {name} {{\n{lines}}};\n"


def header() -> str:
    """The text of ``constants.h``."""
    # Tables are declared by their operations: importing the transforms declares them all.
    import variegate.transforms  # noqa: F401

    sections = [
        "// Written by native/constants.py; run `python -m native.constants` instead of editing it.\n"
        "// clang-format off\n"
        '#pragma once\n#include "core.h"\n',
        _enum("Op", ((op.name, op.value) for op in sorted(ops.Op))),
        *map(_int_enum, (depth.Depth, ops.Kind, ops.Interpolation, ops.PadMode, ops.LayerMode)),
        *map(_int_enum, (passes.PassSource, passes.PassBreak)),
        "// Instructions that executors run, by kind, so that compilers warn about instructions missing in a switch.\n",
        *(
            _run_by_executors(kind)
            for kind in (ops.Kind.VALUE, ops.Kind.STATISTIC, ops.Kind.NEIGHBORHOOD, ops.Kind.POSITION)
        ),
        _enum("PassField", _fields(passes, "BEGIN", "QUALITY")),
        _number("PASS_FIELDS", passes.PASS_FIELDS),
        _number("NEEDS_LUMA", passes.NEEDS_LUMA),
        _number("NEEDS_COUNTS", passes.NEEDS_COUNTS),
        *(
            _number(name, getattr(ops, name))
            for name in (
                "NUM_ARGS",
                "MAX_OPCODE",
                "MAX_TILES",
                "MAX_ELEMENT",
                "MAX_ZOOMS",
                "MAX_DISTANCE",
                "MAX_TIMES",
                "INTERPOLATION_BITS",
                "INTERPOLATION_MASK",
                "LAYER_PLANES",
                "LIGHTNESSES",
                "LUMA_RED",
                "LUMA_GREEN",
                "LUMA_BLUE",
                "LUMA_HALF",
                "LUMA_SHIFT",
            )
        ),
        "// By opcode: the Kind, and sets of instructions.\n",
        _array("KIND_OF", "i8", ops.KIND_OF.tolist()),
        _array("IS_COLOR_ONLY", "u8", map(int, ops.IS_COLOR_ONLY)),
        _array("IS_SUBPIXEL_MAP", "u8", map(int, ops.IS_SUBPIXEL_MAP)),
        _array("IS_WARP", "u8", map(int, ops.IS_WARP)),
        _array("IS_BLUR", "u8", map(int, ops.IS_BLUR)),
        _array("NEEDS_LEVELS", "u8", map(int, ops.NEEDS_LEVELS)),
        "// The argument with the slot of an instruction's random numbers; -1 if it draws none.\n",
        _array("NOISE_ARG", "i8", ops.NOISE_ARG.tolist()),
        "// Coordinates: see variegate/program/coords.py.\n",
        _number("MAX_COORD", coords.MAX_COORD),
        _enum("Record", _fields(coords, "U", "TWICE")),
        _number("RECORD_FIELDS", coords.RECORD),
        *(
            _number(name, getattr(coords, name))
            for name in (
                "STEP_BITS",
                "WEIGHT_BITS",
                "NODE_BITS",
                "MAX_UNIT",
                "FAR_X",
                "FAR_Y",
                "SWAPPED",
                "WEIGHS_TWICE",
                "BILINEAR_BITS",
                "BICUBIC_BITS",
                "NUMERATOR_SHIFT",
            )
        ),
        "// Weights of convolutions: see variegate/program/lowering/blurs.py.\n",
        _number("KERNEL_WEIGHT_BITS", blurs.WEIGHT_BITS),
        _number("KERNEL_LEVEL_BITS", blurs.LEVEL_BITS),
        _number("AMOUNT_BITS", blurs.AMOUNT_BITS),
        "// Random numbers: see variegate/program/rng.py.\n",
        *(_number(f"PHILOX_M{i}", value) for i, value in enumerate(rng.MULTIPLIERS)),
        *(_number(f"PHILOX_W{i}", value) for i, value in enumerate(rng.WEYL)),
        _number("PHILOX_ROUNDS", rng.ROUNDS),
        _number("VIEW_DOMAIN", rng.VIEW_DOMAIN),
        _number("SEGMENT_BITS", rng.SEGMENT_BITS),
        _number("SEGMENT_SHIFT", rng.SEGMENT_SHIFT),
        _number("FIRST_SEGMENT", rng.FIRST_SEGMENT),
        _number("LARGEST_NODE", fields.LARGEST_NODE),
        "// Checks of images: see variegate/apps/check.\n",
        _number("FINGERPRINT_AREAS", fingerprint.AREAS),
        _number("FINGERPRINT_FINENESS", fingerprint.FINENESS),
        _number("FINGERPRINT_LEAST", fingerprint.LEAST_WAVE),
        _number("SIGNATURE_SIDE", fingerprint.LUMA_SIDE),
        _number("SIGNATURE_CHROMA_SIDE", fingerprint.CHROMA_SIDE),
        _number("UNLIKE", fingerprint.UNLIKE),
        _number("NEAR_KINDS", near_search.KINDS),
        _number("NEAR_KEPT", near_search.KEPT),
        _number("HASH_GROUP", near_search.GROUP),
        _number("SHARPNESS_BLOCK", pixels.BLOCK),
        "// Of a single image's instruction, written as one record.\n",
        _number("INSTRUCTION_RECORD", RECORD.itemsize // 8),
        "// Geometry of targets: see variegate/program/stages.py.\n",
        _enum("StageKind", _fields(stages, "MAP", "SCALE")),
        _enum("StageNumber", ((name, getattr(stages, name)) for name in stages.NUMBERS)),
        _int_enum(structs.PointState),
        _array("IS_FOLLOWED", "u8", map(int, stages.IS_FOLLOWED)),
        _number("ENDLESS", stages.ENDLESS),
        "// The packed program of a GPU: see variegate/executors/cuda/layout.py.\n",
        _enum("Section", ((name.upper(), i) for i, name in enumerate(layout.Sections._fields))),
        _number("NUM_SECTIONS", len(layout.Sections._fields)),
        _enum("HeaderField", _fields(layout, "IMAGE", "WHOLE_HEIGHT")),
        _number("HEADER_FIELDS", layout.HEADER),
        _enum("CodeField", _fields(layout, "OP", "PARAMS")),
        _number("CODE_FIELDS", layout.CODE),
        _enum("CodeClass", _fields(layout, "SKIP", "MAP")),
        _enum("LaunchField", _fields(layout, "NUM_ROWS", "PERCENTILES_BEGIN")),
        _number("LAUNCH_FIELDS", layout.LAUNCH),
        _int_enum(layout.KernelFeature),
        _number("TABLE_SIZE", layout.TABLE),
        _number("WEIGHTS_BLOCK", layout.WEIGHTS_BLOCK),
        _number("SCALES_AND_BIASES", layout.SEGMENTS),
        "// Draws: see variegate/program/draws.\n",
        _int_enum(DrawOp),
        _int_enum(DrawFailure),
        _number("DRAW_LANES", LANES),
        _record("DrawInstruction", INSTRUCTION, "An instruction of the machine."),
        _record(
            "DrawEmission",
            EMISSION,
            "An instruction of a program, a rectangle, or the numbers of a message: registers, -1 for none.",
        ),
        _struct("DrawCall", structs.DRAW_CALL, structs.DRAW_COMMENT),
        "// Elementary functions of pixels: see variegate/program/elementary.py.\n",
        *(
            _floats(name, value) if isinstance(value, tuple) else f"constexpr f32 {name} = {value.hex()}f;\n"
            for name, value in _fields(elementary, "EXP_TERMS", "ROUNDER")
        ),
        "// Custom operations: see variegate/program/pixel_functions.py.\n",
        _number("PIXEL_FUNCTION_FLOATS", pixel_functions.PIXEL_FUNCTION_FLOATS),
        _number("MAX_PIXEL_FUNCTION_NUMBERS", pixel_functions.MAX_PIXEL_FUNCTION_NUMBERS),
        _struct("PixelFunction", structs.PIXEL_FUNCTION, "A user's function of a pixel: compiled, or a record."),
        "// Results.\n",
        _int_enum(structs.Storage),
        _int_enum(structs.BandStep),
        _struct(
            "Batch", structs.BATCH, "R rows of fused programs of K slots and P passes, and where their pixels are."
        ),
        _struct("Lowering", structs.LOWERING, "R programs of K slots, rewritten in place: see native/lowering."),
        _struct("PlanCall", structs.PLAN_CALL, "A batch that is drawn and lowered: see variegate/program/plan.py."),
        _struct("Stages", structs.STAGES, "Steps of the geometry of R rows: see variegate/program/stages.py."),
        _struct("StagesCall", structs.STAGES_CALL, "Sampled programs whose geometry becomes Stages."),
        "// JPEG files: see native/jpeg.\n",
        _int_enum(structs.JpegRefusal),
        _int_enum(structs.JpegStatus),
        _struct("JpegHead", structs.JPEG_HEAD, "Header of a JPEG file."),
        _struct("Layers", structs.LAYERS, "Layers that brushes draw: u8[count, planes, lines, columns]."),
        _struct(
            "FieldNoise",
            structs.FIELD_NOISE,
            "Noise between -1 and 1 at the nodes of grids, blurred, times gains.",
        ),
        _struct("HashSearch", structs.HASH_SEARCH, "A search for images of near hashes in one index of them."),
        _struct("RunCall", structs.RUN_CALL, "One call of vg_run."),
        _struct("MoveCall", structs.MOVE_CALL, "One call of vg_move."),
        _int_enum(structs.SingleStatus),
        _struct("SingleCall", structs.SINGLE_CALL, "One call of vg_make_one."),
        _struct(
            "BandCall",
            structs.BAND_CALL,
            "One call of vg_run_band: lines begin..end of a BandStep of one pass of one row.",
        ),
        _struct(
            "BlendCall",
            structs.BLEND_CALL,
            "One call of vg_blend: rows of a batch joined into outputs begin..end; arrays as in program.BlendEntries.",
        ),
        _struct(
            "PickCall",
            structs.PICK_CALL,
            "One call of vg_pick_planes: three channels of each of images begin..end, interleaved, back to back.",
        ),
        _struct(
            "DeviceProgram",
            structs.DEVICE_PROGRAM,
            "A fused program of R rows, K slots and P passes that is packed for a GPU: see native/cuda.",
        ),
        _struct("PackCall", structs.PACK_CALL, "One call of vg_pack."),
    ]
    return "\n".join(sections)


def main() -> None:
    HEADER.write_text(header())


if __name__ == "__main__":
    main()

"""Programs run the plain way: one instruction after another on one uint8 image, in NumPy. This defines meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.images import check_fits, shapes_of
from variegate.executors.reference import geometry, neighbourhood, position, resample, statistics, values
from variegate.executors.reference.compression import through_jpeg
from variegate.executors.reference.instruction import Image, Instruction, Operation, to_uint8
from variegate.program.ops import SPECS, Op
from variegate.program.program import Output, Program, Tables

OPERATIONS: dict[Op, Operation] = {
    Op.NOP: lambda img_HWC, _: img_HWC,
    Op.HFLIP: geometry.hflip,
    Op.VFLIP: geometry.vflip,
    Op.ROT90: geometry.rot90,
    Op.CROP: geometry.crop,
    Op.PAD: geometry.pad,
    Op.RESIZED_CROP: resample.resized_crop,
    Op.ROTATE: geometry.rotate,
    Op.SHEAR_X: geometry.shear_x,
    Op.SHEAR_Y: geometry.shear_y,
    Op.TRANSLATE_X: geometry.translate_x,
    Op.TRANSLATE_Y: geometry.translate_y,
    Op.AFFINE: geometry.affine,
    Op.PERSPECTIVE: geometry.perspective,
    Op.DISPLACE: geometry.displace,
    Op.SATURATION: values.saturation,
    Op.HUE: values.hue,
    Op.GRAYSCALE: values.grayscale,
    Op.PERMUTE: values.permute,
    Op.LUT: values.lut,
    Op.COLOR_MATRIX: values.color_matrix,
    Op.POINT: values.point,
    Op.CONTRAST: statistics.contrast,
    Op.AUTOCONTRAST: statistics.autocontrast,
    Op.EQUALIZE: statistics.equalize,
    Op.SHARPNESS: neighbourhood.sharpness,
    Op.GAUSSIAN_BLUR: neighbourhood.gaussian_blur,
    Op.MOTION_BLUR: neighbourhood.motion_blur,
    Op.FILTER: neighbourhood.filtered,
    Op.UNSHARP_MASK: neighbourhood.unsharp_mask,
    Op.MEDIAN: neighbourhood.median,
    Op.CLAHE: statistics.clahe,
    Op.GAUSSIAN_NOISE: position.gaussian_noise,
    Op.SALT_AND_PEPPER: position.salt_and_pepper,
    Op.SHOT_NOISE: position.shot_noise,
    Op.ERASE: position.erase,
    Op.JPEG: lambda img_HWC, ins: through_jpeg(img_HWC, int(ins.args[0])),
}

if _missing := [op.name for op, spec in SPECS.items() if op < Op.MAP_FIXED and not (op in OPERATIONS or spec.level)]:
    raise NotImplementedError(f"reference executor: no function for {', '.join(_missing)}")

Array = npt.NDArray[Any]


def apply(
    op: Op,
    img_HWC: Image,
    args: Sequence[float] | npt.NDArray[np.float64],
    flags: int = 0,
    fill: Sequence[int] | npt.NDArray[np.uint8] = (0, 0, 0),
    out_size: tuple[int, int] | None = None,
    tables: Tables | None = None,
    sample_id: int = 0,
    key: npt.NDArray[np.uint32] | None = None,
) -> Image:
    """One instruction on one uint8 image [H, W, C], C = 1 or 3 -> a new uint8 image [H', W', C].

    ``args`` may be shorter than eight; ``out_size`` (height, width), where given, must be what comes out.

    Raises:
        ValueError: for an operation that is not semantic, or a result of another size than the program says.
    """
    operation = OPERATIONS.get(op) or (values.tabled(SPECS[op]) if op in SPECS and SPECS[op].level else None)
    if operation is None:
        raise ValueError(f"reference executor: operation {op!r}; accepted: semantic operations, codes below 100")
    padded = np.zeros(8)
    padded[: len(args)] = args
    colour = np.asarray(fill, np.uint8)
    out = operation(img_HWC, Instruction(padded, int(flags), colour, out_size or (0, 0), tables, sample_id, key))
    if out_size is not None and out.shape[:2] != tuple(out_size):
        raise ValueError(f"{op.name}: the result is {out.shape[0]}x{out.shape[1]}, the program says {out_size}")
    return np.array(out, np.uint8, order="C")


def run(program: Program, images: Sequence[Image]) -> list[Array]:
    """A sampled program on its images -> one array per output.

    ``images`` are uint8 [H, W, C] with C = 1 or 3, or [H, W]. Outputs are float32 (with ``Output.mean``; the cast to
    another ``Output.dtype`` is the caller's) or uint8, [C, H, W] or [H, W, C] by ``Output.layout``.
    """
    check_fits(program, shapes_of(images))
    rows = [_run_row(program, row, images[int(program.source[row])]) for row in range(program.num_rows)]
    if program.blend is None:
        return [_finish(program, row, img) for row, img in enumerate(rows)]
    entries = program.blend.entries()
    outputs = []
    for begin, end, start in zip(entries.begins[:-1], entries.begins[1:], entries.start, strict=True):
        first = int(entries.row[begin])
        mixed = np.full(rows[first].shape, start, np.float32)
        for row, weight, box in zip(*(of[begin:end] for of in entries[1:4]), strict=True):
            inside = slice(box[0], box[2]), slice(box[1], box[3])
            mixed[inside] += weight * rows[row][inside].astype(np.float32)
        outputs.append(_finish(program, first, to_uint8(mixed)))
    return outputs


def instruction(program: Program, row: int, slot: int) -> Instruction:
    """One slot of a program as the operations of this executor take it."""
    return Instruction(
        program.args[row, slot],
        int(program.flags[row, slot]),
        program.fill[row, slot],
        (int(program.out_size[row, slot, 0]), int(program.out_size[row, slot, 1])),
        program.tables,
        int(program.ids[row]),
        program.key[row],
    )


def _run_row(program: Program, row: int, image: Image) -> Image:
    img_HWC = image if image.ndim == 3 else image[..., None]
    for slot in range(int(program.length[row])):
        ins = instruction(program, row, slot)
        op = Op(int(program.opcode[row, slot]))
        img_HWC = apply(op, img_HWC, ins.args, ins.flags, ins.fill, ins.out_size, ins.tables, ins.sample_id, ins.key)
    return img_HWC


def _finish(program: Program, row: int, img_HWC: Image) -> Array:
    """Normalise, erase what is erased after that, and lay out."""
    if not program.output.is_float:
        return _lay_out(img_HWC, program.output)
    scale, bias = program.output.scale_and_bias(img_HWC.shape[2])
    channels = img_HWC.shape[2]
    out_HWC = img_HWC.astype(np.float32) * scale[:channels] + bias[:channels]
    for slot in range(int(program.length[row])):
        if program.opcode[row, slot] == Op.ERASE and program.args[row, slot, 7]:
            out_HWC = position.erase_normalized(out_HWC, instruction(program, row, slot))
    return _lay_out(out_HWC, program.output)


def _lay_out(img_HWC: Array, output: Output) -> Array:
    # A copy, because an output without instructions would otherwise be the caller's own image.
    return np.array(img_HWC.transpose(2, 0, 1) if output.layout == "NCHW" else img_HWC, order="C")

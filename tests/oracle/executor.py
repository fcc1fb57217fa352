"""Programs run the plain way: one instruction after another on one uint8 image, in NumPy. This defines meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.oracle import (
    codec,
    geometry,
    neighborhood,
    position,
    resample,
    statistics,
    values,
)
from tests.oracle.instruction import Image, Instruction, Operation, to_pixels, white
from variegate.executors.batches import check_fits, depth_of_batch, shapes_of
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.program import Output, Program, Tables

# By kind, the file of functions that have the names of its instructions, in lower case.
FAMILIES = {
    Kind.GEOMETRY: geometry,
    Kind.RESAMPLE: resample,
    Kind.VALUE: values,
    Kind.STATISTIC: statistics,
    Kind.NEIGHBORHOOD: neighborhood,
    Kind.POSITION: position,
    Kind.CODEC: codec,
}


def meaning_of(op: Op) -> Operation | None:
    """The function that defines an instruction; None for a primitive, and for one that nobody has defined."""
    if op is Op.NOP:
        return lambda img_HWC, _: img_HWC
    if op not in SPECS or op >= Op.MAP_FIXED:
        return None
    spec = SPECS[op]
    if spec.level is not None:
        return values.tabled(spec)
    return getattr(FAMILIES[spec.kind], op.name.lower(), None)


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
    operation = meaning_of(op)
    if operation is None:
        raise ValueError(f"reference executor: operation {op!r}; accepted: semantic operations, codes below 100")
    padded = np.zeros(8)
    padded[: len(args)] = args
    out = operation(img_HWC, Instruction(padded, int(flags), tuple(fill), out_size or (0, 0), tables, sample_id, key))
    if out_size is not None and out.shape[:2] != tuple(out_size):
        raise ValueError(f"{op.name}: the result is {out.shape[0]}x{out.shape[1]}, the program says {out_size}")
    return np.array(to_pixels(out), order="C")


def run(program: Program, images: Sequence[Image]) -> list[Array]:
    """A sampled program on its images -> one array per output.

    ``images`` are uint8 [H, W, C] with C = 1 or 3, or [H, W]. Outputs are float32 (with ``Output.mean``; the cast to
    another ``Output.dtype`` is the caller's) or uint8, [C, H, W] or [H, W, C] by ``Output.layout``.
    """
    if white() == 255:
        check_fits(program, shapes_of(images), depth_of_batch(images))
    rows = [_run_row(program, row, images[int(program.source[row])]) for row in range(program.num_rows)]
    if program.blend is None:
        return [_finish(program, row, img) for row, img in enumerate(rows)]
    entries = program.blend.entries()
    outputs = []
    for begin, end, start in zip(entries.begins[:-1], entries.begins[1:], entries.start, strict=True):
        first = int(entries.row[begin])
        mixed = np.full(rows[first].shape, start, np.float32)
        for row, weight, box, at in zip(*(of[begin:end] for of in (*entries[1:4], entries.alpha_at)), strict=True):
            inside = slice(box[0], box[2]), slice(box[1], box[3])
            if at < 0:
                mixed[inside] += weight * rows[row][inside].astype(np.float32)
                continue
            alpha = entries.alpha[at : at + (box[2] - box[0]) * (box[3] - box[1])].reshape(box[2] - box[0], -1, 1)
            mixed[inside] = alpha_blend(to_pixels(mixed[inside]), rows[row][inside], alpha)
        outputs.append(_finish(program, first, to_pixels(mixed)))
    return outputs


def alpha_blend(below: Image, above: Image, alpha: Image) -> Image:
    """``above`` in shares of ``alpha`` / 255, rounded to the nearest."""
    share = alpha.astype(np.int64)
    return to_pixels((below * (255 - share) + above * share + 127) // 255)


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
    scale = scale * np.float32(255 / white())
    channels = img_HWC.shape[2]
    out_HWC = img_HWC.astype(np.float32) * scale[:channels] + bias[:channels]
    for slot in range(int(program.length[row])):
        if program.opcode[row, slot] == Op.ERASE and program.args[row, slot, 7]:
            out_HWC = position.erase_normalized(out_HWC, instruction(program, row, slot))
    return _lay_out(out_HWC, program.output)


def _lay_out(img_HWC: Array, output: Output) -> Array:
    # A copy, because an output without instructions would otherwise be the caller's own image.
    return np.array(img_HWC.transpose(2, 0, 1) if output.layout == "NCHW" else img_HWC, order="C")

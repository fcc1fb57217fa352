"""Operations of a Program as JSON data (for manifests) and as text (for ``explain`` and previews)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from variegate.arrays import Float64Array, IndexArray
from variegate.program.channels import fill_of
from variegate.program.ops import INTERPOLATION_BITS, INTERPOLATION_MASK, SPECS, Interpolation, Kind, Op, PadMode
from variegate.program.passes import BEGIN, BLOCKING_SLOT, BREAK, END, QUALITY, PassBreak
from variegate.program.program import Program

_OFF_AT_ZERO = frozenset({"expand", "random", "normalized", "magnitude", "shade"})
_WHY_APART = {
    PassBreak.MAP_AFTER_POSITION: "{this} moves what {that} has drawn",
    PassBreak.MAP_AFTER_SOURCE: "{this} reads what {that} has made",
    PassBreak.MAP_OF_ANOTHER_KIND: "{this} and {that} do not interpolate alike",
    PassBreak.MAP_STAGE_BY_STAGE: 'geometry="exact" rounds between {that} and {this}',
    PassBreak.MAP_AFTER_VALUES: "{this} interpolates between pixels that {that} has changed",
    PassBreak.STATISTIC_OF_NEW_IMAGE: "{this} needs the histogram after {that}",
    PassBreak.STATISTIC_MEASURED_BEFORE: "{this} needs a histogram of its own after {that}",
    PassBreak.FILTER_OF_NEW_IMAGE: "{this} needs the neighbors of pixels after {that}",
    PassBreak.RESAMPLE_NOT_FIRST: "{this} averages what {that} has made",
    PassBreak.CODEC: "{this} takes the whole image after {that}",
}
_NORMALIZED_VALUES = frozenset({"v0", "v1", "v2"})


def operations_of(program: Program, output: int, in_words: bool = False) -> list[dict[str, Any]]:
    """List the operations of output ``output`` in order, as JSON data: ``{"op": "Rotate", "angle": -9.0, ...}``.

    Arguments are named as in ``docs/operations.md``; arguments at their default are omitted.

    An output blended from several rows (AugMix) has one entry:
    ``{"op": "Blend", "chains": [{"weight": w, "operations": [...]}, ...]}``. An output mixed with other samples (MixUp)
    has one entry as well, named after its transform. Its chains have the "id" of the other sample, and a "box" (top,
    left, height, width) if only a rectangle is visible. "weight" is the chain's share of the full image.

    ``in_words``: for ``captions``, describe affine and perspective matrices in "words", such as "rotate 5, scale 1.1".
    """
    if program.blend is None:
        return _row_operations(program, output, in_words)
    name, (entries, rows) = "Blend", _rows_of(program, output)
    if program.mixture is not None:
        name = program.mixture.names[output] or name
    if name == "Blend" and len(rows) == 1:
        return _row_operations(program, rows[0], in_words)
    chains = [_chain(program, output, row, entries[np.equal(rows, row)], in_words) for row in dict.fromkeys(rows)]
    return [{"op": name, "chains": chains}]


def _rows_of(program: Program, output: int) -> tuple[IndexArray, list[int]]:
    """Return the blend entries of an output, and the row of each entry."""
    blend = program.blend
    entries = np.array([output]) if blend is None else np.flatnonzero(blend.target == output)
    return entries, (entries if blend is None or blend.row is None else blend.row[entries]).tolist()


def _chain(program: Program, output: int, row: int, entries: IndexArray, in_words: bool) -> dict[str, Any]:
    """Describe the contribution of ``row`` to an output through these blend entries."""
    assert program.blend is not None
    height, width = program.final_size(row)
    weight = program.blend.weight[entries].astype(np.float64)
    box = program.blend.box
    described: dict[str, Any] = {}
    if program.source[row] != program.source[output]:
        described["id"] = int(program.ids[row])
    if box is not None:
        top, left, bottom, right = np.minimum(box[entries], [height, width, height, width]).T
        areas = (bottom - top) * (right - left)
        weight = weight * areas / (height * width)
        if len(entries) == 1 and areas[0] < height * width:
            described["box"] = [int(top[0]), int(left[0]), int(bottom[0] - top[0]), int(right[0] - left[0])]
    described["weight"] = round(float(weight.sum()), 6)
    return {**described, "operations": _row_operations(program, row, in_words)}


def captions(operations: list[dict[str, Any]]) -> list[str]:
    """Describe each operation in one short line; ``["unchanged"]`` for no operations."""
    lines: list[str] = []
    for operation in operations:
        if "chains" in operation:
            lines.append(f"{operation['op']} of")
            for chain in operation["chains"]:
                names = ", ".join(captions(chain["operations"]))
                whose = f"sample {chain['id']}: " if "id" in chain else ""
                lines.append(f"{chain['weight']:.2f} x {whose}{names}")
        else:
            border = f", border {operation['padding_mode']}" if "padding_mode" in operation else ""
            lines.append(_caption(operation) + border)
    return lines or ["unchanged"]


def _row_operations(program: Program, row: int, in_words: bool) -> list[dict[str, Any]]:
    slots = [k for k in range(int(program.length[row])) if program.opcode[row, k] != Op.NOP]
    described = [_describe(program, row, k) for k in slots]
    for operation, k in zip(described, slots, strict=True):
        op = program.opcode[row, k]
        if in_words and op in (Op.AFFINE, Op.PERSPECTIVE) and program.label[row, k] < 0:
            words = _affine_in_words if op == Op.AFFINE else _perspective_in_words
            with np.errstate(all="ignore"):  # the map may have no inverse
                operation["words"] = words(program.args[row, k].astype(np.float64), *program.out_size[row, k].tolist())
    return described


def _affine_in_words(args: Float64Array, height: int, width: int) -> str:
    """Describe an affine map by the arguments of torchvision's ``affine``: degrees clockwise, about the center."""
    there = np.linalg.pinv([[*args[:3]], [*args[3:6]], [0.0, 0.0, 1.0]])
    middle = np.array([width / 2, height / 2, 1.0])
    (a, b), (c, d) = there[:2, :2]
    scale_x = math.hypot(a, c)
    scale_y = (a * d - b * c) / scale_x
    turn = math.degrees(math.atan2(c, a))
    shear = math.degrees(math.atan2(-(a * b + c * d) / scale_x, scale_y))
    shift = (there @ middle - middle)[:2].tolist()
    is_even = math.isclose(scale_x, scale_y, rel_tol=1e-4)
    scales = _short(scale_x) if is_even else f"{_short(scale_x)} x {_short(scale_y)}"
    said = [("rotate", _short(turn), "0"), ("scale", scales, "1"), ("shear", _short(shear), "0")]
    said.append(("shift", " ".join(map(_short, shift)), "0 0"))
    return ", ".join(f"{name} {value}" for name, value, neutral in said if value != neutral) or "unchanged"


def _perspective_in_words(args: Float64Array, height: int, width: int) -> str:
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1]], np.float64).T
    places = np.linalg.pinv(np.append(args, 1.0).reshape(3, 3)) @ corners
    moved = np.abs(places[:2] / places[2] - corners[:2]).max()
    return f"corners moved by up to {_short(float(moved))} px"


def _short(value: float) -> str:
    """Format with at most one decimal; two for values below 2, which are mostly scales."""
    text = f"{value:.{1 if abs(value) >= 2 else 2}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _describe(program: Program, row: int, k: int) -> dict[str, Any]:
    op = Op(int(program.opcode[row, k]))
    spec = SPECS[op]
    label = int(program.label[row, k])
    described: dict[str, Any] = {"op": program.names[label] if label >= 0 else spec.name}
    names = spec.labelled_args if label >= 0 and spec.labelled_args is not None else spec.args
    is_normalized = op is Op.ERASE and program.args[row, k, spec.args.index("normalized")] != 0
    for name, value in zip(names, program.args[row, k], strict=False):
        if name.startswith("_") or math.isnan(value) or (name in _OFF_AT_ZERO and value == 0):
            continue
        if name not in _NORMALIZED_VALUES or is_normalized:
            described[name] = _plain(float(value))
    flag = int(program.flags[row, k])
    if op is Op.PAD:
        if flag != PadMode.CONSTANT:
            described["mode"] = PadMode(flag).name.lower()
    elif spec.kind in (Kind.GEOMETRY, Kind.RESAMPLE) and (flag or op is Op.RESIZED_CROP):
        if (interpolation := flag & INTERPOLATION_MASK) or op is Op.RESIZED_CROP:
            described["interpolation"] = Interpolation(interpolation).name.lower()
        if border := flag >> INTERPOLATION_BITS:
            described["padding_mode"] = PadMode(border).name.lower()
    if op is Op.RESIZED_CROP and program.args[row, k, 6] == 1:
        described["flipped"] = True
    if op is Op.ERASE:
        first, count = (int(value) for value in program.args[row, k, :2])
        described["rectangles"] = program.tables.rectangles[first : first + count].tolist()
    if spec.uses_fill and program.fill[row, k].any() and "padding_mode" not in described:
        described["fill"] = fill_of(program, row, k)
    return described


def _plain(value: float) -> int | float:
    """Round to an int or to 9 digits, enough for float32, which keeps manifests short."""
    if value == int(value):
        return int(value)
    return float(f"{value:.9g}")


def _caption(operation: dict[str, Any]) -> str:
    name = operation["op"]
    args = {k: v for k, v in operation.items() if k != "op"}
    if "words" in args:
        return f"{name} {args['words']}"
    if name in ("Crop", "ResizedCrop"):
        box = f"{_number(args['width'])}x{_number(args['height'])} at {_number(args['left'])},{_number(args['top'])}"
        return f"{name} {box}" + (" flipped" if args.get("flipped") else "")
    if "rectangles" in args:
        shown = [f"{w}x{h} at {x},{y}" for y, x, h, w in args["rectangles"]]
        return f"{name} " + (", ".join(shown) if len(shown) <= 2 else f"{len(shown)} rectangles")
    unsaid = ("interpolation", "padding_mode", "fill", "expand", "random")
    numbers = {key: value for key, value in args.items() if key not in unsaid}
    # Equal values along both axes are printed once.
    both = {key[:-2] for key in numbers if key.endswith("_x") and numbers.get(f"{key[:-2]}_y") == numbers[key]}
    numbers = {key[:-2] if key[:-2] in both else key: value for key, value in numbers.items()}
    if len(numbers) == 1 and "magnitude" not in numbers:
        return f"{name} {_number(next(iter(numbers.values())))}"
    return " ".join([name, *(f"{key}={_number(value)}" for key, value in numbers.items())])


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return str(value)


def explain_row(sampled: Program, fused: Program) -> str:
    """Describe a program of one image as text: the operations of each output, and the passes of its rows.

    Raises ValueError if ``fused`` is not lowered.
    """
    counts = () if sampled.grouping is None else sampled.grouping.counts
    views = [f"group {group}, view {view}:" for group, count in enumerate(counts) for view in range(count)]
    lines: list[str] = []
    for output in range(sampled.num_outputs):
        lines += views[output : output + 1]
        lines += _explain_output(sampled, fused, output, list(dict.fromkeys(_rows_of(fused, output)[1])))
    return "\n".join(lines)


def _explain_output(sampled: Program, fused: Program, output: int, rows: list[int]) -> list[str]:
    """Describe an output and the passes of its ``rows``, line by line."""
    lines = ["operations:"]
    lines += [f"  {line}" for line in captions(operations_of(sampled, output, in_words=True))]
    ends = _destination(fused) if fused.blend is None else "blend"
    for row in rows:
        name = "" if len(rows) == 1 else f" of row {row}"
        passes = _passes(fused, row, ends)
        lines.append(f"{len(passes)} pass{'es' if len(passes) != 1 else ''}{name}:")
        for p, (done, why) in enumerate(passes):
            lines.append(f"  {p + 1}: {done}")
            if p > 0:
                lines.append(f"     apart from pass {p}, as {why}")
    return lines


def _passes(fused: Program, row: int, ends: str) -> list[tuple[str, str]]:
    """Describe each pass of a row, and why it is separate from the previous pass.

    ``ends``: destination of the last pass. Raises ValueError if ``fused`` is not lowered.
    """
    if fused.num_passes is None or fused.passes is None:
        raise ValueError("explain_row: the second program must be lowered")
    plans = fused.passes[row, : int(fused.num_passes[row])]
    targets = [*[f"{fused.depth} canvas"] * (len(plans) - 1), ends]
    passes: list[tuple[str, str]] = []
    for plan, target in zip(plans, targets, strict=True):
        begin, end, quality, reason, blocking_slot = plan[[BEGIN, END, QUALITY, BREAK, BLOCKING_SLOT]].tolist()
        steps = [f"JPEG {quality}"] if quality else []
        steps += [_step(fused, row, k) for k in range(begin, end)]
        why = ""
        if passes:
            this = "JPEG" if quality else _step(fused, row, begin)
            why = _WHY_APART[PassBreak(reason)].format(this=this, that=_step(fused, row, blocking_slot))
        passes.append((" -> ".join([*(steps or ["copy"]), target]), why))
    return passes


def _step(fused: Program, row: int, k: int) -> str:
    """Name one instruction of a pass. LUTs and maps may be fused from several operations, so labels do not apply."""
    op = Op(int(fused.opcode[row, k]))
    label = int(fused.label[row, k])
    has_own_name = label >= 0 and op in (Op.COLOR_MATRIX, Op.PIXEL_FUNCTION, Op.ERASE)
    return fused.names[label] if has_own_name else SPECS[op].name


def _destination(program: Program) -> str:
    output = program.output
    values = f"normalize, {output.dtype}" if output.is_float else str(program.depth)
    kind = f"{values} {output.layout[1:]}"
    return " -> ".join([kind, *map(str, output.steps)])

"""Plan which part of each image to decode: for all upright JPEGs of a batch at once, for other files row by row."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import BoolArray, Float64Array, IndexArray, Int64Array, UInt8Array
from variegate.decode import decode_plain
from variegate.decode.entropy.index import WORTH_CUTTING, EntropyIndex
from variegate.decode.header import COMPONENTS, HEIGHT, HEIGHT_OFFSET, IS_COMPLETE, IS_SEQUENTIAL, MCU_HEIGHT, WIDTH
from variegate.program.ops import Interpolation, Op
from variegate.program.program import Program

# Top, left, bottom, right; bottom and right are exclusive.
Box = tuple[int, int, int, int]

# Radius of the resampling filters, in source pixels at scale 1. Keys are ints, because enum lookups are slow.
_SUPPORT = {
    int(Interpolation.BILINEAR): 1.0,
    int(Interpolation.BICUBIC): 2.0,
    int(Interpolation.BOX): 0.5,
    int(Interpolation.HAMMING): 1.0,
    int(Interpolation.LANCZOS): 3.0,
}
_RESIZED_CROP = int(Op.RESIZED_CROP)


def shift_crop(fused: Program, row: int, top: int, left: int, height: int, width: int) -> None:
    """Adapt the row's first resize to a decoded part of the image, which begins at ``top``, ``left``."""
    fused.args[row, 0, 0] -= top
    fused.args[row, 0, 1] -= left
    fused.in_shape[row, :2] = height, width


def crop_support(fused: Program, row: int) -> float | None:
    """Return ``crop_supports`` of one row, None for NaN."""
    support = float(crop_supports(fused, slice(row, row + 1))[0])
    return None if math.isnan(support) else support


def crop_supports(fused: Program, rows: slice = slice(None)) -> Float64Array:
    """Return the filter radius of each row's first operation if it is a resized crop, else NaN.

    NaN also if its filter does not read pixels outside the crop.
    """
    supports = np.full(len(fused.length[rows]), np.nan)
    if not fused.opcode.shape[1]:
        return supports
    opcode = fused.opcode[rows, 0]
    flags = fused.flags[rows, 0]
    is_crop = (fused.length[rows] > 0) & (opcode == _RESIZED_CROP) & (fused.args[rows, 0, 0] >= 0.0)
    for interpolation, support in _SUPPORT.items():
        supports[is_crop & (flags == interpolation)] = support
    return supports


def crop_boxes(args: Any, supports: Any, in_heights: Any, in_widths: Any, margin: int = 0) -> Int64Array:
    """Boxes that resized crops read, int64[N, 4]: the crop plus the filter radius, which grows with the scale."""
    out = np.empty((len(args), 4), np.int64)
    for axis, most in enumerate((in_heights, in_widths)):
        first = args[:, axis]
        length = args[:, 2 + axis]
        out_length = args[:, 4 + axis]
        reach = np.ceil(supports * np.maximum(length / out_length, 1.0)) + (1 + margin)
        out[:, axis] = np.maximum(0, np.floor(first) - reach)
        out[:, 2 + axis] = np.minimum(most, np.ceil(first + length) + reach)
    return out


def crop_reach(args: Float64Array, support: float, in_height: int, in_width: int, margin: int = 0) -> Box:
    top, left, bottom, right = crop_boxes(args[None], support, in_height, in_width, margin)[0].tolist()
    return top, left, bottom, right


def join_boxes(boxes: Sequence[Box | None]) -> Box | None:
    """Return the smallest box that contains all ``boxes``; None means the full image."""
    if not boxes or None in boxes:
        return None
    tops, lefts, bottoms, rights = zip(*boxes, strict=True)
    return min(tops), min(lefts), max(bottoms), max(rights)


Image = UInt8Array
# Divisors of reduced decoding, largest first: libjpeg-turbo has SIMD for these inverse DCTs only.
SCALES = (8, 4, 2)
# Buffers up to this size are cached per thread and never freed; larger images are allocated each time.
_KEPT_BYTES = 4 << 20
# Buffer number of the copy of a file.
_FILE = -1
_local = threading.local()


class DecodePlan(NamedTuple):
    """Plan of decoding one row's image.

    ``height``, ``width``: size of the decoded image. ``room``: bytes of its buffer, enough for all lines of the image.
    ``divisor``: of the reduced scale. ``height_offset``: position of the height in the file's header, to patch in a
    smaller height; 0 to decode the file unchanged. ``box``: top, left, bottom and right of the part to cut out of the
    file by its entropy index; None if decoding from the top is as fast.
    """

    source: int
    height: int
    width: int
    room: int
    divisor: int
    height_offset: int
    is_crop: bool
    box: tuple[int, int, int, int] | None


def plan_rows(
    fused: Program,
    heads: Int64Array,
    is_decoded: BoolArray,
    shared: IndexArray | None = None,
    scales: Sequence[int] = (),
    is_indexed: bool = False,
) -> list[DecodePlan | None]:
    """Return a plan for each row; None for rows that ``EncodedBatch`` decodes without a plan.

    Args:
        heads: parsed headers of all files, see ``decode.header.scan_headers``.
        shared: each row's file, if several rows read one file: it is decoded once for all, at full scale.
        scales: divisors among ``SCALES``, for crops that are shrunk.
        is_indexed: files may have an entropy index.
    """
    source = fused.source.astype(np.int64)
    head = heads[source]
    # Images that several rows of a blend read are decoded once, for the first row: see ``EncodedBatch._load``.
    plain = (head[:, COMPONENTS] > 0) & ~is_decoded[source] & ~is_shared(fused)
    if not plain.any():
        return [None] * len(source)
    height = head[:, HEIGHT]
    width = head[:, WIDTH]
    block = head[:, MCU_HEIGHT]
    is_sequential = head[:, IS_SEQUENTIAL] > 0
    support = crop_supports(fused)
    is_crop = ~np.isnan(support)
    args = fused.args[:, 0, :6] if fused.args.shape[1] else np.zeros((len(source), 6))
    divisor = np.ones(len(source), np.int64)
    # The largest divisor for which the crop is at least as large as its output.
    for scale in sorted(scales):
        divisor[is_crop & (args[:, 2:4] / scale >= args[:, 4:6]).all(axis=1)] = scale
    if fused.grouping is not None:
        divisor[:] = 1
    is_scaled = divisor > 1
    # Images of a few pixels do not get smaller at a reduced scale.
    plain &= ~is_scaled | (np.minimum(height, width) > SCALES[0])
    kept = height.copy()
    offset = np.zeros(len(source), np.int64)
    needed = np.stack([np.zeros_like(height), np.zeros_like(width), height, width], axis=1)
    cropped = np.flatnonzero(is_crop & plain)
    if len(cropped):
        needed[cropped] = _boxes(args[cropped], support[cropped], height[cropped], width[cropped], divisor[cropped])
    boxed = np.flatnonzero(is_crop & ~is_scaled & plain)
    if len(boxed):
        # If chroma is subsampled vertically, fancy upsampling of a block's last line reads the line below it.
        rows = -(-(needed[boxed, 2] + (block[boxed] > 8)) // block[boxed]) * block[boxed]
        is_part = is_sequential[boxed] & (rows < height[boxed]) & (head[boxed, IS_COMPLETE] > 0)
        kept[boxed] = np.where(is_part, rows, height[boxed])
        offset[boxed] = np.where(is_part, head[boxed, HEIGHT_OFFSET], 0)
    if shared is not None:
        whole = ~is_scaled
        needed[whole] = _joined(needed[whole], shared[whole], len(heads))
        most = np.zeros(len(heads), np.int64)
        np.maximum.at(most, shared[whole], kept[whole])
        kept = np.where(is_scaled, kept, most[shared])
        offset = np.where(kept < height, head[:, HEIGHT_OFFSET], 0)
    # The index supports sequential files only.
    may_cut = plain & is_sequential & is_indexed
    sides = needed[:, 2:] - needed[:, :2]
    may_cut &= sides.prod(axis=1) <= WORTH_CUTTING * kept * width
    boxes = [tuple(box) if may else None for box, may in zip(needed.tolist(), may_cut.tolist(), strict=True)]
    out_height = -(-kept // divisor)
    out_width = -(-width // divisor)
    room = 3 * width * (height + 2 * block)
    columns = (source, out_height, out_width, room, divisor, offset, is_crop)
    every = zip(plain.tolist(), *(column.tolist() for column in columns), boxes, strict=True)
    return [DecodePlan._make(values) if is_plain else None for is_plain, *values in every]


def _boxes(
    args: Float64Array,
    support: Float64Array,
    height: Int64Array,
    width: Int64Array,
    divisor: Int64Array,
) -> Int64Array:
    """Boxes that resized crops read of images decoded at a reduced scale, int64[N, 4] in full-scale pixels."""
    scaled = args.copy()
    scaled[:, :4] /= divisor[:, None]
    boxes = crop_boxes(scaled, support, -(-height // divisor), -(-width // divisor)) * divisor[:, None]
    boxes[:, 2:] = np.minimum(boxes[:, 2:], np.stack([height, width], axis=1))
    return boxes


def _joined(boxes: Int64Array, shared: IndexArray, files: int) -> Int64Array:
    """Replace each row's box by the smallest box that contains the boxes of all rows of its file."""
    first = np.full((files, 2), np.iinfo(np.int64).max)
    last = np.zeros((files, 2), np.int64)
    np.minimum.at(first, shared, boxes[:, :2])
    np.maximum.at(last, shared, boxes[:, 2:])
    return np.concatenate([first[shared], last[shared]], axis=1)


def is_shared(fused: Program) -> BoolArray:
    """Flags of rows whose image other rows read also; all False for a program without a blend."""
    if fused.blend is None:
        return np.zeros(fused.num_rows, np.bool_)
    return np.asarray(np.bincount(fused.source)[fused.source] > 1)


def decode_planned(
    plan: DecodePlan, data: bytes, fused: Program, row: int, place: int, index: EntropyIndex | None = None
) -> Image | None:
    """Decode the planned part of the row's image, and adapt the row's first resize to it.

    Returns None, with the row unchanged, if the file cannot be decoded as planned.
    """
    if plan.box is not None and index is not None:
        part = index.decode_part(data, plan.box, plan.divisor, buffer_for(place, plan.room))
        if part is not None:
            cut, top, left = part
            fused.args[row, 0, :4] /= plan.divisor
            shift_crop(fused, row, top, left, *cut.shape[:2])
            return cut
    file = buffer_for(_FILE, len(data)) if plan.height_offset else None
    buffer = buffer_for(place, plan.room)
    image = decode_plain(data, plan.height, plan.width, plan.divisor, plan.height_offset, buffer, file)
    if image is None:
        return None
    if plan.divisor > 1:
        fused.args[row, 0, :4] /= plan.divisor
    if plan.is_crop:
        fused.in_shape[row, :2] = plan.height, plan.width
    return image


def buffer_for(place: int, size: int) -> Image | None:
    """Return this thread's buffer number ``place``, uint8[>= size]; None for a size above ``_KEPT_BYTES``."""
    if size > _KEPT_BYTES:
        return None
    buffers: dict[int, Image] = _local.__dict__.setdefault("buffers", {})
    if place not in buffers or buffers[place].size < size:
        buffers[place] = np.empty(size, np.uint8)
    return buffers[place]

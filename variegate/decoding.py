"""Decode and augment in one go: the crop is known before a pixel is decoded, and no more is decoded than it needs."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from variegate.data.decode import (
    JpegHeader,
    decode_jpeg_box,
    decode_jpeg_scaled,
    is_jpeg,
    read_header,
    read_image,
)
from variegate.errors import DecodeError
from variegate.program.ops import Interpolation, Op
from variegate.program.program import MAX_SIDE, Program

Image = npt.NDArray[np.uint8]

# Reach of the resampling filters, in source pixels at scale 1.
_SUPPORT = {Interpolation.BILINEAR: 1.0, Interpolation.BICUBIC: 2.0}
_SCALES = (8, 4, 2)


_local = threading.local()


def _buffer(place: int, size: int) -> Image:
    """uint8[>= size] of this thread, the same memory for the same place."""
    held: dict[int, Image] = _local.__dict__.setdefault("buffers", {})
    if place not in held or held[place].size < size:
        held[place] = np.empty(size, np.uint8)
    return held[place]


class EncodedBatch:
    """Encoded images of a batch: their sizes at once, their pixels when asked for."""

    def __init__(self, files: Sequence[bytes]) -> None:
        self.files = files
        self.headers: list[JpegHeader | None] = []
        self.decoded: dict[int, Image] = {}
        self._parts: dict[tuple[float, ...], tuple[Image, npt.NDArray[np.float64]]] = {}
        shapes = []
        for i, data in enumerate(files):
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise TypeError(f"files[{i}]: got {type(data).__name__}; accepted: the bytes of an image file")
            header = self._header(i)
            self.headers.append(header)
            if header is None:
                # Formats other than JPEG are decoded whole, and need be decoded to know their size for sure.
                self.decoded[i] = read_image(bytes(data), f"files[{i}]")
                shapes.append(self.decoded[i].shape)
            else:
                if max(header.oriented_size) > MAX_SIDE:
                    height, width = header.oriented_size
                    reason = f"{width:,} x {height:,} pixels, more than {MAX_SIDE:,} on a side"
                    raise DecodeError(f"files[{i}]", reason)
                shapes.append((*header.oriented_size, 3))
        self.shapes = np.array(shapes, np.int32).reshape(-1, 3)

    def _header(self, i: int) -> JpegHeader | None:
        if not is_jpeg(self.files[i]):
            return None
        try:
            return read_header(self.files[i])
        except ValueError as error:
            raise DecodeError(f"files[{i}]", str(error)) from error

    def whole(self, i: int) -> Image:
        """The whole image, uint8 [H, W, 3]."""
        image = self.decoded.get(i)
        return read_image(bytes(self.files[i]), f"files[{i}]") if image is None else image

    def loader(self, fused: Program) -> Callable[[int, int], Image]:
        """(row, place) -> the image that the row reads; rewrites the row's first resize to the part that was decoded.

        The image may be overwritten by the thread's next load into the same place.
        """

        def load(row: int, place: int) -> Image:
            source = int(fused.source[row])
            header = self.headers[source]
            flag = int(fused.flags[row, 0])
            is_crop = fused.length[row] > 0 and fused.opcode[row, 0] == Op.RESIZED_CROP and flag in _SUPPORT
            if header is None or not is_crop:
                return self.whole(source)
            if fused.blend is not None:
                return self._decode_once(fused, row, source, header, _SUPPORT[Interpolation(flag)])
            room = _buffer(place, 3 * (header.height + 2 * header.mcu_height) * header.width)
            return self._decode_for(fused, row, source, header, _SUPPORT[Interpolation(flag)], room)

        return load

    def _decode_once(self, fused: Program, row: int, source: int, header: JpegHeader, support: float) -> Image:
        """A blend's rows begin with the same crop of one image, which is decoded for the first of them and kept."""
        crop = (source, *fused.args[row, 0].tolist())
        if crop not in self._parts:
            image = self._decode_for(fused, row, source, header, support, None)
            self._parts[crop] = image, fused.args[row, 0].copy()
        image, fused.args[row, 0] = self._parts[crop]
        fused.in_shape[row, :2] = image.shape[:2]
        return image

    def _decode_for(
        self, fused: Program, row: int, source: int, header: JpegHeader, support: float, buffer: Image | None
    ) -> Image:
        data, name, args = bytes(self.files[source]), f"files[{source}]", fused.args[row, 0]
        top, left, height, width, out_height, out_width = (float(v) for v in args[:6])
        in_height, in_width = header.oriented_size
        for divisor in _SCALES:
            if height / divisor >= out_height and width / divisor >= out_width:
                image = decode_jpeg_scaled(data, -(-in_height // divisor), -(-in_width // divisor), name)
                args[:4] /= divisor
                fused.in_shape[row, :2] = image.shape[:2]
                return image
        # The filter reaches past the box, further the more it shrinks.
        reach_y = math.ceil(support * max(height / out_height, 1.0)) + 1
        reach_x = math.ceil(support * max(width / out_width, 1.0)) + 1
        first_y, first_x = max(0, math.floor(top) - reach_y), max(0, math.floor(left) - reach_x)
        end_y = min(in_height, math.ceil(top + height) + reach_y)
        end_x = min(in_width, math.ceil(left + width) + reach_x)
        image, part_top, part_left = decode_jpeg_box(
            data, first_y, first_x, end_y - first_y, end_x - first_x, name, header=header, buffer=buffer
        )
        args[0] -= part_top
        args[1] -= part_left
        fused.in_shape[row, :2] = image.shape[:2]
        return image

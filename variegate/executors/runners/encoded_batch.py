"""Decode and augment together: crops are drawn before decoding, so only the pixels that they read are decoded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import groupby
from typing import Any, cast

import numpy as np

from variegate.arrays import Float64Array, IndexArray, Int32Array, UInt8Array
from variegate.decode import (
    MAX_PIXELS,
    JpegHeader,
    PillowFile,
    check_limit,
    check_side,
    checked_header,
    decode_jpeg_box,
    decode_jpeg_scaled,
    decode_plain,
    is_complete,
    is_jpeg,
    read_channels,
    read_image,
)
from variegate.decode.entropy.index import EntropyIndex
from variegate.decode.header import HEIGHT, WIDTH, header_of, scan_headers
from variegate.errors import DecodeError
from variegate.executors.batches import depth_of_batch
from variegate.executors.runners.decode_plan import (
    Box,
    DecodePlan,
    buffer_for,
    crop_reach,
    crop_support,
    decode_planned,
    is_shared,
    plan_rows,
    shift_crop,
)
from variegate.executors.runners.images import as_tensor, check_image
from variegate.program.depth import Depth
from variegate.program.program import Program

Image = UInt8Array
# (row, number of the buffer) -> the image that the row reads.
Load = Callable[[int, int], Image]


class EncodedBatch:
    """Encoded images of a batch: reads headers when constructed, decodes pixels on demand.

    Args:
        files: the bytes of image files, or decoded pixels as for an ``Augmenter``: [H, W, 3], [H, W, 1] or [H, W], as
            array or CPU tensor.
        name_of: index of a file -> its name in errors; None for ``files[i]``.
        failures: index of a file -> its error, for files that cannot be decoded; black images replace them, so that
            the batch can be finished. None raises the error instead.
        max_pixels: refuse files with more pixels before decoding; None for ``decode.MAX_PIXELS``.
        channels: see ``read_image``.

    ``scales``: divisors for decoding JPEGs at a reduced scale if a crop is shrunk by at least as much; empty unless an
    ``Augmenter`` with ``fast_decode`` sets it. ``index``: entropy index of the files, to cut crops out of them.

    Raises (with the name of the file):
        TypeError: for items that are neither bytes nor pixels, and for pixels of unsupported dtypes.
        ValueError: for invalid shapes, several dtypes in a batch, and limits that are not positive integers.
        DecodeError: for damaged files.
    """

    def __init__(
        self,
        files: Sequence[bytes | Image] | Image,
        name_of: Callable[[int], str] | None = None,
        failures: dict[int, DecodeError] | None = None,
        max_pixels: int | None = None,
        channels: int | None = None,
    ) -> None:
        self._channels = channels
        self._max_pixels = check_limit("max_pixels", max_pixels, MAX_PIXELS)
        if isinstance(files, np.ndarray) and files.ndim == 4:
            files = list(files)
        if isinstance(files, (np.ndarray, bytes, bytearray, memoryview, str)) or not isinstance(files, Sequence):
            raise TypeError(
                f"files: got {type(files).__name__}; accepted: a list, of the bytes of image files or of images"
            )
        self.files = files
        # For each file, the index of the first file that is the same object, so that it is decoded once.
        first: dict[int, int] = {}
        self._first = np.array([first.setdefault(id(data), i) for i, data in enumerate(files)], np.intp)
        self._odd_headers: dict[int, JpegHeader] = {}
        self.decoded: dict[int, Image] = {}
        self._name_of = name_of
        self._failures = failures
        self.decode_seconds: list[float] = []
        self.scales: tuple[int, ...] = ()
        self.index: EntropyIndex | None = None
        self._parts: dict[tuple[float, ...], tuple[Image, Float64Array]] = {}
        # If another number of channels than three is requested, JPEGs are not scanned here: ``_open`` decodes them.
        plain = [data if type(data) is bytes and channels in (None, 3) else b"" for data in files]
        self._heads = scan_headers(plain, self._max_pixels)
        sizes = self._heads[:, [HEIGHT, WIDTH]].tolist()
        shapes = [(*size, 3) if size[0] else self._open(i) for i, size in enumerate(sizes)]
        good = next((shape for shape in shapes if shape is not None), (1, 1, 3))
        self.depth = self._common_depth(shapes)
        for i, shape in enumerate(shapes):
            if shape is None:
                # The size of another image of the batch, because the transform accepts that size.
                shapes[i], self.decoded[i] = good, np.zeros(good, self.depth.dtype)
        self.shapes = np.array(shapes, np.int32).reshape(-1, 3)

    def _common_depth(self, shapes: Sequence[Any]) -> Depth:
        """The depth of all images that could be opened. Raises ValueError naming an image of another depth."""
        known = self.decoded
        opened = [i for i, shape in enumerate(shapes) if shape is not None]
        if not known or not opened:
            return Depth.UINT8
        depths = [depth_of_batch(known[i]) if i in known else Depth.UINT8 for i in range(len(shapes))]
        first = depths[opened[0]]
        for i in opened:
            if depths[i] is not first:
                raise ValueError(
                    f"{self.name(i)}: got an image of {depths[i]} in a batch of {first}; accepted: images of one dtype"
                )
        return first

    def widened(self, shapes: Int32Array) -> EncodedBatch:
        """Return a copy with gray images, which are decoded already, repeated to three channels as in ``shapes``."""
        batch = copy(self)
        places = np.flatnonzero(shapes[:, 2] != self.shapes[:, 2])
        batch.shapes = shapes
        batch._first = self._first.copy()
        batch._first[places] = places
        wide = {i: np.repeat(self.decoded[i], 3, axis=2) for i in places.tolist()}
        batch.decoded = self.decoded | wide
        return batch

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Add the time in this context to ``decode_seconds``."""
        begin = time.perf_counter()
        yield
        self.decode_seconds.append(time.perf_counter() - begin)

    def name(self, i: int) -> str:
        return f"files[{i}]" if self._name_of is None else self._name_of(i)

    def header(self, i: int) -> JpegHeader | None:
        """Return the header of image ``i``; None if it is not a JPEG, or damaged."""
        return self._odd_headers.get(i) or header_of(self._heads[i])

    def _open(self, i: int) -> tuple[int, ...] | None:
        """Return the shape of image ``i``; None if it was recorded in ``failures``."""
        data: Any = self.files[i]
        if not isinstance(data, (bytes, bytearray, memoryview)):
            if not isinstance(data, np.ndarray) and as_tensor(data) is None:
                accepted = "the bytes of an image file, or its pixels, uint8 [H, W, 3], [H, W, 1] or [H, W]"
                raise TypeError(f"{self.name(i)}: got {type(data).__name__}; accepted: {accepted}")
            self.decoded[i] = check_image(data, self.name(i))
            return self.decoded[i].shape
        first = int(self._first[i])
        if first < i and first in self.decoded and first not in (self._failures or ()):
            self.decoded[i] = self.decoded[first]
            return self.decoded[i].shape
        try:
            file = bytes(data)
            several = read_channels(file, self.name(i), self._max_pixels, self._channels)
            if several is not None:
                self.decoded[i] = several
                return several.shape
            return self._open_jpeg(i, file) if is_jpeg(file) else self._open_other(i, file)
        except DecodeError as error:
            self._note(i, error)
            return None

    def _open_other(self, i: int, data: bytes) -> tuple[int, int, int]:
        """Decode a file that is not a JPEG."""
        name = self.name(i)
        with PillowFile(data, name, self._max_pixels) as file:
            self.decoded[i] = file.decode()
        height, width, _ = self.decoded[i].shape
        check_side(name, height, width)
        return height, width, 3

    def _open_jpeg(self, i: int, data: bytes) -> tuple[int, int, int]:
        name = self.name(i)
        header = checked_header(data, name, self._max_pixels)
        check_side(name, *header.oriented_size)
        self._odd_headers[i] = header
        return (*header.oriented_size, 3)

    def _note(self, i: int, error: DecodeError) -> None:
        if self._failures is None:
            raise error
        self._failures[i] = error
        for same in np.flatnonzero(self._first == self._first[i]).tolist():
            self._failures.setdefault(same, DecodeError(self.name(same), error.reason))

    def whole(self, i: int) -> Image:
        """Return the full image, [H, W, C]; black if it was recorded in ``failures``."""
        image = self.decoded.get(i)
        if image is None:
            try:
                image = read_image(bytes(self.files[i]), self.name(i), self._max_pixels)
                if image.shape != tuple(self.shapes[i]):  # kernels do not check sizes
                    raise DecodeError(self.name(i), "damaged: its headers disagree about its size")
            except DecodeError as error:
                self._note(i, error)
                image = self.decoded[i] = np.zeros(tuple(self.shapes[i]), np.uint8)
        return image

    def is_upright_jpeg(self, i: int) -> bool:
        """True for a JPEG that a GPU can decode: ordinary, complete, without EXIF rotation, not decoded yet."""
        header = self.header(i)
        if header is None or i in self.decoded or not header.is_ordinary or header.orientation != 1:
            return False
        # A GPU's decoder silently fills missing data with gray.
        return is_complete(bytes(self.files[i]))

    def box_needed(self, fused: Program, row: int, margin: int) -> Box | None:
        """Return the box of its image that the row reads, plus ``margin`` pixels per side; None for the full image."""
        support = crop_support(fused, row)
        if support is None:
            return None
        height, width = self.shapes[fused.source[row], :2].tolist()
        box = crop_reach(fused.args[row, 0], support, height, width, margin)
        return None if box == (0, 0, height, width) else box

    def loader(self, fused: Program) -> Load:
        """Return a function that decodes the image of a row for a program, see ``cpu.executor.Load``.

        It adapts the row's first resize to the decoded part of the image.
        """
        is_decoded = np.zeros(len(self.files), bool)
        is_decoded[list(self.decoded)] = True
        forked = is_shared(fused)
        shared = self._shared_by(fused)
        plans = plan_rows(fused, self._heads, is_decoded, shared, self.scales, self.index is not None)
        files = cast("Sequence[bytes]", self.files)

        def alone(row: int, place: int) -> Image:
            begin = time.perf_counter()
            plan = plans[row]
            image = None if plan is None else decode_planned(plan, files[plan.source], fused, row, place, self.index)
            if image is None:
                image = self._load(fused, row, place, bool(forked[row]))
            self.decode_seconds.append(time.perf_counter() - begin)
            return image

        return alone if shared is None else _one_decode_for_all(self, fused, plans, shared.tolist(), alone)

    def first_of(self, fused: Program) -> IndexArray:
        """Return for each row the index of its file, or of the first file that is the same object."""
        return self._first[fused.source]

    def _shared_by(self, fused: Program) -> IndexArray | None:
        """Return ``first_of``; None if no two rows read one file, and for blends: see ``_decode_once``."""
        shared = self.first_of(fused)
        return None if fused.blend is not None or len(np.unique(shared)) == len(shared) else shared

    def together(self, fused: Program) -> int:
        """Return the number of consecutive rows per file if it is equal for all files, else 1."""
        shared = self._shared_by(fused)
        lengths = [1] if shared is None else [len(list(run)) for _, run in groupby(shared.tolist())]
        return lengths[0] if len(set(lengths)) == 1 else 1

    def _load(self, fused: Program, row: int, place: int, is_forked: bool) -> Image:
        source = int(fused.source[row])
        header = self.header(source)
        support = None if header is None else crop_support(fused, row)
        # Each view reads another part of the image.
        if header is None or support is None or fused.grouping is not None:
            image = self.whole(source)
            if is_forked:
                self.decoded[source] = image  # other rows read it also
            return image
        try:
            if is_forked:
                return self._decode_once(fused, row, source, header, support)
            buffer = buffer_for(place, 3 * (header.height + 2 * header.mcu_height) * header.width)
            return self._decode_for(fused, row, source, header, support, buffer)
        except DecodeError as error:
            self._note(source, error)
            # The row was not changed, so it reads an image of the size in the header.
            return np.zeros(tuple(self.shapes[source]), np.uint8)

    def _decode_once(self, fused: Program, row: int, source: int, header: JpegHeader, support: float) -> Image:
        """Decode the crop for the first row of a blend, and cache it for rows that begin with the same crop."""
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
        data = bytes(self.files[source])
        name = self.name(source)
        args = fused.args[row, 0]
        height, width, out_height, out_width = (float(v) for v in args[2:6])
        in_height, in_width = header.oriented_size
        for divisor in self.scales:
            if height / divisor >= out_height and width / divisor >= out_width:
                sides = -(-in_height // divisor), -(-in_width // divisor)
                scaled = args / np.array([divisor] * 4 + [1] * (len(args) - 4))
                part = self._cut(data, header, crop_reach(scaled, support, *sides), divisor)
                image, top, left = part or (decode_jpeg_scaled(data, *sides, name, self._max_pixels, header), 0, 0)
                args[:] = scaled
                shift_crop(fused, row, top, left, *image.shape[:2])
                return image
        box = first_y, first_x, end_y, end_x = crop_reach(args, support, in_height, in_width)
        image, part_top, part_left = self._cut(data, header, box) or decode_jpeg_box(
            data, first_y, first_x, end_y - first_y, end_x - first_x, name, self._max_pixels, header, buffer
        )
        shift_crop(fused, row, part_top, part_left, image.shape[0], image.shape[1])
        return image

    def _cut(self, data: bytes, header: JpegHeader, box: Box, divisor: int = 1) -> tuple[Image, int, int] | None:
        """Cut the box out of the file by its entropy index -> (pixels, top, left); None without an index."""
        if self.index is None or not (header.is_sequential and header.is_ordinary):
            return None
        return self.index.decode_box(data, header, box, divisor)


def _one_decode_for_all(
    batch: EncodedBatch, fused: Program, plans: list[DecodePlan | None], shared: list[int], alone: Load
) -> Load:
    """Return a loader that decodes a file once for its consecutive rows.

    ``shared``: the file of each row. ``alone``: the loader of rows that are decoded at a reduced scale.
    """
    latest = threading.local()
    are_views = fused.grouping is not None

    def load(row: int, place: int) -> Image:
        plan = plans[row]
        number = shared[row]
        if not are_views and (plan is None or plan.divisor > 1):
            return alone(row, place)
        if getattr(latest, "number", None) != number:
            begin = time.perf_counter()
            latest.part = None  # free its memory for the next image
            latest.part = _decode_shared(batch, plan, number)
            latest.number = number
            batch.decode_seconds.append(time.perf_counter() - begin)
        image, top, left = latest.part
        if top or left:
            shift_crop(fused, row, top, left, *image.shape[:2])
        else:
            fused.in_shape[row, :2] = image.shape[:2]
        return image

    return load


def _decode_shared(batch: EncodedBatch, plan: DecodePlan | None, number: int) -> tuple[Image, int, int]:
    """Decode a part of an image -> (pixels, top, left), in new memory, because its rows may run much later."""
    # Imported on demand: it loads the native library.
    from variegate.executors.cpu.memory import RESULTS

    if plan is not None:
        data: Any = batch.files[number]
        file = RESULTS.take(len(data)) if plan.height_offset else None
        room = RESULTS.take(plan.room)
        if plan.box is not None and batch.index is not None:
            part = batch.index.decode_part(data, plan.box, buffer=room)
            if part is not None:
                return part
        image = decode_plain(data, plan.height, plan.width, 1, plan.height_offset, room, file)
        if image is not None:
            return image, 0, 0
    return batch.whole(number), 0, 0

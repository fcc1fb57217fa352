"""Files of images that Pillow does not read: NumPy's, DICOM's, and TIFFs of more channels.

Bytes are foreign: shapes are checked against limits before a pixel is decoded, and nothing is unpickled."""

from __future__ import annotations

import io
import math
import zlib
from typing import Any, BinaryIO

import numpy as np

from variegate.arrays import ImageArray
from variegate.decode.depth import as_read, readable_dtypes, reads_own_numbers, wanted_depth
from variegate.decode.dicom import read_dicom
from variegate.decode.header import as_stored
from variegate.decode.limits import check_pixels, check_side, packbits_length
from variegate.decode.plugins import is_dicom
from variegate.errors import DecodeError, one_line
from variegate.program.depth import Depth
from variegate.program.program import MAX_CHANNELS

Image_HWC = ImageArray

NUMPY = b"\x93NUMPY"
_TIFFS = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
_ACCEPTED_SHAPES = f"[H, W] or [H, W, C] with up to {MAX_CHANNELS} channels"
# The arrays that are accepted in a depth; in 8 bits if it is not listed.
_ACCEPTED: dict[Depth | None, str] = {
    Depth.UINT16: f"uint8 or uint16 {_ACCEPTED_SHAPES}",
    Depth.FLOAT32: f"uint8, uint16, signed integers or floats {_ACCEPTED_SHAPES}",
}
_ACCEPTED_IN_8_BITS = f"uint8 {_ACCEPTED_SHAPES}, or uint16, scaled to 8 bits"
_ORIENTATION = 274
_MAX_NUMPY_HEADER = 4096
# Compressions of TIFF whose decoders stop at the size of a strip or tile, or are stopped there.
_DEFLATES = (8, 32946)
_PACK_BITS = 32773
_COMPRESSIONS = (1, 5, _PACK_BITS, *_DEFLATES)
# Numbers of channels that are read of files of every kind, and Pillow's mode of them.
_GRAY = 1
_ALPHA = 4
# Values of TIFF's tags: colors are red, green and blue; a fourth channel is alpha, premultiplied or not.
_RGB = 2
_ALPHAS = ((1,), (2,))
_PILLOW_MODES = {_GRAY: "L", _ALPHA: "RGBA"}


def read_channels(
    data: bytes, path: str, max_pixels: int | None = None, channels: int | None = None
) -> Image_HWC | None:
    """[H, W, C] of a NumPy or DICOM file, of a TIFF that Pillow does not read, and of any file with as many
    ``channels``; None for others. Raises DecodeError, also for another number of channels."""
    image = None
    if data.startswith(NUMPY):
        image = _read_numpy(data, path, max_pixels)
    elif is_dicom(data):
        image = read_dicom(data, path, max_pixels, channels)
    elif data.startswith(_TIFFS) and (channels not in (None, _GRAY, 3) or not _is_pillows(data, path, max_pixels)):
        image = _read_tiff(data, path, max_pixels, channels)
    elif channels in _PILLOW_MODES:
        image = _read_pillow(data, path, max_pixels, channels)
    if channels is not None and image is not None:
        _check_number(image.shape[2], channels, path)
    if channels not in (None, 3) and image is None:
        raise DecodeError(path, f"a file of three channels at most; accepted: {channels} (channels={channels})")
    return image


def in_channels(image: Image_HWC, channels: int | None, name: str) -> Image_HWC:
    """Check the number of channels of decoded pixels. Gray that a raw shard repeats may have one.

    Raises DecodeError for another number.
    """
    if channels is None:
        return image
    if channels == _GRAY and image.strides[2:] == (0,):
        return image[:, :, :1]
    _check_number(1 if image.ndim == 2 else image.shape[2], channels, name)
    return image


def _check_number(got: int, channels: int, path: str) -> None:
    if got != channels:
        raise DecodeError(path, f"it has {got} channels; accepted: {channels} (channels={channels})")


def read_numpy_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it is in Fortran's order, and type; the pixels begin where ``file`` is then."""
    version = np.lib.format.read_magic(file)
    read: Any = np.lib.format
    header = read.read_array_header_1_0 if version == (1, 0) else read.read_array_header_2_0
    try:
        shape, is_fortran, dtype = header(file, max_header_size=_MAX_NUMPY_HEADER)
    except OSError:
        raise
    except Exception as error:  # a parser of damaged text raises nearly anything, also MemoryError
        raise ValueError("damaged: a NumPy file whose header cannot be read") from error
    return shape, is_fortran, dtype


def _read_numpy(data: bytes, path: str, max_pixels: int | None) -> Image_HWC:
    file = io.BytesIO(data)
    try:
        shape, is_fortran, dtype = read_numpy_header(file)
    except (ValueError, EOFError) as error:
        raise DecodeError(path, "damaged: a NumPy file whose header cannot be read") from error
    if is_fortran:
        raise DecodeError(path, "in Fortran's order; accepted: rows one after another")
    # A header may say True for 1.
    size = _check(path, tuple(map(int, shape)), dtype, max_pixels)
    count = math.prod(size)
    if len(data) - file.tell() < count * dtype.itemsize:
        raise DecodeError(path, f"truncated: it ends after {len(data):,} bytes, before its last pixel")
    return as_read(np.frombuffer(data, dtype, count, file.tell()).reshape(size), path)


def _is_pillows(data: bytes, path: str, max_pixels: int | None) -> bool:
    """A TIFF whose pixels Pillow keeps, or that is too damaged to have channels."""
    from variegate.decode.pillow import PillowFile

    try:
        opened = PillowFile(data, path, max_pixels, ("TIFF",))
    except DecodeError as error:
        if error.__cause__ is None:  # a limit
            raise
        return not isinstance(error.__cause__, (OSError, SyntaxError)) or len(data) < 16
    with opened as file:
        if file.has_other_numbers or (reads_own_numbers() and file.unspecified_channels):
            return False
        is_deep_color = file.bits > 8 and not file.is_gray and wanted_depth() not in (None, Depth.UINT8)
        if is_deep_color:
            file.check_deep_color()
        return not is_deep_color


def _read_tiff(data: bytes, path: str, max_pixels: int | None, channels: int | None) -> Image_HWC:
    """[H, W, C]; where not all ``channels`` are asked for, gray is repeated and the alpha of colors is dropped."""
    try:
        import tifffile
    except ImportError as error:
        raise DecodeError(path, "needs tifffile for its channels: pip install 'variegate[tiles]'") from error
    try:
        with tifffile.TiffFile(io.BytesIO(data)) as file:
            page: Any = file.pages[0]
            shape = int(page.imagelength), int(page.imagewidth), int(page.samplesperpixel)
            size = _check(path, shape, page.dtype, max_pixels)
            _check_segments(file.filehandle, page, size, path, max_pixels)
            orientation = int(getattr(page.tags.get(_ORIENTATION), "value", 1))
            has_alpha = page.photometric == _RGB and size[2] == _ALPHA and tuple(page.extrasamples) in _ALPHAS
            values = page.asarray()
            planes_first = page.planarconfig != 1 and size[2] > 1
            bits = int(page.bitspersample)
            number = page.dtype.name.rstrip("0123456789")
    except DecodeError:
        raise
    except Exception as error:  # of a parser of damaged bytes
        reason = one_line(error)[:200] or type(error).__name__
        raise DecodeError(path, f"damaged: {reason}") from error
    if values.size != math.prod(size):
        raise DecodeError(path, "damaged: its headers disagree about its size")
    values = as_read(values, path, f"{number}{bits}")
    stored = np.moveaxis(values.reshape(size[2], *size[:2]), 0, 2) if planes_first else values.reshape(size)
    sides = (size[1], size[0]) if orientation >= 5 else size[:2]
    image = np.empty((*sides, size[2]), values.dtype)
    as_stored(image, orientation)[...] = stored
    if channels in (None, 3) and size[2] == _GRAY:
        return np.repeat(image, 3, axis=2)
    return np.ascontiguousarray(image[..., :3]) if channels in (None, 3) and has_alpha else image


def _check_segments(file: Any, page: Any, size: tuple[int, int, int], path: str, max_pixels: int | None) -> None:
    """Raise DecodeError for a TIFF whose strips or tiles take more memory than ``max_pixels`` accepts, by its header or
    when they are decompressed."""
    if page.compression not in _COMPRESSIONS:
        kind = getattr(page.compression, "name", page.compression)
        raise DecodeError(path, f"its compression is {kind}; accepted for its channels: none, LZW, deflate, PackBits")
    if math.prod(page.shaped) != math.prod(size):
        raise DecodeError(path, "damaged: its headers disagree about its size")
    rows, columns = (page.tilelength, page.tilewidth) if page.is_tiled else (min(page.rowsperstrip, size[0]), size[1])
    check_pixels(path, rows * max(1, page.tiledepth), columns, max_pixels, size[2])
    if page.compression not in (_PACK_BITS, *_DEFLATES):
        return
    segment = rows * columns * size[2] * page.dtype.itemsize
    used = math.prod(page.chunked)
    for offset, count in zip(page.dataoffsets[:used], page.databytecounts[:used], strict=False):
        file.seek(offset)
        if _unpacked_length(file.read(count), page.compression, segment + 1) > segment:
            accepted = f"{segment:,} bytes, as its header says"
            raise DecodeError(path, f"damaged: a strip or tile of more bytes than it has pixels; accepted: {accepted}")


def _unpacked_length(data: bytes, compression: int, most: int) -> int:
    """The number of bytes, of deflate counted up to ``most``."""
    if compression in _DEFLATES:
        return len(zlib.decompressobj().decompress(data, most))
    return packbits_length(data)


def _read_pillow(data: bytes, path: str, max_pixels: int | None, channels: int) -> Image_HWC:
    """Gray; or red, green, blue and alpha, 255 where the file has none. Raises DecodeError for gray of a color file."""
    from variegate.decode.pillow import PillowFile

    with PillowFile(data, path, max_pixels) as file:
        if channels == _GRAY and not file.is_gray:
            raise DecodeError(path, f"it has {file.mode} pixels; accepted: gray (channels={channels})")
        return file.decode(mode=_PILLOW_MODES[channels])


def _check(path: str, shape: Any, dtype: Any, max_pixels: int | None) -> tuple[int, int, int]:
    is_image = len(shape) in (2, 3) and np.dtype(dtype).name in readable_dtypes()
    height, width, channels = (*shape, 1)[:3] if is_image else (0, 0, 0)
    if not is_image or not 0 < channels <= MAX_CHANNELS or (height in (1, 3) and channels not in (1, 3)):
        accepted = _ACCEPTED.get(wanted_depth(), _ACCEPTED_IN_8_BITS)
        raise DecodeError(path, f"got {dtype}{list(shape)}; accepted: {accepted}; channels last")
    check_pixels(path, height, width, max_pixels, channels)
    check_side(path, height, width)
    return height, width, channels

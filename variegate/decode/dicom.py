"""DICOM files through pydicom: gray in its own units or within a window, and color.

Bytes are foreign: sizes are checked against limits before a pixel is decompressed. Files without such a limit are
refused: deflated ones, and palettes in segments.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from variegate.arrays import AnyArray, ImageArray
from variegate.checks import integer, refused
from variegate.decode.depth import as_read, dicom_options, note_depth, reads_own_numbers, wanted_depth
from variegate.decode.limits import check_pixels, check_side, open_image_file, packbits_length
from variegate.decode.plugins import DICOM_META_AT
from variegate.errors import DecodeError, one_line
from variegate.program.depth import Depth, in_native_order

_NOTE = "pixels of DICOM files are scaled to 8 bits, by the window of each file or its full range"
_META_GROUP = 2
_GRAY = ("MONOCHROME1", "MONOCHROME2")
_PALETTE = "PALETTE COLOR"
_COLORS = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT", _PALETTE)
_PIXELS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
_READ = (
    *("SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "NumberOfFrames", "Rows", "Columns"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", *_PIXELS),
    *("RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction"),
    *("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"),
    *(f"{color}PaletteColorLookupTable{kind}" for color in ("Red", "Green", "Blue") for kind in ("Data", "Descriptor")),
)
_RLE_HEADER = 64
# Bytes by which a segment of RLE may be longer than its pixels.
_RLE_PADDING = 128
# The markers of a frame's size in JPEG and JPEG-LS, and the bytes of such a segment up to the end of the size.
_JPEG_START = b"\xff\xd8"
_JPEG_FRAMES = frozenset((*range(0xC0, 0xD0), 0xF7)) - {0xC4, 0xC8, 0xCC}
_JPEG_FRAME_BYTES = 9
# Values of these dtypes are looked up in a table of all of them.
_SMALL = tuple(map(np.dtype, ("uint8", "int8", "uint16", "int16")))
_UNLIMITED = -math.inf, math.inf
# Ranges of values are shorter than this: float32 has them.
_MOST = 1e38
# Beyond this exponent a sigmoid is 0 or 1.
_STEEPEST = 700


@dataclass(frozen=True)
class Dicom:
    """Options for reading DICOM files, for ``vg.Loader(dicom=...)``.

    Args:
        window: range of values, after slope and intercept, that becomes black to white: (center, width), or "full" for
            all values that the file's bits can have. None: float32 images keep their values, such as Hounsfield units;
            images of 8 and 16 bits have the file's own window, or its full range.
        frame: number of the frame that is read, from 0. None: files of several frames are refused.

    With a window, MONOCHROME1 is inverted, so that black is dark. Color is not windowed.

    Raises:
        ValueError, TypeError: naming the argument, its value and accepted values.
    """

    window: Literal["full"] | tuple[float, float] | None = None
    frame: int | None = None

    def __post_init__(self) -> None:
        if self.frame is not None:
            integer("frame", self.frame, 0)
        if self.window is None or self.window == "full":
            return
        accepted = "(center, width) with a width above 0, 'full' or None"
        try:
            center, width = map(float, self.window)
        except (TypeError, ValueError):
            raise refused("window", self.window, accepted) from None
        if not (math.isfinite(center) and 0 < width < math.inf):
            raise refused("window", self.window, accepted)
        object.__setattr__(self, "window", (center, width))


_DEFAULT = Dicom()


def read_dicom(data: bytes, path: str, max_pixels: int | None, channels: int | None) -> ImageArray:
    """[H, W, C] in the depth that this thread reads; gray is repeated unless ``channels`` is 1. Raises DecodeError."""
    options = dicom_options() or _DEFAULT
    with _errors(path):
        dataset = _open(data, path, is_decoded=True)
        kind = _check(dataset, path, max_pixels)
        frame = _frame(dataset, options, path)
        _check_frame(dataset, frame, path)
        from pydicom.pixels import pixel_array

        stored = in_native_order(pixel_array(dataset, index=frame))
        image = _gray(dataset, stored, frame, options, path) if kind in _GRAY else _color(dataset, stored, kind, path)
    if image.ndim == 3:
        return image
    return np.repeat(image[..., None], 3 if channels in (None, 3) else 1, axis=2)


def dicom_size(data: bytes, path: str, max_pixels: int | None = None) -> tuple[int, int]:
    """Height and width of a DICOM file by its header. Raises DecodeError."""
    with _errors(path):
        dataset = _open(data, path, is_decoded=False)
        _check(dataset, path, max_pixels)
        return int(dataset.Rows), int(dataset.Columns)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    """Whatever pydicom raises becomes a DecodeError."""
    try:
        yield
    except (DecodeError, MemoryError):
        raise
    except Exception as error:  # damaged bytes make a parser raise nearly anything
        raise DecodeError(path, f"cannot be decoded: {one_line(error)[:300] or type(error).__name__}") from error


def _open(data: bytes, path: str, is_decoded: bool) -> Any:
    """The elements that reading needs. Raises DecodeError for a file that is compressed as a whole, and if it
    ``is_decoded`` for pixels that no installed package decodes."""
    try:
        import pydicom
    except ImportError as error:
        raise DecodeError(path, "needs pydicom: pip install 'variegate[dicom]'") from error
    from pydicom.filereader import read_dataset
    from pydicom.pixels import get_decoder
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    file = io.BytesIO(data)
    file.seek(DICOM_META_AT)
    syntax = read_dataset(
        file, False, True, stop_when=lambda tag, vr, length: tag.group != _META_GROUP
    ).TransferSyntaxUID
    if syntax == DeflatedExplicitVRLittleEndian:
        raise DecodeError(path, "its transfer syntax is deflated; accepted: any that compresses its pixels alone")
    if is_decoded:
        try:
            decoder = get_decoder(syntax)
        except NotImplementedError:
            accepted = "those that pydicom decodes"
            raise DecodeError(path, f"its transfer syntax is {syntax.name}; accepted: {accepted}") from None
        if not decoder.is_available:
            reason = f"its transfer syntax is {syntax.name}, for which pydicom needs one of these packages"
            raise DecodeError(path, f"{reason}: {', '.join(decoder.missing_dependencies)}")
    file.seek(0)
    return pydicom.dcmread(file, specific_tags=list(_READ))


def _check(dataset: Any, path: str, max_pixels: int | None) -> str:
    """Check the size and the kind of pixels -> their photometric interpretation."""
    if not any(name in dataset for name in _PIXELS):
        raise DecodeError(path, "a DICOM file without pixels")
    height, width, samples = int(dataset.Rows), int(dataset.Columns), int(dataset.SamplesPerPixel)
    kind = str(dataset.PhotometricInterpretation)
    if samples != (1 if kind in (*_GRAY, _PALETTE) else 3) or kind not in (*_GRAY, *_COLORS):
        accepted = ", ".join((*_GRAY, *_COLORS))
        raise DecodeError(path, f"got {kind} of {samples} samples a pixel; accepted: {accepted}")
    check_pixels(path, height, width, max_pixels, samples)
    check_side(path, height, width)
    return kind


def _frame(dataset: Any, options: Dicom, path: str) -> int:
    frames = int(dataset.get("NumberOfFrames") or 1)
    if options.frame is None and frames > 1:
        raise DecodeError(
            path, f"it has {frames} frames; accepted: one, or dicom=vg.Dicom(frame=0 to {frames - 1}) (--frame)"
        )
    frame = options.frame or 0
    if frame >= frames:
        raise DecodeError(path, f"it has no frame {frame}; accepted: vg.Dicom(frame=0 to {frames - 1}) (--frame)")
    return frame


def _check_frame(dataset: Any, frame: int, path: str) -> None:
    """Raise DecodeError for a compressed frame that is larger than the header of the file says."""
    from pydicom.encaps import get_frame
    from pydicom.uid import RLELossless

    syntax = dataset.file_meta.TransferSyntaxUID
    if not syntax.is_encapsulated:
        return
    size = int(dataset.Rows), int(dataset.Columns)
    frames = int(dataset.get("NumberOfFrames") or 1)
    code = get_frame(dataset.PixelData, frame, number_of_frames=frames)
    if syntax == RLELossless:
        starts = np.frombuffer(code[4:_RLE_HEADER], "<u4")[: int.from_bytes(code[:4], "little")].tolist()
        segments = [code[start:end] for start, end in pairwise([*starts, len(code)])]
        longest = max(map(packbits_length, segments), default=0)
        is_larger = longest > size[0] * size[1] + _RLE_PADDING
    else:
        is_larger = _coded_size(code) != size
    if is_larger:
        raise DecodeError(path, "damaged: its compressed pixels are not of the size that its header says")


def _coded_size(code: bytes) -> tuple[int, int]:
    """Height and width by the header of a frame of JPEG, JPEG-LS or JPEG 2000; (0, 0) if it has none."""
    if not code.startswith(_JPEG_START):
        with open_image_file(code, ("JPEG2000",)) as image:
            return image.height, image.width
    place = len(_JPEG_START)
    while place + _JPEG_FRAME_BYTES <= len(code):
        marker = code[place + 1]
        if marker in _JPEG_FRAMES:
            size = code[place + 5 : place + _JPEG_FRAME_BYTES]
            return int.from_bytes(size[:2], "big"), int.from_bytes(size[2:], "big")
        place += 2 + int.from_bytes(code[place + 2 : place + 4], "big")
    return 0, 0


def _gray(dataset: Any, stored: AnyArray, frame: int, options: Dicom, path: str) -> ImageArray:
    """[H, W]: values in their own units, or shares of a window, in the depth that this thread reads."""
    depth = wanted_depth()
    is_windowed = options.window is not None
    if reads_own_numbers():
        if dataset.BitsAllocated > 8 and not is_windowed:
            values = _values(dataset, stored, frame, path)[0].astype(np.float32)
            is_float = stored.dtype.kind == "f"
            return as_read(values, path, None if is_float else f"int{int(dataset.BitsStored)}")
        depth = Depth.FLOAT32 if is_windowed else None
    if depth is None and stored.dtype.itemsize > 1:
        note_depth(path, _NOTE)

    def shown(stored: AnyArray) -> AnyArray:
        values, full = _values(dataset, stored, frame, path)
        if depth is Depth.FLOAT32 and not is_windowed:
            return values.astype(np.float32)
        shares = _shares(dataset, values, frame, full, options, path)
        if dataset.PhotometricInterpretation == "MONOCHROME1":
            shares = 1 - shares
        made = Depth.UINT8 if depth is None else depth
        return (shares if made is Depth.FLOAT32 else np.rint(np.nan_to_num(shares) * made.white)).astype(made.dtype)

    if stored.dtype not in _SMALL:
        image = shown(stored)
    else:
        unsigned = np.dtype(f"u{stored.dtype.itemsize}")
        every_value = np.arange(np.iinfo(unsigned).max + 1, dtype=unsigned).view(stored.dtype)
        image = shown(every_value)[stored.view(unsigned)]
    return as_read(image, path) if reads_own_numbers() else image


def _values(dataset: Any, stored: AnyArray, frame: int, path: str) -> tuple[AnyArray, tuple[float, float]]:
    """Values after slope and intercept, or a table, float64; and the least and largest that the file can have."""
    from pydicom.pixels import apply_modality_lut

    if "ModalityLUTSequence" in dataset:
        bits = int(dataset.ModalityLUTSequence[0].LUTDescriptor[2])
        return apply_modality_lut(stored, dataset).astype(np.float64), (0.0, 2.0**bits - 1)
    group = _functional_group(dataset, frame, "PixelValueTransformationSequence")
    slope, intercept = float(group.get("RescaleSlope", 1)), float(group.get("RescaleIntercept", 0))
    values = stored * np.float64(slope) + intercept
    if stored.dtype.kind == "f":
        return values, _UNLIMITED
    bits = int(dataset.BitsStored)
    least = -(2 ** (bits - 1)) if stored.dtype.kind == "i" else 0
    first, last = least * slope + intercept, (least + 2**bits - 1) * slope + intercept
    if not 0 < abs(last - first) < _MOST:
        raise DecodeError(path, f"its values are from {first} to {last}; accepted: a slope other than 0")
    return values, (min(first, last), max(first, last))


def _functional_group(dataset: Any, frame: int, sequence: str) -> Any:
    """The attributes of an enhanced object's frame, or of all of its frames; the file's own if it has none."""
    groups = dataset.get("PerFrameFunctionalGroupsSequence") or ()
    for group in (*groups[frame : frame + 1], *(dataset.get("SharedFunctionalGroupsSequence") or ())):
        if sequence in group:
            return group[sequence][0]
    return dataset


def _shares(
    dataset: Any, values: AnyArray, frame: int, full: tuple[float, float], options: Dicom, path: str
) -> AnyArray:
    """Values as shares of a window, 0 to 1 (DICOM PS3.3, C.11.2.1.2 and C.11.2.1.3)."""
    center = width = None
    function = "LINEAR_EXACT"
    if options.window is None:
        group = _functional_group(dataset, frame, "FrameVOILUTSequence")
        center, width = _first(group, "WindowCenter"), _first(group, "WindowWidth")
        function = group.get("VOILUTFunction") or "LINEAR"
    elif options.window != "full":
        center, width = options.window
    low, high = full
    if center is not None and width is not None:
        if function == "SIGMOID" and width > 0:
            return 1 / (1 + np.exp(np.clip(4 * (center - values) / width, -_STEEPEST, _STEEPEST)))
        low, high = center - width / 2, center + width / 2 - (function == "LINEAR")
    if not 0 <= high - low < _MOST:
        raise DecodeError(
            path,
            f"its window is from {low} to {high}; accepted: one of its own, or dicom=vg.Dicom(window=...) (--window)",
        )
    return np.clip((values - low) / (high - low), 0, 1) if high > low else (values > low).astype(np.float64)


def _first(group: Any, name: str) -> float | None:
    """The first number of an element; None if it is absent or empty."""
    value = group.get(name)
    if value is None or not hasattr(value, "__len__") or isinstance(value, str):
        return None if value is None or value == "" else float(value)
    return float(value[0]) if len(value) else None


def _color(dataset: Any, stored: AnyArray, kind: str, path: str) -> ImageArray:
    from pydicom.pixels import apply_color_lut

    bits = int(dataset.BitsStored)
    if kind == _PALETTE:
        if "RedPaletteColorLookupTableData" not in dataset:
            raise DecodeError(path, "its palette is in segments; accepted: a palette of values")
        stored = apply_color_lut(stored, dataset)
        bits = 8 * stored.dtype.itemsize
    if stored.dtype.kind != "u" or bits > 16:
        raise DecodeError(path, f"color of {stored.dtype}; accepted: unsigned integers of 8 or 16 bits")
    if bits > 8 and not reads_own_numbers():
        full = (1 << bits) - 1
        levels = np.minimum(stored, full).astype(np.uint32)
        stored = ((levels * 65535 + full // 2) // full).astype(np.uint16)
    return as_read(np.ascontiguousarray(stored), path, f"uint{bits}")

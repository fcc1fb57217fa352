"""The kinds of image files that are read, up to which limits, and the refusal of others.

Files are opened by ``open_image_file`` with ``FORMATS``. Left to itself Pillow tries all of its plug-ins on whatever a
file's first bytes look like, whatever its name: Ghostscript is started for PostScript, and old formats' parsers read
hostile bytes.

``max_pixels`` is checked by the header, so that a small file cannot ask for all of the memory. Its default is a fixed
number: whether a file is accepted must not depend on the machine. Pillow's own limit, which any code of the process may
change, does not count.
"""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock

from PIL import Image, ImageFile, UnidentifiedImageError

from variegate.checks import integer
from variegate.decode.plugins import HEIF_BRANDS, JXL_SIGNATURES, PLUGINS, is_dicom, jxl_size
from variegate.errors import DecodeError, one_line
from variegate.program.program import MAX_SIDE
from variegate.threads import at_fork

# Pillow logs an error for a TIFF of more channels than it reads, which Python prints for a logger without handlers.
logging.getLogger("PIL").addHandler(logging.NullHandler())

# Pillow's names; formats that it knows without loading all of its plug-ins come first. "JPEG" also reads MPO, JPEGs of
# several pictures. The formats of the extensions in data/kinds.py.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF", "AVIF", *PLUGINS)
JPEG_FORMATS = ("JPEG",)
_READ = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, AVIF, HEIC, JPEG XL"

_READ_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
    b"BM": "BMP",
    **dict.fromkeys(JXL_SIGNATURES, "JPEG XL"),
}
_OTHER_SIGNATURES = {
    b"%!PS": "EPS",
    b"\xc5\xd0\xd3\xc6": "EPS",
    b"8BPS": "PSD",
    b"%PDF": "PDF",
    b"\x00\x00\x00\x0cjP  \r\n\x87\n": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"\x00\x00\x01\x00": "ICO",
    b"\x00\x00\x02\x00": "CUR",
    b"icns": "ICNS",
    b"qoif": "QOI",
    b"DDS ": "DDS",
    b"v/1\x01": "OpenEXR",
    b"\xd7\xcd\xc6\x9a": "WMF",
    b"gimp xcf": "XCF",
    b"<svg": "SVG",
    b"<?xml": "XML or SVG",
    b"SIMPLE  =": "FITS",
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
}
_BRANDS = {b"avif": "AVIF", b"avis": "AVIF", **HEIF_BRANDS}

# Where Pillow refuses by default as well (twice its MAX_IMAGE_PIXELS): 512 MiB of RGB.
MAX_PIXELS = 178_956_970


def check_limit(name: str, value: object, default: int) -> int:
    """A limit as the user gave it, ``default`` for None. Raises ValueError unless ``value`` is a positive integer."""
    if value is None:
        return default
    return integer(name, value, 1, accepted=f"a positive integer, or None for {default:,}")


def check_pixels(path: str, height: int, width: int, max_pixels: int | None = None, channels: int = 3) -> None:
    """Raise DecodeError when ``height * width`` passes the limit, or is nothing at all. Every four channels count as
    one pixel."""
    limit = check_limit("max_pixels", max_pixels, MAX_PIXELS)
    if height * width * -(-channels // 4) > limit:
        of_channels = f" of {channels} channels" if channels > 4 else ""
        size = f"{width:,} x {height:,} pixels{of_channels} by its header"
        raise DecodeError(path, f"{size}, more than the limit of {limit:,} (max_pixels)")
    if height < 1 or width < 1:
        raise DecodeError(path, f"damaged: its header says {width} x {height} pixels")


def check_side(path: str, height: int, width: int) -> None:
    """Raise DecodeError for a picture with a longer side than programs can address."""
    if max(height, width) > MAX_SIDE:
        raise DecodeError(path, f"{width:,} x {height:,} pixels, more than {MAX_SIDE:,} on a side")


def packbits_length(data: bytes) -> int:
    """The number of bytes that a segment of PackBits becomes, which may be 64 times as long."""
    length = position = 0
    while position < len(data):
        code = data[position]
        if code < 128:  # code + 1 bytes follow
            length += code + 1
            position += code + 2
        else:  # the next byte is repeated; 128 means nothing
            length += 257 - code if code > 128 else 0
            position += 2 if code > 128 else 1
    return length


def open_image_file(data: bytes, formats: Sequence[str] = FORMATS) -> ImageFile.ImageFile:
    """``Image.open`` without Pillow's limit of pixels; check the size with ``check_pixels``, and ``size_when_opened``
    before. Raises whatever Pillow's plug-ins raise for damaged files, and ImportError for a package that is missing."""
    Image.preinit()
    size = size_when_opened(data)
    file = io.BytesIO(data)
    with pillow_limit.lifted(*(size or (0, 0))):
        for name in formats:
            if name in PLUGINS:
                if PLUGINS[name].accepts(data[:16]):
                    return PLUGINS[name].open(file)
                continue
            if name not in Image.OPEN:
                Image.init()
            factory, accepts = Image.OPEN[name]
            try:
                is_accepted = True if accepts is None else accepts(data[:16])
                if is_accepted and not isinstance(is_accepted, str):  # such messages name a missing package
                    file.seek(0)
                    return factory(file, "")
            except (SyntaxError, IndexError, TypeError, struct.error):  # as Image.open does
                continue
    raise UnidentifiedImageError("cannot identify image file")


def size_when_opened(data: bytes) -> tuple[int, int] | None:
    """Height and width, by the header, of a file whose pixels take memory when it is opened: WebP and JPEG XL."""
    return webp_size(data) or jxl_size(data)


def webp_size(data: bytes) -> tuple[int, int] | None:
    """Height and width of a WebP file by its header (RFC 9649), as opening one makes a canvas of eight bytes a pixel;
    None for other files."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    if data[12:16] == b"VP8X":
        return int.from_bytes(data[27:30], "little") + 1, int.from_bytes(data[24:27], "little") + 1
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if data[12:16] == b"VP8 ":
        return int.from_bytes(data[28:30], "little") & 0x3FFF, int.from_bytes(data[26:28], "little") & 0x3FFF
    return None


_UNCHANGED: AbstractContextManager[None] = nullcontext()


class _PillowLimit:
    """Pillow's limit of pixels for the whole process, which some plug-ins check on their own while they decode. It is
    lifted for as long as any thread decodes a larger picture that ``max_pixels`` accepts."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._lifted = 0
        self._limit: int | None = None
        at_fork(self)

    def after_fork(self) -> None:
        """A forked process has none of the threads that lifted the limit."""
        if self._lifted:
            Image.MAX_IMAGE_PIXELS = self._limit
        self._lock = Lock()
        self._lifted = 0

    def lifted(self, height: int, width: int) -> AbstractContextManager[None]:
        """Context manager: Pillow accepts a picture of this size; smaller pictures need no change."""
        with self._lock:
            limit = self._limit if self._lifted else Image.MAX_IMAGE_PIXELS
        return _UNCHANGED if limit is None or height * width <= limit else self._lift()

    @contextmanager
    def _lift(self) -> Iterator[None]:
        with self._lock:
            if not self._lifted:
                self._limit = Image.MAX_IMAGE_PIXELS
            self._lifted += 1
            Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            with self._lock:
                self._lifted -= 1
                if not self._lifted:
                    Image.MAX_IMAGE_PIXELS = self._limit


pillow_limit = _PillowLimit()


def reason_for(error: BaseException, data: bytes) -> str:
    """A decoding error in one sentence, without the file's name."""
    size = f"{len(data):,} bytes"
    text = one_line(error).rstrip(".")
    if not data:
        return "zero bytes: the file is empty"
    if isinstance(error, ImportError):
        return f"its contents are {_kind_of(data)[0]}; {text}"
    if isinstance(error, UnidentifiedImageError):
        kind, is_read = _kind_of(data)
        if is_read:
            return f"damaged or truncated: it begins as {kind} but its header cannot be read ({size})"
        if kind:
            return f"its contents are {kind}, whatever its name; accepted: {_READ}"
        return f"not an image: no known format begins with {data[:12]!r}"
    if isinstance(error, Image.DecompressionBombError):
        return f"more pixels than Pillow's limit against decompression bombs ({text})"
    if "libjxl" in text:  # how to build it, and nothing about the file
        return f"damaged or truncated: its JPEG XL code cannot be decoded ({size})"
    lowered = text.lower()
    if any(word in lowered for word in ("truncated", "premature end", "not enough image data", "unexpected eof")):
        return f"truncated: it ends after {size}, in the middle of the picture"
    if isinstance(error, EOFError) or (isinstance(error, (IndexError, SyntaxError)) and not text):
        return f"truncated or damaged: it ends after {size}"
    return f"damaged: {text or type(error).__name__}"


def _kind_of(data: bytes) -> tuple[str, bool]:
    """The kind that the first bytes claim, "" for no known one, and whether it is read."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP", True
    if data[:1] == b"P" and data[1:2] in b"123456f" and data[2:3].isspace():
        return "PPM", True
    if read := next((kind for start, kind in _READ_SIGNATURES.items() if data.startswith(start)), ""):
        return read, True
    if is_dicom(data):
        return "DICOM", False
    if data[4:8] == b"ftyp":
        brand = _BRANDS.get(data[8:12], "MP4")
        return brand, brand != "MP4"
    return next((kind for start, kind in _OTHER_SIGNATURES.items() if data.startswith(start)), ""), False

"""Which kinds of image files are read, and what other kinds are called.

Every ``Image.open`` is given ``FORMATS``. Left to itself Pillow tries all of its plug-ins on whatever a file's first
bytes look like, whatever its name: Ghostscript is started for PostScript, and old formats' parsers read hostile bytes.
"""

from __future__ import annotations

# Pillow's names; those first that it knows without loading all of its plug-ins. "JPEG" reads MPO, JPEGs of several
# pictures, too. The extensions in data/sources/folder.py are those of these kinds.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "PPM", "WEBP", "TIFF")
JPEG_FORMATS = ("JPEG",)
READ = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM"

_READ_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
    b"BM": "BMP",
}
_OTHER_SIGNATURES = {
    b"%!PS": "EPS",
    b"\xc5\xd0\xd3\xc6": "EPS",
    b"8BPS": "PSD",
    b"%PDF": "PDF",
    b"\x00\x00\x00\x0cjP  \r\n\x87\n": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"\x00\x00\x00\x0cJXL \r\n\x87\n": "JPEG XL",
    b"\xff\x0a": "JPEG XL",
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
_BRANDS = {b"avif": "AVIF", b"avis": "AVIF", b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF", b"msf1": "HEIF"}


def kind_read(data: bytes) -> str | None:
    """The kind that the first bytes claim, where it is one that is read."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    if data[:1] == b"P" and data[1:2] in b"123456f" and data[2:3].isspace():
        return "PPM"
    return next((kind for start, kind in _READ_SIGNATURES.items() if data.startswith(start)), None)


def kind_not_read(data: bytes) -> str | None:
    """The kind that the first bytes claim, where it is a known one that is not read."""
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "MP4")
    return next((kind for start, kind in _OTHER_SIGNATURES.items() if data.startswith(start)), None)

"""What went wrong with a file, in words for its owner instead of those of the decoder."""

from __future__ import annotations

from PIL import Image, UnidentifiedImageError

_IMAGE_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"BM": "BMP",
    b"RIFF": "WebP",
}


def reason_for(error: BaseException, data: bytes) -> str:
    """One plain sentence without the file's name."""
    size = f"{len(data):,} bytes"
    text = " ".join(str(error).split()).rstrip(".")
    if not data:
        return "zero bytes: the file is empty"
    if isinstance(error, UnidentifiedImageError):
        kind = next((name for start, name in _IMAGE_SIGNATURES.items() if data.startswith(start)), None)
        if kind is not None:
            return f"damaged or truncated: it begins as a {kind} but its header cannot be read ({size})"
        return f"not an image: no known format begins with {data[:12]!r}"
    if isinstance(error, Image.DecompressionBombError):
        return f"more pixels than Pillow's limit against decompression bombs ({text})"
    lowered = text.lower()
    if any(word in lowered for word in ("truncated", "premature end", "not enough image data", "unexpected eof")):
        return f"truncated: it ends after {size}, in the middle of the picture"
    if isinstance(error, EOFError) or (isinstance(error, (IndexError, SyntaxError)) and not text):
        return f"truncated or damaged: it ends after {size}"
    return f"damaged: {text or type(error).__name__}"

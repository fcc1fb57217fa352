"""What went wrong with a file, in words for its owner instead of those of the decoder."""

from __future__ import annotations

from PIL import Image, UnidentifiedImageError

from variegate.data.decode.formats import READ, kind_not_read, kind_read


def reason_for(error: BaseException, data: bytes) -> str:
    """One plain sentence without the file's name."""
    size = f"{len(data):,} bytes"
    text = " ".join(str(error).split()).rstrip(".")
    if not data:
        return "zero bytes: the file is empty"
    if isinstance(error, UnidentifiedImageError):
        if (kind := kind_read(data)) is not None:
            return f"damaged or truncated: it begins as a {kind} but its header cannot be read ({size})"
        if (kind := kind_not_read(data)) is not None:
            return f"its contents are {kind}, whatever its name; accepted: {READ}"
        return f"not an image: no known format begins with {data[:12]!r}"
    if isinstance(error, Image.DecompressionBombError):
        return f"more pixels than Pillow's limit against decompression bombs ({text})"
    lowered = text.lower()
    if any(word in lowered for word in ("truncated", "premature end", "not enough image data", "unexpected eof")):
        return f"truncated: it ends after {size}, in the middle of the picture"
    if isinstance(error, EOFError) or (isinstance(error, (IndexError, SyntaxError)) and not text):
        return f"truncated or damaged: it ends after {size}"
    return f"damaged: {text or type(error).__name__}"

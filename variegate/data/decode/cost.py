"""How much memory Pillow takes to decode a picture, from its header, as measured: peaks of a process's memory."""

from __future__ import annotations

from typing import Any

from PIL import Image

# Bytes that Pillow keeps for a pixel, by mode; four for all others.
_KEPT = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
_RESULT = 3
# libwebp's two canvases, and the picture it hands to Pillow.
_WEBP_CANVASES, _WEBP_COPY = 8, 4
_WHAT_A_STRIP_TAKES = 4 << 20
_ORIENTATION, _BITS, _ROWS_PER_STRIP, _TILE_WIDTH, _TILE_LENGTH = 274, 258, 278, 322, 323


def bytes_needed(image: Image.Image, file_bytes: int, decoder_bytes: int = 0) -> int:
    """The peak of ``PillowFile.decode``, about, its result included and the file's own bytes not.

    ``decoder_bytes``: what a decoder holds while it works, where the caller knows. Files that are damaged in the fields
    it looks at may raise whatever Pillow's plug-ins raise.
    """
    pixels = image.height * image.width
    kept = _KEPT.get(image.mode, 4) * pixels
    while_decoding, after = decoder_bytes, 0
    if image.format == "WEBP":
        after = _WEBP_CANVASES * pixels + 2 * file_bytes
        while_decoding = after + _WEBP_COPY * pixels
    elif image.format == "TIFF":
        while_decoding = _of_tiff(image, kept, file_bytes)
    elif image.format == "GIF":
        while_decoding = pixels
    if any(tile[0] in Image.DECODERS for tile in image.tile[:1]):  # type: ignore[attr-defined]
        # Those written in Python collect all pixels and copy them: BMP's run lengths, PPM in 16 bits or as text.
        while_decoding += 2 * len(image.getbands()) * pixels
    return max(kept + while_decoding, kept + after + _RESULT * pixels) + _WHAT_A_STRIP_TAKES


def _of_tiff(image: Image.Image, kept: int, file_bytes: int) -> int:
    tags = image.tag_v2  # type: ignore[attr-defined]
    orientation = _number(tags, _ORIENTATION, 1)
    turned = kept if 2 <= orientation <= 8 else 0  # Pillow turns TIFFs itself, into another picture
    if image.tile[:1] and image.tile[0][0] != "libtiff":  # type: ignore[attr-defined]
        return turned
    # libtiff is given a copy of the file, and decodes a strip or a tile at a time, which may be all of the picture.
    height, width = (image.width, image.height) if 5 <= orientation <= 8 else (image.height, image.width)
    if _TILE_WIDTH in tags:
        unit = _number(tags, _TILE_WIDTH, width) * _number(tags, _TILE_LENGTH, height)
    else:
        unit = width * min(_number(tags, _ROWS_PER_STRIP, height), height)
    bits = tags.get(_BITS, 8)
    pixel = (sum(bits) if isinstance(bits, tuple) else int(bits)) // 8
    return max(turned, unit * max(4, pixel) + file_bytes)


def _number(tags: Any, tag: int, default: int) -> int:
    value = tags.get(tag, default)
    return int(value[0] if isinstance(value, tuple) and value else value)

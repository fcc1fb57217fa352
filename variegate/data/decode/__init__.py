"""From bytes to pixels: ``read_image`` for any file, and ways to decode no more of a JPEG than will be used."""

from variegate.data.decode.header import JpegHeader, is_jpeg, jpeg_size, read_header
from variegate.data.decode.image import read_bytes, read_image
from variegate.data.decode.jpeg import (
    checked_header,
    decode_jpeg,
    decode_jpeg_box,
    decode_jpeg_scaled,
    decode_jpeg_warned,
    decode_plain,
    is_complete,
)
from variegate.data.decode.pillow import PillowFile, pixels_of_pil
from variegate.data.decode.refusals import FORMATS, MAX_DECODE_BYTES, MAX_PIXELS, check_limit, check_pixels, check_side

__all__ = [
    "FORMATS",
    "MAX_DECODE_BYTES",
    "MAX_PIXELS",
    "JpegHeader",
    "PillowFile",
    "check_limit",
    "check_pixels",
    "check_side",
    "checked_header",
    "decode_jpeg",
    "decode_jpeg_box",
    "decode_jpeg_scaled",
    "decode_jpeg_warned",
    "decode_plain",
    "is_complete",
    "is_jpeg",
    "jpeg_size",
    "pixels_of_pil",
    "read_bytes",
    "read_header",
    "read_image",
]

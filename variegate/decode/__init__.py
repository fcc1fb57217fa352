"""Decode bytes to pixels: ``read_image`` for any file, and partial decoders of JPEGs."""

from variegate.decode.channels import read_channels
from variegate.decode.header import JpegHeader, is_jpeg, jpeg_size, read_header
from variegate.decode.image import (
    checked_header,
    decode_jpeg,
    decode_jpeg_box,
    decode_jpeg_scaled,
    decode_jpeg_warned,
    decode_plain,
    image_size,
    is_complete,
    read_bytes,
    read_image,
)
from variegate.decode.limits import FORMATS, MAX_PIXELS, check_limit, check_pixels, check_side
from variegate.decode.pillow import PillowFile, pixels_of_pil

__all__ = [
    "FORMATS",
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
    "image_size",
    "is_complete",
    "is_jpeg",
    "jpeg_size",
    "pixels_of_pil",
    "read_bytes",
    "read_channels",
    "read_header",
    "read_image",
]

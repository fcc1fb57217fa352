"""A limit on pixels, checked from the header, so that a small file cannot ask for all of the memory."""

from __future__ import annotations

from variegate.errors import DecodeError
from variegate.program.program import MAX_SIDE

# Where Pillow refuses by default as well (twice its MAX_IMAGE_PIXELS): 512 MiB of RGB.
MAX_PIXELS = 178_956_970


def check_pixels(path: str, height: int, width: int, max_pixels: int | None = None) -> None:
    """Raise DecodeError when ``height * width`` passes the limit, or is nothing at all."""
    limit = MAX_PIXELS if max_pixels is None else max_pixels
    if height * width > limit:
        raise DecodeError(
            path, f"{width:,} x {height:,} pixels by its header, more than the limit of {limit:,} (max_pixels)"
        )
    if height < 1 or width < 1:
        raise DecodeError(path, f"damaged: its header says {width} x {height} pixels")


def check_side(path: str, height: int, width: int) -> None:
    """Raise DecodeError for a picture with a longer side than programs can address."""
    if max(height, width) > MAX_SIDE:
        raise DecodeError(path, f"{width:,} x {height:,} pixels, more than {MAX_SIDE:,} on a side")

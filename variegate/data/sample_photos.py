"""Photos that come with the package, so that an example runs without data of one's own."""

from __future__ import annotations

from pathlib import Path

from variegate.arrays import UInt8Array
from variegate.checks import integer
from variegate.decode import read_image

# Four shapes among the first four. The author and license of each: photos/README.md.
NAMES = ("astronaut", "cat", "coffee", "rocket", "space", "cameraman", "retina", "bricks")


def sample_photo(name: str) -> Path:
    """The JPEG file of one of ``NAMES``."""
    return Path(__file__).parent / "photos" / f"{name}.jpg"


def sample_images(n: int = 8) -> list[UInt8Array]:
    """Return ``n`` sample photos in a fixed order, as new uint8 arrays [H, W, 3] of different sizes.

    There are eight, with shorter sides of 256 to 320 pixels, all in the public domain or CC0. They repeat after the
    eighth, to fill batches of any size. Raises ValueError for n below 1.
    """
    n = integer("n", n, 1, accepted="a whole number from 1 on")
    photos = [read_image(sample_photo(name)) for name in NAMES[:n]]
    return [photos[index % len(photos)].copy() for index in range(n)]

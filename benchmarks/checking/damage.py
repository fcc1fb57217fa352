"""Photos damaged in known ways, beside the same number of ways in which they are not."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

Rng = np.random.Generator
Pixels = npt.NDArray[np.float32]


class Strengths(NamedTuple):
    """Ranges to draw from. Thresholds were chosen with ``DESIGN`` on other photos; ``HELD_APART`` is reported."""

    gain: tuple[float, float]  # of dark images; of bright ones, what is left below white
    contrast: tuple[float, float]  # what is left of it
    sigma: tuple[float, float]  # pixels, of a Gaussian
    radius: tuple[int, int]  # pixels, of a disc: out of focus
    motion: tuple[int, int]  # pixels, across or down
    upscaled: tuple[float, float]  # by how much
    side: tuple[int, int]  # pixels, of tiny images
    aspect: tuple[float, float]


DESIGN = Strengths((0.08, 0.2), (0.05, 0.15), (1.5, 4), (3, 5), (9, 15), (4, 8), (16, 48), (5, 8))
HELD_APART = Strengths((0.05, 0.22), (0.04, 0.18), (1.8, 7), (4, 7), (11, 21), (3, 7), (12, 60), (4.5, 12))


def as_jpeg(image: Image.Image, quality: int = 90, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, **options)
    return out.getvalue()


def _scaled(image: Image.Image, gain: float, offset: float) -> bytes:
    pixels = np.asarray(image).astype(np.float32) * gain + offset
    return as_jpeg(Image.fromarray(np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)))


def _averaged(image: Image.Image, offsets: list[tuple[int, int]]) -> bytes:
    pixels = np.asarray(image).astype(np.float32)
    reach = max(max(abs(y), abs(x)) for y, x in offsets)
    height, width = pixels.shape[:2]
    padded = np.pad(pixels, ((reach, reach), (reach, reach), (0, 0)), "symmetric")
    total = np.zeros_like(pixels)
    for y, x in offsets:
        total += padded[reach + y : reach + y + height, reach + x : reach + x + width]
    return as_jpeg(Image.fromarray(np.rint(total / len(offsets)).astype(np.uint8)))


def _defocused(image: Image.Image, radius: int) -> bytes:
    around = range(-radius, radius + 1)
    return _averaged(image, [(y, x) for y in around for x in around if y * y + x * x <= radius * radius])


def _moved(image: Image.Image, length: int, down: bool) -> bytes:
    return _averaged(image, [(by, 0) if down else (0, by) for by in range(-(length // 2), length - length // 2)])


def _upscaled(image: Image.Image, by: float) -> bytes:
    width, height = image.size
    small = image.resize((max(1, round(width / by)), max(1, round(height / by))), Image.Resampling.BOX)
    return as_jpeg(small.resize(image.size, Image.Resampling.BICUBIC))


def _strip(image: Image.Image, aspect: float) -> bytes:
    width, height = image.size
    return as_jpeg(image.crop((0, height // 3, width, height // 3 + max(1, int(width / aspect)))))


def _tiny(image: Image.Image, side: int) -> bytes:
    return as_jpeg(image.resize((side, max(8, round(side * image.height / image.width)))))


def _turned(image: Image.Image, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return as_jpeg(image, exif=exif)


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def damages(strengths: Strengths) -> dict[str, tuple[str, Callable[[Image.Image, bytes, Rng], bytes]]]:
    """By name: (the finding that it is to be, (image, its file, generator) -> a damaged file)."""
    s = strengths

    def blank(image: Image.Image, data: bytes, rng: Rng) -> bytes:
        colour = tuple(int(one) for one in rng.integers(0, 256, 3))
        return as_jpeg(Image.new("RGB", image.size, colour))

    return {
        "corrupt": ("corrupt", lambda image, data, rng: data[:2] + rng.bytes(len(data) - 2)),
        "cut off": ("truncated", lambda image, data, rng: data[: int(len(data) * rng.uniform(0.3, 0.95))]),
        "cut off, with an end": (
            "truncated",
            lambda image, data, rng: data[: int(len(data) * rng.uniform(0.3, 0.9))] + b"\xff\xd9",
        ),
        "empty": ("empty", lambda image, data, rng: b""),
        "PNG named .jpg": ("wrong_extension", lambda image, data, rng: _png(image)),
        "CMYK": ("unusual_mode", lambda image, data, rng: as_jpeg(image.convert("CMYK"))),
        "turned": ("exif_turned", lambda image, data, rng: _turned(image, int(rng.integers(2, 9)))),
        "tiny": ("tiny", lambda image, data, rng: _tiny(image, int(rng.integers(*s.side)))),
        "huge": ("huge", lambda image, data, rng: as_jpeg(image.resize((image.width * 6, image.height * 6)))),
        "strip": ("extreme_aspect", lambda image, data, rng: _strip(image, rng.uniform(*s.aspect))),
        "blank": ("blank", blank),
        "dark": ("dark", lambda image, data, rng: _scaled(image, rng.uniform(*s.gain), 0)),
        "bright": (
            "bright",
            lambda image, data, rng: (lambda gain: _scaled(image, gain, 255 * (1 - gain)))(rng.uniform(*s.gain)),
        ),
        "pale": (
            "low_contrast",
            lambda image, data, rng: (lambda gain: _scaled(image, gain, 127 * (1 - gain)))(rng.uniform(*s.contrast)),
        ),
        "Gaussian blur": (
            "blurred",
            lambda image, data, rng: as_jpeg(image.filter(ImageFilter.GaussianBlur(rng.uniform(*s.sigma)))),
        ),
        "out of focus": ("blurred", lambda image, data, rng: _defocused(image, int(rng.integers(*s.radius)))),
        "motion": ("blurred", lambda image, data, rng: _moved(image, int(rng.integers(*s.motion)), rng.random() < 0.5)),
        "upscaled": ("blurred", lambda image, data, rng: _upscaled(image, rng.uniform(*s.upscaled))),
    }


def write(files: list[bytes], folder: Path, strengths: Strengths, each: int, seed: int) -> dict[str, str]:
    """All of ``files`` as they are, and ``each`` damaged in every way -> by name of the file, the way; "" for none."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    truth = {}
    for i, data in enumerate(files):
        truth[f"photo-{i:04d}.jpg"] = ""
        (folder / f"photo-{i:04d}.jpg").write_bytes(data)
    for number, (way, (_, damage)) in enumerate(damages(strengths).items()):
        for i, choice in enumerate(rng.choice(len(files), each, replace=False).tolist()):
            image = Image.open(io.BytesIO(files[choice]), formats=["JPEG"]).convert("RGB")
            name = f"way-{number:02d}-{i:03d}.jpg"
            truth[name] = way
            (folder / name).write_bytes(damage(image, files[choice], rng))
    return truth

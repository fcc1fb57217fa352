"""Overlays of user-provided pictures: dirty lenses, stickers, logos."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from variegate.arrays import Int64Array
from variegate.checks import Refusal, refused
from variegate.ops.arguments import Number, Probability, RgbColor, ShareMagnitude, two_numbers
from variegate.ops.base import TypicalRange
from variegate.ops.fields import Lattice
from variegate.ops.layers import WHITE, Layers, Overlaid, emit_layers
from variegate.ops.magnitude import between
from variegate.ops.schema import Argument, Converted, Range
from variegate.program.coords import STEP_BITS
from variegate.program.ops import LayerMode
from variegate.program.sampling import Floats, Rows, Sampling

_FORMATS = ("PNG", "WEBP", "TIFF", "GIF", "BMP", "JPEG")

# Longest side of a stored picture in pixels. Larger pictures are reduced.
_MAX_PIXELS = 1024
_ACCEPTED = "RGBA or RGB pictures: paths, PIL images or uint8 arrays [height, width, 4 or 3]"
Blending = Literal["alpha", "multiply", "screen", "add"]


@dataclass(frozen=True)
class Picture:
    """uint8 RGBA pixels; immutable."""

    height: int
    width: int
    pixels: bytes

    def array(self) -> Layers:
        return np.frombuffer(self.pixels, np.uint8).reshape(self.height, self.width, 4)

    def described(self) -> dict[str, str]:
        """Return a JSON-compatible description, with the pixels as PNG."""
        from PIL import Image

        file = io.BytesIO()
        Image.fromarray(self.array(), "RGBA").save(file, "PNG", optimize=True)
        return {"png": base64.b64encode(file.getvalue()).decode("ascii")}

    def __repr__(self) -> str:
        return f"<picture of {self.height}x{self.width} pixels>"


def _picture(value: Any) -> Picture | None:
    """Read a picture from a path, PIL image, array or description. Returns None for other values."""
    from PIL import Image

    if isinstance(value, Picture):
        return value
    try:
        if isinstance(value, Mapping):
            image: Any = Image.open(io.BytesIO(base64.b64decode(value["png"], validate=True)), formats=("PNG",))
            if max(image.size) > _MAX_PIXELS:  # ``to_dict`` writes no such picture; refused before it is decoded
                return None
        elif isinstance(value, (str, Path)):
            # ``Path``, because Pillow 11 mistakes an empty string for an open file.
            image = Image.open(Path(value), formats=_FORMATS)
        else:
            image = value if isinstance(value, Image.Image) else Image.fromarray(np.ascontiguousarray(value))
        if not isinstance(value, (Mapping, str, Path, Image.Image)) and image.mode not in ("RGB", "RGBA"):
            return None
        image = image.convert("RGBA")
    except (OSError, TypeError, ValueError, KeyError, RuntimeError, SyntaxError, Image.DecompressionBombError):
        return None
    if max(image.size) > _MAX_PIXELS:
        image.thumbnail((_MAX_PIXELS, _MAX_PIXELS))
    return Picture(image.height, image.width, image.tobytes())


class Pictures(Argument):
    """Argument that accepts one or several pictures, in the forms of ``_ACCEPTED``."""

    def check(self, name: str, value: Any, *, error: Refusal = refused) -> tuple[Picture, ...]:
        given = value if isinstance(value, (list, tuple)) else [value]
        pictures = [_picture(each) for each in given]
        for each, picture in zip(given, pictures, strict=True):
            if picture is None:
                raise error(name, tuple(each.shape) if hasattr(each, "shape") else each, _ACCEPTED)
        if not pictures:
            raise error(name, value, f"at least one of {_ACCEPTED}")
        return tuple(p for p in pictures if p is not None)

    def describe(self) -> str:
        return _ACCEPTED


_PLACES = '"anywhere", "cover", or the center (x, y) in shares of the sides'


def _place(value: Any) -> str | tuple[float, ...] | None:
    if isinstance(value, str):
        return value if value in ("anywhere", "cover") else None
    return two_numbers(value, 0.0, 1.0)


@lru_cache(maxsize=256)
def _levels(picture: Picture) -> tuple[Layers, ...]:
    """Return an image pyramid: the picture, then half-size reductions, uint8[height, width, 4].

    Transparent pixels get the color of visible pixels around, so that interpolation does not mix in other colors.
    """
    whole = picture.array().astype(np.float64)
    whole[..., :3] *= whole[..., 3:] / 255.0
    levels = [whole]
    while min(levels[-1].shape[:2]) > 1:
        even = levels[-1][: levels[-1].shape[0] // 2 * 2, : levels[-1].shape[1] // 2 * 2]
        levels.append((even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4.0)
    around = None
    for level in reversed(levels):
        color = level[..., :3] / np.maximum(level[..., 3:], 1e-6) * 255.0
        if around is not None:
            lines, columns = (
                np.minimum(np.arange(n) // 2, m - 1) for n, m in zip(level.shape, around.shape[:2], strict=False)
            )
            color = np.where(level[..., 3:] > 0, color, around[lines[:, None], columns])
        level[..., :3] = around = color
    return tuple(np.rint(np.clip(level, 0.0, 255.0)).astype(np.uint8) for level in levels)


@dataclass(frozen=True)
class Overlay(Overlaid):
    """Composite a picture on the image, such as a dirty lens, a sticker or a logo.

    Args:
        images: RGBA or RGB pictures, each equally likely: paths, PIL images or uint8 arrays [height, width, 4 or 3].
            Longer sides above 1,024 pixels are reduced. Descriptions contain the pixels, as PNG.
        scale: longer side of the picture as a share of the image's shorter side, a number or a range.
        place: "anywhere" within the image; "cover" to stretch it over the whole image; or its center (x, y), in shares
            of the sides.
        blend: "alpha" covers the image, "multiply" darkens it, "screen" and "add" lighten it.
        opacity: 0 to 1, a number or a range.
    """

    images: Annotated[Any, Pictures()]
    scale: Annotated[Number, Range(0.01, 10.0)] = (0.2, 0.5)
    place: Annotated[str | Sequence[float], Converted(_place, _PLACES)] = "anywhere"
    blend: Blending = "alpha"
    opacity: ShareMagnitude = 1.0
    p: Probability = 0.5
    num_slots = 2
    _path_args = ("images",)
    _typical_range = TypicalRange(0.0, 1.0, 0.0, lambda opacity: Overlay(_ring(), opacity=opacity, p=1.0))

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "images": [picture.described() for picture in self.images]}

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        unit, sizes = sampling.uniform(rows, slot + 1), sampling.size[rows].astype(np.float64)
        chosen = (unit[:, 0] * len(self.images)).astype(np.intp)
        longer = between(self.scale, unit[:, 1]) * sizes.min(axis=1)
        for number in np.unique(chosen).tolist():
            picture, at = self.images[number], np.flatnonzero(chosen == number)
            sides = np.array([picture.height, picture.width])
            shown = np.maximum(np.rint(sides / sides.max() * longer[at, None]), 1.0)
            if self.place == "cover":
                shown, begin = sizes[at], np.zeros((len(at), 2))
            elif self.place == "anywhere":
                begin = np.floor(unit[at, 2:] * (sizes[at] - shown + 1.0))
            else:
                begin = np.floor(np.array(self.place)[::-1] * sizes[at] - shown / 2.0)
            self._emit_picture(sampling, rows[at], picture, shown, begin.astype(np.int64), values[at])

    def _emit_picture(
        self, sampling: Sampling, rows: Rows, picture: Picture, shown: Floats, begin: Int64Array, opacity: Floats
    ) -> None:
        """Emit ``picture`` at height and width ``shown``, with its upper left corner at ``begin``, in pixels."""
        levels = _levels(picture)
        sides = np.array([level.shape[:2] for level in levels])
        # The smallest level of the pyramid with at least a node per pixel.
        which = np.maximum((sides[None] >= shown[:, None]).all(axis=2).sum(axis=1) - 1, 0)
        for i in np.unique(which).tolist():
            at, place = which == i, begin[which == i]
            if self.place == "cover":
                nodes = np.pad(levels[i], ((0, 1), (0, 1), (0, 0)), mode="edge")
                steps = (sides[i] - 1) / np.maximum(shown[at] - 1, 1)
            else:
                # A border of transparent nodes, so that alpha falls to 0 at the picture's edges.
                nodes = np.pad(levels[i], ((1, 1), (1, 1), (0, 0)), mode="edge")
                nodes[[0, -1], :, 3] = nodes[:, [0, -1], 3] = 0
                steps = sides[i] / shown[at]
                place = place - np.rint(0.5 + 0.5 / steps).astype(np.int64)
            step_y, step_x = np.clip(np.rint(steps.T * 2.0**STEP_BITS), 1, 1 << STEP_BITS + 4).astype(np.int64)
            over = Lattice(nodes.shape[0], nodes.shape[1], step_y, step_x)
            layer, mode, color = _planes(nodes, self.blend)
            emit_layers(sampling, rows[at], over, layer[None], opacity[at], "Overlay", mode, color, place)


def _planes(nodes: Layers, blend: str) -> tuple[Layers, LayerMode, RgbColor]:
    color, alpha = np.moveaxis(nodes[..., :3], -1, 0), nodes[..., 3]
    if blend == "alpha":
        return np.concatenate([alpha[None], color]), LayerMode.OVER, WHITE
    # "multiply" is alpha of black per channel; "screen" and "add" are alpha of white.
    own = 255 - color if blend == "multiply" else color
    own = ((own.astype(np.uint16) * alpha + 127) // 255).astype(np.uint8)
    mode = LayerMode.ADD if blend == "add" else LayerMode.OVER
    return own, mode, (0, 0, 0) if blend == "multiply" else WHITE


def _ring() -> Any:
    """Return a picture for ``_typical_range``."""
    y, x = np.mgrid[-31.5:32, -31.5:32]
    away = abs(np.hypot(x, y) - 23.0)
    return np.stack([0 * x + 220, 0 * x + 40, 0 * x + 50, np.clip((8.5 - away) * 255, 0, 255)], axis=-1).astype(
        np.uint8
    )

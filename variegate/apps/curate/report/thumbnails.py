"""Small pictures of the images that a report shows, as data that an HTML file holds itself."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.apps.curate.report.checked import Place
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.base import Source, SourceError, StreamSource
from variegate.threads import default_threads

# Twice the pixels of the place that they are shown in, for dense screens.
SIDE = 224
_QUALITY = 72
# Of all pictures, as base64.
MOST_BYTES = 12 << 20
Data = bytes | npt.NDArray[np.uint8]


class Thumbnail(NamedTuple):
    """``uri``: None where there is no picture, because of ``error``. ``is_small``: shown pixel by pixel."""

    uri: str | None
    width: int = 0
    height: int = 0
    error: str = ""

    @property
    def is_small(self) -> bool:
        return max(self.width, self.height) * 2 <= SIDE


def thumbnails(places: Iterable[Place], sources: Mapping[str, Source | StreamSource]) -> dict[Place, Thumbnail]:
    """Of these images, each read once more. What cannot be read, or is beyond ``MOST_BYTES``, has its error instead.

    Streams are read from their beginning up to the last image that is wanted.
    """
    wanted = list(dict.fromkeys(places))
    made: dict[Place, Thumbnail] = {}
    for split, source in sources.items():
        indices = [index for of, index in wanted if of == split]
        if not indices:
            continue
        # Asked of the class: isinstance() of a protocol would compute the fingerprint.
        if hasattr(type(source), "read_shard"):
            source = cast(StreamSource, source)
            made |= {(split, index): one for index, one in _of_stream(source, set(indices)).items()}
            continue
        with ThreadPoolExecutor(default_threads(), "variegate-thumbnails") as pool:
            found = pool.map(partial(_of_source, cast(Source, source)), indices)
            made |= {(split, index): one for index, one in zip(indices, found, strict=True)}
    missing = Thumbnail(None, error="is not in the source any more")
    return _within(MOST_BYTES, {place: made.get(place, missing) for place in wanted})


def _within(most: int, made: dict[Place, Thumbnail]) -> dict[Place, Thumbnail]:
    used, kept = 0, {}
    for place, one in made.items():
        size = len(one.uri or "")
        is_kept = used + size <= most
        used += size * is_kept
        kept[place] = one if is_kept else Thumbnail(None, error="left out, to keep this file small")
    return kept


def _of_source(source: Source, index: int) -> Thumbnail:
    try:
        return thumbnail(source.read(index).data)
    except (DecodeError, SourceError, IndexError) as error:
        return Thumbnail(None, error=_reason(error))


def _of_stream(source: StreamSource, wanted: set[int]) -> dict[int, Thumbnail]:
    found: dict[int, Thumbnail] = {}
    index = -1
    for shard in range(source.num_shards):
        for sample in source.read_shard(shard):
            index += 1
            if index in wanted:
                item = sample.item
                found[index] = (
                    Thumbnail(None, error=_reason(item)) if isinstance(item, DecodeError) else thumbnail(item.data)
                )
                if len(found) == len(wanted):
                    return found
    return found


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, DecodeError) else str(error)


def thumbnail(data: Data) -> Thumbnail:
    """The bytes of an image file, or pixels uint8 [H, W, C] -> a JPEG of ``SIDE`` pixels at most; smaller images keep
    their size, as PNG."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of 16 bits of gray, which the check itself has told
            pixels = read_image(data) if isinstance(data, bytes) else np.asarray(data)
    except DecodeError as error:
        return Thumbnail(None, error=error.reason)
    if pixels.size == 0:
        return Thumbnail(None, error="has no pixels")
    image = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
    is_small = max(image.size) * 2 <= SIDE
    longest = max(image.size)
    if longest > SIDE:
        size = tuple(max(1, round(side * SIDE / longest)) for side in image.size)
        image = image.resize((size[0], size[1]), Image.Resampling.BILINEAR, reducing_gap=2.0)
    buffer = io.BytesIO()
    if is_small:
        image.save(buffer, "PNG", optimize=True)
    else:
        image.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    kind = "png" if is_small else "jpeg"
    return Thumbnail(f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}", *image.size)

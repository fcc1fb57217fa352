"""Small pictures of the images that a report shows, as data that an HTML file holds itself."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from variegate.apps.curate.scan import item_of
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.base import Item, Source, SourceError, StreamSource
from variegate.threads import default_threads

# Twice the pixels of the place that they are shown in, for dense screens.
SIDE = 224
_QUALITY = 72
# Of all pictures, as base64.
MOST_BYTES = 12 << 20
Data = bytes | npt.NDArray[np.uint8]
Place = tuple[str, int]  # split, index


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
        # Asked of the class: isinstance() of a protocol would compute the fingerprint.
        if hasattr(type(source), "read_shard"):
            stream, chosen = cast(StreamSource, source), set(indices)
            samples = chain.from_iterable(map(stream.read_shard, range(stream.num_shards)))
            some = enumerate(islice(samples, max(chosen, default=-1) + 1))
            made |= {(split, index): _made(partial(item_of, sample)) for index, sample in some if index in chosen}
        elif indices:
            reads = [partial(cast(Source, source).read, index) for index in indices]
            with ThreadPoolExecutor(default_threads(), "variegate-thumbnails") as pool:
                found = pool.map(_made, reads)
                made |= {(split, index): one for index, one in zip(indices, found, strict=True)}
    used, shown = 0, {}
    for place in wanted:
        one = made.get(place, Thumbnail(None, error="is not in the source any more"))
        size = len(one.uri or "")
        shown[place] = one if used + size <= MOST_BYTES else Thumbnail(None, error="left out, to keep this file small")
        used += size if used + size <= MOST_BYTES else 0
    return shown


def _made(read: Callable[[], Item]) -> Thumbnail:
    try:
        return thumbnail(read().data)
    except (DecodeError, SourceError, IndexError) as error:
        return Thumbnail(None, error=error.reason if isinstance(error, DecodeError) else str(error))


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
    longest = max(image.size)
    kind, options = ("jpeg", {"quality": _QUALITY}) if longest * 2 > SIDE else ("png", {})
    if longest > SIDE:
        width, height = (max(1, round(side * SIDE / longest)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0)
    buffer = io.BytesIO()
    image.save(buffer, kind, optimize=True, **options)
    return Thumbnail(f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}", *image.size)

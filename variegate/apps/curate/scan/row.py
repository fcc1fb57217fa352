"""A sample's row in the table of a check: read, decoded and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.apps.curate.measures.files import FileFacts, Image_HWC
from variegate.apps.curate.measures.fingerprint import Fingerprint, fingerprint
from variegate.apps.curate.measures.pixels import PixelMeasures, measure_pixels
from variegate.checks import as_integer
from variegate.errors import DecodeError
from variegate.formats.base import Item
from variegate.formats.folder import FLAT_CLASS
from variegate.formats.labels import MOST_LABEL, NO_LABEL

# The columns that a pass fills in, but for the split, in the order of a row; findings come later.
FIELDS = (
    *("index", "file", "label", "class", "error", "warning", "bytes", "kind", "mode", "orientation", "is_truncated"),
    *("height", "width", *PixelMeasures._fields, *Fingerprint._fields),
)
Row = tuple[Any, ...]
_UNMEASURED = (None,) * (len(PixelMeasures._fields) + len(Fingerprint._fields))


def row_of(
    index: int,
    key: str,
    name: Callable[[], str],
    fetch: Callable[[], Item],
    classes: Sequence[str],
) -> Row:
    """``key``: what the table calls it; ``name``: what messages do. Never raises for what is the sample's own fault:
    whatever a storage, a decoder or a user's data set raises is its ``error``."""
    facts, label, size, measures = FileFacts(), NO_LABEL, None, None
    try:
        item = fetch()
        label = _label_of(item.label)
        if isinstance(item.data, np.ndarray):
            size = item.data.nbytes
            measures = _measure_pixels_of(item.data, facts)
        else:
            data = item.data if isinstance(item.data, bytes) else bytes(item.data)
            size = len(data)
            measures = facts.read(data, name(), _measure)
    except DecodeError as error:
        facts.error = error.reason
    except MemoryError:
        facts.error = "not enough memory to decode it"
    except Exception as error:  # of a data set of the user's, or of a storage
        facts.error = f"cannot be read ({type(error).__name__}: {error})"
    kind_class = classes[label] if 0 <= label < len(classes) else None
    if kind_class == FLAT_CLASS:  # the images of a folder without class folders
        label, kind_class = NO_LABEL, None
    return (
        *(index, key, label, kind_class, speakable_or_none(facts.error), facts.warning, size, facts.kind, facts.mode),
        *(facts.orientation, facts.is_truncated, facts.height, facts.width),
        *(measures or _UNMEASURED),
    )


def prepare() -> None:
    """Have what measures compiled, or loaded, before threads need it."""
    _measure(np.zeros((8, 8, 3), np.uint8))


def speakable_or_none(text: str | None) -> str | None:
    """UTF-8 can hold it, whatever bytes a name or a message had."""
    return text if text is None or text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _measure(image: Image_HWC) -> Row:
    return (*measure_pixels(image), *fingerprint(image))


def _measure_pixels_of(image: npt.NDArray[np.uint8], facts: FileFacts) -> Row | None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (1, 3):
        facts.error = f"pixels {image.dtype} {list(image.shape)}; accepted: uint8 [H, W, 3] or [H, W, 1]"
        return None
    facts.mode = "L" if image.shape[2] == 1 else "RGB"
    facts.height, facts.width = image.shape[:2]
    if not image.size:
        facts.error = f"it has no pixels ({facts.width} x {facts.height})"
        return None
    return _measure(np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3))))


def _label_of(label: Any) -> int:
    """-1 for what is no class: a float, or an array for each sample."""
    whole = as_integer(label)
    return NO_LABEL if whole is None or not NO_LABEL <= whole <= MOST_LABEL else whole

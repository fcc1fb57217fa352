"""Labels as one array for all samples: ints, floats, or an array of one shape a sample; names of classes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from variegate.arrays import AnyArray, BoolArray
from variegate.data.base import SourceError
from variegate.data.reading import read_file
from variegate.errors import DecodeError, short_repr
from variegate.io.files import MOST_TEXT_BYTES
from variegate.io.location import Location

Labels = AnyArray

# Columns and keys that hold the class where nothing else says so, the likeliest first.
LABEL_NAMES = ("label", "labels", "fine_label", "class", "target", "cls", "coarse_label")
IMAGE_NAMES = ("image", "img", "images", "picture", "jpg", "png")
NO_LABEL = -1
MOST_LABEL = (1 << 63) - 1
WHOLE_LABELS = f"whole numbers up to {MOST_LABEL} (int64), of classes from 0 on, or -1 for none"


def check_classes(classes: Iterable[str] | None) -> tuple[str, ...]:
    """Names of classes as a tuple. A single str is refused: its letters would become the classes."""
    names = () if classes is None else checked_names(classes)
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise SourceError(f"classes: {twice!r} is named twice; accepted: a sequence of different names")
    return names


def checked_names(classes: Any) -> tuple[str, ...]:
    """Raises TypeError unless ``names`` is a sequence of text that a file can hold."""
    try:
        if isinstance(classes, str):
            raise TypeError
        names = tuple(classes)
        "".join(names).encode("utf-8", "surrogateescape")
    except (TypeError, UnicodeEncodeError):
        raise TypeError(f"classes: got {short_repr(classes)}; accepted: a sequence of names (str)") from None
    return names


def names_of(value: Any) -> tuple[str, ...]:
    """Class names from foreign metadata; empty unless they are a list of text."""
    is_names = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return tuple(value) if is_names else ()


def first_outside(labels: Labels, classes: Sequence[str]) -> int | None:
    """The index of the first label that is no class: not in -1..len(classes)-1, where labels are ints."""
    if not classes or labels.ndim != 1 or labels.dtype.kind not in "iu":
        return None
    outside = (labels < NO_LABEL) | (labels >= len(classes))
    return int(outside.argmax()) if outside.any() else None


def accepted_classes(classes: Sequence[str]) -> str:
    """Accepted integer labels, for messages."""
    return f"0 to {len(classes) - 1} for {len(classes)} classes, or -1 for none"


def check_int64(where: str, labels: Labels) -> None:
    """Raises SourceError naming the first whole number that does not fit int64, which is what batches hold."""
    if labels.dtype.kind == "O":
        are_beyond = [type(label) is int and not -MOST_LABEL - 1 <= label <= MOST_LABEL for label in labels.flat]
        beyond: BoolArray = np.array(are_beyond, np.bool_).reshape(labels.shape)
    else:
        beyond = np.asarray(labels > MOST_LABEL if labels.dtype == np.uint64 else False)
    if beyond.any():
        at = tuple(int(i) for i in np.argwhere(beyond)[0])
        place = f"[{', '.join(map(str, at))}]" if at else ""
        raise SourceError(f"{where}{place}: got {labels[at]}; accepted: {WHOLE_LABELS}")


def label_at(labels: Labels | None, index: int) -> Any:
    """An int, a float, or a copy of the sample's array; -1 without labels."""
    if labels is None:
        return NO_LABEL
    return labels.item(index) if labels.ndim == 1 else labels[index].copy()


def hash_labels(labels: Labels | None) -> bytes:
    """A digest of every label, their type and their shape."""
    if labels is None:
        return b"no labels"
    digest = hashlib.sha256(f"{labels.dtype.str} {labels.shape}".encode())
    digest.update(np.ascontiguousarray(labels).tobytes())
    return digest.digest()


CLASS_NAMES = "classnames.txt"


def is_a_line(name: str) -> bool:
    """True if such a file can hold that name."""
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return bool(name) and "\n" not in name and "\r" not in name


def class_names_bytes(classes: Sequence[str]) -> bytes:
    return "".join(f"{name}\n" for name in classes).encode("utf-8", "surrogateescape")


def class_names_beside(shards: Sequence[Location]) -> tuple[str, ...] | None:
    """The class names in the folder of the shards; None if missing, or the shards are in several folders. Web servers
    are not asked, because each reports a missing file in its own way. Raises SourceError for a file that cannot be
    read."""
    places = [(shard.address(), shard.is_url) for shard in shards]
    folders = {place.rpartition("/")[0] if is_url else os.path.dirname(place) for place, is_url in places}
    if len(folders) != 1 or shards[0].is_web or len(shards[0].protocols) > 1:
        return None
    (folder,) = folders
    file = Location.of(f"{folder}/{CLASS_NAMES}" if shards[0].is_url else os.path.join(folder, CLASS_NAMES))
    if not file.is_url and not os.path.exists(file.address()):
        return None
    try:
        data = read_file(file, MOST_TEXT_BYTES)
    except DecodeError as error:
        if file.is_url:  # some servers answer "forbidden" for a missing file
            return None
        raise SourceError(str(error)) from None
    names = data.decode("utf-8", "surrogateescape").rstrip("\r\n").split("\n")
    return tuple(name.rstrip("\r") for name in names) if names != [""] else None

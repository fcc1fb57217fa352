"""Sources: samples by index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from variegate.arrays import Int64Array, UInt8Array, UInt64Array
from variegate.checks import did_you_mean
from variegate.errors import truncate_middle
from variegate.io.addresses import escape_control, redact_secrets
from variegate.io.amounts import pluralize
from variegate.io.location import Location


class SourceError(ValueError):
    """Raised if a source cannot be opened or read; names the source and accepted values."""

    def __init__(self, message: str) -> None:
        super().__init__(redact_secrets(truncate_middle(message)))

    def __str__(self) -> str:
        return escape_control(str(self.args[0]))

    def reason(self, place: str) -> str:
        """The message without ``place``, which it begins with."""
        return str(self.args[0]).removeprefix(f"{place}: ")


class SampleRef(NamedTuple):
    """The place of a sample: a file, and the member of it where a file holds many."""

    file: str
    member: str | None = None

    def __str__(self) -> str:
        return self.file if self.member is None else f"{self.file}: {self.member}"


class _DataAndLabel(NamedTuple):
    data: bytes | UInt8Array
    label: Any


class Item(_DataAndLabel):
    """A stored sample: a pair ``data, label``, with its targets as an attribute.

    ``data``: the bytes of an image file, or pixels uint8 [H, W, 3] or [H, W, 1]. ``label``: an int (the class; -1 where
    the source has no labels), a float, or an array of one shape for all samples. ``targets``: None, or ``boxes``
    float32 [M, 4], ``labels`` int64 [M], ``keypoints`` float32 [M, K, 3], ``mask``, ``masks`` (docs/targets.md).
    """

    targets: dict[str, Any] | None

    def __new__(cls, data: bytes | UInt8Array, label: Any, targets: dict[str, Any] | None = None) -> Item:
        item = super().__new__(cls, data, label)
        item.targets = targets
        return item

    def __getnewargs__(self) -> Any:
        return self.data, self.label, self.targets

    def _replace(self, **changes: Any) -> Item:
        return Item(**({"data": self.data, "label": self.label, "targets": self.targets} | changes))


class StoredFile(NamedTuple):
    """A file that holds many samples, and their number. ``version``: what changes when it is replaced; of a file of
    this machine, its time in ns. ``copy_size``: bytes of its local copy, if it is read from that alone."""

    location: Location
    samples: int
    size: int
    version: str
    copy_size: int = 0


@runtime_checkable
class Source(Protocol):
    """Samples by index. Any thread may call any method; a copy made by pickling reads the same.

    A source that knows its labels without reading samples may also have ``labels(indices)``: an array of them, int64[N]
    where they are classes (-1 for none), or None. Weights by class need it. ``has_targets``: True if every sample has
    targets. Then ``has_image_labels`` is False if images have no label besides them. ``has_edges`` is True if boxes are
    edges, and key points count from the corner, in pixels, whatever ``vg.Targets`` says. ``open_source`` returns it as
    Samples.
    """

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, by label; empty where they are not known."""
        ...

    @property
    def fingerprint(self) -> str:
        """Short hex that identifies the samples: a hash over names, sizes and labels that are known without reading the
        images."""
        ...

    @property
    def is_remote(self) -> bool:
        """Samples come from an address, through fsspec: reading is taken to wait for a network."""
        ...

    def __len__(self) -> int: ...

    def read(self, index: int) -> Item:
        """Sample ``index``. Raises DecodeError with its name and a reason if it cannot be read, IndexError for an index
        outside 0..len-1 (negative indices are not accepted)."""
        ...

    def name(self, index: int) -> SampleRef:
        """Without reading the image."""
        ...

    def ids(self, indices: Int64Array) -> UInt64Array:
        """Numbers that the random numbers of these samples depend on; no two samples share one."""
        ...

    def notes(self) -> list[str]:
        """Remarks for users on skipped files and samples, one per line."""
        ...


def digest_of(*parts: str | bytes) -> str:
    """16 hex digits of SHA-256 over all parts; text as UTF-8, whatever bytes its names hold."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def describe(source: Any, place: str, what: str = "") -> str:
    """A line for ``repr``: ``Samples(photos: 4 samples, 2 classes)``. ``what``: replaces the number of samples."""
    parts = [what or pluralize(len(source), "sample")]
    if source.classes:
        parts.append(pluralize(len(source.classes), "class"))
    return escape_control(f"{type(source).__name__}({redact_secrets(place)}: {', '.join(parts)})")


def check_index(index: int, length: int) -> None:
    """Raises IndexError outside 0..length-1: a negative index would otherwise quietly be a sample from the end."""
    if not 0 <= index < length:
        accepted = f"0 to {length - 1:,}" if length else "none: there are no samples"
        raise IndexError(f"index: got {index}; accepted: {accepted}")


def check_on_error(on_error: str) -> None:
    """Raises SourceError for other words than the two that say what becomes of damaged shards."""
    if on_error not in ("raise", "skip"):
        raise SourceError(
            f"on_error: got {on_error!r}; accepted: 'raise', 'skip'{did_you_mean(on_error, ('raise', 'skip'))}"
        )


def truncate(text: str, most: int = 60) -> str:
    """Shorten text to ``most`` characters, with dots at its end."""
    return text if len(text) <= most else text[: most - 3] + "..."


def summarize_names(names: Sequence[str], most: int = 5) -> str:
    """``a, b and 3 more``, for messages."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")

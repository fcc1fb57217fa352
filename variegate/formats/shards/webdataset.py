"""Tar archives in WebDataset's layout: for each record an image, a ``.cls`` and a ``.json`` with one key."""

from __future__ import annotations

import json
from typing import Any

from variegate.formats.shards.base import Labels, Record, Shard
from variegate.formats.storage import Storage
from variegate.formats.tar.labels import CLASS_NAMES, class_names_bytes

_BLOCK = 512
_END = bytes(2 * _BLOCK)
_MOST_BYTES = 8**11


class WebDatasetShard(Shard):
    """``<key>.cls`` holds the label (-1 for none), ``<key>.json`` the sample's id, name and class and the copy
    (of what is packed, which has none, key and label).

    The names of the classes lie beside the shards, in ``classnames.txt``, where ``open_source`` looks for them. Headers
    are plain ustar without times and owners.
    """

    def _add(self, record: Record, label: Any) -> None:
        about: dict[str, Any] = {"id": record.id, "copy": record.copy}
        if record.copy is None:
            about = {"key": record.key, "id": record.id, "label": label}
        about |= {"source": record.source, "class": record.class_name}
        self._member(record.member, record.data)
        self._member(f"{record.key}.cls", str(label).encode())
        self._member(f"{record.key}.json", json.dumps(about).encode())

    def _finish(self) -> None:
        self._writer.file.write(_END)
        if not has_class_names(self.storage, self.labels):
            write_class_names(self.storage, self.labels)

    def _abandon(self) -> None:
        pass

    def _member(self, name: str, data: bytes) -> None:
        file = self._writer.file
        file.write(tar_header(name, len(data)))
        file.write(data)
        file.write(bytes(-len(data) % _BLOCK))


def has_class_names(storage: Storage, labels: Labels) -> bool:
    """Whether those beside the shards are right; True where there are none to be named."""
    if not labels.classes:
        return True
    return storage.exists(CLASS_NAMES) and storage.read(CLASS_NAMES) == class_names_bytes(labels.classes)


def write_class_names(storage: Storage, labels: Labels) -> None:
    storage.write(CLASS_NAMES, class_names_bytes(labels.classes))


def tar_header(name: str, size: int) -> bytes:
    """Of a plain file. Raises ValueError for names beyond 100 ASCII characters, and for 8 GiB and more."""
    if len(name) > 100 or not name.isascii() or size >= _MOST_BYTES:
        raise ValueError(f"{name}: {size:,} bytes; accepted: names of up to 100 ASCII characters, less than 8 GiB")
    begin = name.encode().ljust(100, b"\0") + b"0000644\x000000000\x000000000\0" + b"%011o\x0000000000000\0" % size
    end = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    # The checksum counts its own eight bytes as spaces.
    return begin + b"%06o\0 " % (sum(begin) + 8 * 32 + sum(end)) + end

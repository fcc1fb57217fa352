"""Entropy indexes in the making: one beside each shard while a run goes on, joined to one file at its end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from variegate.decode.entropy.cut import key_of_file, pack_file
from variegate.decode.entropy.index import known_of, pieces_of
from variegate.errors import DecodeError
from variegate.formats.base import Item, StreamSource
from variegate.formats.opening import open_source
from variegate.formats.packed import INDEX_NAME
from variegate.formats.storage import PRIVATE, Storage
from variegate.io.location import inside
from variegate.threads import default_threads

_FILES_AT_ONCE = 256
_FOLDER = f"{PRIVATE}/index"


def put_entries(storage: Storage, shard: str, entries: dict[int, bytes]) -> None:
    """Keep packed entries by key until ``write_index``. Raises WriteError."""
    head = json.dumps({"keys": list(entries), "sizes": [len(one) for one in entries.values()]})
    storage.write(f"{_FOLDER}/{shard}", head.encode() + b"\n" + b"".join(entries.values()))


def write_index(storage: Storage, shards: Iterable[str]) -> dict[str, object]:
    """Put the index of these shards beside them -> its size and checksum. Of shards whose entries are not there any
    more, as the run had ended before, the files are looked into again. Raises WriteError, SourceError, DecodeError."""
    every: dict[int, bytes] = {}
    for shard in shards:
        every |= _entries_of(storage, shard)
    with storage.writer(INDEX_NAME) as out:
        for piece in pieces_of(known_of(every)):
            out.file.write(piece)
        out.file.flush()
        about: dict[str, object] = {"bytes": out.descriptor.size, "sha256": out.descriptor.digest.hexdigest()}
        out.commit()
    return about


def _entries_of(storage: Storage, shard: str) -> dict[int, bytes]:
    try:
        head, _, packed = storage.read(f"{_FOLDER}/{shard}").partition(b"\n")
    except FileNotFoundError:
        return _looked_into(storage, shard)
    found, entries, at = json.loads(head), {}, 0
    for key, size in zip(found["keys"], found["sizes"], strict=True):
        entries[key] = packed[at : at + size]
        at += size
    return entries


def _looked_into(storage: Storage, shard: str) -> dict[int, bytes]:
    """A shard is read from its beginning to its end, so that no listing of it is left beside it."""
    source = open_source(inside(storage.root, shard), stream=True if shard.endswith(".tar") else None)
    if isinstance(source, StreamSource):
        files = (sample.item for sample in source.read_shard(0))
    else:
        files = (source.read(number) for number in range(len(source)))
    entries: dict[int, bytes] = {}
    with ThreadPoolExecutor(default_threads(), "variegate-index") as pool:
        while some := [_file(item) for item in islice(files, _FILES_AT_ONCE)]:
            entries.update(pool.map(_look_into, some))
    return entries


def _file(item: Item | DecodeError) -> bytes:
    if isinstance(item, DecodeError):
        raise item
    assert isinstance(item.data, bytes)
    return item.data


def _look_into(data: bytes) -> tuple[int, bytes]:
    found = pack_file(data)
    return key_of_file(data), b"" if isinstance(found, int) else found

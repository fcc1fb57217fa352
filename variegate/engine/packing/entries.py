"""Entropy indexes in the making: one beside each shard while a run goes on, joined to one file at its end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from variegate.data.decode.entropy.cut import key_of_file, pack_file
from variegate.data.decode.entropy.kept import known_of, pieces_of
from variegate.data.sources.base import Source, SourceError
from variegate.data.sources.opening import open_source
from variegate.data.sources.packed import INDEX_NAME
from variegate.outside.location import inside
from variegate.sinks.storage import PRIVATE, Storage
from variegate.threads import default_threads

_FOLDER = f"{PRIVATE}/index"


def put_entries(storage: Storage, shard: str, entries: dict[int, bytes]) -> None:
    """Keep packed entries by key until ``write_index``. Raises WriteError."""
    head = json.dumps({"keys": list(entries), "sizes": [len(one) for one in entries.values()]})
    storage.write(f"{_FOLDER}/{shard}", head.encode() + b"\n" + b"".join(entries.values()))


def write_index(storage: Storage, shards: Iterable[str]) -> dict[str, object]:
    """Put the index of these shards beside them -> its size and checksum. Of shards whose entries are not there any
    more, as the run had ended before, the files are looked into again. Raises WriteError, SourceError."""
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
    source = open_source(inside(storage.root, shard), stream=False if shard.endswith(".tar") else None)
    if not isinstance(source, Source):
        raise SourceError(f"{storage.place_of(shard)}: cannot be read by index")

    def look(number: int) -> tuple[int, bytes]:
        data = source.read(number).data
        assert isinstance(data, bytes)
        found = pack_file(data)
        return key_of_file(data), b"" if isinstance(found, int) else found

    with ThreadPoolExecutor(default_threads(), "variegate-index") as pool:
        return dict(pool.map(look, range(len(source))))

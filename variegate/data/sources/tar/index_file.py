"""Indexes kept in files: beside the shard, or in a cache folder where that cannot be written to.

A file is a line that names the format and its version, then compressed by zlib: the length of a JSON head, the head,
and the arrays. zlib's checksum tells a damaged one, the shard's size and version in the head one that has become old;
either is made anew. Files are written under another name and renamed, so that whoever reads sees all of one or none,
and of several processes that write the same one the last wins.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from variegate.data.sources.reading import FileVersion
from variegate.data.sources.tar.index import ShardIndex
from variegate.data.sources.tar.labels import LabelKind
from variegate.data.sources.tar.samples import ShardCounts, ShardFailure
from variegate.outside.durable import write_pieces
from variegate.outside.files import read_regular
from variegate.outside.location import Location, cache_folder

SUFFIX = ".vgindex"
# A change of what is written, or of how shards are read, takes a new number: older files are then made anew.
_FIRST_LINE = b"variegate tar index 1\n"
_MOST_REST = 64 << 20
_COLUMNS = (("offsets", np.int64), ("sizes", np.int64), ("kinds", np.uint8), ("values", np.int64))


def load_index(shard: Location, version: FileVersion, cache_dir: str | os.PathLike[str] | None) -> ShardIndex | None:
    """The kept index of a shard; None where there is none that fits."""
    for path in _index_paths(shard, cache_dir):
        try:
            index = _parse(read_regular(path), version)
        # Whatever is wrong with it, it can be made again.
        except (OSError, ValueError, KeyError, TypeError, zlib.error):
            continue
        if index.version == version:
            return index
    return None


def save_index(shard: Location, index: ShardIndex, cache_dir: str | os.PathLike[str] | None) -> bool:
    """Keep an index -> False where no place for it can be written to."""
    return any(_write(path, _pack(index)) for path in _index_paths(shard, cache_dir))


def _index_paths(shard: Location, cache_dir: str | os.PathLike[str] | None) -> list[Path]:
    """Where an index may be, the best first. A cache folder that was asked for is the only one."""
    # The address without its query, which changes with every signature; the index says whether it is the same file.
    whole_name = str(shard) if shard.is_url else os.path.abspath(shard.address())
    key = hashlib.sha256(whole_name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    cached = cache_folder(cache_dir) / "tar-indexes" / f"{key}-{shard.name}{SUFFIX}"
    return [cached] if cache_dir is not None or shard.is_url else [Path(shard.address() + SUFFIX), cached]


def _pack(index: ShardIndex) -> bytes:
    head = json.dumps(
        {
            "stamp": index.version,
            "count": len(index),
            "texts": index.texts,
            "names": len(index.names),
            "seen": asdict(index.counts),
            "loss": index.failure,
        }
    ).encode()
    arrays = b"".join(
        getattr(index, name).astype(np.dtype(kind).newbyteorder("<")).tobytes() for name, kind in _COLUMNS
    )
    body = len(head).to_bytes(8, "little") + head + arrays + index.names
    return _FIRST_LINE + zlib.compress(body, 1)


def _parse(data: bytes, shard: FileVersion) -> ShardIndex:
    """Raises ValueError, KeyError, TypeError or zlib.error for anything but a whole index of this version, of a shard
    that may be that one."""
    if not data.startswith(_FIRST_LINE):
        raise ValueError("not an index of this version")
    unpacking = zlib.decompressobj()
    # Every name and text stands in the shard, and every sample has a header there: no index is much larger.
    body = unpacking.decompress(data[len(_FIRST_LINE) :], 2 * shard.size + _MOST_REST)
    if not unpacking.eof or unpacking.unused_data:
        raise ValueError("cut, or longer than it should be")
    at = 8 + int.from_bytes(body[:8], "little")
    head = json.loads(body[8:at])
    columns: dict[str, Any] = {}
    for name, kind in _COLUMNS:
        dtype = np.dtype(kind).newbyteorder("<")
        columns[name] = np.frombuffer(body, dtype, head["count"], at).astype(kind)
        at += head["count"] * dtype.itemsize
    names = body[at:]
    if len(names) != head["names"] or names.count(0) != head["count"]:
        raise ValueError("its names are not whole")
    begins, sizes = columns["offsets"], columns["sizes"]
    if np.any(begins < 0) or np.any(sizes < 0) or np.any(sizes > shard.size) or np.any(begins > shard.size - sizes):
        raise ValueError("a member that is not in the shard")
    places = columns["values"][columns["kinds"] >= LabelKind.NAME]
    if np.any(columns["kinds"] > max(LabelKind)) or np.any(places < 0) or np.any(places >= len(head["texts"])):
        raise ValueError("a label that is not in its texts")
    return ShardIndex(
        version=FileVersion(*head["stamp"]),
        **columns,
        texts=[(text, extension) for text, extension in head["texts"]],
        names=names,
        counts=ShardCounts(**head["seen"]),
        failure=ShardFailure(*head["loss"]) if head["loss"] else None,
    )


def _write(place: Path, data: bytes) -> bool:
    try:
        write_pieces(place, [data], several_writers=True)
    except OSError:
        return False
    return True

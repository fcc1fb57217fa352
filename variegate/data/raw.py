"""Shards of raw pixels: Arrow IPC files without compression, whose images are mapped into memory, one by one.

A row has id, name, label, height, width, channels (in the file, 1 to 32), shown, and pixels [H, W, C]. ``shown`` is the
number of channels after reading, which may repeat gray. All pixels of a shard have one dtype, which its metadata name;
their bytes are little-endian. Pixels are the last column, so that a record batch's pixels are contiguous in the file,
and an image is read with a single call.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.arrays import AnyArray, ImageArray
from variegate.data.arrow_ipc import Span, read_but_last_column
from variegate.data.base import SourceError, StoredFile, digest_of
from variegate.data.labels import checked_names
from variegate.data.reading import FileVersion, open_random, read_range, reason_for, version_of
from variegate.data.samples import Samples, Store, concat
from variegate.data.shards import GroupedShard, Labels, Record
from variegate.data.storage import Storage
from variegate.decode.depth import as_read, reads_unchanged
from variegate.errors import DecodeError, one_line, short_repr
from variegate.io.files import open_regular
from variegate.io.location import Location, relative_names
from variegate.program.depth import ACCEPTED, Depth
from variegate.program.program import MAX_CHANNELS

SUFFIX = ".arrow"
FORMAT = b"variegate raw pixels 3"
# Its pixels are uint8, and its metadata name no dtype.
_FORMAT_OF_BYTES = b"variegate raw pixels 2"
PLACES = np.dtype(
    [
        ("offset", "<u8"),
        ("id", "<u8"),
        ("height", "<u4"),
        ("width", "<u4"),
        ("channels", "u1"),
        ("shown", "u1"),
        ("depth", "u1"),
    ]
)
_NUMBERS = (
    ("id", pa.uint64()),
    ("height", pa.uint32()),
    ("width", pa.uint32()),
    ("channels", pa.uint8()),
    ("shown", pa.uint8()),
)
_BATCH_BYTES = 64 << 20


def raw_schema(labels: Labels, depth: Depth = Depth.UINT8) -> pa.Schema:
    kind = pa.int64() if labels.kind in ("int", "ints") else pa.float64()
    label = pa.list_(kind, labels.width) if labels.width else kind
    fields = [*_NUMBERS, ("name", pa.binary()), ("label", label), ("pixels", pa.large_binary())]
    return pa.schema(fields, {"format": FORMAT, "classes": json.dumps(labels.classes), "dtype": str(depth)})


def _read_shard(location: Location, version: FileVersion, file: Any, size: int) -> Samples:
    """Raises ValueError, TypeError, RecursionError or ArrowException for a file without an index of pixels in it."""
    schema, batches, spans = read_but_last_column(file, size, _check_schema)
    classes = checked_names(json.loads(schema.metadata[b"classes"]))
    _, width = _label_kind(schema)
    if any(column.null_count for batch in batches for column in batch.columns):
        raise ValueError("missing values")
    depth = _depth(schema)
    places = [_places(batch, span, depth) for batch, span in zip(batches, spans, strict=True)]
    joined = np.concatenate([np.zeros(0, PLACES), *places])
    table = pa.Table.from_batches(batches, schema.remove(len(schema) - 1))
    label = table.column("label").combine_chunks()
    return Samples(
        place=str(location),
        size=len(joined),
        store=RawStore(),
        classes=classes,
        path=table.column("name").cast(pa.large_binary()).combine_chunks(),
        files=[StoredFile(location, len(joined), *version)],
        label=label.flatten().to_numpy().reshape(-1, width) if width else label.to_numpy(),
        id=joined["id"],
        columns={"places": joined},
        is_remote=location.is_url,
        is_decoded=True,
    )


def _check_schema(schema: pa.Schema) -> None:
    if (schema.metadata or {}).get(b"format") not in (FORMAT, _FORMAT_OF_BYTES):
        raise ValueError("an Arrow file of another kind")
    _depth(schema)
    if not schema.equals(raw_schema(Labels(*_label_kind(schema)))):
        raise ValueError(f"its columns are {one_line(ValueError(str(schema.remove_metadata())))}")


def _depth(schema: pa.Schema) -> Depth:
    """The depth of all images. Raises ValueError."""
    if schema.metadata[b"format"] == _FORMAT_OF_BYTES:
        return Depth.UINT8
    name = schema.metadata.get(b"dtype", b"").decode(errors="replace")
    if name not in map(str, Depth):
        raise ValueError(f"its pixels have dtype {short_repr(name)}; accepted: {ACCEPTED}")
    return Depth.named(name)


def _label_kind(schema: pa.Schema) -> tuple[str, int]:
    """``Labels.kind`` and ``Labels.width``. Raises ValueError."""
    index = schema.get_field_index("label")
    if index < 0:
        raise ValueError("no column of labels")
    kind = schema.types[index]
    is_row = pa.types.is_fixed_size_list(kind)
    width = kind.list_size if is_row else 0
    number = kind.value_type if is_row else kind
    return ("int" if pa.types.is_integer(number) else "float") + "s" * is_row, width


def _places(batch: pa.RecordBatch, span: Span, depth: Depth) -> AnyArray:
    """PLACES of the images of a batch, whose pixels are ``span``. Raises ValueError for others."""
    itemsize = depth.dtype.itemsize
    if span.start % itemsize:
        raise ValueError(f"pixels of {depth} at {span.start:,}; accepted: a multiple of {itemsize}")
    found = np.zeros(len(batch), PLACES)
    found["depth"] = depth
    for name, _ in _NUMBERS:
        found[name] = batch.column(name).to_numpy()
    channels = found["channels"]
    shown = found["shown"]
    if len(found) and not 1 <= channels.min() <= channels.max() <= MAX_CHANNELS:
        raise ValueError(f"images of {channels.min()} to {channels.max()} channels; accepted: 1 to {MAX_CHANNELS}")
    if not (found["height"].all() and found["width"].all()):
        raise ValueError("images without pixels")
    if not ((shown == channels) | ((channels == 1) & (shown > 0) & (shown <= MAX_CHANNELS))).all():
        raise ValueError("another number of channels is shown than an image has")
    # In numbers that do not overflow, and are exact where the file is long enough.
    sizes = found["height"].astype(np.float64) * found["width"] * channels * itemsize
    ends = np.cumsum(sizes)
    if len(ends) and ends[-1] > span.size:
        raise ValueError("pixels beyond their end")
    found["offset"] = span.start + (ends - sizes).astype(np.uint64)
    return found


class RawShard(GroupedShard):
    """A shard of records whose ``data`` are pixels of shape ``shape``, all in one depth."""

    def __init__(self, storage: Storage, name: str, labels: Labels, depth: Depth = Depth.UINT8) -> None:
        super().__init__(storage, name, labels)
        self._schema = raw_schema(labels, depth)
        self._file = pa.ipc.new_file(self._writer.file, self._schema)
        self._begin_group()

    def add(self, record: Record) -> str:
        """-> the image's place in the file: 0, 1, ..."""
        super().add(record)
        return str(self.count - 1)

    def _begin_group(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._pixels: list[bytes] = []
        self._batch_size = 0

    def _add(self, record: Record, label: Any) -> None:
        assert record.shape is not None
        name = record.source.encode("utf-8", "surrogateescape")
        self._rows.append((record.id, *record.shape, name, label))
        self._pixels.append(record.data)
        self._batch_size += len(record.data)
        if self._batch_size >= _BATCH_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(values, kind) for values, kind in zip(columns, self._schema.types[:-1], strict=True)]
        ends = np.cumsum([0, *map(len, self._pixels)], dtype=np.int64)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(self._pixels))]
        arrays.append(pa.Array.from_buffers(pa.large_binary(), len(self._pixels), buffers))
        self._file.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._begin_group()


_OPENED_AT_ONCE = 16
# Python holds an open file for every map, and a process may have only 1,024.
_MOST_MAPS = 256


class RawStore(Store):
    """Images of raw shards. One in a file of this machine is a read-only view into its map (a file must not be cut off
    meanwhile); gray ones of a set of color ones are shown with their channel repeated. A pickled copy maps the files
    again."""

    def __init__(self) -> None:
        self.__setstate__({})

    def digest(self, samples: Samples) -> str:
        """Digest of the names of the shards, and of their sizes, labels, ids and names."""
        assert isinstance(samples.label, np.ndarray)
        parts = ["\0".join(samples.classes)]
        start = 0
        for file, name in zip(samples.files, relative_names([file.location for file in samples.files]), strict=True):
            rows = slice(start, start + file.samples)
            digest = hashlib.sha256(samples.columns["places"][rows].tobytes())
            digest.update(samples.label[rows].tobytes())
            digest.update(b"\0".join(samples.path[rows].to_pylist()))
            parts.append(f"\0{name}\0{digest.hexdigest()}")
            start += file.samples
        return digest_of(*parts)

    def read(self, samples: Samples, row: int) -> ImageArray:
        """Pixels [H, W, C], not to be written to, in the depth that this thread reads. Raises DecodeError where the
        file has changed, or is gone."""
        file, _ = samples.file_of(row)
        offset, _, height, width, channels, shown, number = map(int, samples.columns["places"][row].tolist())
        depth = Depth(number)
        count = height * width * channels
        size = count * depth.dtype.itemsize
        if file.location.is_url:
            data = read_range(file.location, offset, size, file.size, str(samples.row_name(row)))
            flat = np.frombuffer(data, depth.dtype)
        else:
            try:
                mapped = self.map_file(file)
            except DecodeError as error:
                raise DecodeError(str(samples.row_name(row)), error.reason) from None
            except (OSError, ValueError) as error:
                raise DecodeError(str(samples.row_name(row)), reason_for(error, file.location)) from None
            begin = offset - offset % mmap.PAGESIZE
            # Ask the system to read ahead; otherwise the augmenting threads would wait for every page.
            with suppress(AttributeError, OSError, ValueError):
                mapped.madvise(mmap.MADV_WILLNEED, begin, offset + size - begin)
            flat = np.frombuffer(mapped, depth.dtype, count, offset)
        image = flat.reshape(height, width, channels)
        if not reads_unchanged(depth):
            image = as_read(image, str(samples.row_name(row)))
        return image if shown == channels else np.broadcast_to(image, (height, width, shown))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "map_file"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # The latest maps; views keep theirs alive.
        self.map_file = lru_cache(_MOST_MAPS)(_map_file)


def _map_file(file: StoredFile) -> mmap.mmap:
    """Raises OSError, ValueError, or DecodeError for a file that has changed."""
    with open_regular(file.location.address()) as opened:
        now = os.fstat(opened.fileno())
        if (now.st_size, str(now.st_mtime_ns)) != (file.size, file.version):
            raise DecodeError(str(file.location), "the file has changed since it was opened")
        options: Any = {"trackfd": False} if sys.version_info >= (3, 13) else {}
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ, **options)


def open_raw(files: Sequence[Location]) -> Samples:
    """The images of raw shards, in the shards' order, with the ids of the samples that were packed.

    Raises SourceError naming the file: no raw pixels, damaged, of other classes, labels or dtypes than the first.
    """
    with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(files))) as pool:
        opened = list(pool.map(_open, files))
    first = opened[0]
    for shard in opened[1:]:
        if shard.classes != first.classes:
            raise SourceError(f"{shard.place}: has other classes than {first.place}")
        if _kind_of_labels(shard) != _kind_of_labels(first):
            raise SourceError(f"{shard.place}: has labels of another kind than {first.place}")
        if np.union1d(*(opened.columns["places"]["depth"] for opened in (shard, first))).size > 1:
            raise SourceError(f"{shard.place}: has pixels of another dtype than {first.place}")
    return concat(opened)


def _kind_of_labels(samples: Samples) -> tuple[Any, ...]:
    assert isinstance(samples.label, np.ndarray)
    return samples.label.dtype, *samples.label.shape[1:]


def _open(location: Location) -> Samples:
    version = version_of(location)
    try:
        with open_random(location) as (file, size, _):
            return _read_shard(location, version, file, size)
    except SourceError:
        raise
    except OSError as error:
        raise SourceError(f"{location}: {reason_for(error, location)}") from None
    # Also KeyError and IndexError, as anybody may have made it.
    except (ValueError, TypeError, LookupError, RecursionError, pa.ArrowException) as error:
        raise SourceError(f"{location}: no shard of raw pixels, or damaged: {one_line(error)}") from None

"""Images in Parquet files, in the layout of Hugging Face's data sets: files, and the image files that rows may name."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from variegate.data import reading
from variegate.data.base import SourceError, StoredFile, cut_off, digest_of, first_names
from variegate.data.labels import check_classes, hash_labels
from variegate.data.parquet.columns import check_alike, find_columns, read_labels
from variegate.data.parquet.row_groups import GroupCache, GroupReader, choose_unpacking
from variegate.data.samples import Samples, Store
from variegate.decode import read_bytes
from variegate.errors import DecodeError, one_line
from variegate.io.files import NotRegularError, StrPath, open_regular
from variegate.io.location import Location, LocationLike, cache_folder

_ACCEPTED = "a Parquet file with a column of images"


@dataclass(frozen=True)
class ParquetFile:
    """``stamp`` changes when the file is replaced."""

    location: Location
    size: int
    stamp: str
    schema: pa.Schema
    metadata: Any  # pq.FileMetaData, kept so that opening the file again does not read the footer again

    @property
    def name(self) -> str:
        """The last part of the path, without a query; of a chained address, that of the outer file."""
        return str(self.location).rstrip("/").replace("\\", "/").rsplit("/", 1)[-1]

    @contextmanager
    def opened(self, is_checked: bool = False) -> Iterator[pq.ParquetFile]:
        """The file, opened anew for each use; ``is_checked``: compares checksums of pages. Raises OSError."""
        with open_random(self.location) as (handle, size, stamp):
            if (size, stamp) != (self.size, self.stamp):
                raise OSError("the file has changed since it was opened")
            # Over a network, the columns' parts are fetched together and ahead. From a disk they are read bit by bit,
            # which halves the memory that decoding takes and is no slower.
            options = {"pre_buffer": True} if self.location.is_url else {"buffer_size": 1 << 20}
            options |= {"page_checksum_verification": True} if is_checked else {}
            yield pq.ParquetFile(handle, metadata=self.metadata, **options)

    def read(self, columns: list[str], what: str) -> pa.Table:
        """All rows. Raises SourceError naming the file and ``what``."""
        try:
            with self.opened() as opened:
                return opened.read(columns=columns)
        except Exception as error:
            raise SourceError(f"{self.location}: {what} cannot be read: {reason_for(error, self.location)}") from None


def open_file(path: LocationLike, accepted: str = _ACCEPTED) -> ParquetFile:
    """Read the footer of a file. Raises SourceError naming it, and what is accepted."""
    location = Location.parse(path, chain=True)
    try:
        with open_random(location) as (handle, size, stamp):
            if size == 0:
                raise SourceError(f"{location}: zero bytes: the file is empty; accepted: {accepted}")
            opened = pq.ParquetFile(handle)
            schema = opened.schema_arrow
            metadata = opened.metadata
    except SourceError:
        raise
    except NotRegularError as error:
        raise SourceError(f"{location}: {error.strerror}") from None
    except Exception as error:  # of pyarrow, of fsspec, or of any package that fsspec reads this address with
        raise SourceError(f"{location}: {reason_for(error, location)}; accepted: {accepted}") from None
    return ParquetFile(location, size, stamp, schema, metadata)


def reason_for(error: Exception, location: Location | None = None) -> str:
    """The reason of an error, in words for the file's owner, without the secrets of the address."""
    is_systems = isinstance(error, OSError) and error.errno is not None
    location = location or Location.of("")
    if not isinstance(error, pa.ArrowException) and (location.is_url or is_systems):
        return reading.reason_for(error, location)
    text = one_line(error).rstrip(".") or type(error).__name__
    if isinstance(error, pa.ArrowInvalid) and ("magic bytes" in text or "too small" in text or "file size" in text):
        return "not a Parquet file, or cut short: it does not end as one does"
    return f"damaged: {text}" if isinstance(error, pa.ArrowException) else text


@contextmanager
def open_random(location: Location) -> Iterator[tuple[Any, int, str]]:
    """The open file, its size and a stamp."""
    if not location.is_url:
        with open_regular(location.address()) as handle:
            status = os.fstat(handle.fileno())
            # Arrow's own file: it reads without holding Python's lock. By the descriptor where the system has names for
            # those, because by its own name it may be another file by now.
            same = f"/dev/fd/{handle.fileno()}"
            with pa.OSFile(same if os.path.exists(same) else location.address()) as file:
                yield file, status.st_size, str(status.st_mtime_ns)
        return
    system, inner = reading.filesystem(location)
    # Whatever the storage tells of a file: its checksum, version or time, where it has them.
    stamp = digest_of(repr(sorted(system.info(inner).items(), key=str)))
    with system.open(inner, "rb") as handle:
        yield handle, int(system.size(inner)), stamp


def check_root(image_root: StrPath) -> str:
    """The folder that named files are read from. Raises SourceError for what is none of this machine."""
    location = Location.parse(image_root, chain=True)
    if location.is_url or not os.path.isdir(location.address()):
        what = "an address" if location.is_url else "no such folder"
        raise SourceError(f"image_root: got {str(location)!r}, {what}; accepted: a folder of this machine")
    return os.path.abspath(location.address())


def read_named_file(path: str, table: Location, root: str | None, name: str) -> bytes:
    """The file that a row names by ``path``, below ``root`` or the table's folder. Raises DecodeError."""
    quoted = repr(cut_off(path, 200))
    if root is None and not table.is_url:
        root = os.path.dirname(table.address()) or "."
    if not path or root is None:
        what = f", and {quoted} is on another machine; accepted: image_root=, a folder of this one" if path else ""
        raise DecodeError(name, f"no image: its bytes are null{what}")
    try:
        # What links and ".." come to, so that neither leads out.
        place = os.path.realpath(os.path.join(root, path))
        top = os.path.realpath(root)
        is_inside = os.path.splitdrive(place)[0] == os.path.splitdrive(top)[0]
        is_inside = is_inside and os.path.commonpath([place, top]) == top
    except (OSError, ValueError):  # NUL in it
        raise DecodeError(name, f"no image: its bytes are null, and {quoted} is no name of a file") from None
    if not is_inside:
        raise DecodeError(
            name,
            f"no image: its bytes are null, and it names {quoted}, which is outside of {root}; accepted: files "
            "below it, or below image_root= of open_source",
        )
    if not os.path.lexists(place):
        raise DecodeError(name, f"no image: its bytes are null, and there is no file {quoted} in {root}")
    return read_bytes(place, f"{name}: {path}")


MEMORY = 512 << 20


class ParquetStore(Store):
    """Images in the rows of Parquet files.

    A row is had by decoding the row group around it, once however many threads wait for that. Where all groups fit in
    ``memory`` bytes, they are held there. Where they do not, each is unpacked, when first needed, into an Arrow file
    under ``cache_dir``, from which a row is a single read, in this run and the next; without room on that disk the
    latest are held instead. A pickled copy opens its own files and holds row groups of its own.
    """

    def __init__(self, readers: Sequence[GroupReader], memory: int, image_root: str | None) -> None:
        self._image_root = image_root
        self._readers = list(readers)
        self._memory = memory
        self._groups = [(reader, group) for reader in readers for group in range(len(reader.rows))]
        self._group_starts = list(accumulate((reader.rows[group] for reader, group in self._groups), initial=0))[:-1]
        self.__setstate__({})

    @property
    def held_bytes(self) -> int:
        """Memory that decoded row groups (or, where they are unpacked, their lists of places) take now."""
        return self._cache.nbytes

    def digest(self, samples: Samples) -> str:
        assert not callable(samples.label)
        files = [(reader.file, sum(reader.rows), reader.column) for reader in self._readers]
        parts = [f"\0{file.name}\0{file.size}\0{rows}\0{column}" for file, rows, column in files]
        return digest_of("\0".join(samples.classes), *parts, hash_labels(samples.label))

    def read(self, samples: Samples, row: int) -> bytes:
        """The bytes of the image file in a row. Raises DecodeError naming the Parquet file and the row in it."""
        at = bisect_right(self._group_starts, row) - 1
        position = row - self._group_starts[at]
        reader, group = self._groups[at]
        try:
            rows = self._cache.get(at)
            try:
                data, path = rows.row(position)
            except OSError:  # the cache folder was emptied meanwhile: unpack again
                self._cache.drop(at)
                data, path = self._cache.get(at).row(position)
        except MemoryError:
            raise
        except Exception as error:
            reason = f"its row group {group} cannot be read: {reason_for(error, reader.file.location)}"
            raise DecodeError(str(samples.row_name(row)), reason) from None
        if data is None:
            data = read_named_file(path, reader.file.location, self._image_root, str(samples.row_name(row)))
        return data

    def notes(self) -> list[str]:
        failures = [reader.failure for reader in self._readers if reader.failure is not None]
        return [f"rows cannot be unpacked, and reading in random order will be slow: {text}" for text in failures[:1]]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        groups = self._groups
        expected = [reader.expected[group] for reader, group in groups]
        self._cache = GroupCache(lambda at: groups[at][0].load(groups[at][1]), expected, self._memory)


def open_parquet(
    paths: Sequence[LocationLike],
    classes: Sequence[str] | None = None,
    image: str | None = None,
    *,
    memory: int = MEMORY,
    cache_dir: StrPath | None = None,
    image_root: StrPath | None = None,
    has_labels: bool = True,
) -> Samples:
    """Open Parquet files, in the given order, by path or by any address that fsspec understands.

    Images: the column that Hugging Face's metadata names, else ``image`` or ``img``, else the only one that holds
    struct<bytes, path> or binary values. Labels: the metadata's ClassLabel, else a column named as one (``label``,
    ``labels``, ``fine_label``, ...); -1 without. Strings become the index in ``classes``, or else in their sorted
    values; ``classes`` also names ints, before the metadata's names.

    ``memory``: bytes of decoded row groups to hold (while Arrow decodes one, it takes up to about its size on top).
    Where there are more, they are unpacked to ``cache_dir`` (None: see ``cache_folder``), taking about
    the size of the images there; what is there of a file that was replaced is removed.

    ``image_root``: the folder that files are read from which rows name instead of holding bytes; None: that of the
    Parquet file, if it is on this machine. A row that names a file outside of it is a bad sample (DecodeError), also
    where it leads there by links or "..". ``has_labels``: False for no labels, whatever the columns are called.

    Raises SourceError naming the file: no such file, not Parquet, no images in it, or columns of other types than the
    file before it has.
    """
    if isinstance(paths, (str, os.PathLike)) or not paths:
        raise SourceError(f"paths: got {paths!r}; accepted: a sequence of paths of Parquet files")
    given = check_classes(classes)
    with ThreadPoolExecutor(min(16, len(paths))) as pool:
        files = list(pool.map(open_file, paths))
    columns = find_columns(files[0], image)
    if not has_labels:
        columns = columns._replace(label=None, class_names=(), notes=())
    for file in files[1:]:
        check_alike(files[0], columns, file, has_labels)
    if sum(file.metadata.num_rows for file in files) == 0:
        raise SourceError(f"{files[0].location}: no rows{' in any of the files' if len(files) > 1 else ''}")
    labels = None
    names = given or columns.class_names
    notes = list(columns.notes)
    if columns.label is None and has_labels:
        notes.append(f"no column of labels in {files[0].name}: every label is -1")
    elif columns.label is not None:
        labels, names, more = read_labels(files, columns.label, names)
        notes += more
    readers = [GroupReader(file, columns.image) for file in files]
    notes += choose_unpacking(readers, memory, cache_folder(cache_dir))
    root = None if image_root is None else check_root(image_root)
    stored = [StoredFile(file.location, file.metadata.num_rows, file.size, file.stamp) for file in files]
    return Samples(
        place=first_names([str(file.location) for file in files], 1),
        size=sum(file.samples for file in stored),
        store=ParquetStore(readers, memory, root),
        classes=names,
        files=stored,
        label=labels,
        remarks=notes,
        is_remote=any(file.location.is_url for file in files),
    )

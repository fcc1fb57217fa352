"""Images in Parquet files, in the layout of Hugging Face's data sets, read in any order."""

from __future__ import annotations

import hashlib
import os
import shutil
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.data.decode import read_bytes
from variegate.data.sources.base import Item, SampleName, SourceError, StoredFile, check_index, describe
from variegate.data.sources.cache_folder import cache_folder
from variegate.data.sources.group_cache import GroupCache, Held
from variegate.data.sources.labels import NO_LABEL, Labels, check_classes, hash_labels, label_at
from variegate.data.sources.parquet_columns import check_alike, find_columns
from variegate.data.sources.parquet_file import open_file, reason_for
from variegate.data.sources.parquet_labels import read_labels
from variegate.data.sources.paths import is_url, plain, shown
from variegate.data.sources.row_groups import GroupReader, Rows, unpacked_folder
from variegate.data.sources.tar_remarks import some
from variegate.errors import DecodeError

MEMORY = 512 << 20
_LONGEST_NAME = 200


class ParquetSource:
    """The rows of Parquet files, file after file. Made by ``open_parquet``, which says what is accepted.

    A row can only be had by decoding the row group (some hundred or thousand rows) around it. Row groups are decoded
    when first needed, once however many threads wait for them, and held within ``memory`` bytes. Where all of them fit,
    that is all. Where they do not, holding the latest would mean decoding hundreds of images for each one of a shuffled
    epoch; so then every row group is unpacked, when first needed, into a plain file under ``cache_dir``, from which a
    row is a single read ever after, in this run and the next. Without room on that disk, the latest are held instead.

    A pickled copy opens its own files and holds row groups of its own.
    """

    def __init__(
        self,
        readers: Sequence[GroupReader],
        labels: Labels | None,
        classes: tuple[str, ...],
        notes: Sequence[str],
        memory: int,
        image_root: str | None = None,
    ) -> None:
        self._image_root = image_root
        self._readers, self._labels, self.classes = list(readers), labels, classes
        self._notes, self._memory = list(notes), memory
        self.is_remote = any(reader.file.local is None for reader in readers)
        groups = [(file, group) for file, reader in enumerate(readers) for group in range(len(reader.rows))]
        ends = list(accumulate((readers[file].rows[group] for file, group in groups), initial=0))
        self._groups, self._starts, self._length = groups, ends[:-1], ends[-1]
        counts = accumulate((sum(reader.rows) for reader in readers), initial=0)
        self._file_starts = list(counts)[:-1]
        self.fingerprint = self._fingerprint()
        self._cache = self._new_cache()

    def __repr__(self) -> str:
        return describe(self, some([reader.file.path for reader in self._readers], 1))

    def __len__(self) -> int:
        return self._length

    @property
    def held_bytes(self) -> int:
        """What decoded row groups (or, where they are unpacked, their lists of places) take of the memory now."""
        return self._cache.nbytes

    def read(self, index: int) -> Item:
        """The bytes of the image file in that row. Raises DecodeError naming the Parquet file and the row in it."""
        check_index(index, self._length)
        at = bisect_right(self._starts, index) - 1
        row = index - self._starts[at]
        try:
            rows = self._cache.get(at)
            try:
                data, path = rows.row(row)
            except OSError:  # the cache folder was emptied meanwhile: unpack again
                self._cache.drop(at)
                data, path = self._cache.get(at).row(row)
        except MemoryError:
            raise
        except Exception as error:
            file, group = self._groups[at]
            raise DecodeError(
                str(self.name(index)),
                f"its row group {group} cannot be read: {reason_for(error, self._readers[file].file.address)}",
            ) from None
        if data is None:
            data = self._read_elsewhere(index, path)
        return Item(data, label_at(self._labels, index))

    def name(self, index: int) -> SampleName:
        check_index(index, self._length)
        file = bisect_right(self._file_starts, index) - 1
        return SampleName(self._readers[file].file.path, f"row {index - self._file_starts[file]}")

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return indices.astype(np.uint64)

    def stored_files(self) -> list[StoredFile]:
        """The Parquet files, as they were when they were opened; not what rows name."""
        files = [reader.file for reader in self._readers]
        return [
            StoredFile(file.address, sum(reader.rows), file.size, file.stamp)
            for file, reader in zip(files, self._readers, strict=True)
        ]

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.full(len(indices), NO_LABEL) if self._labels is None else self._labels[indices]

    def notes(self) -> list[str]:
        failures = [reader.failure for reader in self._readers if reader.failure is not None]
        lines = [f"rows cannot be unpacked, and reading in random order will be slow: {text}" for text in failures[:1]]
        return [*self._notes, *lines]

    def _read_elsewhere(self, index: int, path: str) -> bytes:
        """A row without bytes may name a file: one below the Parquet file's folder, or the one that the user says."""
        name = str(self.name(index))
        local = self._readers[bisect_right(self._file_starts, index) - 1].file.local
        named = repr(path if len(path) <= _LONGEST_NAME else path[: _LONGEST_NAME - 3] + "...")
        root = self._image_root
        if root is None and local is not None:
            root = os.path.dirname(local) or "."
        if not path or root is None:
            what = f", and {named} is on another machine; accepted: image_root=, a folder of this one" if path else ""
            raise DecodeError(name, f"no image: its bytes are null{what}")
        try:
            # What links and ".." come to, so that neither leads out.
            place, top = os.path.realpath(os.path.join(root, path)), os.path.realpath(root)
            is_inside = os.path.splitdrive(place)[0] == os.path.splitdrive(top)[0]
            is_inside = is_inside and os.path.commonpath([place, top]) == top
        except (OSError, ValueError):  # NUL in it
            raise DecodeError(name, f"no image: its bytes are null, and {named} is no name of a file") from None
        if not is_inside:
            raise DecodeError(
                name,
                f"no image: its bytes are null, and it names {named}, which is outside of {root}; accepted: files "
                "below it, or below image_root= of open_source",
            )
        if not os.path.lexists(place):
            raise DecodeError(name, f"no image: its bytes are null, and there is no file {named} in {root}")
        return read_bytes(place, f"{name}: {path}")

    def _fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.classes).encode("utf-8", "surrogateescape"))
        for reader in self._readers:
            line = f"\0{reader.file.name}\0{reader.file.size}\0{sum(reader.rows)}\0{reader.column}"
            digest.update(line.encode("utf-8", "surrogateescape"))
        digest.update(hash_labels(self._labels))
        return digest.hexdigest()[:16]

    def _new_cache(self) -> GroupCache[int, Rows]:
        def load(at: int) -> Held[Rows]:
            file, group = self._groups[at]
            return self._readers[file].load(group)

        def expect(at: int) -> int:
            file, group = self._groups[at]
            return self._readers[file].expected[group]

        return GroupCache(load, expect, self._memory)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cache = self._new_cache()


def open_parquet(
    paths: Sequence[str],
    classes: Sequence[str] | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    *,
    memory: int = MEMORY,
    cache_dir: str | os.PathLike[str] | None = None,
    unpack: bool = True,
    image_root: str | os.PathLike[str] | None = None,
) -> ParquetSource:
    """Open Parquet files, in the given order, by path or by any address that fsspec understands.

    Images: the column that Hugging Face's metadata names, else ``image`` or ``img``, else the only one that holds
    struct<bytes, path> or binary values. Labels: the metadata's ClassLabel, else a column named as one (``label``,
    ``labels``, ``fine_label``, ...); -1 without. Strings become the index in ``classes``, or else in their sorted
    values; ``classes`` also names ints, before the metadata's names.

    ``memory``: bytes of decoded row groups to hold (while Arrow decodes one, it takes up to about its size on top).
    Where there are more, they are unpacked to ``cache_dir``, if ``unpack`` (None: see ``cache_folder``), taking about
    the size of the images there; what is there of a file that was replaced is removed.

    ``image_root``: the folder that files are read from which rows name instead of holding bytes; None: that of the
    Parquet file, if it is on this machine. A row that names a file outside of it is a bad sample (DecodeError), also
    where it leads there by links or "..".

    Raises SourceError naming the file: no such file, not Parquet, no images in it, or columns of other types than the
    file before it has.
    """
    if isinstance(paths, (str, os.PathLike)) or not paths:
        raise SourceError(f"paths: got {paths!r}; accepted: a sequence of paths of Parquet files")
    given = check_classes(classes)
    with ThreadPoolExecutor(min(16, len(paths))) as pool:
        files = list(pool.map(open_file, paths))
    columns = find_columns(files[0].path, files[0].schema, image_column, label_column)
    for file in files[1:]:
        check_alike(files[0].path, files[0].schema, columns, file.path, file.schema)
    if sum(file.metadata.num_rows for file in files) == 0:
        raise SourceError(f"{files[0].path}: no rows{' in any of the files' if len(files) > 1 else ''}")
    labels, names, notes = None, given or columns.class_names, list(columns.notes)
    if columns.label is None:
        notes.append(f"no column of labels in {files[0].name}: every label is -1")
    else:
        labels, names, more = read_labels(files, columns.label, names)
        notes += more
    readers = [GroupReader(file, columns.image) for file in files]
    if unpack:
        notes += _place(readers, memory, cache_folder(cache_dir))
    root = None if image_root is None else _check_root(plain(image_root))
    return ParquetSource(readers, labels, names, notes, memory, root)


def _check_root(folder: str) -> str:
    if is_url(folder) or not os.path.isdir(folder):
        what = "an address" if is_url(folder) else "no such folder"
        raise SourceError(f"image_root: got {shown(folder)!r}, {what}; accepted: a folder of this machine")
    return os.path.abspath(folder)


def _place(readers: list[GroupReader], memory: int, cache: Path) -> list[str]:
    """Where the row groups do not fit in memory, give each file its folder in the cache; the notes that say so."""
    total = sum(sum(reader.expected) for reader in readers)
    if total <= memory:
        return []
    for reader in readers:
        reader.folder = unpacked_folder(cache, reader.file, reader.column)
    missing = sum(reader.missing_bytes() for reader in readers)
    free = shutil.disk_usage(next(place for place in (cache, *cache.absolute().parents) if place.exists())).free
    size = f"{_size(total)} of images do not fit in memory={_size(memory)}"
    if missing > free:
        for reader in readers:
            reader.folder = None
        return [
            f"{size}, and unpacking them needs {_size(missing)} in {cache}, where {_size(free)} are free: reading in "
            "random order will be slow"
        ]
    return [f"{size}: unpacked into {cache}, each row group when first read"]


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"

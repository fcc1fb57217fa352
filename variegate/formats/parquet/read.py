"""Images in Parquet files, in the layout of Hugging Face's data sets, read in any order."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.base import (
    FilesSource,
    Item,
    SampleName,
    SourceError,
    StoredFile,
    check_index,
    digest_of,
)
from variegate.formats.labels import NO_LABEL, Labels, check_classes, hash_labels, label_at
from variegate.formats.parquet.columns import check_alike, find_columns, read_labels
from variegate.formats.parquet.file import check_root, open_file, read_named_file, reason_for
from variegate.formats.parquet.row_groups import GroupCache, GroupReader, Rows, SizedValue, choose_unpacking
from variegate.io.location import LocationLike, cache_folder

MEMORY = 512 << 20


class ParquetSource(FilesSource):
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
        files = [(reader.file, sum(reader.rows)) for reader in readers]
        super().__init__([StoredFile(file.location, rows, file.size, file.stamp) for file, rows in files], classes)
        self._image_root, self._readers, self._labels = image_root, list(readers), labels
        self._notes, self._memory = list(notes), memory
        self._groups = [(reader, group) for reader in readers for group in range(len(reader.rows))]
        self._group_starts = list(accumulate((reader.rows[group] for reader, group in self._groups), initial=0))[:-1]
        names = [(file, rows, reader.column) for (file, rows), reader in zip(files, readers, strict=True)]
        parts = [f"\0{file.name}\0{file.size}\0{rows}\0{column}" for file, rows, column in names]
        self.fingerprint = digest_of("\0".join(classes), *parts, hash_labels(labels))
        self.__setstate__({})

    @property
    def held_bytes(self) -> int:
        """Memory that decoded row groups (or, where they are unpacked, their lists of places) take now."""
        return self._cache.nbytes

    def read(self, index: int) -> Item:
        """The bytes of the image file in that row. Raises DecodeError naming the Parquet file and the row in it."""
        check_index(index, len(self))
        at = bisect_right(self._group_starts, index) - 1
        row = index - self._group_starts[at]
        reader, group = self._groups[at]
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
            reason = f"its row group {group} cannot be read: {reason_for(error, reader.file.location)}"
            raise DecodeError(str(self.name(index)), reason) from None
        if data is None:
            data = read_named_file(path, reader.file.location, self._image_root, str(self.name(index)))
        return Item(data, label_at(self._labels, index))

    def name(self, index: int) -> SampleName:
        file, row = self._place(index)
        return SampleName(str(self._stored[file].location), f"row {row}")

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return np.full(len(indices), NO_LABEL) if self._labels is None else self._labels[indices]

    def notes(self) -> list[str]:
        failures = [reader.failure for reader in self._readers if reader.failure is not None]
        lines = [f"rows cannot be unpacked, and reading in random order will be slow: {text}" for text in failures[:1]]
        return [*self._notes, *lines]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        groups = self._groups

        def load(at: int) -> SizedValue[Rows]:
            reader, group = groups[at]
            return reader.load(group)

        def expect(at: int) -> int:
            reader, group = groups[at]
            return reader.expected[group]

        self._cache: GroupCache[int, Rows] = GroupCache(load, expect, self._memory)


def open_parquet(
    paths: Sequence[LocationLike],
    classes: Sequence[str] | None = None,
    image_column: str | None = None,
    label_column: str | None = None,
    *,
    memory: int = MEMORY,
    cache_dir: str | os.PathLike[str] | None = None,
    unpack: bool = True,
    image_root: str | os.PathLike[str] | None = None,
    has_labels: bool = True,
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
    where it leads there by links or "..". ``has_labels``: False for no labels, whatever the columns are called.

    Raises SourceError naming the file: no such file, not Parquet, no images in it, or columns of other types than the
    file before it has.
    """
    if isinstance(paths, (str, os.PathLike)) or not paths:
        raise SourceError(f"paths: got {paths!r}; accepted: a sequence of paths of Parquet files")
    given = check_classes(classes)
    with ThreadPoolExecutor(min(16, len(paths))) as pool:
        files = list(pool.map(open_file, paths))
    columns = find_columns(files[0], image_column, label_column)
    if not has_labels:
        columns = columns._replace(label=None, class_names=(), notes=())
    for file in files[1:]:
        check_alike(files[0], columns, file, has_labels)
    if sum(file.metadata.num_rows for file in files) == 0:
        raise SourceError(f"{files[0].location}: no rows{' in any of the files' if len(files) > 1 else ''}")
    labels, names, notes = None, given or columns.class_names, list(columns.notes)
    if columns.label is None and has_labels:
        notes.append(f"no column of labels in {files[0].name}: every label is -1")
    elif columns.label is not None:
        labels, names, more = read_labels(files, columns.label, names)
        notes += more
    readers = [GroupReader(file, columns.image) for file in files]
    if unpack:
        notes += choose_unpacking(readers, memory, cache_folder(cache_dir))
    root = None if image_root is None else check_root(image_root)
    return ParquetSource(readers, labels, names, notes, memory, root)

"""What a cleaned copy is made of, cut into items: a file each, be it an image or a shard."""

from __future__ import annotations

import hashlib
import io
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from variegate.errors import DecodeError
from variegate.formats.base import SourceError
from variegate.formats.folder import FLAT_CLASS
from variegate.formats.reading import filesystem, named_errors, read_file
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage
from variegate.io.files import open_regular, read_regular
from variegate.io.location import Location
from variegate.jobs.output.manifest import CHECKSUM_NAME, MANIFEST_NAME
from variegate.jobs.output.run_record import LEFT_OUT_NAME, SETTINGS_NAME, SOURCE_NAME

_OURS = {LEFT_OUT_NAME, MANIFEST_NAME, CHECKSUM_NAME, SETTINGS_NAME, SOURCE_NAME}
_MOST_BYTES = 64 << 30
_FILES_AT_ONCE = 64
_BYTES_AT_ONCE = 32 << 20

Row = dict[str, Any]


class Copies:
    """``count`` items, of which ``at_once`` are made in one go. ``folders``: to be there even if nothing is in them."""

    count: int
    at_once = 1
    folders: Sequence[str] = ()

    @abstractmethod
    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        """Copy the items ``start..stop-1`` -> rows of the manifest; none for an item of which nothing is left.

        Raises SourceError for what cannot be read, WriteError.
        """

    def item_of(self, row: Row) -> int:
        """The item that a row of the manifest is of."""
        return int(row["index"])


class FileCopies(Copies):
    """Images of a FileSource, byte for byte, under their names below the folder."""

    at_once = _FILES_AT_ONCE

    def __init__(self, source: Any, kept: npt.NDArray[np.int64]) -> None:
        self._source = source
        self._kept = kept
        self.count = len(kept)
        self.folders = [name for name in source.classes if name != FLAT_CLASS]
        for index in kept.tolist():
            check_free(source.relative_path(index), source.name(index))

    def make(self, storage: Storage, start: int, stop: int) -> list[Row]:
        rows, waiting, size = [], [], 0
        ids = self._source.ids(self._kept[start:stop]).tolist()
        for item in range(start, stop):
            index = int(self._kept[item])
            name, data = self._source.relative_path(index), self._read(index)
            waiting.append((name, data))
            size += len(data)
            row = written(printable(name), index, len(data), hashlib.sha256(data).hexdigest())
            rows.append(row | {"source": printable(name), "id": ids[item - start]})
            if size > _BYTES_AT_ONCE:
                storage.write_many(waiting)
                waiting, size = [], 0
        storage.write_many(waiting)
        return rows

    def item_of(self, row: Row) -> int:
        return int(np.searchsorted(self._kept, row["index"]))

    def _read(self, index: int) -> bytes:
        """The file as it is, be it no image."""
        folder = cast(Location, self._source.folder)
        place = str(self._source.name(index))
        try:
            if folder.is_url:
                return read_file(folder.child(self._source.relative_path(index)), _MOST_BYTES)
            return read_regular(self._source.name(index).file, _MOST_BYTES)
        except DecodeError as error:
            reason = error.reason
        except OSError as error:
            reason = error.strerror or str(error)
        raise SourceError(f"{place}: cannot be copied ({reason}); restore it, or run variegate check again")


def check_free(name: str, place: Any) -> None:
    """Raises SourceError for a name that stands for something else in a copy."""
    if name in _OURS:
        raise SourceError(f"{place}: has a name that a copy needs for itself; rename it")


def written(file: str, index: int, size: int, digest: str) -> Row:
    """A row of the manifest."""
    return {"file": file, "status": "written", "index": index, "copy": 0, "bytes": size, "sha256": digest}


def opened(location: Location) -> AbstractContextManager[BinaryIO]:
    """A file that can be read here and there. Raises SourceError."""
    with named_errors(location):
        if not location.is_url:
            return cast("AbstractContextManager[BinaryIO]", io.BufferedReader(open_regular(location.address())))
        fs, path = filesystem(location)
        return cast("AbstractContextManager[BinaryIO]", fs.open(path, "rb"))
